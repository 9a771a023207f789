//! Endpoints that are away, silent, broken, private or not whom they claim to be.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Endpoint, Raw, message, of_tenant, options, publisher, raw};
use pillarbox_core::publisher::PublishErrorKind::{Misconfigured, Temporary, Unavailable};
use pillarbox_core::publisher::{FailureScope, Message, PublishError, Publisher as _, Receipt};
use pillarbox_testkit::publishers::{Link as _, Load, Proxy, load_through};
use pillarbox_webhook::{WebhookOptions, WebhookPublisher};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

fn many(target: &str, count: usize) -> Vec<Message> {
    (0..count).map(|n| message(target, n)).collect()
}

async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let target = format!("http://{}/x", nobody().await);
    let receipts = publisher().publish(many(&target, 40)).await;
    assert_eq!(receipts.len(), 40);
    for receipt in receipts {
        let error = receipt.expect_err("nobody is there");
        assert_eq!(error.kind(), Unavailable);
        assert!(error.to_string().contains("cannot be connected to"), "{error}");
    }
    let error = publisher().check(&[target]).await.expect_err("nobody is there");
    assert_eq!(error.kind(), Unavailable);
}

#[tokio::test]
async fn an_endpoint_that_ends_each_connection_is_unavailable_and_tried_three_more_times_in_all() {
    let Raw { address, count, .. } = &raw(|mut stream: TcpStream| async move {
        let _ = stream.read(&mut [0; 64]).await;
        // The rest is not read, so closing resets.
    })
    .await;
    let receipts = publisher().publish(many(&format!("http://{address}/x"), 20)).await;
    assert!(receipts.into_iter().all(|receipt| receipt.is_err_and(|error| error.kind() == Unavailable)));
    assert_eq!(count.load(Ordering::SeqCst), 20 + 3);
}

/// Answers each message but those that `is_ending` says, over which it ends the connection.
async fn ending(is_ending: impl Fn(usize) -> bool + Clone + Send + Sync + 'static) -> Raw {
    raw(move |mut stream: TcpStream| {
        let is_ending = is_ending.clone();
        async move {
            let mut text = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                text.extend_from_slice(&buffer[..count]);
                let whole = String::from_utf8_lossy(&text).into_owned();
                let Some(number) = whole.rsplit_once("{\"n\":").and_then(|(_, body)| body.strip_suffix('}')) else {
                    continue;
                };
                text.clear();
                let answer: &[u8] = b"HTTP/1.1 204 Fine\r\n\r\n";
                if is_ending(number.parse().expect("a number")) || stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

/// Nothing tells at first whether the message is the reason or its endpoint.
#[tokio::test]
async fn a_message_over_which_connections_end_counts_its_attempt_once_others_were_taken_in_between() {
    let Raw { address, .. } = &ending(|number| number == 7).await;
    let (publisher, target) = (publisher(), format!("http://{address}/x"));
    for kind in [Unavailable, Temporary, Temporary] {
        let receipts = publisher.publish(many(&target, 20)).await;
        for (number, receipt) in receipts.iter().enumerate() {
            match receipt {
                Ok(_) => assert_ne!(number, 7),
                Err(error) => {
                    assert_eq!((error.kind(), error.scope()), (kind, FailureScope::Target), "{number}: {error}");
                    assert_eq!(error.to_string().contains("taken other messages"), kind == Temporary, "{error}");
                }
            }
        }
        assert_eq!(receipts.iter().filter(|receipt| receipt.is_err()).count(), 1);
    }
}

#[tokio::test]
async fn a_message_that_is_sent_alone_counts_an_attempt_only_if_another_was_taken_since_the_last_one() {
    let Raw { address, .. } = &ending(|number| number == 0).await;
    let (publisher, target) = (publisher(), format!("http://{address}/x"));
    let kinds = async |numbers: &[usize]| {
        let messages = numbers.iter().map(|number| message(&*target, *number)).collect();
        let receipts = publisher.publish(messages).await;
        receipts.iter().map(|receipt| receipt.as_ref().err().map(PublishError::kind)).collect::<Vec<_>>()
    };
    assert_eq!([kinds(&[0]).await, kinds(&[0]).await], [[Some(Unavailable)], [Some(Unavailable)]]);
    assert_eq!([kinds(&[1]).await, kinds(&[0]).await], [[None], [Some(Temporary)]]);
    assert_eq!(kinds(&[0]).await, [Some(Unavailable)]);
    assert_eq!(kinds(&[0, 1]).await, [Some(Temporary), None]);
    assert_eq!(kinds(&[0]).await, [Some(Unavailable)], "what was taken beside it has counted already");
}

#[tokio::test]
async fn an_endpoint_that_begins_to_end_every_connection_counts_no_attempt() {
    let taken = Arc::new(AtomicUsize::new(0));
    let Raw { address, count, .. } = &ending(move |_| taken.fetch_add(1, Ordering::SeqCst) >= 10).await;
    let publisher = publisher();
    // Each to a path of its own, as where events choose them.
    let messages = |from: usize| (from..from + 40).map(|n| message(format!("http://{address}/{n}"), n)).collect();
    for (from, expected) in [(0, 10), (40, 0)] {
        let receipts = publisher.publish(messages(from)).await;
        assert_eq!(receipts.iter().filter(|receipt| receipt.is_ok()).count(), expected);
        assert!(receipts.into_iter().all(|receipt| receipt.map_or_else(|error| error.kind() == Unavailable, |_| true)));
    }
    let kinds = publisher.publish(messages(0)).await.into_iter().map(|receipt| receipt.expect_err("ended").kind());
    assert_eq!(kinds.collect::<Vec<_>>(), [Unavailable; 40]);
    assert!(count.load(Ordering::SeqCst) <= 3 * (40 + 3), "{count:?}");
}

#[tokio::test]
async fn messages_taken_by_a_target_say_nothing_about_one_with_another_query() {
    let Raw { address, .. } = &ending(|number| number == 0).await;
    let (publisher, target) = (publisher(), |to: &str| format!("http://{address}/x?to={to}"));
    for _ in 0..3 {
        let receipts = publisher.publish(vec![message(target("ill"), 0), message(target("well"), 1)]).await;
        assert_eq!(receipts[0].as_ref().map_err(PublishError::kind), Err(Unavailable));
        assert_eq!(receipts[1], Ok(None));
    }
}

#[tokio::test]
async fn a_message_whose_connection_ends_by_chance_is_sent_again_at_once() {
    let seen = Arc::new(AtomicUsize::new(0));
    let Raw { address, count, .. } =
        &ending(move |number| number == 7 && seen.fetch_add(1, Ordering::SeqCst) < 2).await;
    let receipts = publisher().publish(many(&format!("http://{address}/x"), 20)).await;
    assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
    assert!(count.load(Ordering::SeqCst) <= 20 + 2, "{count:?}");
}

#[tokio::test]
async fn a_silent_endpoint_is_waited_for_no_longer_than_the_limit() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    options.timeout = Duration::from_millis(300);
    options.concurrency = 2;
    let publisher = WebhookPublisher::new(options).expect("options");
    let began = Instant::now();
    // More than are under way at once: the others are not given a limit of their own.
    let receipts = publisher.publish(many(&endpoint.url("/never"), 20)).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(receipts.into_iter().all(|receipt| receipt.is_err_and(|error| error.kind() == Unavailable)));
    assert_eq!(endpoint.requests().len(), 2);

    // Connections are accepted by nobody: the listener's queue takes them, and TLS waits for an answer.
    let Raw { address, .. } = &mute().await;
    let began = Instant::now();
    let receipts = publisher.publish(many(&format!("https://{address}/x"), 3)).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(receipts.into_iter().all(|receipt| receipt.is_err_and(|error| error.kind() == Unavailable)));
}

/// A listener whose queue is full, so that the packets of further connections are dropped.
async fn full() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("listens");
    let address = listener.local_addr().expect("an address");
    let mut queue = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        queue.push(connected.expect("connects"));
        assert!(queue.len() < 100, "the queue has no end");
    }
    (listener, queue)
}

#[tokio::test]
async fn a_host_that_drops_packets_is_a_server_in_trouble() {
    let (listener, _queue) = full().await;
    let target = format!("http://{}/x", listener.local_addr().expect("an address"));
    let mut options = options();
    options.timeout = Duration::from_secs(1);
    let publisher = WebhookPublisher::new(options).expect("options");
    let began = Instant::now();
    for receipt in publisher.publish(many(&target, 40)).await {
        let error = receipt.expect_err("nobody is connected to");
        assert_eq!((error.kind(), error.scope()), (Unavailable, FailureScope::Server), "{error}");
        assert!(error.to_string().contains("cannot be connected to"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(publisher.check(&[target]).await.expect_err("nobody is connected to").kind(), Unavailable);
}

#[tokio::test]
async fn a_silent_server_leaves_room_for_the_others() {
    let (silent, well) = (Endpoint::start().await, Endpoint::start().await);
    let mut options = options();
    options.timeout = Duration::from_secs(2);
    options.concurrency = 4;
    let publisher = WebhookPublisher::new(options).expect("options");
    // More for the silent one than are under way at once, and all of them before the others.
    let mut messages = many(&silent.url("/never"), 20);
    messages.extend(many(&well.url("/ok"), 20));
    let receipts = publisher.publish(messages).await;
    assert!(receipts[..20].iter().all(Result::is_err));
    assert!(receipts[20..].iter().all(Result::is_ok), "{receipts:?}");
    assert_eq!((silent.requests().len(), well.requests().len()), (2, 20));
}

#[tokio::test]
async fn several_silent_servers_leave_room_for_the_others() {
    let (first, second, well) = (Endpoint::start().await, Endpoint::start().await, Endpoint::start().await);
    let mut options = options();
    (options.timeout, options.concurrency) = (Duration::from_secs(2), 4);
    let publisher = WebhookPublisher::new(options).expect("options");
    let mut messages = many(&first.url("/never"), 20);
    messages.extend(many(&second.url("/never"), 20));
    messages.extend(many(&well.url("/ok"), 20));
    let receipts = publisher.publish(messages).await;
    assert!(receipts[..40].iter().all(Result::is_err));
    assert!(receipts[40..].iter().all(Result::is_ok), "{receipts:?}");
    assert_eq!((first.requests().len(), second.requests().len(), well.requests().len()), (1, 1, 20));
}

/// A listener that never answers.
async fn mute() -> Raw {
    raw(|stream: TcpStream| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
    .await
}

/// A message to each of so many servers, of which none answers. Only Linux has all addresses of the network 127.0.0.0.
#[cfg(target_os = "linux")]
fn to_each_server(silent: &Raw, count: u8) -> impl Iterator<Item = Message> {
    let port = silent.address.port();
    (1..=count).map(move |n| message(format!("http://127.1.0.{n}:{port}/x"), n.into()))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_tenant_with_many_silent_servers_leaves_room_for_the_others() {
    let (silent, well) = (mute().await, Endpoint::start().await);
    let mut options = options();
    (options.timeout, options.concurrency) = (Duration::from_secs(3), 4);
    let publisher = WebhookPublisher::new(options).expect("options");
    let mut messages: Vec<_> = to_each_server(&silent, 100).map(|message| of_tenant("hostile", message)).collect();
    messages.extend(many(&well.url("/ok"), 20).into_iter().map(|message| of_tenant("well", message)));
    let receipts = publisher.publish(messages).await;
    assert!(receipts[..100].iter().all(Result::is_err));
    assert_eq!(receipts[100..], [const { Ok(None) }; 20]);
    // Two at once, for three seconds, after each of which they make room.
    assert!(silent.count.load(Ordering::SeqCst) <= 6);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_has_answered_goes_before_those_of_which_nothing_is_known() {
    let (silent, well) = (mute().await, Endpoint::start().await);
    let mut options = options();
    (options.timeout, options.concurrency) = (Duration::from_secs(3), 4);
    let publisher = WebhookPublisher::new(options).expect("options");
    assert_eq!(publisher.publish(many(&well.url("/ok"), 1)).await, [Ok(None)]);
    let messages = to_each_server(&silent, 100).chain(many(&well.url("/ok"), 20)).collect();
    let receipts = publisher.publish(messages).await;
    assert_eq!(receipts[100..], [const { Ok(None) }; 20]);
    assert!(silent.count.load(Ordering::SeqCst) <= 12);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_without_an_answer_for_a_second_make_room_for_the_others() {
    let (silent, well) = (mute().await, Endpoint::start().await);
    let mut options = options();
    (options.timeout, options.concurrency) = (Duration::from_millis(3500), 4);
    let publisher = WebhookPublisher::new(options).expect("options");
    let messages = to_each_server(&silent, 8).chain(many(&well.url("/ok"), 20)).collect();
    let receipts = publisher.publish(messages).await;
    assert_eq!(receipts[8..], [const { Ok(None) }; 20]);
    assert_eq!((silent.count.load(Ordering::SeqCst), well.requests().len()), (8, 20));
}

/// With an endpoint for each tenant, each of them would cost a call its time before it is known to be silent.
#[tokio::test]
async fn a_server_of_which_several_endpoints_are_silent_is_in_trouble_as_a_whole() {
    let endpoint = Endpoint::start().await;
    let mut options = options();
    (options.timeout, options.concurrency) = (Duration::from_millis(300), 2);
    let publisher = WebhookPublisher::new(options.clone()).expect("options");
    let scopes = async |publisher: &WebhookPublisher, paths: [&str; 2]| {
        let messages = paths.iter().enumerate().map(|(n, path)| message(endpoint.url(path), n)).collect();
        let receipts = publisher.publish(messages).await;
        let error = |receipt: &Receipt| receipt.as_ref().err().map(|error| (error.kind(), error.scope()));
        receipts.iter().map(error).collect::<Vec<_>>()
    };
    let (of_target, of_server) = (Some((Unavailable, FailureScope::Target)), Some((Unavailable, FailureScope::Server)));
    assert_eq!(scopes(&publisher, ["/never/a", "/never/b"]).await, [of_target; 2]);
    assert_eq!(scopes(&publisher, ["/never/c", "/never/a"]).await, [of_server; 2]);
    // It answers at another endpoint.
    assert_eq!(scopes(&publisher, ["/never/c", "/ok"]).await, [of_target, None]);
    assert_eq!(scopes(&publisher, ["/never/c", "/never/a"]).await, [of_target; 2]);

    options.url = Some(endpoint.url("/never/").into());
    let publisher = WebhookPublisher::new(options).expect("options");
    let receipts =
        [publisher.publish(many("a", 1)).await, publisher.publish(vec![message("b", 1), message("c", 2)]).await];
    let scopes: Vec<_> = receipts.concat().into_iter().map(|receipt| receipt.expect_err("silent").scope()).collect();
    assert_eq!(scopes, [FailureScope::Target, FailureScope::Broker, FailureScope::Broker]);
}

#[tokio::test]
async fn a_call_that_is_dropped_spoils_nothing() {
    let endpoint = Endpoint::start().await;
    let publisher = publisher();
    let mut call = publisher.publish(many(&endpoint.url("/never"), 8));
    while endpoint.requests().len() < 8 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    drop(call);
    let receipts = publisher.publish(many(&endpoint.url("/ok"), 8)).await;
    assert!(receipts.iter().all(Result::is_ok), "{receipts:?}");
    assert_eq!(endpoint.requests().len(), 16);
}

#[tokio::test]
async fn private_addresses_are_refused_by_number_and_by_name() {
    let Raw { address, count, .. } = &raw(|_| async {}).await;
    let mut options = WebhookOptions::default();
    options.plaintext = true;
    let publisher = WebhookPublisher::new(options).expect("options");
    let port = address.port();
    let targets = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("https://localhost:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ];
    for target in targets {
        let receipts = publisher.publish(many(&target, 1)).await;
        let error = receipts[0].as_ref().expect_err("refused");
        assert_eq!(error.kind(), Misconfigured, "{target}: {error}");
        assert!(error.to_string().contains("`allow_private = true`"), "{target}: {error}");
        assert_eq!(publisher.check(&[target]).await.expect_err("refused").kind(), Misconfigured);
    }
    assert_eq!(count.load(Ordering::SeqCst), 0, "nothing was connected to");
}

/// Ten thousand events, while the endpoint is cut off, silent and away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_endpoint_comes_and_goes() {
    let endpoint = Endpoint::start().await;
    let proxy = Proxy::to(endpoint.address).await.expect("a port");
    let mut options = options();
    options.timeout = Duration::from_secs(2);
    let publisher = WebhookPublisher::new(options).expect("options");
    let target = format!("http://127.0.0.1:{}/ok", proxy.port());
    let disaster = async {
        proxy.cut();
        proxy.refuse().await;
        sleep(Duration::from_millis(500)).await;
        proxy.pass();
        Ok(())
    };
    let confirmed = load_through(&publisher, &target, Load::default(), disaster).await.expect("all are confirmed");
    let arrived = endpoint.requests();
    let duplicates =
        confirmed.duplicates_among(arrived.iter().map(|request| request.header("webhook-id"))).expect("none is lost");
    println!("{} failures, {duplicates} duplicates, {:?}", confirmed.failures, confirmed.took);
    assert!(confirmed.failures > 0, "the endpoint was away");
}

/// Answers, resets or fails in turn; what it took is counted by id.
#[tokio::test]
async fn nothing_is_confirmed_that_a_flaky_endpoint_did_not_take() {
    const EVENTS: usize = 2000;
    let turn = Arc::new(AtomicUsize::new(0));
    let taken: Arc<Vec<AtomicUsize>> = Arc::new((0..EVENTS).map(|_| AtomicUsize::new(0)).collect());
    let (turns, counts) = (Arc::clone(&turn), Arc::clone(&taken));
    let Raw { address, .. } = &raw(move |stream| flaky(stream, Arc::clone(&turns), Arc::clone(&counts))).await;
    let publisher = publisher();
    let target = format!("http://{address}/x");
    let (mut open, mut calls): (Vec<usize>, usize) = ((0..EVENTS).collect(), 0);
    while !open.is_empty() {
        let receipts = publisher.publish(open.iter().map(|n| message(&*target, *n)).collect()).await;
        calls += 1;
        assert!(calls < 50, "{} are still open", open.len());
        open = open
            .into_iter()
            .zip(receipts)
            .filter_map(|(n, receipt)| {
                assert!(receipt.is_err() || taken[n].load(Ordering::SeqCst) > 0, "{n} was confirmed and not taken");
                receipt.is_err().then_some(n)
            })
            .collect();
    }
    let counts: Vec<_> = taken.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert!(counts.iter().all(|count| *count > 0));
    let duplicates: usize = counts.iter().map(|count| count - 1).sum();
    println!("{EVENTS} events, {calls} calls, {} requests, {duplicates} duplicates", turn.load(Ordering::SeqCst));
}

async fn flaky(mut stream: TcpStream, turn: Arc<AtomicUsize>, taken: Arc<Vec<AtomicUsize>>) {
    let mut text = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => text.extend_from_slice(&buffer[..count]),
            _ => return,
        }
        // The body is the last to come, and the only place of this.
        let Some(end) = text.windows(2).position(|pair| pair == b"\"}" || pair == b"0}" || pair[1] == b'}') else {
            continue;
        };
        let whole = String::from_utf8_lossy(&text[..end + 2]).into_owned();
        text.clear();
        let number: usize =
            whole.rsplit_once(':').and_then(|(_, n)| n.trim_end_matches('}').parse().ok()).expect("a number");
        let answer: &[u8] = match turn.fetch_add(1, Ordering::SeqCst) % 7 {
            // Taken, and the answer is lost: what duplicates come from.
            3 => {
                taken[number].fetch_add(1, Ordering::SeqCst);
                return;
            }
            5 => b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
            6 => return,
            _ => {
                taken[number].fetch_add(1, Ordering::SeqCst);
                b"HTTP/1.1 204 Fine\r\n\r\n"
            }
        };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// An authority, in a file, and an endpoint with TLS that it has certified for `name`.
async fn endpoint_with_tls(name: &str) -> (tempfile::NamedTempFile, Raw) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("an authority");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), authority.pem()).expect("writes");
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
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let endpoint = raw(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while !seen.ends_with(b"}") {
                match stream.read(&mut buffer).await {
                    Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                    _ => return,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 204 Fine\r\nconnection: close\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    (file, endpoint)
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_authority_and_name() {
    let (authority, endpoint) = endpoint_with_tls("localhost").await;
    let target = format!("https://localhost:{}/x", endpoint.address.port());
    let with = |file: Option<&tempfile::NamedTempFile>| {
        let mut options = options();
        options.ca_file = file.map(|file| file.path().to_owned());
        WebhookPublisher::new(options).expect("options")
    };
    assert_eq!(with(Some(&authority)).publish(many(&target, 1)).await, [Ok(None)]);
    let error = |receipts: Vec<Receipt>| receipts[0].clone().expect_err("refused");
    let (other, _) = endpoint_with_tls("localhost").await;
    let unknown = error(with(Some(&other)).publish(many(&target, 1)).await);
    assert_eq!(unknown.kind(), Misconfigured, "{unknown}");
    assert!(unknown.to_string().contains("`ca_file`"), "{unknown}");
    let (authority, endpoint) = endpoint_with_tls("other.example").await;
    let target = format!("https://localhost:{}/x", endpoint.address.port());
    let name = error(with(Some(&authority)).publish(many(&target, 1)).await);
    assert_eq!(name.kind(), Misconfigured, "{name}");
}

#[test]
fn an_authority_that_cannot_be_read_is_refused() {
    let error = |content: &[u8]| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("writes");
        let mut options = WebhookOptions::default();
        options.ca_file = Some(file.path().to_owned());
        WebhookPublisher::new(options).expect_err("refused").to_string()
    };
    assert!(error(b"").contains("holds no certificate"));
    assert!(error(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").contains("is malformed"));
    let mut options = WebhookOptions::default();
    options.ca_file = Some("/no/such.pem".into());
    assert!(
        WebhookPublisher::new(options)
            .expect_err("refused")
            .to_string()
            .contains("names /no/such.pem, which cannot be read")
    );
}
