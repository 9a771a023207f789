//! TLS to the services: by rustls and ring, whatever else the process has.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::options;
use pillarbox_aws::SqsPublisher;
use pillarbox_core::publisher::PublishErrorKind::Misconfigured;
use pillarbox_core::publisher::Publisher as _;
use pillarbox_testkit::publishers::message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Takes one batch of one message.
async fn take(acceptor: TlsAcceptor, stream: TcpStream) -> std::io::Result<()> {
    const ANSWER: &str = r#"{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"x"}],"Failed":[]}"#;
    let mut stream = acceptor.accept(stream).await?;
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.ends_with(b"]}") && !seen.ends_with(b"\"}") {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => seen.extend_from_slice(&buffer[..count]),
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", ANSWER.len());
    stream.write_all(format!("{head}{ANSWER}").as_bytes()).await?;
    stream.shutdown().await
}

/// A service with TLS, and the file of the authority that has certified it.
async fn service() -> (NamedTempFile, SocketAddr, JoinSet<()>) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), params.self_signed(&key).expect("an authority").pem()).expect("writes");
    let own_key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|own| own.signed_by(&own_key, &Issuer::from_params(&params, &key)))
        .expect("a certificate");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(own_key.serialize_der()).expect("a key"),
        )
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(take(acceptor.clone(), stream));
        }
    });
    (file, address, tasks)
}

#[tokio::test]
async fn a_service_is_trusted_by_its_authority() {
    let (authority, address, _tasks) = service().await;
    let (other, _, _others) = service().await;
    let publisher = |file: &NamedTempFile| {
        let mut options = options(0);
        options.endpoint_url = Some(format!("https://localhost:{}", address.port()).into());
        options.ca_file = Some(file.path().to_owned());
        SqsPublisher::new(options).expect("options")
    };
    let queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";
    assert_eq!(publisher(&authority).publish(vec![message(queue)]).await, [Ok(Some("m".to_owned()))]);
    let refused = publisher(&other).publish(vec![message(queue)]).await;
    assert!(
        refused.iter().all(|receipt| receipt.as_ref().is_err_and(|error| error.kind() == Misconfigured)),
        "{refused:?}"
    );
}
