use std::net::SocketAddr;

use pillarbox_console::Console;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connections::{Limits, answer};
use super::{ServeError, Serving};

/// An address at which a console is served. It is open, and nobody is answered yet.
#[derive(Debug)]
pub struct ConsoleServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl ConsoleServer {
    /// Opens the address.
    ///
    /// # Errors
    /// When the address is taken.
    pub async fn open(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |error: std::io::Error| ServeError { address, problem: error.to_string() };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The address, whose port the system has chosen if it was zero.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on.
    #[must_use = "it answers until it is closed or dropped"]
    pub fn serve(self, console: Console) -> Serving {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(answer(self.listener, console.router(), Limits::of_browsers(), stop.clone()));
        Serving { stop, tasks }
    }
}
