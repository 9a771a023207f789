use std::time::Duration;

use pillarbox::Store;
use pillarbox::error::StoreError;
use pillarbox::maintain::{DeadFilter, EventFilter, PendingFilter};
use serde::Serialize;
use tokio::time::Instant;

use crate::args::ConsoleArgs;
use crate::failure::Failure;
use crate::figures::{Figures, OwnFigures};
use crate::lab::{BYSTANDER, BenchDb, Kind};
use crate::meter::Measured;
use pillarbox_program::progress::bar;
use pillarbox_program::report::rounded;

/// Events on a page.
const PAGE: usize = 50;

/// The lists of a console on a table of many rows: the time of one page of each.
pub(crate) async fn run(lab: &dyn BenchDb, args: &ConsoleArgs) -> Result<Figures, Failure> {
    lab.clear().await?;
    let others = [(Kind::Dead, args.dead), (Kind::Delayed, args.pending / 10), (Kind::Due, args.pending)];
    let done = others.iter().fold(args.rows, |left, (_, rows)| left.saturating_sub(*rows));
    let bar = bar(LISTS.len() as u64, "lists");
    for (kind, rows) in std::iter::once((Kind::Done, done)).chain(others) {
        lab.add(kind, rows, r#"{"n": "0123456789abcdef"}"#).await?;
    }
    lab.rest().await?;
    let (store, began, mut lists) = (lab.store(), Instant::now(), Vec::new());
    for name in LISTS {
        lists.push(measure(&*store, name, args.pages.into()).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut own = OwnFigures::new("for which pages were read");
    own.count("rows", args.rows, "rows", "of which the newest are pending and DEAD, all others DONE")?;
    own.count("pages", args.pages, "pages", "of each list")?;
    own.add("lists", &lists, lists.iter().flat_map(List::lines))?;
    Ok(Figures::new("console", lab, began.elapsed().as_secs_f64(), Measured::default(), own))
}

/// The lists, in the order in which they are measured.
const LISTS: [&str; 10] = [
    "recent",
    "recent by type",
    "recent by key",
    "recent by a text that matches nothing",
    "pending",
    "dead",
    "blocked",
    "nodes",
    "partitions",
    "backlog",
];

/// Reads one page of a list.
async fn page(store: &dyn Store, list: &str) -> Result<(), StoreError> {
    let recent = async |filter: EventFilter| store.recent(&filter, None, PAGE).await.map(drop);
    match list {
        "recent" => recent(EventFilter::new()).await,
        "recent by type" => recent(EventFilter::new().event_type(BYSTANDER)).await,
        "recent by key" => recent(EventFilter::new().key("7")).await,
        "recent by a text that matches nothing" => recent(EventFilter::new().error_contains("nothing")).await,
        "pending" => store.pending(&PendingFilter::new(), 0, PAGE).await.map(drop),
        "dead" => store.dead(&DeadFilter::new(), 0, PAGE).await.map(drop),
        "blocked" => store.blocked(0, PAGE).await.map(drop),
        "nodes" => store.nodes().await.map(drop),
        "partitions" => store.partitions().await.map(drop),
        _ => store.backlog().await.map(drop),
    }
}

async fn measure(store: &dyn Store, list: &'static str, pages: usize) -> Result<List, Failure> {
    // The first reading prepares the statement and fills caches.
    page(store, list).await?;
    let mut times = Vec::with_capacity(pages);
    for _ in 0..pages {
        let began = Instant::now();
        page(store, list).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let percentile = |percent: usize| {
        let time = times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        rounded(time.unwrap_or(Duration::ZERO).as_secs_f64() * 1e3, 2)
    };
    Ok(List { list, p50_ms: percentile(50), p99_ms: percentile(99) })
}

/// The time of a page.
#[derive(Debug, Serialize)]
struct List {
    list: &'static str,
    p50_ms: f64,
    p99_ms: f64,
}

impl List {
    fn lines(&self) -> [(&'static str, String, &'static str); 2] {
        [
            (self.list, format!("{:.2} ms", self.p50_ms), "half of the pages were faster"),
            ("", format!("{:.2} ms", self.p99_ms), "99 % of the pages were faster"),
        ]
    }
}
