use std::path::PathBuf;
use std::sync::Arc;

use pillarbox_core::handle::Delivery;
use pillarbox_core::store::Store;
use pillarbox_engine::run::{Mode, Outbox};

use crate::browser::Browser;
use crate::site::Site;

/// The variable that names the folder for the pictures of the guide.
const FOLDER: &str = "PILLARBOX_SCREENSHOTS";

/// Writes the pictures of the guide, if they are asked for.
pub(crate) async fn take(browser: &Browser, site: &Site, store: &Arc<dyn Store>) {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    std::fs::create_dir_all(&folder).expect("the folder");
    // Three nodes that deliver while the pictures are taken, so that there is something to see of them.
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let outbox = Outbox::builder(Mode::Partitioned).store(Arc::clone(store)).handle_all(async |_: Delivery| {});
        nodes.push(outbox.start().await.expect("starts"));
    }
    browser.goto(&site.page("nodes")).await;
    browser
        .wait_until(
            "return document.querySelectorAll('.map li.o2').length > 80 && !document.querySelector('.map li.free')",
        )
        .await;
    for (name, page, scheme, width, height) in [
        ("overview", "overview", "light", 1280, 760),
        ("overview-dark", "overview", "dark", 1280, 760),
        ("dead", "dead", "light", 1280, 620),
        ("event", "events?find=event-005", "light", 1280, 900),
        ("keys", "keys", "light", 1280, 420),
        ("nodes", "nodes", "light", 1280, 620),
        ("confirm", "confirm?do=discard&type=order.declined", "light", 1280, 620),
        ("phone", "dead", "light", 390, 760),
    ] {
        browser.look(scheme, width, height).await;
        browser.goto(&site.page(page)).await;
        if page == "overview" {
            browser.wait_until("return document.querySelectorAll('.plot canvas').length === 5").await;
        }
        let picture = browser.client.screenshot().await.expect("a picture");
        std::fs::write(folder.join(format!("console-{name}.png")), picture).expect("writes");
    }
    browser.look("light", 1280, 900).await;
    for node in nodes {
        node.shutdown().await;
    }
}
