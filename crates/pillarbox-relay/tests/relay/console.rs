//! The access to the console of a relay, before and after a reload.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::path::Path;
use std::time::Duration;

use futures_util::stream::poll_fn;
use pillarbox_relay::{Relay, RelayFile};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_secs(60);
const FIRST: &str = "correct-horse-battery";
const SECOND: &str = "rotated-horse-battery";

/// The console of a relay, as a browser asks for it.
struct Site(String);

impl Site {
    /// The answer, head and body; nobody may listen yet.
    async fn ask(&self, request: &str, headers: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.0).await?;
        let (host, length) = (&self.0, body.len());
        let text = format!("{request} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// The cookie of a session that a password opens, if it does.
    async fn log_in(&self, password: &str) -> Option<String> {
        let headers = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n";
        let answer = self.ask("POST /login", headers, &format!("password={password}")).await.expect("answers");
        let (_, cookie) = answer.split_once("set-cookie: ")?;
        Some(cookie.split(';').next()?.to_owned())
    }

    /// A page, once it is as it should be.
    async fn wait_for(&self, page: &str, cookie: &str, is_so: impl Fn(&str) -> bool) {
        let headers = format!("Cookie: {cookie}\r\n");
        let asking = async {
            loop {
                match self.ask(&format!("GET /s/shop/{page}"), &headers, "").await {
                    Ok(answer) if is_so(&answer) => break,
                    _ => sleep(Duration::from_millis(10)).await,
                }
            }
        };
        timeout(LONG, asking).await.expect("it comes to be so");
    }
}

fn is_shown(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200")
}

fn is_led_to_the_login(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 303")
}

fn file(folder: &Path, console: &str, rest: &str) -> RelayFile {
    let path = folder.join("relay.toml");
    let text = format!(
        "[relay]\n{rest}console.listen = \"{console}\"\nconsole.password_file = \"{}\"\n\
         [[source]]\nname = \"shop\"\nstore.url = \"sqlite://{}\"\n[[route]]\nname = \"noise\"\ndrop = true\n",
        folder.join("password").display(),
        folder.join("none.db").display()
    );
    std::fs::write(&path, text).expect("writes");
    RelayFile::read(&path).expect("a file")
}

#[tokio::test]
async fn a_reload_takes_over_the_password_of_the_console_and_ends_the_sessions_of_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |password: &str| std::fs::write(folder.path().join("password"), password).expect("writes");
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        listener.local_addr().expect("has an address").to_string()
    };
    write(FIRST);
    let relay = Relay::new(file(folder.path(), &address, "")).expect("routes");
    let (stop, stopped) = oneshot::channel::<()>();
    let (reload, mut files) = mpsc::unbounded_channel();
    let running = relay.run_reloading(async { drop(stopped.await) }, poll_fn(move |context| files.poll_recv(context)));
    let asking = async {
        let site = Site(address.clone());
        site.wait_for("overview", "", is_led_to_the_login).await;
        let session = site.log_in(FIRST).await.expect("a session");
        site.wait_for("overview", &session, is_shown).await;

        write(SECOND);
        reload.send(Ok(file(folder.path(), &address, "listen = \"127.0.0.1:9\"\n"))).expect("runs");
        site.wait_for("settings", &session, |answer| answer.contains("The file was refused")).await;

        reload.send(Ok(file(folder.path(), &address, ""))).expect("runs");
        site.wait_for("overview", &session, is_led_to_the_login).await;
        assert_eq!(site.log_in(FIRST).await, None);
        let session = site.log_in(SECOND).await.expect("a session");
        reload.send(Ok(file(folder.path(), &address, "unrouted = \"drop\"\n"))).expect("runs");
        site.wait_for("settings", &session, |answer| answer.contains("relay.unrouted") && answer.contains("drop"))
            .await;
        drop(stop);
    };
    let both = async { tokio::join!(running, asking) };
    let (ended, ()) = timeout(2 * LONG, Box::pin(both)).await.expect("it starts, reloads and stops");
    ended.expect("it stops in order");
}
