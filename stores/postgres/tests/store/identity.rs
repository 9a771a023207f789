//! A server that lets in who shows a certificate, and connectors that a program brings along.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::path::Path;
use std::sync::Arc;

use crate::support::server::Server;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::{Admin as _, Store as _, WakeUps as _};
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Writes `ca.pem`, and a certificate with its key for the server and for the user `postgres`.
fn write_certificates(directory: &Path) {
    let write = |name: &str, content: String| {
        let file = directory.join(name);
        std::fs::write(&file, content).expect("writes");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).expect("changes the permissions");
    };
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    write("ca.pem", params.self_signed(&key).expect("a certificate").pem());
    let authority = Issuer::new(params, key);
    for (name, host, user) in [("server", "localhost", "server"), ("client", "client", "postgres")] {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, user);
        let key = KeyPair::generate().expect("a key");
        write(&format!("{name}.pem"), params.signed_by(&key, &authority).expect("a certificate").pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

/// A server that takes a certificate for a password.
async fn server() -> Server {
    let tls =
        "ssl = on\nssl_ca_file = '{dir}/ca.pem'\nssl_cert_file = '{dir}/server.pem'\nssl_key_file = '{dir}/server.key'";
    Server::start_with(tls, "hostssl all all 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 reject", write_certificates)
        .await
}

/// The connector of a program that has read the certificates itself.
fn connector(directory: &Path) -> MakeRustlsConnect {
    let read = |name: &str| std::fs::read(directory.join(name)).expect("reads");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read("ca.pem")).expect("a certificate")).expect("an authority");
    let chain = vec![CertificateDer::from_pem_slice(&read("client.pem")).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(&read("client.key")).expect("a key");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key);
    MakeRustlsConnect::new(config.expect("a configuration"))
}

#[tokio::test]
async fn a_client_shows_its_certificate_or_brings_its_own_connector() {
    let server = server().await;
    let directory = server.directory();
    let file = |name: &str| directory.join(name).to_str().expect("UTF-8").to_owned();
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=verify-full&sslrootcert={}",
        server.port(),
        file("ca.pem")
    );
    let named = format!("{url}&sslcert={}&sslkey={}", file("client.pem"), file("client.key"));

    let error = PostgresStore::connect(&url).await.expect_err("it shows nothing");
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    let error = PostgresStore::connect(&format!("{url}&sslcert=/no/such&sslkey=/no/such")).await.expect_err("no file");
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().contains("`sslcert` names /no/such, which cannot be read"), "{error}");

    let mut config = Config::new();
    config.host("localhost").port(server.port()).user("postgres").dbname("postgres").ssl_mode(SslMode::Require);
    let own = PostgresOptions::from_config(config.clone(), connector(directory));
    for options in [
        PostgresOptions::parse(&named).expect("valid"),
        PostgresOptions::parse(&url).expect("valid").client_certificate(file("client.pem"), file("client.key")),
        own.clone(),
    ] {
        let store = options.connect().await.expect("it is let in");
        store.migrate().await.expect("migrates");
        assert_eq!(store.counts().await.expect("counts").new, 0);
        // The connection that listens is beside the pool.
        let mut listener = store.listen().await.expect("listens");
        store.notify().await.expect("notifies");
        listener.notified().await.expect("hears it");
        store.close().await;
    }
    let error = own.ca_file(file("ca.pem")).connect().await.expect_err("the connector knows its authorities");
    assert!(error.to_string().contains("give them to the connector"), "{error}");
    let error = PostgresOptions::from_config(config, NoTls).connect().await.expect_err("TLS is required");
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
}

#[tokio::test]
async fn a_configuration_of_the_driver_is_not_for_plaintext_to_another_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let mut config = Config::new();
    // No rule takes this address for this machine, and Linux leads it there.
    config.host("0.0.0.0").port(listener.local_addr().expect("an address").port()).user("postgres").password("s3cr3t");
    let without_tls = async {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        stream.read_exact(&mut [0; 8]).await.expect("the client asks for TLS");
        stream.write_all(b"N").await.expect("answers");
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.expect("reads");
        heard
    };
    let (connected, heard) = tokio::join!(PostgresOptions::from_config(config, NoTls).connect(), without_tls);
    assert!(heard.is_empty(), "something was sent in clear");
    let error = connected.expect_err("there is no TLS");
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
}
