use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use pillarbox_testkit::publishers::{Link, Proxy};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A proxy that clients stay behind. A broker tells each client its own address, and the client would connect to that: so here
/// the answers name the proxy's.
pub(crate) struct Way {
    proxy: Proxy,
    /// Aborted when the way is dropped.
    _tasks: JoinSet<()>,
}

impl Way {
    pub(crate) async fn to(broker: SocketAddr) -> io::Result<Self> {
        Self::through(broker, Plain).await
    }

    /// A way whose end `door` opens: with TLS, say.
    pub(crate) async fn through(broker: SocketAddr, door: impl Door) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let proxy = Proxy::to(listener.local_addr()?).await?;
        let shown: Arc<OnceLock<u16>> = Arc::new(OnceLock::from(proxy.port()));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let port = shown.get().copied().unwrap_or_default();
                let door = door.clone();
                connections.spawn(async move { carry(door.open(client).await?, broker, port).await });
            }
        });
        Ok(Self { proxy, _tasks: tasks })
    }

    pub(crate) fn url(&self) -> String {
        format!("kafka://127.0.0.1:{}", self.proxy.port())
    }

    pub(crate) fn port(&self) -> u16 {
        self.proxy.port()
    }

    pub(crate) fn accepted(&self) -> usize {
        self.proxy.accepted()
    }
}

impl Link for Way {
    fn pass(&self) {
        self.proxy.pass();
    }

    fn cut(&self) {
        self.proxy.cut();
    }

    async fn refuse(&self) {
        self.proxy.refuse().await;
    }

    fn stall(&self) {
        self.proxy.stall();
    }
}

/// What a client meets at the end of the way.
pub(crate) trait Door: Clone + Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn open(&self, stream: TcpStream) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

#[derive(Clone)]
struct Plain;

impl Door for Plain {
    type Stream = TcpStream;

    async fn open(&self, stream: TcpStream) -> io::Result<TcpStream> {
        Ok(stream)
    }
}

async fn carry(client: impl AsyncRead + AsyncWrite, broker: SocketAddr, shown: u16) -> io::Result<()> {
    let server = TcpStream::connect(broker).await?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (tokio::io::split(client), server.into_split());
    let answers = async {
        loop {
            let length = from_server.read_u32().await?;
            let mut frame = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            from_server.read_exact(&mut frame).await?;
            rename(&mut frame, broker.port(), shown);
            to_client.write_u32(length).await?;
            to_client.write_all(&frame).await?;
            to_client.flush().await?;
        }
        #[expect(unreachable_code, reason = "says what the block would return")]
        Ok::<(), io::Error>(())
    };
    tokio::select! {
        ended = tokio::io::copy(&mut from_client, &mut to_server) => ended.map(|_| ()),
        ended = answers => ended,
    }
}

/// A host is followed by its port, of four bytes.
pub(super) fn rename(frame: &mut [u8], from: u16, to: u16) {
    const HOST: &[u8] = b"127.0.0.1";
    let whole = HOST.len() + 4;
    for start in 0..frame.len().saturating_sub(whole - 1) {
        let place = &mut frame[start..start + whole];
        if place.starts_with(HOST) && place[HOST.len()..] == u32::from(from).to_be_bytes() {
            place[HOST.len()..].copy_from_slice(&u32::from(to).to_be_bytes());
        }
    }
}
