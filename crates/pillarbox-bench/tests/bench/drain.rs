use crate::figures::{COMMON, assert_figures, assert_keys};
use crate::support::{
    bench, column, connect, count, end_of, mysql, run, run_async, wait_until, with_mysql, with_postgres,
};
use mysql_async::prelude::Queryable as _;
use serde_json::Value;

pub(super) const OWN: [&str; 10] = [
    "batch",
    "delete_done",
    "handler",
    "idle_transaction",
    "mode",
    "nodes",
    "rows_dead",
    "rows_delayed",
    "rows_done",
    "workers",
];
const KEYS: [&str; 3] = ["keys", "out_of_order", "rows_blocked"];

#[tokio::test]
async fn a_drain_by_several_nodes_leaves_bystanders_alone() {
    let args = ["--events", "2000", "--payload", "300", "--json", "--done", "50", "--dead", "60", "--delayed", "70"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    for mode in ["single_node", "multi_node", "ordered"] {
        let ended = run(&[&["drain", "--nodes", "2", "--store", &file, "--mode", mode], args.as_slice()].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_figures("drain", &report, &OWN);
        assert_eq!((&report["mode"], &report["nodes"]), (&mode.into(), &2.into()));
        assert_eq!((&report["rows_done"], &report["rows_delayed"]), (&50.into(), &70.into()));
        assert_eq!(report["rows_dead"], 60);
    }
    let bystanders = "SELECT status || ' ' || count(*) FROM pillarbox_bench_event WHERE event_type = 'bench.bystander'
                      GROUP BY status ORDER BY status";
    assert_eq!(column(&file, bystanders).await, ["0 70", "1 50", "3 60"]);

    with_postgres(|url| async move {
        let args = ["drain", "--store", &url, "--mode", "multi_node", "--nodes", "2", "--events", "2000"];
        let args = [args.as_slice(), &["--done", "50", "--dead", "60", "--delayed", "70", "--json"]].concat();
        let ended = run_async(&args).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report = ended.json();
        assert_eq!((&report["duplicates"], &report["lost"]), (&0.into(), &0.into()), "{report}");
        let (client, _connection) = connect(&url).await;
        let delayed = "SELECT count(*) FROM pillarbox_bench_event WHERE status = 0 AND available_at > now()";
        assert_eq!(count(&client, delayed).await, 70);
        assert_eq!(count(&client, "SELECT count(*) FROM pillarbox_bench_event WHERE status = 1").await, 2_050);
        assert_eq!(count(&client, "SELECT count(*) FROM pillarbox_bench_event WHERE status = 3").await, 60);
    })
    .await;

    with_mysql(|url| async move {
        let args = ["drain", "--store", &url, "--events", "100", "--mode", "multi_node", "--nodes", "2"];
        let ended = run_async(&[args.as_slice(), &["--done", "50", "--dead", "60", "--delayed", "70"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let rows: Vec<(i8, i64)> = mysql(&url)
            .await
            .query("SELECT status, COUNT(*) FROM pillarbox_bench_event GROUP BY status ORDER BY status")
            .await
            .unwrap();
        assert_eq!(rows, [(0, 70), (1, 150), (3, 60)]);
    })
    .await;
}

#[tokio::test]
async fn a_drain_in_order_passes_by_a_key_that_is_blocked() {
    let args = ["drain", "--mode", "partitioned", "--events", "2000", "--payload", "300", "--keys", "100"];
    let args =
        [args.as_slice(), &["--blocked", "1500", "--delayed", "70", "--nodes", "2", "--json", "--store"]].concat();
    let check = |report: &Value, delete_done: bool| {
        assert_figures("drain", report, &[OWN.as_slice(), &KEYS].concat());
        assert_eq!((&report["mode"], &report["nodes"]), (&"partitioned".into(), &2.into()));
        assert_eq!((&report["keys"], &report["rows_blocked"]), (&100.into(), &1_500.into()));
        assert_eq!((&report["out_of_order"], &report["delete_done"]), (&0.into(), &delete_done.into()), "{report}");
    };
    let left = "SELECT event_type || ' ' || status || ' ' || attempts || ' ' || count(*) FROM pillarbox_bench_event
                GROUP BY event_type, status, attempts ORDER BY status, attempts";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&[args.as_slice(), &[&file]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    check(&ended.json(), false);
    // The one that fails has failed once, and those behind it have not been touched.
    let bystanders = ["bench.bystander 0 0 1570", "bench.event 1 0 2000", "bench.bystander 2 1 1"];
    assert_eq!(column(&file, left).await, bystanders);

    with_postgres(|url| async move {
        let ended = run_async(&[args.as_slice(), &[&url, "--delete-done"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        check(&ended.json(), true);
        let (client, _connection) = connect(&url).await;
        let rows = client.query(left, &[]).await.unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, ["bench.bystander 0 0 1570", "bench.bystander 2 1 1"], "what is delivered is gone");
    })
    .await;
}

#[tokio::test]
async fn a_drain_is_compared_with_the_loop_written_by_hand() {
    let check = |report: &Value, rest: &[&str]| {
        let naive = ["naive_per_s", "naive_ratio"];
        assert_keys(report, COMMON.iter().chain(&OWN).chain(&naive));
        assert!(report["naive_per_s"].as_f64() > Some(0.0), "{report}");
        assert_eq!((&report["workers"], &report["batch"]), (&2.into(), &50.into()));
        assert_eq!(rest, ["0 70", "1 350"], "the loop by hand was the last, and left nothing that was due");
    };
    let args = ["--events", "300", "--json", "--done", "50", "--delayed", "70", "--workers", "2", "--batch", "50"];
    let args = [args.as_slice(), &["--compare", "naive", "--store"]].concat();
    let left = "SELECT concat(status, ' ', count(*)) FROM pillarbox_bench_event GROUP BY status ORDER BY status";

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&[&["drain"], args.as_slice(), &[&file]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows = column(&file, &left.replace("concat(status, ' ', count(*))", "status || ' ' || count(*)")).await;
    check(&ended.json(), &rows.iter().map(String::as_str).collect::<Vec<_>>());

    let on_postgres = args.clone();
    with_postgres(|url| async move {
        let held = ["drain", "--idle-transaction"];
        let ended = run_async(&[held.as_slice(), &on_postgres, &[&url]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (client, _connection) = connect(&url).await;
        let rows = client.query(left, &[]).await.unwrap();
        check(&ended.json(), &rows.iter().map(|row| row.get(0)).collect::<Vec<&str>>());
        assert_eq!(ended.json()["idle_transaction"], true);
    })
    .await;

    with_mysql(|url| async move {
        let held = ["drain", "--idle-transaction"];
        let ended = run_async(&[held.as_slice(), &args, &[&url]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let rows: Vec<String> = mysql(&url).await.query(left).await.unwrap();
        check(&ended.json(), &rows.iter().map(String::as_str).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn a_snapshot_is_held_while_a_drain_runs() {
    with_postgres(|url| async move {
        let args = ["drain", "--store", &url, "--events", "20000", "--idle-transaction", "--json"];
        let process = bench(&args).spawn().unwrap();
        let (client, _connection) = connect(&url).await;
        let held = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()
                    AND state = 'idle in transaction' AND backend_xmin IS NOT NULL";
        wait_until(&client, held).await;
        let ended = end_of(process).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.json()["lost"], 0);
        wait_until(&client, &held.replace("> 0", "= 0")).await;
    })
    .await;
}

#[tokio::test]
async fn events_written_during_a_drain_are_delivered_and_not_measured() {
    let args = ["--events", "2000", "--payload", "300", "--json", "--writers", "2", "--samples"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let ended = run(&[&["drain", "--store", &file], args.as_slice()].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    let own = ["samples", "writers", "written_beside_per_s"];
    assert_figures("drain", &report, &[OWN.as_slice(), &own].concat());
    assert_eq!(report["writers"], 2);
    let last = report["samples"].as_array().and_then(|samples| samples.last()).unwrap();
    let company =
        "SELECT CAST(count(*) AS TEXT) FROM pillarbox_bench_event WHERE status = 1 AND event_type = 'bench.company'";
    let company: u64 = column(&file, company).await[0].parse().unwrap();
    assert_eq!((&last["written"], &last["backlog"]), (&(2_000 + company).into(), &0.into()));
    let pending = "SELECT CAST(count(*) AS TEXT) FROM pillarbox_bench_event WHERE status <> 1";
    assert_eq!(column(&file, pending).await, ["0"]);
}

#[tokio::test]
async fn handlers_of_a_drain_insert_a_row_for_each_event() {
    const ROWS: &str = "SELECT concat(count(*), '') FROM pillarbox_bench_business";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    for handler in ["row", "transaction"] {
        let args = ["drain", "--events", "300", "--json", "--handler", handler, "--workers", "4", "--store"];
        let check = |report: &Value, rows: &str| {
            assert_keys(report, COMMON.iter().chain(&OWN));
            assert_eq!((&report["handler"], &report["workers"], rows), (&handler.into(), &4.into(), "300"), "{report}");
        };
        let ended = run(&[args.as_slice(), &[&file]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let rows = column(&file, "SELECT CAST(count(*) AS TEXT) FROM pillarbox_bench_business").await;
        check(&ended.json(), &rows[0]);

        with_postgres(|url| async move {
            let ended = run_async(&[args.as_slice(), &[&url, "--mode", "multi_node"]].concat()).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let (client, _connection) = connect(&url).await;
            let rows: String = client.query_one(ROWS, &[]).await.unwrap().get(0);
            check(&ended.json(), &rows);
        })
        .await;

        with_mysql(|url| async move {
            let ended = run_async(&[args.as_slice(), &[&url, "--mode", "partitioned"]].concat()).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let rows: Option<i64> =
                mysql(&url).await.query_first("SELECT count(*) FROM pillarbox_bench_business").await.unwrap();
            let report = ended.json();
            assert_eq!((&report["handler"], rows), (&handler.into(), Some(300)), "{report}");
        })
        .await;
    }
}

#[test]
fn options_that_do_not_apply_to_a_drain_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db").to_str().unwrap().to_owned();
    let table: [(&[&str], &str); 7] = [
        (&["--workers", "2", "--mode", "ordered"], "--workers"),
        (&["--idle-transaction"], "--idle-transaction"),
        (&["--keys", "5"], "--keys"),
        (&["--compare", "naive", "--writers", "1"], "--writers"),
        (&["--compare", "naive", "--handler", "row"], "--handler"),
        (&["--nodes", "17"], "--nodes"),
        (&["--payload", "1048577"], "--payload"),
    ];
    for (args, option) in table {
        let ended = run(&[&["drain", "--store", &file], args].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(option) && ended.stdout.is_empty(), "{ended:?}");
    }
    assert!(!std::path::Path::new(&file).exists(), "what is refused touches nothing");
}
