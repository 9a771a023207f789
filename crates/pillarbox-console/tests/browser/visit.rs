use std::sync::Arc;

use pillarbox_core::store::{Admin as _, DeadFilter, Store};
use serde_json::json;

use crate::browser::Browser;
use crate::database::Database;
use crate::screenshots;
use crate::site::Site;

const PAGES: [&str; 11] = [
    "overview",
    "events",
    "events?state=pending",
    "dead",
    "keys",
    "pauses",
    "nodes",
    "routes",
    "settings",
    "doctor",
    "audit",
];

/// Visits each page and makes each change.
pub(crate) async fn everything(database: Database) {
    let store = database.store().await;
    database.fill(&store).await;
    let site = Site::serve(Arc::clone(&store)).await;
    let browser = Browser::open().await;

    pages(&browser, &site).await;
    switching(&browser, &site).await;
    lists(&browser, &site).await;
    one_event(&browser, &site).await;
    keyboard(&browser, &site).await;
    if matches!(database, Database::Sqlite(_)) {
        screenshots::take(&browser, &site, &store).await;
    }
    live(&browser, &site, &database).await;
    changes(&browser, &site, &store).await;
    browser.close().await;
    store.close().await;
}

/// Each page in light, dark and on a phone: it is accessible, fits, and the browser complains of nothing.
async fn pages(browser: &Browser, site: &Site) {
    browser.goto(&site.page("overview")).await;
    browser.wait_for("Counted").await;
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
        browser.look(scheme, width, 900).await;
        for page in PAGES.into_iter().chain(["event/1", "confirm?do=replay", "confirm?do=discard&type=order.declined"])
        {
            let what = format!("{page} in {scheme}, {width} wide");
            browser.goto(&site.page(page)).await;
            browser.assert_accessible(&what).await;
            browser.assert_no_complaint(&what).await;
            let fits = browser.script("return document.documentElement.scrollWidth <= window.innerWidth").await;
            assert_eq!(fits, json!(true), "{what} is wider than the screen");
        }
    }
    browser.look("light", 1280, 900).await;
    browser.goto(&site.page("overview")).await;
    browser.wait_until("return document.querySelectorAll('.plot canvas').length === 5").await;
    browser.assert_no_complaint("plots").await;
}

/// The switch of sources, and a source that is away.
async fn switching(browser: &Browser, site: &Site) {
    browser.goto(&site.page("overview")).await;
    browser.press("select[name=source] option[value=billing]").await;
    browser.wait_for("connection refused; it is tried again").await;
    assert!(browser.client.current_url().await.expect("an address").path().ends_with("/s/billing/overview"));
}

/// Filters and pages of lists.
async fn lists(browser: &Browser, site: &Site) {
    browser.goto(&site.page("dead")).await;
    assert_eq!(browser.count("tbody tr").await, 35);
    browser.fill("input[name=key]", "customer-105").await;
    browser.press("form.filters button[type=submit]").await;
    browser.wait_until("return document.querySelectorAll('tbody tr').length === 1").await;
    browser.fill("input[name=error]", "no such error").await;
    browser.press("form.filters button[type=submit]").await;
    browser.wait_for("No DEAD event matches").await;

    browser.goto(&site.page("keys")).await;
    browser.wait_for("customer-31").await;
    browser.wait_for("the warehouse did not answer").await;
    browser.press("tbody td.num a").await;
    browser.wait_for("order.held").await;

    browser.goto(&site.page("events?state=retrying")).await;
    browser.wait_for("retrying").await;
    assert_eq!(browser.count("tbody tr").await, 1, "the others wait behind it");
    browser.fill("input[name=find]", "event-005").await;
    browser.press("form.filters button[type=submit]").await;
    browser.wait_for("card declined").await;
}

/// The page of an event: payload, headers, attempts, the trace.
async fn one_event(browser: &Browser, site: &Site) {
    browser.goto(&site.page("events?find=event-005")).await;
    let text = browser.text().await;
    for part in [
        "order.declined",
        "\"mug-blue\"",
        "customer-105",
        "traceparent",
        "card declined",
        "acme",
        "pillarbox dead replay",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("hunter2"), "secrets are masked: {text}");
    let trace = browser.script("return document.querySelector('a[target=_blank]').href").await;
    assert_eq!(trace, json!("https://traces.example/trace/0af7651916cd43dd8448eb211c80319c"));
    assert!(!text.contains(" UTC"), "times are relative");
    browser.press("[data-times]").await;
    browser.wait_for(" UTC").await;
    browser.goto(&site.page("dead")).await;
    browser.wait_for(" UTC").await;
    browser.press("[data-times]").await;
    browser.wait_until("return !document.body.innerText.includes(' UTC')").await;
    browser.goto(&site.page("events?find=event-005")).await;
    browser.press("main details summary").await;
    brought_up_to_date(browser).await;
    assert_eq!(browser.count("main details[open]").await, 1, "what is unfolded stays so");
}

/// Waits until the page has been brought up to date twice since now.
async fn brought_up_to_date(browser: &Browser) {
    browser
        .script("window.times = 0; document.addEventListener('htmx:afterSettle', () => { window.times += 1; })")
        .await;
    browser.wait_until("return window.times >= 2").await;
}

/// A route is paused with a reason and resumed; nothing that happens meanwhile takes the reason away.
async fn routes(browser: &Browser, site: &Site) {
    browser.goto(&site.page("routes")).await;
    browser.press("details.action summary").await;
    browser.fill("details.action input[name=reason]", "the partner moves").await;
    browser.script("document.activeElement.blur()").await;
    brought_up_to_date(browser).await;
    assert_eq!(browser.count("details.action[open]").await, 1, "a form that is being filled in stays");
    browser.assert_accessible("a route that is to be paused").await;
    browser.press("details.action button[type=submit]").await;
    browser.wait_for("paused by an operator, on this node").await;
    browser.wait_for("the partner moves").await;
    browser.assert_accessible("a paused route").await;
    browser.press("form[action$=resume-route] button").await;
    browser
        .wait_until(
            "return document.body.innerText.includes('delivering') && !document.body.innerText.includes('the partner moves')",
        )
        .await;
}

/// The first thing that the tabulator reaches leads past the menu, and what has the focus can be seen.
async fn keyboard(browser: &Browser, site: &Site) {
    browser.goto(&site.page("dead")).await;
    let tab = json!({ "type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
    let enter =
        json!({ "type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r" });
    browser.cdp("Input.dispatchKeyEvent", &tab).await;
    browser.wait_until("return document.activeElement.textContent === 'Skip to the content'").await;
    browser.cdp("Input.dispatchKeyEvent", &enter).await;
    browser.wait_until("return document.activeElement.id === 'main'").await;
    browser.cdp("Input.dispatchKeyEvent", &tab).await;
    browser.wait_until("return document.activeElement.name === 'type'").await;
    let outline = browser.script("return getComputedStyle(document.activeElement).outlineStyle").await;
    assert_eq!(outline, json!("solid"));
}

/// Figures change without a reload, and what has the focus keeps it.
async fn live(browser: &Browser, site: &Site, database: &Database) {
    browser.goto(&site.page("events?type=order.late")).await;
    browser.wait_for("No event matches").await;
    browser.script("window.here = true; document.querySelector('input[name=key]').focus()").await;
    database.insert("late-1", "order.late", "customer-900").await;
    browser.wait_for("late-1").await;
    let same = "return window.here === true && document.activeElement.name === 'key'";
    assert_eq!(browser.script(same).await, json!(true), "the page was not loaded anew");
    browser.press("[data-live]").await;
    assert_eq!(
        browser.script("return document.querySelector('[data-live]').getAttribute('aria-pressed')").await,
        json!("false")
    );
}

/// Each change is confirmed with its number, made, and shown with its progress.
async fn changes(browser: &Browser, site: &Site, store: &Arc<dyn Store>) {
    let dead = async || store.count_dead(&DeadFilter::new()).await.expect("counts");
    browser.goto(&site.page("events?find=event-005")).await;
    browser.press("a[href*='do=replay']").await;
    browser.wait_for("Replay 1 row?").await;
    browser.press("main form button[type=submit]").await;
    browser.wait_for("new").await;
    assert_eq!(dead().await, 34);

    browser.goto(&site.page("dead?key=customer-106")).await;
    browser.press("a[href*='do=discard']").await;
    browser.wait_for("Discard 1 row with key customer-106?").await;
    browser.press("main form button[type=submit]").await;
    browser.wait_for("1 row was discarded").await;
    assert_eq!(dead().await, 33);

    browser.goto(&site.page("dead")).await;
    browser.press("a[href*='do=replay']").await;
    browser.wait_for("Replay 33 rows?").await;
    browser.press("main form button[type=submit]").await;
    browser.wait_for("33 rows were replayed").await;
    assert_eq!(dead().await, 0);

    browser.goto(&site.page("events?state=retrying")).await;
    browser.press("a[href*='do=retry-now']").await;
    browser.wait_for("Try now 1 row with state retrying?").await;
    browser.press("main form button[type=submit]").await;
    browser.wait_for("1 row was made due now").await;

    browser.goto(&site.page("events?state=pending&key=customer-31")).await;
    browser.press("a[href*='do=cancel']").await;
    browser.wait_for("Cancel 7 rows with key customer-31, state pending?").await;
    browser.press("main form button[type=submit]").await;
    browser.wait_for("7 rows were cancelled").await;
    browser.goto(&site.page("keys")).await;
    browser.wait_for("No key is blocked").await;
    browser.goto(&site.page("pauses")).await;
    browser.wait_for("Nothing is paused").await;
    browser.fill("input[name=name]", "order.placed").await;
    browser.fill("input[name=reason]", "the warehouse is moving").await;
    browser.fill("input[name=for]", "2h").await;
    browser.press("form.filters button[type=submit]").await;
    browser.wait_for("Resume").await;
    browser.wait_for("the warehouse is moving").await;
    assert_eq!(store.pauses().await.expect("a list").len(), 1);
    browser.assert_accessible("a pause").await;
    browser.press("form.inline button[type=submit]").await;
    browser.wait_for("Nothing is paused").await;
    assert_eq!(store.pauses().await.expect("a list"), []);

    routes(browser, site).await;
    browser.goto(&site.page("audit")).await;
    assert_eq!(browser.count("tbody tr").await, 9, "each change is recorded");
    browser.assert_no_complaint("changes").await;
}
