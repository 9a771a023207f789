//! A RabbitMQ of the test's own, and what is in its queues.

#![allow(dead_code, clippy::expect_used, clippy::panic, reason = "a test's helpers, of which each test uses some")]

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use pillarbox_core::error::BoxError;
use pillarbox_rabbitmq::RabbitMqOptions;
use pillarbox_testkit::publishers::{Arrived, Place, Server};

/// Debian's `rabbitmqctl` in `PATH` changes the user; this one does not.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";

/// Starts a broker with its own name server, so that nothing of it is shared or stays.
pub(crate) async fn start() -> Result<Server, BoxError> {
    if !Path::new(PROGRAMS).join("rabbitmq-server").is_file() {
        return Err(format!("this test needs {PROGRAMS}/rabbitmq-server: run scripts/setup").into());
    }
    Server::start("sh", |place, command| {
        let Place { port, directory, .. } = place;
        let (names, others, tls) = (free_port()?, free_port()?, free_port()?);
        let file = |name: &str| directory.join(name);
        std::fs::write(file("names.port"), names.to_string())?;
        std::fs::write(file("tls.port"), tls.to_string())?;
        std::fs::write(file("plugins"), "[].")?;
        if !file("cert.pem").exists() {
            certificate(directory)?;
        }
        let folder = directory.display();
        let settings = format!(
            "listeners.ssl.1 = 127.0.0.1:{tls}\nssl_options.cacertfile = {folder}/cert.pem\n\
             ssl_options.certfile = {folder}/cert.pem\nssl_options.keyfile = {folder}/key.pem\n\
             ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n\
             disk_free_limit.absolute = 10MB\nmax_message_size = 5000000\nlog.console = true\n"
        );
        std::fs::write(file("rabbitmq.conf"), settings)?;
        command.args(["-c", &format!("epmd -address 127.0.0.1 & exec {PROGRAMS}/rabbitmq-server")]);
        environment(place, command)?;
        command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", port.to_string());
        command.env("RABBITMQ_DIST_PORT", others.to_string()).env("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf"));
        command.env("RABBITMQ_ENABLED_PLUGINS_FILE", file("plugins"));
        command.env("RABBITMQ_MNESIA_BASE", file("data")).env("RABBITMQ_LOG_BASE", file("log"));
        Ok(())
    })
    .await
}

/// What finds the broker's node.
fn environment(place: &Place, command: &mut Command) -> io::Result<()> {
    let names = std::fs::read_to_string(place.directory.join("names.port"))?;
    command.env("HOME", &place.directory).env("ERL_EPMD_PORT", names).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    command
        .env("RABBITMQ_NODENAME", format!("test{}@localhost", place.port))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
    Ok(())
}

/// Runs `rabbitmqctl`.
pub(crate) fn control(server: &Server, arguments: &[&str]) -> Result<(), BoxError> {
    let mut command = Command::new(Path::new(PROGRAMS).join("rabbitmqctl"));
    environment(server.place(), &mut command)?;
    let output = command.args(arguments).output()?;
    let said = [output.stdout, output.stderr].concat();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned().into()) }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A certificate for `localhost` alone.
fn certificate(directory: &Path) -> io::Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=pillarbox test", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"]);
    let made = openssl.current_dir(directory).output()?;
    if made.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()))
    }
}

/// Where the broker speaks TLS, and whom it was certified by.
pub(crate) fn tls(server: &Server) -> Result<(u16, PathBuf), BoxError> {
    let directory = &server.place().directory;
    Ok((std::fs::read_to_string(directory.join("tls.port"))?.parse()?, directory.join("cert.pem")))
}

/// Options for a server, or for a proxy before it.
pub(crate) fn options(port: u16) -> RabbitMqOptions {
    let mut options = RabbitMqOptions::new(format!("amqp://guest:guest@127.0.0.1:{port}"));
    options.timeout = Duration::from_secs(20);
    options
}

/// The broker's own client, past the publisher.
pub(crate) struct Client {
    _connection: Connection,
    channel: Channel,
}

impl Client {
    pub(crate) async fn connect(port: u16) -> Result<Self, BoxError> {
        let url = format!("amqp://guest:guest@127.0.0.1:{port}");
        let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok(Self { _connection: connection, channel })
    }

    /// Makes a durable queue, with arguments.
    pub(crate) async fn queue(&self, name: &str, arguments: &[(&str, AMQPValue)]) -> Result<(), BoxError> {
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), value.clone());
        }
        self.channel.queue_declare(name.into(), QueueDeclareOptions::durable(), table).await?;
        Ok(())
    }

    /// Makes a queue that ends with the broker.
    pub(crate) async fn transient(&self, name: &str) -> Result<(), BoxError> {
        self.channel.queue_declare(name.into(), QueueDeclareOptions::default(), FieldTable::default()).await?;
        Ok(())
    }

    /// Makes a durable topic exchange.
    pub(crate) async fn exchange(&self, name: &str) -> Result<(), BoxError> {
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        Ok(self.channel.exchange_declare(name.into(), ExchangeKind::Topic, durable, FieldTable::default()).await?)
    }

    /// Makes a durable queue, bound to an exchange.
    pub(crate) async fn bound(&self, queue: &str, exchange: &str, key: &str) -> Result<(), BoxError> {
        self.queue(queue, &[]).await?;
        let bind = QueueBindOptions::default();
        Ok(self.channel.queue_bind(queue.into(), exchange.into(), key.into(), bind, FieldTable::default()).await?)
    }

    pub(crate) async fn delete_exchange(&self, name: &str) -> Result<(), BoxError> {
        Ok(self.channel.exchange_delete(name.into(), lapin::options::ExchangeDeleteOptions::default()).await?)
    }

    pub(crate) async fn delete_queue(&self, name: &str) -> Result<(), BoxError> {
        self.channel.queue_delete(name.into(), QueueDeleteOptions::default()).await?;
        Ok(())
    }

    /// Takes all messages out of a queue.
    pub(crate) async fn drain(&self, queue: &str) -> Result<Vec<Arrived>, BoxError> {
        let mut arrived = Vec::new();
        while let Some(message) = self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await? {
            let message = message.delivery;
            let text = |text: &Option<ShortString>| text.as_ref().map(ToString::to_string);
            let headers = message.properties.headers().iter().flat_map(|table| table.inner());
            let header = |(name, value): (&ShortString, &AMQPValue)| match value {
                AMQPValue::LongString(text) => Ok((name.to_string(), String::from_utf8(text.as_bytes().to_vec())?)),
                other => Err(BoxError::from(format!("the header {name} is no text: {other:?}"))),
            };
            assert_eq!(message.properties.delivery_mode(), &Some(2), "it is persistent");
            let one = Arrived {
                id: text(message.properties.message_id()),
                key: None,
                content_type: text(message.properties.content_type()),
                headers: headers.map(header).collect::<Result<_, _>>()?,
                body: message.data,
            };
            arrived.push(one);
        }
        Ok(arrived)
    }
}
