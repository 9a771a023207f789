//! A NATS server of the test's own, and a client beside the publisher.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use pillarbox_core::error::BoxError;
use pillarbox_testkit::publishers::{Arrived, Server};
use tokio::time::{Instant, sleep};

pub(crate) const USER: &str = "relay";
pub(crate) const PASSWORD: &str = "right-passw0rd";

/// A server with JetStream that lets in [`USER`] with [`PASSWORD`].
pub(crate) async fn start() -> Result<Server, BoxError> {
    start_with(&format!("authorization {{ user: {USER}, password: \"{PASSWORD}\" }}")).await
}

/// A server with JetStream and these lines of configuration, in which `$DIRECTORY` is the server's.
pub(crate) async fn start_with(configuration: &str) -> Result<Server, BoxError> {
    start_as(format!("jetstream {{ store_dir: \"$DIRECTORY/data\" }}\n{configuration}")).await
}

/// A server with these lines of configuration.
pub(crate) async fn start_as(configuration: String) -> Result<Server, BoxError> {
    Server::start("nats-server", move |place, command| {
        let file = place.directory.join("nats.conf");
        let configuration = configuration.replace("$DIRECTORY", &place.directory.display().to_string());
        std::fs::write(&file, format!("host: 127.0.0.1\nport: {}\n{configuration}\n", place.port))?;
        command.arg("--config").arg(file);
        Ok(())
    })
    .await
}

/// A JetStream context of a client that has nothing to do with the publisher.
pub(crate) async fn client(server: &Server) -> Result<jetstream::Context, BoxError> {
    let options = async_nats::ConnectOptions::new().user_and_password(USER.to_owned(), PASSWORD.to_owned());
    Ok(jetstream::new(options.connect(server.address().to_string()).await?))
}

/// Makes a stream.
pub(crate) async fn stream(client: &jetstream::Context, name: &str, subjects: &[&str]) -> Result<(), BoxError> {
    let subjects = subjects.iter().map(|subject| (*subject).to_owned()).collect();
    client.create_stream(stream::Config { name: name.to_owned(), subjects, ..Default::default() }).await?;
    Ok(())
}

/// All messages of a stream, once there are so many, or after some seconds.
pub(crate) async fn stored(client: &jetstream::Context, stream: &str, least: usize) -> Result<Vec<Arrived>, BoxError> {
    let began = Instant::now();
    let stream = client.get_stream(stream).await?;
    let state = loop {
        let state = stream.get_info().await?.state;
        if usize::try_from(state.messages)? >= least || began.elapsed() > Duration::from_secs(5) {
            break state;
        }
        // Nobody tells when a stream has grown.
        sleep(Duration::from_millis(10)).await;
    };
    let mut stored = Vec::new();
    if state.messages == 0 {
        return Ok(stored);
    }
    for sequence in state.first_sequence..=state.last_sequence {
        let message = stream.get_raw_message(sequence).await?;
        let headers = message
            .headers
            .iter()
            .flat_map(|(name, values)| values.iter().map(|value| (name.to_string(), value.as_str().to_owned())));
        let headers: Vec<(String, String)> = headers.collect();
        let mut arrived = Arrived { headers, body: message.payload.to_vec(), ..Arrived::default() };
        let id = arrived.header("nats-msg-id").and_then(|id| id.strip_suffix(&format!(":{}", message.subject)));
        arrived.id = id.map(str::to_owned);
        arrived.content_type = arrived.header("content-type").map(str::to_owned);
        stored.push(arrived);
    }
    Ok(stored)
}

/// Makes a certificate authority and a certificate for `localhost` alone, in a directory: `ca.pem`, `cert.pem`, `key.pem`.
pub(crate) fn certificates(directory: &Path) -> Result<(), BoxError> {
    let openssl = |arguments: &str| -> Result<(), BoxError> {
        let output = std::process::Command::new("openssl").current_dir(directory).args(arguments.split(' ')).output();
        let output = output.map_err(|error| format!("this test needs `openssl`: run scripts/setup ({error})"))?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned().into()) }
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=authority"))?;
    openssl(&format!("req {key} -keyout key.pem -out request.pem -subj /CN=localhost"))?;
    std::fs::write(directory.join("names"), "subjectAltName=DNS:localhost\n")?;
    openssl(
        "x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -out cert.pem -days 2 -extfile names",
    )
}
