//! A server that asks for a certificate, and options that a program brings along.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::with_db;
use mysql_async::{ClientIdentity, OptsBuilder, SslOpts};
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A greeting that offers TLS: protocol 10, its version, connection 1, and all capabilities that have a place in 16 bits.
const WITH_TLS: &[u8] = b"\x49\0\0\0\x0a8.0.0\0\x01\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0\
                         ijklmnopqrst\0mysql_native_password\0";
/// Bytes of the packet by which a client asks for TLS.
const TLS_REQUEST: usize = 36;

/// Writes a client's certificate and key; returns the certificate, and a server that asks for one of the same authority.
fn write_identity(directory: &Path) -> (CertificateDer<'static>, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(params.self_signed(&key).expect("a certificate").der().clone()).expect("an authority");
    let authority = Issuer::new(params, key);
    let [server, client] = ["localhost", "client"].map(|name| {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &authority).expect("a certificate"), key)
    });
    std::fs::write(directory.join("client.pem"), client.0.pem()).expect("writes");
    std::fs::write(directory.join("client.key"), client.1.serialize_pem()).expect("writes");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.expect("a verifier"))
        .with_single_cert(vec![server.0.der().clone()], server.1.into());
    (client.0.der().clone(), config.expect("a configuration"))
}

/// Greets a client and hangs up after the handshake of TLS; returns the certificate that it showed, if it showed one.
async fn shown(listener: &TcpListener, acceptor: &TlsAcceptor) -> Option<CertificateDer<'static>> {
    let (mut stream, _) = listener.accept().await.expect("accepts");
    stream.write_all(WITH_TLS).await.expect("greets");
    stream.read_exact(&mut [0; TLS_REQUEST]).await.expect("the client asks for TLS");
    let stream = acceptor.accept(stream).await.ok()?;
    stream.get_ref().1.peer_certificates()?.first().cloned().map(CertificateDer::into_owned)
}

#[tokio::test]
async fn a_client_shows_its_certificate_to_a_server_that_asks() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, config) = write_identity(directory.path());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("an address").port();
    let (chain, key) = (directory.path().join("client.pem"), directory.path().join("client.key"));
    let url = format!("mysql://shop@127.0.0.1:{port}/orders?ssl-mode=required");
    let named = format!("{url}&ssl-cert={}&ssl-key={}", chain.display(), key.display());
    let options = |url: &str| MysqlOptions::parse(url).expect("valid");

    let (_, nothing) = tokio::join!(options(&url).connect(), shown(&listener, &acceptor));
    assert_eq!(nothing, None, "no certificate was named");

    let identity = ClientIdentity::new(chain.clone().into(), key.clone().into());
    let tls = SslOpts::default().with_client_identity(Some(identity)).with_danger_accept_invalid_certs(true);
    let own = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port).prefer_socket(false).ssl_opts(tls);
    for options in
        [options(&named), options(&url).client_certificate(&chain, &key), MysqlOptions::from_opts(own.clone())]
    {
        let (_, seen) = tokio::join!(options.connect(), shown(&listener, &acceptor));
        assert_eq!(seen.as_ref(), Some(&certificate));
    }
    let error = options(&format!("{url}&ssl-cert=/no/such&ssl-key=/no/such")).connect().await.expect_err("no file");
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().contains("`ssl-cert` names /no/such, which cannot be read"), "{error}");
}

#[tokio::test]
async fn a_store_is_made_from_the_drivers_own_options() {
    with_db(async |db| {
        let options: mysql_async::Opts =
            mysql_async::Opts::from_url(db.url_with("", "").trim_end_matches('?')).expect("options");
        let own = OptsBuilder::from_opts(options).setup(vec!["SET @own = 1"]);
        let store = MysqlOptions::from_opts(own).connect().await.expect("connects");
        store.migrate().await.expect("migrates");
        assert_eq!(store.counts().await.expect("counts").new, 0);
        assert_eq!(store.info().table, "outbox_event");
    })
    .await;
}

#[tokio::test]
async fn the_drivers_own_options_lead_to_another_machine_with_tls_or_on_purpose() {
    let elsewhere =
        || OptsBuilder::default().ip_or_hostname("0.0.0.0").tcp_port(1).pass(Some("s3cr3t")).prefer_socket(false);
    let error = MysqlOptions::from_opts(elsewhere()).connect().await.expect_err("there is no TLS");
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(error.to_string().contains("`plaintext(true)`"), "{error}");
    let options = MysqlOptions::from_opts(elsewhere()).plaintext(true).connect_timeout(Duration::from_secs(5));
    assert!(!format!("{options:?}").contains("s3cr3t"), "{options:?}");
    let connected: Result<MysqlStore, StoreError> = options.connect().await;
    assert_eq!(connected.expect_err("nobody is there").kind(), StoreErrorKind::Unavailable);
}

/// What is thrown away silently is believed to protect.
#[tokio::test]
async fn settings_that_would_do_nothing_are_refused() {
    let url =
        |parameters: &str| MysqlOptions::parse(&format!("mysql://shop@localhost:1/orders{parameters}")).expect("valid");
    let own = || MysqlOptions::from_opts(OptsBuilder::default().ip_or_hostname("localhost").tcp_port(1));
    for (options, part) in [
        (own().ca_file("/ca.pem"), "`ca_file` means nothing; give it to them, by `ssl_opts`"),
        (own().client_certificate("/c", "/k"), "`client_certificate` means nothing; give it to them, by `ssl_opts`"),
        (url("").plaintext(true), "write `ssl-mode=disabled` in the URL"),
        (url("").ca_file("/ca.pem"), "write `ssl-mode=verify_identity`"),
        (url("?ssl-mode=required").ca_file("/ca.pem"), "write `ssl-mode=verify_identity`"),
    ] {
        let error = options.connect().await.expect_err(part);
        assert!(error.kind() == StoreErrorKind::Config && error.to_string().contains(part), "{error}");
    }
}
