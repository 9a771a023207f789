//! The log names the source of each line, and no payload or password of an event.

use pillarbox_testkit::publishers::Server;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::nats;
use crate::relay::{Shop, free_port, logged, start_logging, stop, wait_for_page};

/// Two databases, and one broker for both that nobody answers for.
async fn two_sources() -> (Shop, Shop, std::path::PathBuf, u16) {
    let (shop, billing, port) = (Shop::open().await, Shop::open().await, free_port());
    let file = shop.configure(
        "single_node",
        &format!(
            "[[source]]\nname = \"billing\"\nstore.url = \"{}\"\n[relay]\nlisten = \"127.0.0.1:{port}\"\n\
             [publisher.events]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:{}\"\n\
             [[route]]\nname = \"all\"\npublisher = \"events\"\nto = \"orders\"\n",
            billing.database(),
            free_port()
        ),
    );
    (shop, billing, file, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_source_says_which_and_each_of_a_route_too() {
    let (shop, billing, file, port) = two_sources().await;
    shop.insert("order", 1, 1).await;
    billing.insert("order", 1, 1).await;
    for format in ["text", "json"] {
        let log = shop.folder.path().join(format);
        let running = start_logging(&file, "info", &log, &["--log", format]);
        wait_for_page(port, "/status", |_, body| body.matches("\"problem\"").count() == 2).await;
        logged(&log, "this node delivers", 2).await;
        stop(running).await;
        let log = std::fs::read_to_string(&log).unwrap();
        for source in ["shop", "billing"] {
            for what in ["the source delivers", "this node delivers", "a route is paused"] {
                let says = |line: &&str| match format {
                    "json" => serde_json::from_str::<Value>(line).is_ok_and(|line| line["span"]["source"] == source),
                    _ => line.contains(&format!("{{source=\"{source}\"}}: ")),
                };
                let found: Vec<&str> = log.lines().filter(|line| line.contains(what)).filter(says).collect();
                let [line] = found[..] else { panic!("{what:?} of {source}: {log}") };
                assert!(!what.contains("route") || line.contains("all"), "{line}");
            }
        }
    }
}

const PAYLOAD: &str = "m4rked-payload";
const TOKEN: &str = "m4rked-token";

/// Takes whatever is posted, for as long as it is polled.
async fn endpoint(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut request, mut piece) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&request).contains(PAYLOAD) {
            let read = stream.read(&mut piece).await.unwrap();
            request.extend_from_slice(&piece[..read]);
            if read == 0 || request.starts_with(b"HEAD") {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
    }
}

async fn redis() -> Server {
    let server = Server::start("redis-server", |place, command| {
        command.args(["--bind", "127.0.0.1", "--port", &place.port.to_string(), "--save", "", "--requirepass", TOKEN]);
        command.arg("--dir").arg(&place.directory);
        Ok(())
    });
    server.await.unwrap()
}

async fn mosquitto() -> Server {
    let server = Server::start("mosquitto", |place, command| {
        let file = place.directory.join("mosquitto.conf");
        std::fs::write(&file, format!("user root\nallow_anonymous true\nlistener {} 127.0.0.1\n", place.port))?;
        command.arg("-c").arg(file);
        Ok(())
    });
    server.await.unwrap()
}

async fn rabbitmq() -> Server {
    let server = Server::start("sh", |place, command| {
        // Debian's program in `PATH` changes the user; this one does not.
        command.args(["-c", "epmd -address 127.0.0.1 & exec /usr/lib/rabbitmq/bin/rabbitmq-server"]);
        let file = |name: &str| place.directory.join(name);
        std::fs::write(file("plugins"), "[].")?;
        std::fs::write(file("rabbitmq.conf"), "disk_free_limit.absolute = 10MB\nlog.console = true\n")?;
        command.env("HOME", &place.directory).env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command.env("ERL_EPMD_PORT", free_port().to_string()).env("RABBITMQ_DIST_PORT", free_port().to_string());
        command.env("RABBITMQ_NODENAME", format!("log{}@localhost", place.port));
        command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", place.port.to_string());
        command.env("RABBITMQ_CONF_ENV_FILE", "/dev/null").env("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf"));
        command.env("RABBITMQ_ENABLED_PLUGINS_FILE", file("plugins"));
        command.env("RABBITMQ_MNESIA_BASE", file("data")).env("RABBITMQ_LOG_BASE", file("log"));
        Ok(())
    });
    server.await.unwrap()
}

/// Each client that this program is built with takes a message at the level at which it says the most.
#[tokio::test(flavor = "multi_thread")]
async fn no_level_shows_a_payload_or_a_password() {
    let (nats_server, redis, mosquitto, rabbitmq) = tokio::join!(nats::start(), redis(), mosquitto(), rabbitmq());
    let _stream = nats::client(&nats_server, &["orders.>"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webhook = listener.local_addr().unwrap().port();
    let endpoint = endpoint(listener);
    let shop = Shop::open().await;
    let route = |name: &str, to: &str| {
        format!("[[route]]\nname = \"{name}\"\ntypes = [\"{name}\"]\npublisher = \"{name}\"\nto = \"{to}\"\n")
    };
    let file = shop.configure(
        "single_node",
        &[
            format!(
                "[publisher.nats]\nkind = \"nats\"\nurl = \"nats://{}\"\nusername = \"relay\"\npassword = \"{}\"\n",
                nats_server.address(),
                nats::PASSWORD
            ),
            format!("[publisher.redis]\nkind = \"redis\"\nurl = \"redis://:{TOKEN}@{}\"\n", redis.address()),
            format!("[publisher.mqtt]\nkind = \"mqtt\"\nurl = \"mqtt://{}\"\n", mosquitto.address()),
            format!("[publisher.rabbitmq]\nkind = \"rabbitmq\"\nurl = \"amqp://guest:guest@{}\"\n", rabbitmq.address()),
            format!(
                "[publisher.webhook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{webhook}\"\ntoken = \"{TOKEN}\"\n\
                 allow_private = true\n"
            ),
            route("nats", "orders.placed"),
            route("redis", "orders"),
            route("mqtt", "orders"),
            // Nothing is bound there: the message comes back, which the client logs as a warning.
            route("rabbitmq", "amq.topic/orders"),
            route("webhook", "orders"),
        ]
        .concat(),
    );
    for broker in ["nats", "redis", "mqtt", "rabbitmq", "webhook"] {
        shop.execute(&format!(
            "INSERT INTO outbox_event (event_id, event_type, payload) VALUES ('{broker}', '{broker}', '{{\"a\":\"{PAYLOAD}\"}}')"
        ))
        .await;
    }
    let log = shop.folder.path().join("relay.log");
    let passed = async {
        let running = start_logging(&file, "trace,lapin=trace,async_nats=trace", &log, &[]);
        shop.wait_until("status = 1", 4).await;
        // Spans are of level debug.
        logged(&log, "handle{event_id=\"rabbitmq", 1).await;
        stop(running).await
    };
    tokio::select! {
        () = endpoint => panic!("the endpoint has ended"),
        _ = passed => {}
    }
    let log = std::fs::read_to_string(&log).unwrap();
    for secret in [PAYLOAD, TOKEN, nats::PASSWORD] {
        // As text, and as bytes are shown.
        let bytes = format!("{:?}", secret.as_bytes());
        let shown = |line: &&str| line.contains(secret) || line.contains(bytes.trim_matches(['[', ']']));
        assert_eq!(log.lines().find(shown), None, "{secret} is in the log");
    }
}
