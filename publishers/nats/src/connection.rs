use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectOptions, ServerAddr};
use pillarbox_core::publisher::PublishError;
use tokio::time::Instant;

use crate::NatsPublisher;
use crate::error::{Failure, publish_error};
use crate::refusals::Refusals;
use crate::servers::Login;

/// Messages of all calls that are under way on a connection.
pub(crate) const IN_FLIGHT: usize = 8192;
/// The messages that a client's queue holds before they are written.
const QUEUE: usize = 2048;

/// One connection, which is never made again by itself: once it is lost, all that waits on it fails at once, and nothing that
/// was kept back is sent behind the caller's back.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    pub(crate) context: jetstream::Context,
    pub(crate) refusals: Arc<Refusals>,
    /// The time of the last answer to a message of any call.
    answered: Mutex<Option<Instant>>,
}

impl Connection {
    pub(crate) async fn open(publisher: &NatsPublisher) -> Result<Self, PublishError> {
        let NatsPublisher { options, servers, .. } = publisher;
        let refusals = Arc::new(Refusals::default());
        let connect = connect_options(publisher, &refusals).await?;
        let client = connect
            .connect(&*servers.addresses)
            .await
            .map_err(|failure| publish_error(&Failure::Connect(&failure, servers)))?;
        forget_the_servers(&client).await?;
        let context = ContextBuilder::new()
            // Beyond the deadline of every call, which ends by itself.
            .timeout(options.timeout.saturating_mul(2))
            .ack_timeout(options.timeout)
            // Calls bound themselves; room for what dropped calls have left under way.
            .max_ack_inflight(2 * IN_FLIGHT)
            .backpressure_on_inflight(true)
            .build(client.clone());
        Ok(Self { client, context, refusals, answered: Mutex::default() })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    pub(crate) fn note_answer(&self, now: Instant) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// True if a message was answered at `since` or later: then this is no connection that hangs.
    pub(crate) fn has_answered_since(&self, since: Instant) -> bool {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|last| last >= since)
    }
}

/// Keeps the client from connecting again by itself, which it can only be told in this way: of the servers it would try, none
/// is left but one that refuses at once, as nobody listens on port 0.
async fn forget_the_servers(client: &Client) -> Result<(), PublishError> {
    let unusable = |_| PublishError::unavailable("the connection was lost as soon as it was made");
    let nobody: ServerAddr = "nats://127.0.0.1:0".parse().map_err(|failure: std::io::Error| {
        PublishError::unavailable(format!("the connection cannot be kept from being made again: {failure}"))
    })?;
    client.set_server_pool(nobody).await.map_err(unusable)
}

async fn connect_options(publisher: &NatsPublisher, refusals: &Arc<Refusals>) -> Result<ConnectOptions, PublishError> {
    let NatsPublisher { options, servers, tls, .. } = publisher;
    let refusals = Arc::clone(refusals);
    let mut connect = ConnectOptions::new()
        .name("pillarbox")
        .connection_timeout(options.timeout)
        .client_capacity(QUEUE)
        // Each server once. As many again are those of a client that looks for its lost connection: none.
        .max_reconnects(servers.addresses.len())
        .reconnect_delay_callback(|_| Duration::ZERO)
        .ignore_discovered_servers()
        // A connection that nobody waits for any more ends when three of these went unanswered.
        .ping_interval(options.timeout.max(Duration::from_secs(1)))
        .event_callback(move |event| {
            refusals.note(&event, Instant::now());
            std::future::ready(())
        });
    if let Some(prefix) = &options.inbox_prefix {
        connect = connect.custom_inbox_prefix(prefix);
    }
    if let Some(tls) = tls {
        connect = connect.tls_client_config(tls.clone());
    }
    match &servers.login {
        Login::Nobody => Ok(connect),
        Login::Token(token) => Ok(connect.token(token.expose().to_owned())),
        Login::Password(username, password) => {
            Ok(connect.user_and_password(username.clone(), password.expose().to_owned()))
        }
        Login::Nkey(seed) => Ok(connect.nkey(seed.expose().to_owned())),
        Login::File(path) => connect.credentials_file(path).await.map_err(|failure| {
            let file = path.display();
            PublishError::misconfigured(format!("the credentials in {file} cannot be used: {failure}"))
        }),
    }
}
