use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::StatusCode;
use pillarbox_console::{Access, ConfigurationFile, Console, Examination, Examine, Finding, Role, Setting, Source};
use pillarbox_core::examine::Severity;
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::PublishError;
use pillarbox_core::store::{Admin as _, NewPause, PauseKind};
use pillarbox_doctor::Doctor;
use pillarbox_engine::maintain::{PauseNote, Pauses};
use pillarbox_engine::run::Outbox;
use pillarbox_memory::MemoryStore;
use pillarbox_routes::{Route, Routes};
use pillarbox_testkit::publishers::{self, MemoryPublisher};
use pillarbox_testkit::{Fault, FaultyStore, Operation};

use crate::site::{Site, event, source, write, write_dead};

const PAGES: [&str; 11] =
    ["overview", "events", "dead", "reasons", "keys", "pauses", "nodes", "routes", "settings", "doctor", "audit"];

/// What no page may hold: the content policy forbids it, so that a browser would leave it out.
fn assert_nothing_inline(page: &str, html: &str) {
    for part in [" style=", "<style", " onclick=", "javascript:", "<script>", "src=\"http", "href=\"http"] {
        assert!(!html.contains(part), "{page} holds `{part}`");
    }
}

#[tokio::test]
async fn each_page_says_what_to_do_where_nothing_is() {
    let site = Site::open(&MemoryStore::new());
    for page in PAGES {
        let answer = site.get(&format!("/s/shop/{page}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}");
        assert!(
            answer.body.contains("aria-current=\"page\"") && answer.body.contains("class=\"empty\"")
                || page == "overview",
            "{page}: {}",
            answer.body
        );
        assert_nothing_inline(page, &answer.body);
    }
    for (path, to) in [("/s/shop", "shop/overview"), ("/s/shop/", "overview")] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, to), "{path}");
    }
    for path in ["/s/other/overview", "/s/shop/nowhere", "/s/shop/event/17", "/s/shop/job/1"] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.body.contains("console.css"), "it looks like the others: {}", answer.body);
    }
}

#[tokio::test]
async fn dead_events_are_shown_filtered_and_paged() {
    let store = MemoryStore::new();
    write_dead(&store, (0..120).map(|number| event(if number % 40 == 0 { "order.paid" } else { "order.placed" })))
        .await;
    let site = Site::open(&store);
    let mut path = "/s/shop/dead?type=order.placed".to_owned();
    let mut rows = Vec::new();
    loop {
        let page = site.get(&path).await.body;
        assert_nothing_inline(&path, &page);
        let on_page = page.matches("id=\"row-").count();
        assert!(on_page <= 50 && page.contains("the card &lt;b&gt;was&lt;/b&gt; declined"), "{page}");
        rows.push(on_page);
        let Some((before, _)) = page.split_once("\" rel=\"next\"") else { break };
        let link = before.rsplit_once("href=\"../../").expect("a link").1.replace("&amp;", "&");
        path = format!("/{link}");
    }
    assert_eq!(rows, [50, 50, 17]);
    let none = site.get("/s/shop/dead?type=no.such").await.body;
    assert!(none.contains("No DEAD event matches"), "{none}");
    let wrong = site.get("/s/shop/dead?since=yesterday").await;
    assert!(
        wrong.status == StatusCode::BAD_REQUEST && wrong.body.contains("`since`: it is neither an age"),
        "{}",
        wrong.body
    );
}

#[tokio::test]
async fn dead_events_are_counted_by_reason_and_each_leads_to_its_events() {
    let store = MemoryStore::new();
    write_dead(&store, (0..70).map(|number| event(if number % 10 == 0 { "order.paid" } else { "order.placed" }))).await;
    let site = Site::open(&store);
    let page = site.get("/s/shop/reasons").await.body;
    assert_nothing_inline("reasons", &page);
    assert_eq!(page.matches("id=\"row-").count(), 2, "{page}");
    let (placed, paid) = (page.find(">63<").expect("most first"), page.find(">7<").expect("the others"));
    assert!(placed < paid && page.contains("the card &lt;b&gt;was&lt;/b&gt; declined"), "{page}");

    let link =
        page[..placed].rsplit_once("href=\"../../").expect("a link").1.trim_end_matches('"').replace("&amp;", "&");
    let listed = site.get(&format!("/{link}")).await.body;
    assert!(listed.contains("value=\"order.placed\"") && listed.matches("id=\"row-").count() == 50, "{link}: {listed}");

    let paid = site.get("/s/shop/reasons?type=order.paid").await.body;
    assert!(paid.contains(">7<") && !paid.contains(">63<"), "{paid}");
    assert!(site.get("/s/shop/reasons?type=no.such").await.body.contains("No DEAD event matches"));
    assert_eq!(site.get("/s/shop/reasons?tpye=order.paid").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn headers_that_are_as_long_as_a_book_are_told_by_their_size() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed").header("h", "x".repeat(65_530))]).await;
    let seq = store.inspect().rows()[0].seq;
    let page = Site::open(&store).get(&format!("/s/shop/event/{seq}")).await.body;
    assert!(page.contains("They are too long to be shown here.") && !page.contains("xxxx"), "{}", page.len());
    assert!(page.len() < 50_000 && page.contains("65,538 bytes"), "{}", page.len());
}

#[tokio::test]
async fn an_event_is_shown_with_all_there_is_and_without_secrets() {
    let store = MemoryStore::new();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sent =
        event("order.placed").key("k-1").header("traceparent", trace).header("authorization", "Bearer hunter2-header");
    write_dead(&store, [sent]).await;
    let seq = store.inspect().rows()[0].seq;
    let console = Console::new(Access::loopback(Role::Operate)).source(source(&store));
    let site = Site::new(console.clone().trace_link("https://traces.example/{trace_id}"));
    let page = site.get(&format!("/s/shop/event/{seq}")).await.body;
    for part in [
        "k-1",
        "<span class=\"jn\">12.50</span>",
        "href=\"https://traces.example/0af7651916cd43dd8448eb211c80319c\"",
        "the card",
        "pillarbox dead replay --seq",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("hunter2"), "{page}");

    let masked = Site::new(console.clone().mask_payloads(true)).get(&format!("/s/shop/event/{seq}")).await.body;
    assert!(masked.contains("masks payloads") && !masked.contains("12.50"), "{masked}");
    let unlinked =
        Site::new(console.trace_link("javascript:{trace_id}")).get(&format!("/s/shop/event/{seq}")).await.body;
    assert!(!unlinked.contains("javascript:"), "{unlinked}");
}

#[tokio::test]
async fn a_pending_event_tells_what_it_waits_for() {
    let store = MemoryStore::new();
    let routes =
        Routes::new().route(Route::to(Arc::new(MemoryPublisher::new()), "orders").named("orders").types(["order.*"]));
    let forwarder = routes.build().expect("valid");
    let source = source(&store).routes(forwarder.clone());
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    write_dead(&store, [event("order.placed").key("k-1")]).await;
    write(&store, [event("order.paid").key("k-1"), event("stock.sold").key("k-2")]).await;
    let [head, paid, stock]: [i64; 3] =
        store.inspect().rows().iter().map(|row| row.seq).collect::<Vec<_>>().try_into().expect("three rows");
    let page = async |seq: i64| site.get(&format!("/s/shop/event/{seq}")).await.body;
    let behind = page(paid).await;
    assert!(behind.contains(&format!(">row {head}</a> of its key, which is DEAD")), "{behind}");
    assert!(!behind.contains("It waits:"), "neither type nor route is paused: {behind}");
    assert!(forwarder.pause("orders", "they move"));
    let behind = page(paid).await;
    assert!(behind.contains("its route orders is paused: they move"), "{behind}");
    assert!(!page(head).await.contains("It waits"), "it is DEAD, and waits for a person");
    let unrouted = page(stock).await;
    assert!(unrouted.contains("No route takes it") && !unrouted.contains("waits behind"), "{unrouted}");
    write(&store, [event("stock.sold").key("k-3"), event("order.paid").key("k-3")]).await;
    let rows: Vec<i64> = store.inspect().rows().iter().map(|row| row.seq).collect();
    let (held, last) = (rows[3], rows[4]);
    assert!(!page(last).await.contains("which is paused"));
    Pauses::of(&store).pause_type("stock.sold", &PauseNote::new()).await.expect("pauses");
    let behind = page(last).await;
    assert!(behind.contains(&format!(">row {held}</a> of its key, which is paused")), "{behind}");
    assert!(!page(held).await.contains("of its key, which is paused"), "the first of its key");
}

#[tokio::test]
async fn a_file_that_was_refused_is_told_on_the_first_page() {
    let refused = |refused: Option<(String, String)>| {
        let file = ConfigurationFile { read_at: "12:00".to_owned(), refused };
        Site::new(Console::new(Access::loopback(Role::Read)).source(source(&MemoryStore::new()).configuration(file)))
    };
    let page = refused(Some(("12:30".to_owned(), "line 3".to_owned()))).get("/s/shop/overview").await.body;
    assert!(page.contains("A changed file was refused at 12:30"), "{page}");
    let page = refused(None).get("/s/shop/overview").await.body;
    assert!(!page.contains("was refused"), "{page}");
}

#[tokio::test]
async fn payloads_of_any_kind_are_shown_as_they_are_and_bounded() {
    let store = MemoryStore::new();
    let bytes = event("photo.taken").payload_bytes("image/png", vec![0x89, b'P', b'N', b'G', 0xff]);
    let long = event("book.written").payload_json(format!("\"{}\"", "x".repeat(70_000)));
    let text = event("note.taken").payload_bytes("text/plain", "</pre><script>alert(1)</script>");
    write(&store, [bytes, long, text]).await;
    let site = Site::open(&store);
    let seqs: Vec<i64> = store.inspect().rows().iter().map(|row| row.seq).collect();
    let page = async |seq: i64| site.get(&format!("/s/shop/event/{seq}")).await.body;
    assert!(page(seqs[0]).await.contains("89 50 4e 47 ff"), "hexadecimal");
    let long = page(seqs[1]).await;
    assert!(long.contains("70,002 bytes") && !long.contains("xxxxxxxx"), "too long");
    let text = page(seqs[2]).await;
    assert!(text.contains("&lt;script&gt;alert(1)") && !text.contains("<script>alert"), "{text}");
}

#[tokio::test]
async fn an_event_is_found_by_its_id_and_by_its_row() {
    let store = MemoryStore::new();
    write(&store, [event("order.placed").id("order-17")]).await;
    let seq = store.inspect().rows()[0].seq;
    let site = Site::open(&store);
    for find in ["order-17".to_owned(), seq.to_string(), format!("%20{seq}%20")] {
        let answer = site.get(&format!("/s/shop/events?find={find}")).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, &*format!("event/{seq}")),
            "{find}"
        );
    }
    let none = site.get("/s/shop/events?find=%3Cb%3Enone").await.body;
    assert!(none.contains("&lt;b&gt;none") && !none.contains("<b>none"), "{none}");
}

#[tokio::test]
async fn events_of_any_state_are_listed_and_filtered() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.paid")]).await;
    let later = event("order.due").deliver_after(Duration::from_secs(3_600));
    write(&store, [event("order.placed").key("a"), later]).await;
    let site = Site::open(&store);
    for (query, types) in [
        ("", [true, true, true]),
        ("?state=pending", [true, true, false]),
        ("?state=delayed", [false, true, false]),
        ("?key=a", [true, false, false]),
        ("?state=new&key=", [true, false, false]),
        ("?state=dead", [false, false, true]),
        ("?error=declined&since=1h", [false, false, true]),
        ("?state=done", [false, false, false]),
    ] {
        let page = site.get(&format!("/s/shop/events{query}")).await.body;
        let found = ["order.placed<br>", "order.due<br>", "order.paid<br>"].map(|part| page.contains(part));
        assert_eq!(found, types, "{query}");
        assert_eq!(
            page.contains("do=cancel"),
            query.contains("state=pending") || query.contains("delayed") || query.contains("new"),
            "{query}"
        );
    }
    assert_eq!(site.get("/s/shop/events?state=lost").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_search_that_reads_its_bound_says_how_far_back_and_goes_on() {
    let store = MemoryStore::new();
    write(&store, (0..10_050).map(|number| event(if number == 0 { "order.first" } else { "order.placed" }))).await;
    let site = Site::open(&store);
    let page = site.get("/s/shop/events?type=order.first").await.body;
    assert!(page.contains("Searched back to") && !page.contains("order.first<br>"), "{page}");
    let (before, _) = page.split_once("\" rel=\"next\"").expect("a next page");
    let next = before.rsplit_once("href=\"../../").expect("a link").1.replace("&amp;", "&");
    let page = site.get(&format!("/{next}")).await.body;
    assert!(page.contains("order.first<br>") && !page.contains("Searched back to"), "{page}");
}

#[tokio::test]
async fn settings_say_where_they_came_from_and_no_secret() {
    let setting = |key: &str, value: &str, origin: Option<&str>| Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        origin: origin.map(str::to_owned),
    };
    let source = source(&MemoryStore::new()).settings([
        setting("claim.max_interval", "500ms", Some("relay.toml, line 7")),
        setting("dispatch.workers", "32", None),
        setting("store.password", "hunter2", None),
        setting("relay.console.password_file", "–", None),
        setting("relay.console.read_password_file", "/run/secrets/readers", None),
    ]);
    let site = Site::new(Console::new(Access::loopback(Role::Read)).source(source));
    let page = site.get("/s/shop/settings").await.body;
    for part in [
        "claim.max_interval",
        "500ms",
        "relay.toml, line 7",
        "dispatch.workers",
        "default",
        "<code>–</code>",
        "/run/secrets/readers",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("hunter2"), "{page}");
}

#[tokio::test]
async fn a_source_that_is_away_says_why_and_the_others_are_shown() {
    let console = Console::new(Access::loopback(Role::Read)).source(source(&MemoryStore::new()));
    let site = Site::new(console.source(Source::away("billing", "no route to <host>")));
    let dead = site.get("/s/billing/dead").await;
    assert!(
        dead.status == StatusCode::SERVICE_UNAVAILABLE && dead.body.contains("No route to &lt;host&gt;"),
        "{}",
        dead.body
    );
    let shop = site.get("/s/shop/overview").await.body;
    assert!(shop.contains("<option value=\"billing\">"), "{shop}");
    let go = site.get("/go?source=billing&page=dead").await;
    assert_eq!((go.status, go.header("location")), (StatusCode::SEE_OTHER, "s/billing/dead"));
    assert_eq!(site.get("/go?source=//evil.example&page=x").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_map_of_partitions_names_each_owner() {
    let store = MemoryStore::new();
    let site = Site::open(&store);
    let started = async || {
        let handler = async |_: Delivery| {};
        Outbox::partitioned(store.clone()).handle_all(handler).start().await.expect("starts")
    };
    let nodes = [started().await, started().await];
    let owned = async || store.partition_owners().await.expect("owners");
    let shared = async {
        while owned().await.len() < 256 || store.nodes().await.expect("nodes").iter().any(|node| node.partitions != 128)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), shared).await.expect("they share");
    let page = site.get("/s/shop/nodes").await.body;
    assert_eq!([">A</li>", ">B</li>", ">×</li>"].map(|mark| page.matches(mark).count()), [128, 128, 0], "{page}");
    for node in nodes {
        node.shutdown().await;
    }
}

/// Finds one thing, and counts how often it is asked.
struct Pinned(Arc<AtomicUsize>);

#[async_trait]
impl Examine for Pinned {
    async fn examine(&self) -> Examination {
        self.0.fetch_add(1, Ordering::Relaxed);
        let finding = Finding {
            code: "snapshot-pinned".to_owned(),
            severity: Severity::Notice,
            cause: "an open transaction keeps old rows".to_owned(),
            evidence: "pid 17 since <1 h>".to_owned(),
            remedy: "run `end`".to_owned(),
            command: Some("select pg_terminate_backend(17)".to_owned()),
        };
        let not_checked = vec![("replication".to_owned(), "the privilege is missing".to_owned())];
        Examination { findings: vec![finding], not_checked, healthy: 12 }
    }
}

#[tokio::test(start_paused = true)]
async fn findings_are_shown_and_asked_for_once_a_minute() {
    let asked = Arc::new(AtomicUsize::new(0));
    let source = source(&MemoryStore::new()).examined_by(Pinned(Arc::clone(&asked)));
    let site = Site::new(Console::new(Access::loopback(Role::Read)).source(source));
    for _ in 0..3 {
        let page = site.get("/s/shop/doctor").await.body;
        for part in [
            "snapshot-pinned",
            "pid 17 since &lt;1 h&gt;",
            " notice</span>",
            "run <code>end</code>",
            "the privilege is missing",
            "12 checks",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    tokio::time::advance(Duration::from_secs(60)).await;
    site.get("/s/shop/doctor").await;
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

/// Whoever is on call reads on the first page, and from the doctor, what this process does not deliver.
#[tokio::test]
async fn pauses_are_shown_on_the_first_page_and_by_the_doctor() {
    struct Well;
    #[async_trait]
    impl Examine for Well {
        async fn examine(&self) -> Examination {
            Examination { healthy: 3, ..Examination::default() }
        }
    }
    let (store, broker) = (MemoryStore::new(), MemoryPublisher::new());
    broker.answer(publishers::Answer::Fail(PublishError::unavailable("connection refused")));
    let routes = Routes::new().route(Route::to(Arc::new(broker), "orders").named("orders").types(["order.*"]));
    let forwarder = routes.route(Route::drop().named("noise")).build().expect("valid");
    forwarder.begin(Duration::from_millis(1)).await.expect("nobody refuses anything");
    for number in 0..7 {
        let pause = NewPause::new(PauseKind::Type, format!("type<{number}>"));
        store.pause(&pause).await.expect("paused");
    }
    let source = Source::of_store("shop", Arc::new(store)).routes(forwarder).examined_by(Well);
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    let page = loop {
        let page = site.get("/s/shop/overview").await.body;
        if !page.contains("The first figures are on their way") {
            break page;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    for part in ["Route orders is paused: ", "connection refused", "type type&lt;0&gt;", "and 2 more"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = site.get("/s/shop/doctor").await.body;
    for part in ["route-paused", "source shop, route orders: ", "connection refused", "9 checks"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// Counting a large table may take longer than the page waits for it. That is no fault of the database, and hides nothing that is known without.
#[tokio::test(start_paused = true)]
async fn pauses_are_shown_on_the_first_page_though_counting_does_not_end() {
    let broker = MemoryPublisher::new();
    broker.answer(publishers::Answer::Fail(PublishError::unavailable("connection refused")));
    let routes = Routes::new().route(Route::to(Arc::new(broker), "orders").named("orders"));
    let forwarder = routes.build().expect("valid");
    forwarder.begin(Duration::from_millis(1)).await.expect("nobody refuses anything");
    let store = FaultyStore::new(MemoryStore::new());
    store.set(Operation::Inspect, Fault::Silence);
    let source = Source::of_store("shop", Arc::new(store.clone())).routes(forwarder);
    let site = Site::new(Console::new(Access::loopback(Role::Operate)).source(source));
    let overview = async |part: &str| {
        let shown = async {
            loop {
                let page = site.get("/s/shop/overview").await.body;
                assert!(page.contains("Route orders is paused: ") && page.contains("connection refused"), "{page}");
                if page.contains(part) {
                    return page;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), shown).await.expect("it comes to that")
    };
    let page = overview("did not end within five seconds").await;
    assert!(page.contains("The figures are not known") && !page.contains("cannot be used"), "{page}");
    store.set(Operation::Inspect, Fault::Refused);
    let page = overview("It cannot be used now").await;
    assert!(page.contains("the test cut the connection"), "{page}");
}

/// An examination is made anew for whoever has seen the last one, and not more often than every five seconds.
#[tokio::test(start_paused = true)]
async fn the_doctor_examines_at_once_for_who_has_seen_the_last_examination() {
    struct Counts(Arc<AtomicUsize>);
    #[async_trait]
    impl Examine for Counts {
        async fn examine(&self) -> Examination {
            self.0.fetch_add(1, Ordering::SeqCst);
            Examination::default()
        }
    }
    let examined = Arc::new(AtomicUsize::new(0));
    let source = Source::of_store("shop", Arc::new(MemoryStore::new())).examined_by(Counts(Arc::clone(&examined)));
    let site = Site::new(Console::new(Access::loopback(Role::Read)).source(source));
    let count = async |path: &str| {
        site.get(path).await;
        examined.load(Ordering::SeqCst)
    };
    let page = site.get("/s/shop/doctor").await.body;
    assert!(page.contains("s/shop/doctor?seen=1\">Examine now"), "{page}");
    assert_eq!(count("/s/shop/doctor?seen=1").await, 1, "a moment ago");
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(count("/s/shop/doctor").await, 1);
    assert_eq!(count("/s/shop/doctor?seen=1").await, 2);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(count("/s/shop/doctor?seen=1").await, 2, "the page that brings itself up to date asks for no other");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(count("/s/shop/doctor?seen=1").await, 3);
}

/// Examines as long as it is told, and tells this.
struct Takes(Duration, Examination, Arc<AtomicUsize>);

impl Takes {
    fn new(time: Duration, examination: Examination) -> Self {
        Self(time, examination, Arc::default())
    }
}

#[async_trait]
impl Examine for Takes {
    async fn examine(&self) -> Examination {
        self.2.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.0).await;
        self.1.clone()
    }
}

fn examined_by(name: &str, examiner: impl Examine + 'static) -> Source {
    Source::of_store(name, Arc::new(MemoryStore::new())).examined_by(examiner)
}

/// A console that shows these sources.
fn showing(sources: impl IntoIterator<Item = Source>) -> Site {
    Site::new(sources.into_iter().fold(Console::new(Access::loopback(Role::Read)), Console::source))
}

const FOR_EVER: Duration = Duration::from_secs(1_000_000);

#[tokio::test]
async fn nothing_is_said_to_be_well_that_was_not_checked() {
    let not_checked = |count: usize| (0..count).map(|it| (format!("check-{it}"), "denied".to_owned())).collect();
    for (not_checked, healthy, headline, other) in [
        (not_checked(0), 3, "Nothing is wrong", "was not checked"),
        (not_checked(2), 3, "Nothing was found, and not everything was checked", "Nothing is wrong"),
        (not_checked(2), 0, "Nothing was checked", "Nothing is wrong"),
        (not_checked(0), 0, "Nothing was checked", "Nothing is wrong"),
    ] {
        let examination = Examination { not_checked, healthy, ..Examination::default() };
        let page = showing([examined_by("shop", Takes::new(Duration::ZERO, examination))]).get("/s/shop/doctor").await;
        assert!(page.body.contains(headline) && !page.body.contains(other), "{headline}: {}", page.body);
    }
}

#[tokio::test(start_paused = true)]
async fn findings_are_shown_though_the_examination_does_not_end() {
    let broker = MemoryPublisher::new();
    broker.answer(publishers::Answer::Fail(PublishError::unavailable("connection refused")));
    let forwarder = Routes::new().route(Route::to(Arc::new(broker), "orders").named("orders").types(["order.*"]));
    let forwarder = forwarder.build().expect("valid");
    forwarder.begin(Duration::from_millis(1)).await.expect("nobody refuses anything");
    let endless = examined_by("shop", Takes::new(FOR_EVER, Examination::default())).routes(forwarder);
    let page = showing([endless]).get("/s/shop/doctor").await.body;
    for part in ["route-paused", "connection refused", "did not end within 20 seconds"] {
        assert!(page.contains(part), "{part}: {page}");
    }

    // A doctor ends by itself before that, and tells what else it has found.
    let doctor = Doctor::new().configuration("file relay.toml", || Box::pin(std::future::pending()));
    let doctor = doctor.store("shop", Arc::new(MemoryStore::new()));
    let page = showing([examined_by("shop", doctor)]).get("/s/shop/doctor").await.body;
    for part in ["no-node", "examination-unfinished", "file relay.toml: it did not end within 15s"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_examined_for_long_makes_no_other_wait() {
    let slow = examined_by("slow", Takes::new(FOR_EVER, Examination::default()));
    let site = showing([slow, examined_by("shop", Takes::new(Duration::ZERO, Examination::default()))]);
    let began = tokio::time::Instant::now();
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        site.get("/s/shop/doctor").await;
        began.elapsed()
    };
    let (slow, elapsed) = tokio::join!(site.get("/s/slow/doctor"), other);
    assert!(slow.body.contains("did not end within 20 seconds"), "{}", slow.body);
    assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_examination_ends_though_nobody_waits_for_it_any_more() {
    let found = Examination { healthy: 7, ..Examination::default() };
    let examiner = Takes::new(Duration::from_secs(12), found);
    let asked = Arc::clone(&examiner.2);
    let site = showing([examined_by("shop", examiner)]);
    let hung_up = tokio::time::timeout(Duration::from_secs(10), site.get("/s/shop/doctor")).await;
    assert!(hung_up.is_err(), "the browser waits no longer");
    let began = tokio::time::Instant::now();
    let page = site.get("/s/shop/doctor").await.body;
    assert!(page.contains("7 checks found nothing") && began.elapsed() < Duration::from_secs(3), "{page}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn pauses_are_paged_and_may_be_replaced() {
    let store = MemoryStore::new();
    for number in 100..220 {
        store.pause(&NewPause::new(PauseKind::Type, format!("t{number}"))).await.expect("paused");
    }
    let site = Site::open(&store);
    let mut path = "/s/shop/pauses".to_owned();
    let mut rows = Vec::new();
    loop {
        let page = site.get(&path).await.body;
        rows.push(page.matches("<code>t").count());
        let Some((before, _)) = page.split_once("\" rel=\"next\"") else { break };
        path = format!("/{}", before.rsplit_once("href=\"../../").expect("a link").1);
    }
    assert_eq!(rows, [50, 50, 20]);
    assert_eq!(site.get("/s/shop/pauses?skip=999999").await.status, StatusCode::OK);
    let token = site.get("/s/shop/pauses").await.field("token").to_owned();
    let form = format!("kind=type&name=t100&reason=mine&replace=yes&token={token}");
    assert_eq!(site.post("/s/shop/pause", &form, &[]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(store.pauses().await.expect("a list")[0].reason.as_deref(), Some("mine"));
}

#[tokio::test]
async fn an_address_that_cannot_be_read_is_answered_by_a_page() {
    let site = Site::open(&MemoryStore::new());
    for path in ["/s/shop/events?below=x", "/s/shop/doctor?seen=-1", "/s/shop/pauses?skip=many"] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(answer.body.contains("console.css") && answer.body.contains("is not as this console"), "{answer:?}");
    }
}

#[tokio::test]
async fn events_whose_id_is_the_number_of_another_are_told_apart() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed").id("2"), event("order.paid").id("x")]).await;
    let site = Site::open(&store);
    let seqs: Vec<i64> = store.inspect().rows().iter().map(|row| row.seq).collect();
    assert_eq!(seqs, [1, 2]);
    let page = site.get("/s/shop/events?find=2").await;
    assert!(page.body.contains("event/1\">row 1") && page.body.contains("event/2\">row 2"), "{page:?}");
    assert_eq!(site.get("/s/shop/events?find=x").await.header("location"), "event/2");
    assert_eq!(site.get("/s/shop/events?find=1").await.header("location"), "event/1");
    assert!(site.get("/s/shop/events?find=9").await.body.contains("No event has the id or number"));
}
