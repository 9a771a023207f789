use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use pillarbox_core::error::BoxError;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// The directories that programs are looked for in besides `PATH`: Debian keeps servers out of an ordinary user's.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/rabbitmq/bin"];
/// The time that a broker may take until its port answers, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of ports that are tried, since another process may take one between its choice and the broker's start.
const STARTS: usize = 3;

/// A broker of the test's own: a process on a port of its own, in a temporary directory, which the test may kill and start
/// again. It is killed, with the processes it has started, when this is dropped.
///
/// ```no_run
/// # async fn example() -> Result<(), pillarbox_core::error::BoxError> {
/// use pillarbox_testkit::publishers::Server;
///
/// let mut broker = Server::start("nats-server", |place, command| {
///     command.args(["--addr", "127.0.0.1", "--port", &place.port.to_string(), "--jetstream", "--store_dir"]);
///     command.arg(&place.directory);
///     Ok(())
/// })
/// .await?;
/// let url = format!("nats://{}", broker.address());
/// broker.kill().await?;
/// broker.restart().await?;
/// # Ok(()) }
/// ```
pub struct Server {
    program: PathBuf,
    prepare: Arc<Prepare>,
    place: Place,
    child: Option<Child>,
    /// Removed when the server is gone.
    _directory: TempDir,
}

type Prepare = dyn Fn(&Place, &mut Command) -> io::Result<()> + Send + Sync;

/// The place where a server runs: the same after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The port to listen on, at 127.0.0.1.
    pub port: u16,
    /// An empty directory at first, for its data and its configuration. Its output is there too, in `server.log`.
    pub directory: PathBuf,
}

impl Server {
    /// Starts `program`, which is looked for in `PATH` and where Debian keeps servers, and waits until its port answers.
    /// `prepare` gives it its arguments and environment and may write files; it is called at every start.
    ///
    /// # Errors
    /// When the program is not there, which the error says with the remedy, or ends before its port answers, with its last words.
    pub async fn start(
        program: &str,
        prepare: impl Fn(&Place, &mut Command) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, BoxError> {
        let program = find(program)?;
        let prepare: Arc<Prepare> = Arc::new(prepare);
        let mut failure = None;
        for _ in 0..STARTS {
            let directory = tempfile::Builder::new().prefix("pillarbox-broker").tempdir()?;
            let place = Place { port: free_port()?, directory: directory.path().to_owned() };
            let (program, prepare) = (program.clone(), Arc::clone(&prepare));
            let mut server = Self { program, prepare, place, child: None, _directory: directory };
            match server.restart().await {
                Ok(()) => return Ok(server),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| "no start was tried".into()))
    }

    /// The place where it runs.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The address that it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.place.port).into()
    }

    /// Kills it as a power cut would, by SIGKILL, with the processes it has started, and waits until its port is free.
    ///
    /// # Errors
    /// When the operating system refuses, or its port goes on answering.
    pub async fn kill(&mut self) -> Result<(), BoxError> {
        if self.child.is_none() {
            return Ok(());
        }
        self.signal()?;
        let began = Instant::now();
        // Whatever it had started dies a moment later, and nobody tells when.
        while TcpStream::connect(self.address()).await.is_ok() {
            if began.elapsed() > PATIENCE {
                return Err(self.complain(&format!("was killed, and still answers at {}", self.address())));
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    fn signal(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        send(&child, "KILL")?;
        // Once more in the standard library's way, should there be no group any more.
        child.kill()?;
        child.wait().map(drop)
    }

    /// Makes it fall silent, by SIGSTOP: its connections stay, and new ones are accepted by the operating system, but nothing answers.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn pause(&self) -> io::Result<()> {
        self.child.as_ref().map_or(Ok(()), |child| send(child, "STOP"))
    }

    /// Lets it go on after a [`pause`](Self::pause).
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn resume(&self) -> io::Result<()> {
        self.child.as_ref().map_or(Ok(()), |child| send(child, "CONT"))
    }

    /// Starts it on the same port and data, after a [`kill`](Self::kill) if it still runs, and waits until the port answers.
    ///
    /// # Errors
    /// When it ends before its port answers, with its last words.
    pub async fn restart(&mut self) -> Result<(), BoxError> {
        self.kill().await?;
        let mut command = Command::new(&self.program);
        let log = std::fs::File::options().create(true).append(true).open(self.log())?;
        command.current_dir(&self.place.directory).process_group(0);
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        (self.prepare)(&self.place, &mut command)?;
        self.child = Some(command.spawn()?);
        let began = Instant::now();
        // The operating system tells nobody when a port begins to answer, so it is asked.
        while TcpStream::connect(self.address()).await.is_err() {
            self.still_running()?;
            if began.elapsed() > PATIENCE {
                return Err(self.complain(&format!("does not answer at {} within {PATIENCE:?}", self.address())));
            }
            sleep(Duration::from_millis(10)).await;
        }
        // Somebody else may have answered while it failed to get the port.
        self.still_running()
    }

    fn still_running(&mut self) -> Result<(), BoxError> {
        match self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
            None => Ok(()),
            Some(status) => Err(self.complain(&format!("ended with {status} before it answered"))),
        }
    }

    fn log(&self) -> PathBuf {
        self.place.directory.join("server.log")
    }

    fn complain(&self, what: &str) -> BoxError {
        let log = std::fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n  ");
        format!("{} {what}; it said:\n  {last}", self.program.display()).into()
    }
}

/// Signals a server and all processes that it has started: it leads a group of its own.
fn send(child: &Child, signal: &str) -> io::Result<()> {
    // The shell can signal a group, which the standard library cannot; dash has no `-KILL --`.
    let group = format!("kill -s {signal} -- -{}", child.id());
    Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status().map(drop)
}

impl Drop for Server {
    fn drop(&mut self) {
        // What cannot be killed cannot be killed, and a destructor has nobody to tell.
        drop(self.signal());
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("program", &self.program).field("place", &self.place).finish_non_exhaustive()
    }
}

fn find(program: &str) -> Result<PathBuf, BoxError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(|folder| Path::new(folder).to_owned()));
    let found = folders.map(|folder| folder.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| format!("this test needs `{program}`, which is not on this machine: run scripts/setup").into())
}

/// A port below those that the operating system gives to outgoing connections, one of which would otherwise take a killed
/// server's port before it is started again.
fn free_port() -> io::Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different places.
    let offset = u16::try_from(std::process::id().wrapping_mul(97) % u32::from(COUNT)).unwrap_or(0);
    for _ in 0..COUNT {
        let port = FIRST + (offset + NEXT.fetch_add(1, Ordering::SeqCst) % COUNT) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no port between 20000 and 32000 is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_programs_are_named_with_the_remedy() {
        let error = Server::start("no-such-broker", |_, _| Ok(())).await.expect_err("there is none").to_string();
        assert!(error.contains("no-such-broker") && error.contains("run scripts/setup"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_ends_is_quoted() {
        let start = Server::start("sh", |_, command| {
            command.args(["-c", "echo the disk is full; exit 3"]);
            Ok(())
        });
        let error = start.await.expect_err("it ends").to_string();
        assert!(error.contains("exit status: 3") && error.contains("the disk is full"), "{error}");
    }

    #[tokio::test]
    async fn a_killed_server_is_gone_and_comes_back_on_its_port_with_what_it_had_started() {
        // Python is among what scripts/setup brings. The shell in front stands for servers that are started by a script.
        let mut server = Server::start("sh", |place, command| {
            command.args(["-c", &format!("python3 -m http.server --bind 127.0.0.1 {} & wait", place.port)]);
            Ok(())
        })
        .await
        .expect("starts");
        let address = server.address();
        assert!(TcpStream::connect(address).await.is_ok());
        server.kill().await.expect("kills");
        assert!(TcpStream::connect(address).await.is_err(), "its child has gone with it");
        server.kill().await.expect("killing twice is fine");
        server.restart().await.expect("starts again");
        assert!(TcpStream::connect(address).await.is_ok());
        let directory = server.place().directory.clone();
        drop(server);
        assert!(!directory.exists());
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    }
}
