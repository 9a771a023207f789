use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The way from a publisher to its broker, which a test can make impassable.
pub trait Link: Send + Sync + 'static {
    /// Lets everything pass, as in the beginning.
    fn pass(&self);

    /// Cuts all connections, and lets new ones be made.
    fn cut(&self);

    /// Cuts all connections and refuses new ones, as a host without the broker does. It is so when this returns.
    fn refuse(&self) -> impl Future<Output = ()> + Send;

    /// Accepts connections, and passes nothing on in either direction, in those that are there either.
    fn stall(&self);
}

/// A TCP proxy on a port of this machine, between a publisher and its broker.
///
/// ```
/// use pillarbox_testkit::publishers::{Link as _, Proxy};
/// # async fn example(broker: std::net::SocketAddr) -> std::io::Result<()> {
/// let proxy = Proxy::to(broker).await?;
/// let url = format!("nats://127.0.0.1:{}", proxy.port());
/// // … a publisher connects to `url` …
/// proxy.stall();
/// proxy.pass();
/// proxy.cut();
/// proxy.refuse().await;
/// assert_eq!(proxy.accepted(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    wanted: watch::Sender<Wanted>,
    /// True if nobody listens at the moment.
    closed: watch::Receiver<bool>,
    accepted: Arc<AtomicUsize>,
    /// Aborted when the proxy is dropped.
    _tasks: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    broker: SocketAddr,
    mode: Mode,
    /// Connections of a generation before this one are cut.
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Pass,
    Refuse,
    Stall,
}

impl Proxy {
    /// A proxy before `broker`, which need not be there.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn to(broker: SocketAddr) -> io::Result<Self> {
        let keeper = bound(0)?;
        let port = keeper.local_addr()?.port();
        let listener = bound(port)?.listen(64)?;
        let wanted = watch::Sender::new(Wanted { broker, mode: Mode::Pass, generation: 0 });
        let (closing, closed) = watch::channel(false);
        let accepted = Arc::new(AtomicUsize::new(0));
        let door = Door { port, _keeper: keeper, wanted: wanted.subscribe(), closing, accepted: Arc::clone(&accepted) };
        let mut tasks = JoinSet::new();
        tasks.spawn(door.keep(listener));
        Ok(Self { port, wanted, closed, accepted, _tasks: tasks })
    }

    /// The port to connect to, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of connections that were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Cuts all connections, and leads new ones to another server: the one that was promoted in place of the first.
    pub fn lead_to(&self, broker: SocketAddr) {
        self.wanted.send_modify(|wanted| {
            wanted.broker = broker;
            wanted.generation += 1;
        });
    }

    fn set(&self, mode: Mode, cut: bool) {
        self.wanted.send_modify(|wanted| {
            wanted.mode = mode;
            wanted.generation += u64::from(cut);
        });
    }
}

impl Link for Proxy {
    fn pass(&self) {
        self.set(Mode::Pass, false);
    }

    fn cut(&self) {
        self.set(Mode::Pass, true);
    }

    async fn refuse(&self) {
        self.set(Mode::Refuse, true);
        // The other side lives as long as the task; if it is gone, nobody listens either.
        drop(self.closed.clone().wait_for(|closed| *closed).await);
    }

    fn stall(&self) {
        self.set(Mode::Stall, false);
    }
}

/// The side that listens.
struct Door {
    port: u16,
    /// Bound and not listening, it keeps the port from anybody else while nobody listens.
    _keeper: TcpSocket,
    wanted: watch::Receiver<Wanted>,
    closing: watch::Sender<bool>,
    accepted: Arc<AtomicUsize>,
}

impl Door {
    async fn keep(mut self, first: TcpListener) {
        let mut connections = JoinSet::new();
        let mut listener = Some(first);
        loop {
            let now = *self.wanted.borrow_and_update();
            if now.mode == Mode::Refuse {
                listener = None;
                // Each of them was told by the same signal; until it has ended, something may still pass.
                while connections.join_next().await.is_some() {}
                self.closing.send_replace(true);
                if self.wanted.wait_for(|wanted| wanted.mode != Mode::Refuse).await.is_err() {
                    return;
                }
                continue;
            }
            // Before anybody can connect: who then refuses waits for it to be closed once more.
            self.closing.send_replace(false);
            let open = match listener.take() {
                Some(open) => open,
                None => match bound(self.port).and_then(|socket| socket.listen(64)) {
                    Ok(open) => open,
                    Err(_) => return,
                },
            };
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() { return },
                connection = open.accept() => if let Ok((client, _)) = connection {
                    self.accepted.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(carry(client, now.broker, now.generation, self.wanted.clone()));
                },
                Some(_) = connections.join_next() => {}
            }
            listener = Some(open);
        }
    }
}

/// A socket on a port of this machine, or on a free one. Several of them may share it, and nobody else gets it: with `SO_REUSEADDR` a server of
/// another test could have a port on which none of them listens.
fn bound(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    #[cfg(not(unix))]
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

/// One connection, until either side ends it or the test does. `generation` is from before it was accepted.
async fn carry(client: TcpStream, broker: SocketAddr, generation: u64, wanted: watch::Receiver<Wanted>) {
    let mut ending = wanted.clone();
    let carrying = async {
        passable(&mut wanted.clone()).await;
        let broker = TcpStream::connect(broker).await?;
        client.set_nodelay(true)?;
        broker.set_nodelay(true)?;
        let ((from_client, to_client), (from_broker, to_broker)) = (client.into_split(), broker.into_split());
        tokio::try_join!(shovel(from_client, to_broker, wanted.clone()), shovel(from_broker, to_client, wanted.clone()))
    };
    tokio::select! {
        biased;
        // Cut even if both sides have nothing more to say. An error of either ends both: dropping the sockets tells them.
        _ = ending.wait_for(|wanted| wanted.generation != generation) => {}
        _ = carrying => {}
    }
}

async fn shovel(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut wanted: watch::Receiver<Wanted>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        // What was read while nothing may pass waits here, and backs up behind it.
        passable(&mut wanted).await;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}

async fn passable(wanted: &mut watch::Receiver<Wanted>) {
    if wanted.wait_for(|wanted| wanted.mode != Mode::Stall).await.is_err() {
        // The proxy is gone, and its task is about to be.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A broker that repeats what it is told.
    async fn echo() -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("binds");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        (address, tasks)
    }

    async fn dial(proxy: &Proxy) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.expect("connects")
    }

    async fn answers(stream: &mut TcpStream) -> bool {
        let mut answer = [0; 4];
        stream.write_all(b"ping").await.is_ok() && stream.read_exact(&mut answer).await.is_ok() && &answer == b"ping"
    }

    /// Soon: a process that another test is starting has this one's listeners, too, until it runs its own program.
    async fn is_refused(proxy: &Proxy) -> bool {
        for _ in 0..500 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.is_err() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        false
    }

    #[tokio::test]
    async fn it_passes_cuts_refuses_and_passes_again() {
        let (broker, _tasks) = echo().await;
        let proxy = Proxy::to(broker).await.expect("a port");
        let mut first = dial(&proxy).await;
        assert!(answers(&mut first).await);
        proxy.cut();
        assert!(!answers(&mut first).await || !answers(&mut first).await, "the connection is cut");
        let mut second = dial(&proxy).await;
        assert!(answers(&mut second).await, "new ones are made");
        for _ in 0..3 {
            proxy.refuse().await;
            let other = TcpListener::bind((Ipv4Addr::LOCALHOST, proxy.port())).await;
            assert!(other.is_err(), "nobody else gets its port");
            assert!(is_refused(&proxy).await, "nobody listens");
            proxy.pass();
            while TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.is_err() {
                tokio::task::yield_now().await;
            }
        }
        assert!(!answers(&mut second).await, "refusing has cut it");
        assert!(answers(&mut dial(&proxy).await).await);
    }

    #[tokio::test]
    async fn bytes_held_back_are_passed_on_later() {
        let (broker, _tasks) = echo().await;
        let proxy = Proxy::to(broker).await.expect("a port");
        let mut before = dial(&proxy).await;
        assert!(answers(&mut before).await);
        proxy.stall();
        let mut after = dial(&proxy).await;
        let short = Duration::from_millis(50);
        for stream in [&mut before, &mut after] {
            stream.write_all(b"ping").await.expect("TCP takes it");
            assert!(timeout(short, stream.read_u8()).await.is_err(), "nothing is passed on");
        }
        proxy.pass();
        for stream in [&mut before, &mut after] {
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).await.expect("it comes");
            assert_eq!(&answer, b"ping");
        }
        assert_eq!(proxy.accepted(), 2);
    }
}
