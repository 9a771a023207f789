//! A NATS server of the test's own.

use async_nats::jetstream::{self, stream};
use pillarbox_testkit::publishers::Server;

pub(crate) const PASSWORD: &str = "right-passw0rd";

pub(crate) async fn start() -> Server {
    let server = Server::start("nats-server", |place, command| {
        let file = place.directory.join("nats.conf");
        let (port, data) = (place.port, place.directory.join("data"));
        let configuration = format!(
            "host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: \"{}\" }}\nauthorization {{ user: relay, password: \"{PASSWORD}\" }}\n",
            data.display()
        );
        std::fs::write(&file, configuration)?;
        command.arg("--config").arg(file);
        Ok(())
    });
    server.await.unwrap()
}

/// A client that has nothing to do with the relay, and a stream of these subjects.
pub(crate) async fn client(server: &Server, subjects: &[&str]) -> jetstream::Context {
    let options = async_nats::ConnectOptions::new().user_and_password("relay".to_owned(), PASSWORD.to_owned());
    let client = jetstream::new(options.connect(server.address().to_string()).await.unwrap());
    let subjects = subjects.iter().map(|subject| (*subject).to_owned()).collect();
    let config = stream::Config {
        name: "EVENTS".to_owned(),
        subjects,
        // Shorter than the broker is away: a duplicate is then seen, not dropped by it.
        duplicate_window: std::time::Duration::from_millis(100),
        ..Default::default()
    };
    client.create_stream(config).await.unwrap();
    client
}

/// What the stream holds, in its order: event id, key and subject.
pub(crate) async fn stored(client: &jetstream::Context) -> Vec<(String, String, String)> {
    let stream = client.get_stream("EVENTS").await.unwrap();
    let state = stream.get_info().await.unwrap().state;
    let mut stored = Vec::new();
    if state.messages == 0 {
        return stored;
    }
    for sequence in state.first_sequence..=state.last_sequence {
        let message = stream.get_raw_message(sequence).await.unwrap();
        let header = |name: &str| {
            let value = message.headers.get(name).map(|value| value.as_str().to_owned());
            value.unwrap_or_default()
        };
        stored.push((header("event-id"), header("event-key"), message.subject.to_string()));
    }
    stored
}
