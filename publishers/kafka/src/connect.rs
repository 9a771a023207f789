//! A client for all calls, made when it is first needed, and made anew after an error that it cannot recover from.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::PublishError;
use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::{Producer as _, ThreadedProducer};
use rdkafka::types::RDKafkaConfRes;
use tokio::time::timeout;

use crate::trouble::Context;

/// The time for which the end of a client is waited for. One of its threads may be looking up a name, which nothing can stop.
const LAST_WAIT: Duration = Duration::from_secs(5);

pub(crate) type Client = ThreadedProducer<Context>;

/// The client, or none yet, or none any more.
pub(crate) struct Connection {
    config: ClientConfig,
    state: Mutex<State>,
}

enum State {
    Unused,
    Open(Arc<Client>),
    Closed,
}

/// Without the properties, which hold secrets.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match *self.state() {
            State::Unused => "unused",
            State::Open(_) => "open",
            State::Closed => "closed",
        };
        write!(f, "Connection({state})")
    }
}

impl Connection {
    /// Checks the properties, and connects to nothing.
    pub(crate) fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        config.create_native_config().map_err(|error| refuse(&error))?;
        Ok(Self { config, state: Mutex::new(State::Unused) })
    }

    /// A client that asks for settings, for as long as it lives.
    pub(crate) fn admin(&self) -> KafkaResult<AdminClient<DefaultClientContext>> {
        self.config.create()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, which connects in the background. No more than one is made at a time: making it takes no waiting.
    pub(crate) fn client(&self) -> Result<Arc<Client>, PublishError> {
        let mut state = self.state();
        let spent = match &*state {
            State::Closed => return Err(PublishError::unavailable("the publisher is closed")),
            State::Open(client) if client.client().fatal_error().is_none() => return Ok(Arc::clone(client)),
            State::Open(client) => Some(Arc::clone(client)),
            State::Unused => None,
        };
        let client: Client = self
            .config
            .create_with_context(Context::default())
            .map_err(|error| PublishError::misconfigured(format!("no client can be made: {error}")))?;
        let client = Arc::new(client);
        *state = State::Open(Arc::clone(&client));
        drop(state);
        if let Some(spent) = spent {
            leave(spent);
        }
        Ok(client)
    }

    pub(crate) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        if let State::Open(client) = state {
            // A panic of the client is none of the caller's.
            let ended = tokio::task::spawn_blocking(move || drop(client));
            if timeout(LAST_WAIT, ended).await.is_err() {
                let brokers = self.config.get("bootstrap.servers");
                tracing::warn!(
                    brokers,
                    "a client of Kafka has not ended within {LAST_WAIT:?}, and is waited for no longer"
                );
            }
        }
    }
}

/// Ending a client waits for its threads, which is nothing for a thread of the runtime.
pub(crate) fn leave(client: Arc<Client>) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn_blocking(move || drop(client)));
    }
}

/// Says which property it is, and never its value, which librdkafka's own text shows.
fn refuse(error: &KafkaError) -> ConfigError {
    let problem = match error {
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, name, _) => {
            format!("holds `{name}`, which librdkafka does not know, or was built without")
        }
        KafkaError::ClientConfig(_, _, name, _) => format!("holds `{name}` with a value that librdkafka does not take"),
        _ => "cannot be used".to_owned(),
    };
    ConfigError::new("properties", problem, "see librdkafka's CONFIGURATION.md")
}
