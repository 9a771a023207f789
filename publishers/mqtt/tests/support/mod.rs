//! A Mosquitto of the test's own, and somebody who listens.

#![allow(dead_code, clippy::expect_used, clippy::panic, reason = "a test's helpers, of which each test uses some")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_mqtt::MqttOptions;
use pillarbox_testkit::publishers::{Arrived, Server};
use rumqttc::{AsyncClient, Event, Packet, Publish, QoS};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) const USER: &str = "relay";
pub(crate) const PASSWORD: &str = "s3cret-of-the-suite";

/// Starts a broker for the user `relay`, with more of its settings. `{dir}` in them is its directory.
pub(crate) async fn start(settings: &'static str) -> Result<Server, BoxError> {
    start_with(settings, |_| Ok(())).await
}

/// The same, with files of its own in the broker's directory.
pub(crate) async fn start_with(
    settings: &'static str,
    write: impl Fn(&Path) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<Server, BoxError> {
    Server::start("mosquitto", move |place, command| {
        let folder = place.directory.display().to_string();
        // It leaves the rights of root, and must still reach its directory.
        let configuration = format!(
            "user root\nallow_anonymous false\npassword_file {folder}/passwords\nmax_queued_messages 100000\n\
             pid_file {folder}/pid\npersistence true\npersistence_location {folder}/\n\
             listener {} 127.0.0.1\n{}\n",
            place.port,
            settings.replace("{dir}", &folder)
        );
        std::fs::write(place.directory.join("mosquitto.conf"), configuration)?;
        write(&place.directory)?;
        if !place.directory.join("passwords").exists() {
            let mut passwords = Command::new("mosquitto_passwd");
            passwords.args(["-b", "-c"]).arg(place.directory.join("passwords")).args([USER, PASSWORD]).status()?;
            certificate(&place.directory)?;
        }
        command.arg("-c").arg(place.directory.join("mosquitto.conf"));
        Ok(())
    })
    .await
}

/// Asks the broker to end, and waits until it has: unlike a kill, that lets it write what it has to disk.
pub(crate) async fn stop(server: &Server) -> Result<(), BoxError> {
    let pid = std::fs::read_to_string(server.place().directory.join("pid"))?;
    Command::new("kill").args(["-TERM", pid.trim()]).status()?;
    // Nobody tells when a port is no longer answered, so it is asked.
    while tokio::net::TcpStream::connect(server.address()).await.is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// A certificate for `localhost` alone.
fn certificate(directory: &Path) -> std::io::Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=pillarbox test", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"]);
    let made = openssl.current_dir(directory).output()?;
    let failure = || std::io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned());
    if made.status.success() { Ok(()) } else { Err(failure()) }
}

/// Options for a server, or for a proxy before it.
pub(crate) fn options(port: u16) -> MqttOptions {
    let mut options = MqttOptions::new(format!("mqtt://127.0.0.1:{port}"));
    (options.username, options.password) = (Some(USER.to_owned()), Some(PASSWORD.into()));
    options.timeout = Duration::from_secs(20);
    options
}

/// Listens by the broker's protocol, past the publisher, to all that is published. Its session lasts, so that the broker keeps
/// for it what comes while it is away, and it comes back.
pub(crate) struct Listener {
    heard: Arc<Heard>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Heard {
    topics: Mutex<HashMap<String, Vec<Arrived>>>,
    more: Notify,
    /// The number of connections that have had a subscription.
    subscribed: watch::Sender<usize>,
}

impl Listener {
    pub(crate) async fn start(port: u16) -> Result<Self, BoxError> {
        let mut options = rumqttc::MqttOptions::new("listener", ("127.0.0.1".to_owned(), port));
        options.set_credentials(USER, PASSWORD).set_clean_start(false).set_session_expiry_interval(Some(3600));
        options.set_unlimited_incoming_packet_size();
        options.set_broker_session_resume_policy(rumqttc::BrokerSessionResumePolicy::AllowBrokerOnly);
        let (client, mut events) = AsyncClient::builder(options).capacity(10).build();
        let subscribed = client.subscribe_tracked("#", QoS::AtLeastOnce).await?;
        let again = client.clone();
        let heard = Arc::<Heard>::default();
        let (shared, mut task) = (Arc::clone(&heard), JoinSet::new());
        task.spawn(async move {
            let _client = client;
            let mut connections = 0;
            loop {
                match events.poll().await {
                    // A broker that was killed may have forgotten the session.
                    Ok(Event::Incoming(Packet::ConnAck(welcome))) => {
                        connections += 1;
                        if welcome.session_present {
                            shared.subscribed.send_modify(|subscribed| *subscribed += 1);
                        } else if connections > 1 {
                            again.try_subscribe("#", QoS::AtLeastOnce).expect("there is room");
                        }
                    }
                    Ok(Event::Incoming(Packet::SubAck(_))) => {
                        shared.subscribed.send_modify(|subscribed| *subscribed += 1);
                    }
                    Ok(Event::Incoming(Packet::Publish(publish))) => shared.hear(publish),
                    Ok(_) => {}
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            }
        });
        subscribed.wait_completion_async().await?;
        Ok(Self { heard, _task: task })
    }

    /// Waits until so many of its connections have had a subscription: from then on it hears all that is published.
    pub(crate) async fn subscribed(&self, connections: usize) {
        let mut subscribed = self.heard.subscribed.subscribe();
        // The sender lives in `self`, so waiting ends only when the number is reached.
        drop(subscribed.wait_for(|subscribed| *subscribed >= connections).await);
    }

    /// What has arrived at a topic once there are so many, or after some seconds.
    pub(crate) async fn arrived(&self, topic: &str, least: usize) -> Vec<Arrived> {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let more = self.heard.more.notified();
            let arrived =
                self.heard.topics.lock().expect("nobody has panicked").get(topic).cloned().unwrap_or_default();
            if arrived.len() >= least || timeout_at(deadline, more).await.is_err() {
                return arrived;
            }
        }
    }
}

impl Heard {
    fn hear(&self, publish: Publish) {
        let properties = publish.properties.unwrap_or_default();
        let arrived = Arrived {
            id: None,
            key: None,
            content_type: properties.content_type,
            headers: properties.user_properties,
            body: publish.payload.to_vec(),
        };
        let topic = String::from_utf8(publish.topic.to_vec()).expect("a topic is text");
        self.topics.lock().expect("nobody has panicked").entry(topic).or_default().push(arrived);
        self.more.notify_waiters();
    }
}
