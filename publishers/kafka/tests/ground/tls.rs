//! TLS to the brokers, by the feature `ssl`.

#![cfg(feature = "ssl")]
#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Cluster, Door, Way};
use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Unavailable};
use pillarbox_core::publisher::Publisher as _;
use pillarbox_kafka::{KafkaOptions, KafkaPublisher};
use pillarbox_testkit::publishers::messages;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

#[derive(Clone)]
struct Tls(TlsAcceptor);

impl Door for Tls {
    type Stream = TlsStream<TcpStream>;

    async fn open(&self, stream: TcpStream) -> io::Result<Self::Stream> {
        self.0.accept(stream).await
    }
}

/// A way with TLS, certified for `name` by an authority, which is in the file.
async fn way(broker: SocketAddr, name: &str) -> (NamedTempFile, Way) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Of one name, OpenSSL takes the certificate for its own authority.
    params.distinguished_name.push(DnType::CommonName, "an authority");
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), params.self_signed(&key).expect("an authority").pem()).expect("writes");
    let own_key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec![name.to_owned()])
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
    (file, Way::through(broker, Tls(TlsAcceptor::from(Arc::new(config)))).await.expect("a way"))
}

fn publisher(way: &Way, authority: &NamedTempFile) -> KafkaPublisher {
    let mut options = KafkaOptions::new(format!("kafkas://127.0.0.1:{}", way.port()));
    options.ca_file = Some(authority.path().to_owned());
    KafkaPublisher::new(options).expect("options")
}

#[tokio::test]
async fn a_broker_is_trusted_by_its_authority_and_name() {
    let cluster = Cluster::start();
    let topic = cluster.topic();
    let (authority, trusted) = way(cluster.address, "127.0.0.1").await;
    let receipts = publisher(&trusted, &authority).publish(messages(&topic, 50)).await;
    assert!(receipts.iter().all(Result::is_ok), "{:?}", receipts[0]);
    assert_eq!(cluster.arrived(&topic, 50).await.expect("reads").len(), 50);

    let (other, named_otherwise) = way(cluster.address, "other.example").await;
    for (way, authority) in [(&trusted, &other), (&named_otherwise, &other)] {
        let (publisher, began) = (publisher(way, authority), Instant::now());
        for receipt in publisher.publish(messages(&topic, 2)).await {
            assert_eq!(receipt.expect_err("refused").kind(), Misconfigured);
        }
        assert!(publisher.check(std::slice::from_ref(&topic)).await.is_err());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
    assert_eq!(cluster.arrived(&topic, 50).await.expect("reads").len(), 50, "nothing more has arrived");
}

/// Certificates that are replaced on one broker after the other may break one of them.
#[tokio::test]
async fn a_broker_that_is_not_trusted_fails_nothing_that_another_takes() {
    let cluster = Cluster::start();
    let topic = cluster.topic();
    let (authority, trusted) = way(cluster.address, "127.0.0.1").await;
    let (_other, broken) = way(cluster.address, "127.0.0.1").await;
    // The client begins with either of them.
    for calls in 1..=8 {
        let mut options =
            KafkaOptions::new(format!("kafkas://127.0.0.1:{},127.0.0.1:{}", broken.port(), trusted.port()));
        options.ca_file = Some(authority.path().to_owned());
        let publisher = KafkaPublisher::new(options).expect("options");
        publisher.check(std::slice::from_ref(&topic)).await.expect("one of them answers");
        let receipts = publisher.publish(messages(&topic, 50)).await;
        assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
        assert_eq!(cluster.arrived(&topic, 50 * calls).await.expect("reads").len(), 50 * calls);
    }
    assert!(broken.accepted() > 0);
}

/// A broker without TLS hangs up on whoever greets it with TLS.
#[tokio::test]
async fn a_broker_without_tls_is_not_spoken_to() {
    let cluster = Cluster::start();
    let (authority, _way) = way(cluster.address, "127.0.0.1").await;
    let plain = Way::to(cluster.address).await.expect("a way");
    let error = publisher(&plain, &authority).check(&[cluster.topic()]).await.expect_err("refused");
    assert!(matches!(error.kind(), Misconfigured | Unavailable), "{error}");
}
