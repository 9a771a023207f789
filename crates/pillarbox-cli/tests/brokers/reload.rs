//! SIGHUP: the file is read again.

use std::path::Path;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::endpoint::Endpoint;
use crate::relay::{Shop, free_port, run, start, stop, wait_for_page};

async fn hang_up(relay: &Child) {
    let id = relay.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().await.unwrap().success());
}

/// The name of the node that delivers for a source.
fn node(status: &str, source: &str) -> String {
    let status: Value = serde_json::from_str(status).unwrap();
    let found = status["sources"].as_array().unwrap().iter().find(|other| other["source"] == source);
    let health = found.unwrap_or_else(|| panic!("no {source}: {status}"))["health"].as_str().unwrap();
    let (_, node) = health.split_once("delivering as ").unwrap_or_else(|| panic!("{health}"));
    node.split(';').next().unwrap().to_owned()
}

async fn all_deliver(port: u16, sources: usize) -> String {
    wait_for_page(port, "/status", |_, body| body.matches("delivering as ").count() == sources).await
}

struct Files {
    shop: Shop,
    port: u16,
    endpoint: Endpoint,
}

impl Files {
    async fn new() -> Self {
        let files =
            Self { shop: Shop::open().await, port: free_port(), endpoint: Endpoint::start("204 No Content").await };
        for name in ["billing.db", "stock.db"] {
            let database = files.shop.folder.path().join(name).display().to_string();
            assert_eq!(run(&["migrate", "--store", &database]).await.code, Some(0));
        }
        files
    }

    fn source(&self, name: &str, rest: &str) -> String {
        let database = self.shop.folder.path().join(format!("{name}.db"));
        format!("[[source]]\nname = \"{name}\"\nmode = \"single_node\"\nstore.url = \"{}\"\n{rest}", database.display())
    }

    /// A file with a route of orders to a path, and one for the rest to another.
    fn write(&self, sources: &str, orders: &str, others: &str) -> std::path::PathBuf {
        let file = self.shop.folder.path().join("relay.toml");
        let publisher = format!(
            "[publisher.hooks]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\nallow_private = true\n",
            self.endpoint.port
        );
        let route = |name: &str, types: &str, to: &str| {
            format!("[[route]]\nname = \"{name}\"\ntypes = [\"{types}\"]\npublisher = \"hooks\"\nto = \"{to}\"\n")
        };
        let text = format!(
            "# a comment\n[relay]\nlisten = \"127.0.0.1:{}\"\n{sources}{publisher}{}{}",
            self.port,
            route("orders", "order", orders),
            route("others", "*", others)
        );
        std::fs::write(&file, text).unwrap();
        file
    }
}

/// A relay that delivers from `shop`, to be told of other files.
struct Begun {
    file: std::path::PathBuf,
    /// The text of the file that it has.
    good: String,
    /// Its status.
    before: String,
    running: Child,
    /// The lines of its log.
    lines: Lines,
}

impl Files {
    async fn begin(&self) -> Begun {
        let file = self.write(&self.source("shop", ""), "first", "rest");
        let good = std::fs::read_to_string(&file).unwrap();
        let mut running = start(&file);
        let before = all_deliver(self.port, 1).await;
        let lines = lines_of(&mut running);
        Begun { file, good, before, running, lines }
    }
}

/// The log says so; the text of a page tells when.
async fn after(relay: &Child, port: u16, is_so: impl Fn(&str) -> bool) -> String {
    hang_up(relay).await;
    wait_for_page(port, "/status", |_, body| is_so(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_what_the_file_changes_and_nothing_else() {
    let files = Files::new().await;
    let shop = files.source("shop", "");
    files.write(&(shop.clone() + &files.source("billing", "")), "first", "rest");
    let running = start(&files.shop.folder.path().join("relay.toml"));
    let before = all_deliver(files.port, 2).await;
    files.shop.insert("order", 1, 1).await;
    files.shop.wait_until("status = 1", 1).await;

    // A route of both sources changes, one source is new, one has another setting; the lines of the other move.
    let sources =
        "\n\n".to_owned() + &shop + &files.source("billing", "dispatch.workers = 3\n") + &files.source("stock", "");
    files.write(&sources, "second", "rest");
    let is_over = |body: &str| body.matches("delivering as ").count() == 3;
    let reloaded =
        after(&running, files.port, |body| is_over(body) && node(body, "billing") != node(&before, "billing")).await;
    assert_eq!(node(&reloaded, "shop"), node(&before, "shop"), "it goes on");
    files.shop.insert("order", 2, 1).await;
    files.shop.insert("noise", 3, 1).await;
    files.shop.wait_until("status = 1", 3).await;
    let mut paths = files.endpoint.paths();
    paths.sort();
    assert_eq!(paths, ["/first", "/rest", "/second"]);

    // One source is gone.
    files.write(&shop, "third", "rest");
    let reloaded = after(&running, files.port, |body| !body.contains("\"stock\"")).await;
    assert_eq!(node(&reloaded, "shop"), node(&before, "shop"));
    files.shop.insert("order", 4, 1).await;
    files.shop.wait_until("status = 1", 4).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("the configuration was reloaded"), "{ended:?}");
    assert!(files.endpoint.paths().contains(&"/third".to_owned()));
    assert_eq!(files.shop.count("attempts > 0").await, 0);
}

/// Nobody is woken for a source that was taken away on purpose.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_a_reload_takes_away_leaves_no_trouble_in_the_metrics() {
    let files = Files::new().await;
    let nobody = free_port();
    let write = |sources: &str| {
        let file = files.write(sources, "first", "rest");
        let text = std::fs::read_to_string(&file).unwrap();
        // With a broker that is not there, so that every route is paused.
        std::fs::write(&file, text.replace(&files.endpoint.port.to_string(), &nobody.to_string())).unwrap();
        file
    };
    let (shop, billing) = (files.source("shop", ""), files.source("billing", ""));
    let running = start(&write(&(shop.clone() + &billing)));
    all_deliver(files.port, 2).await;
    let says = |body: &str, paused: u32, billing: &str| {
        let of_billing = |line: &&str| line.starts_with("pillarbox_role_active{") && line.contains("billing.db");
        let active = body.lines().find(of_billing).is_some_and(|line| line.ends_with(billing));
        active && body.contains(&format!("pillarbox_route_paused{{route=\"orders\",publisher=\"webhook\"}} {paused}\n"))
    };
    wait_for_page(files.port, "/metrics", |_, body| says(body, 2, " 1")).await;
    write(&shop);
    hang_up(&running).await;
    wait_for_page(files.port, "/metrics", |_, body| says(body, 1, " NaN")).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Somebody has to be woken for a source that is to deliver and cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_a_reload_restarts_without_its_database_is_shown_as_not_delivering() {
    let files = Files::new().await;
    let (shop, billing) = (files.source("shop", ""), files.source("billing", ""));
    let running = start(&files.write(&(shop.clone() + &billing), "first", "rest"));
    all_deliver(files.port, 2).await;
    let says = |body: &str, active: &str| {
        let of_billing = |line: &&str| line.starts_with("pillarbox_role_active{") && line.contains("billing.db");
        body.lines().find(of_billing).is_some_and(|line| line.ends_with(active))
    };
    wait_for_page(files.port, "/metrics", |_, body| says(body, " 1")).await;
    let database = files.shop.folder.path().join("billing.db");
    let away = files.shop.folder.path().join("away.db");
    std::fs::rename(&database, &away).unwrap();
    files.write(&(shop + &billing + "dispatch.workers = 3\n"), "first", "rest");
    hang_up(&running).await;
    wait_for_page(files.port, "/metrics", |_, body| says(body, " 0")).await;
    std::fs::rename(&away, &database).unwrap();
    wait_for_page(files.port, "/metrics", |_, body| says(body, " 1")).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A mistyped database stops no source that delivers.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_answer_is_refused_and_the_old_one_is_delivered_from() {
    let files = Files::new().await;
    let Begun { file, good, before, running, mut lines } = files.begin().await;
    let nobody = format!("postgres://app@127.0.0.1:{}/shop", free_port());
    let database = format!("\"{}\"", files.shop.database());
    assert!(good.contains(&database), "{good}");
    for (text, expected) in [
        (good.replace("shop.db", "shpo.db"), "shpo.db` does not exist"),
        (good.replace(&database, &format!("\"{nobody}\"")), "shop"),
        (good.replace("mode =", "store.table = \"outbox_evnet\"\nmode ="), "outbox_evnet"),
    ] {
        std::fs::write(&file, text).unwrap();
        hang_up(&running).await;
        let line = line_with(&mut lines, "is refused").await;
        assert!(
            line.contains(expected) && line.contains("goes on with the database that it has"),
            "{expected}: {line}"
        );
        let status = all_deliver(files.port, 1).await;
        assert_eq!(node(&status, "shop"), node(&before, "shop"), "{expected}");
    }
    files.shop.insert("order", 1, 1).await;
    files.shop.wait_until("status = 1", 1).await;

    // One that answers takes its place.
    std::fs::write(&file, good.replace("shop.db", "stock.db")).unwrap();
    hang_up(&running).await;
    line_with(&mut lines, "the configuration was reloaded").await;
    wait_for_page(files.port, "/status", |_, body| body.contains("stock.db") && body.contains("delivering as ")).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_used_is_refused_and_the_old_one_stays() {
    let files = Files::new().await;
    let Begun { file, good, before, running, mut lines } = files.begin().await;
    let other = free_port();
    for (text, expected) in [
        (good.replace("[[route]]", "[[rout]]"), "unknown section `rout`"),
        (good.replace("\"first\"", "\"{evnt}\""), "`{evnt}`, which does not exist"),
        (
            good.replace(&files.port.to_string(), &other.to_string()),
            "`relay.listen` cannot change while the relay runs",
        ),
        (good.replace("store.url =", "store.url_file ="), "store.url_file"),
        (good.replace("store.url = \"", "store.url = \"postgres://u:p@h/x?sslmode=sometimes#"), "sslmode"),
    ] {
        std::fs::write(&file, text).unwrap();
        hang_up(&running).await;
        let line = line_with(&mut lines, "is refused").await;
        assert!(line.contains(expected), "{expected}: {line}");
    }
    std::fs::write(&file, good.replace("[[route]]", "[[rout]]")).unwrap();
    assert_eq!(found(&file).await, ["configuration-unusable"], "what follows from it is not told as well");
    std::fs::remove_file(&file).unwrap();
    hang_up(&running).await;
    let line = line_with(&mut lines, "is refused").await;
    assert!(line.contains("cannot read") && line.contains("the relay goes on with the one it has"), "{line}");

    files.shop.insert("order", 1, 1).await;
    files.shop.wait_until("status = 1", 1).await;
    let status = all_deliver(files.port, 1).await;
    assert_eq!(node(&status, "shop"), node(&before, "shop"));
    let refused = serde_json::from_str::<Value>(&status).unwrap()["configuration"]["refused"].clone();
    assert!(refused["problem"].as_str().unwrap().contains("cannot read") && refused["at"].is_string(), "{refused}");

    // Whoever is on call sees what is not in force.
    std::fs::write(&file, &good).unwrap();
    assert_eq!(found(&file).await, [""; 0], "it is as it was");
    std::fs::write(&file, good.replace("first", "second")).unwrap();
    assert_eq!(found(&file).await, ["configuration-refused", "configuration-not-loaded"]);
    hang_up(&running).await;
    line_with(&mut lines, "the configuration was reloaded").await;
    assert_eq!(found(&file).await, [""; 0]);
    files.shop.insert("order", 2, 1).await;
    files.shop.wait_until("status = 1", 2).await;
    assert_eq!(files.endpoint.paths(), ["/first", "/second"]);
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_changed_is_found_until_it_is_loaded() {
    let files = Files::new().await;
    let secret = files.shop.folder.path().join("url");
    std::fs::write(&secret, files.shop.database()).unwrap();
    let shop = files.source("shop", "");
    let line = shop.lines().find(|line| line.starts_with("store.url")).unwrap();
    let shop = shop.replace(line, &format!("store.url_file = \"{}\"", secret.display()));
    let file = files.write(&shop, "first", "rest");
    let mut running = start(&file);
    all_deliver(files.port, 1).await;
    let mut lines = lines_of(&mut running);
    assert_eq!(found(&file).await, [""; 0]);
    std::fs::write(&secret, format!("{}\n", files.shop.database())).unwrap();
    assert_eq!(found(&file).await, ["configuration-not-loaded"]);
    hang_up(&running).await;
    line_with(&mut lines, "the configuration was reloaded").await;
    assert_eq!(found(&file).await, [""; 0]);
    stop(running).await;
}

/// What the doctor finds about a file and its relay.
async fn found(file: &Path) -> Vec<String> {
    let examined = run(&["doctor", "--config", file.to_str().unwrap(), "--json"]).await;
    let report: Value = serde_json::from_str(&examined.stdout).unwrap_or_else(|_| panic!("{examined:?}"));
    let codes = |list: &str, key: &str| -> Vec<String> {
        let all = report[list].as_array().unwrap_or_else(|| panic!("{examined:?}"));
        let codes = all.iter().map(|one| one[key].as_str().unwrap().to_owned());
        codes.filter(|code| code.starts_with("configuration-")).collect()
    };
    let found = codes("findings", "code");
    // The others cannot be made for a file that has to be mended first.
    assert!(found == ["configuration-unusable"] || codes("not_checked", "code").is_empty(), "{report}");
    found
}

type Lines = tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStderr>>;

fn lines_of(relay: &mut Child) -> Lines {
    use tokio::io::AsyncBufReadExt as _;
    tokio::io::BufReader::new(relay.stderr.take().unwrap()).lines()
}

/// The next line of the log that says this.
async fn line_with(lines: &mut Lines, text: &str) -> String {
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the relay is running");
            if line.contains(text) {
                return line;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), found).await.unwrap()
}
