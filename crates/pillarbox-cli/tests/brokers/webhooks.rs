//! Webhooks whose URL is chosen by the event.

use serde_json::json;

use crate::endpoint::Endpoint;
use crate::relay::{Shop, free_port, page, relay, routes, run, start, stop, wait_for_page};

const SECRET: &str = "/services/T0SECRET/B0SECRET/abcdefghijklmnop";

/// A route to the port that the event names, at a path that is secret.
fn hooks(port: u16) -> String {
    format!(
        "[relay]\nlisten = \"127.0.0.1:{port}\"\n[publisher.hooks]\nkind = \"webhook\"\nallow_private = true\n\
         [[route]]\nname = \"hooks\"\npublisher = \"hooks\"\nto = \"http://127.0.0.1:{{header:port}}{SECRET}\"\n"
    )
}

async fn insert(shop: &Shop, name: &str, events: u32, port: u16) {
    shop.execute(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})
         INSERT INTO outbox_event (event_id, event_type, ordering_key, payload, headers)
         SELECT '{name}-' || i, 'order', '{name}-' || i, '{{}}', '{{\"port\":\"{port}\"}}' FROM n"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_asks_for_a_day_holds_up_no_other_and_no_path_is_shown() {
    let ill = Endpoint::start("503 Service Unavailable\r\nretry-after: 86400").await;
    let well = Endpoint::start("204 No Content").await;
    for mode in ["single_node", "multi_node", "partitioned"] {
        let (shop, port) = (Shop::open().await, free_port());
        insert(&shop, "ill", 10, ill.port).await;
        let file = shop.configure(mode, &hooks(port));
        let mut said = String::new();
        for args in [&["--check"][..], &["--dry-run"], &["--dry-run", "--json"]] {
            let ended = relay(&file, args).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            said += &(ended.stdout + &ended.stderr);
        }
        assert!(said.contains(&format!("http://127.0.0.1:{}/<", ill.port)), "the dry run shows the host: {said}");

        let running = start(&file);
        let status = wait_for_page(port, "/status", |_, body| body.contains("\"paused_targets\":1")).await;
        insert(&shop, "well", 10, well.port).await;
        shop.wait_until("event_id LIKE 'well-%' AND status = 1", 10).await;
        let of_route = &routes(&status)[0];
        assert_eq!(
            (&of_route["state"], &of_route["targets"][0]["state"]),
            (&json!("delivering"), &json!("paused")),
            "{status}"
        );
        let pause = of_route["targets"][0]["next_probe_ms"].as_u64().unwrap();
        assert!((1..=3_600_000).contains(&pause), "an hour at most: {pause}");
        let examined = run(&["doctor", "--config", file.to_str().unwrap(), "--json"]).await;
        let report: serde_json::Value = serde_json::from_str(&examined.stdout).unwrap();
        let finding = report["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == "target-paused");
        let evidence = finding.unwrap_or_else(|| panic!("{report}"))["evidence"].as_str().unwrap();
        let target = format!("source shop, route hooks: http://127.0.0.1:{}/<", ill.port);
        assert!(evidence.starts_with(&target) && evidence.contains("503"), "{evidence}");
        let (_, metrics) = page(port, "/metrics").await.unwrap();
        for gauge in ["paused{", "targets_paused{"] {
            let expected = u8::from(gauge.starts_with("targets"));
            let line = format!("pillarbox_route_{gauge}route=\"hooks\",publisher=\"webhook\"}} {expected}");
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
        let ended = stop(running).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended.stderr.contains("a target is paused") && !ended.stderr.contains("a route is paused"),
            "{ended:?}"
        );
        assert_eq!(shop.count("attempts > 0").await, 0, "no attempt is counted");
        assert_eq!(shop.count("last_error LIKE '%SECRET%' OR last_error LIKE '%abcdefgh%'").await, 0);
        said += &(status + &metrics + &ended.stdout + &ended.stderr + &examined.stdout);
        for secret in ["SECRET", "abcdefghijklmnop", "services"] {
            assert!(!said.contains(secret), "{secret}: {said}");
        }
    }
    let paths = well.paths();
    assert!(paths.len() == 30 && paths.iter().all(|path| *path == SECRET), "{paths:?}");
    assert!(ill.paths().len() <= 30, "none is sent twice: {:?}", ill.paths());
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_sign_with_their_own_secrets_or_wait() {
    let endpoint = Endpoint::start("204 No Content").await;
    let shop = Shop::open().await;
    let file = shop.configure(
        "single_node",
        &format!(
            "[publisher.hooks]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\nallow_private = true\n\
             [publisher.hooks.secrets_by_tenant]\nacme = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\n\
             [[route]]\nname = \"hooks\"\npublisher = \"hooks\"\nto = \"{{tenant_id}}\"\n",
            endpoint.port
        ),
    );
    for (id, tenant) in [("1", "globex"), ("2", "../acme"), ("3", "acme")] {
        shop.execute(&format!(
            "INSERT INTO outbox_event (event_id, event_type, tenant_id, payload) VALUES ('{id}', 'order', '{tenant}', '{{}}')"
        ))
        .await;
    }
    let running = start(&file);
    shop.wait_until("event_id = '3' AND status = 1", 1).await;
    shop.wait_until("event_id = '1' AND last_error LIKE '%tenant `globex` has no secret%' AND attempts = 0", 1).await;
    let ended = stop(running).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(endpoint.paths(), ["/acme"], "nothing is sent unsigned");
}
