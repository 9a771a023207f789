use std::sync::Arc;

use pillarbox_core::publisher::{Linked, PublishError};
use rumqttc::{AsyncClient, Event, NetworkOptions, Packet, TlsConfiguration, Transport};
use tokio::time::{Instant, timeout, timeout_at};

use crate::pace::MAX_IN_FLIGHT;
use crate::session::Session;
use crate::{MqttPublisher, error};

/// The seconds of silence that both sides bear, until the client asks whether the broker is there.
const KEEP_ALIVE: u16 = 10;
/// The number of messages that wait to be sent before their callers do.
const WAITING: usize = 100;

impl MqttPublisher {
    /// The connection that all calls share, by the deadline; one that has ended is replaced.
    pub(crate) async fn connected(&self, deadline: Instant) -> Result<Linked<Arc<Session>>, PublishError> {
        let linked = timeout_at(deadline, self.link.get_if(|session| session.is_open(), self.connect())).await;
        linked.unwrap_or_else(|_| Err(self.late("connecting")))
    }

    async fn connect(&self) -> Result<Arc<Session>, PublishError> {
        let attempt = timeout(self.options.timeout, self.log_in()).await;
        attempt.map_err(|_| self.late("connecting"))?.map(Arc::new)
    }

    async fn log_in(&self) -> Result<Session, PublishError> {
        let address = &self.info.address;
        let options = self.settings();
        options.validate().map_err(|error| PublishError::misconfigured(format!("{address}: {error}")))?;
        let (client, mut events) = AsyncClient::builder(options).capacity(WAITING).build();
        loop {
            let event = events.poll().await.map_err(|error| error::publish_error(&error, address))?;
            if let Event::Incoming(Packet::ConnAck(welcome)) = event {
                let max_packet = welcome.properties.and_then(|properties| properties.max_packet_size);
                return Ok(Session::new(client, events, max_packet, address.clone()));
            }
        }
    }

    fn settings(&self) -> rumqttc::MqttOptions {
        let Self { options, host, .. } = self;
        let id = options.client_id.clone().unwrap_or_default();
        let mut settings = rumqttc::MqttOptions::new(id, (host.name.clone(), host.port));
        settings.set_clean_start(true).set_keep_alive(KEEP_ALIVE).set_outgoing_inflight_upper_limit(MAX_IN_FLIGHT);
        settings.set_connect_timeout(options.timeout);
        let mut network = NetworkOptions::new();
        network.set_tcp_nodelay(true);
        settings.set_network_options(network);
        if let Some((username, password)) = &self.login {
            settings.set_credentials(username.clone(), password.expose().to_owned());
        }
        if let Some(tls) = &self.tls {
            settings.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(Arc::clone(tls))));
        }
        settings
    }

    /// The error when the time is up.
    pub(crate) fn late(&self, doing: &str) -> PublishError {
        PublishError::unavailable(format!("{} did not answer in time ({doing})", self.info.address))
    }
}
