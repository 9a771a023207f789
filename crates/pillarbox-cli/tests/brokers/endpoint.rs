//! HTTP endpoints of the tests' own.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// An endpoint that answers every request alike. It is gone when this is dropped.
pub(crate) struct Endpoint {
    pub(crate) port: u16,
    paths: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Endpoint {
    /// Answers with this status line, and further lines of the head.
    pub(crate) async fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&paths);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, status, Arc::clone(&seen)));
            }
        });
        Self { port, paths, _tasks: tasks }
    }

    /// The paths of the messages that came, in their order.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }
}

async fn answer(stream: TcpStream, status: &'static str, seen: Arc<Mutex<Vec<String>>>) {
    let _ended = talk(stream, status, seen).await;
}

/// Answers each request of a connection, until it ends.
async fn talk(stream: TcpStream, status: &'static str, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let length = head
            .iter()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let mut words = head.first()?.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        // An endpoint that repeats the path, as many do.
        let said = if method == "HEAD" { String::new() } else { format!("cannot take {path}") };
        if method == "POST" {
            seen.lock().unwrap().push(path);
        }
        let length = said.len();
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{said}");
        stream.write_all(text.as_bytes()).await.ok()?;
    }
}
