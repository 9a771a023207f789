use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::Cluster;
use super::way::rename;

/// A way on which the broker refuses each batch of more than one message, as one that is too large.
pub(crate) struct NarrowWay {
    address: SocketAddr,
    /// Aborted when the way is dropped.
    _tasks: JoinSet<()>,
}

impl NarrowWay {
    pub(crate) async fn to(cluster: Arc<Cluster>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, turn) = (listener.local_addr()?, Arc::new(Mutex::new(())));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (cluster, turn) = (Arc::clone(&cluster), Arc::clone(&turn));
                connections.spawn(async move { carry(client, &cluster, &turn, address.port()).await });
            }
        });
        Ok(Self { address, _tasks: tasks })
    }

    pub(crate) fn url(&self) -> String {
        format!("kafka://{}", self.address)
    }
}

async fn carry(mut client: TcpStream, cluster: &Cluster, turn: &Mutex<()>, shown: u16) -> io::Result<()> {
    let mut server = TcpStream::connect(cluster.address).await?;
    loop {
        let request = read_frame(&mut client).await?;
        // The error is that of the next request, whichever connection it comes by.
        let _turn = turn.lock().await;
        if messages_in(&request) > 1 {
            let too_large = RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
            cluster.mock().request_errors(RDKafkaApiKey::Produce, &[too_large]);
        }
        write_frame(&mut server, &request).await?;
        let mut answer = read_frame(&mut server).await?;
        rename(&mut answer, cluster.address.port(), shown);
        write_frame(&mut client, &answer).await?;
    }
}

/// The number of messages that a request publishes: each has one header of this name.
fn messages_in(request: &[u8]) -> usize {
    const NAME: &[u8] = b"event-id";
    const PRODUCE: &[u8] = &[0, 0];
    if request.starts_with(PRODUCE) { request.windows(NAME.len()).filter(|part| *part == NAME).count() } else { 0 }
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let mut frame = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_frame(stream: &mut TcpStream, frame: &[u8]) -> io::Result<()> {
    stream.write_u32(u32::try_from(frame.len()).map_err(io::Error::other)?).await?;
    stream.write_all(frame).await
}
