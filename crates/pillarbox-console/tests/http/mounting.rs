use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use pillarbox_console::{Access, Console, Role};
use pillarbox_memory::MemoryStore;
use tower::ServiceExt as _;

use crate::site::{Site, source};

fn console() -> Console {
    Console::new(Access::loopback(Role::Operate)).source(source(&MemoryStore::new()))
}

/// The addresses of all assets that a page names, from the root of the console.
fn assets(page: &str) -> Vec<String> {
    let mut found: Vec<String> = page
        .split("../../assets/")
        .skip(1)
        .map(|rest| format!("/assets/{}", rest.split_once('"').expect("it ends").0))
        .collect();
    found.dedup();
    found
}

#[tokio::test]
async fn it_works_under_any_path() {
    let site = Site(Router::new().nest("/internal/outbox", console().router()));
    let root = site.get("/internal/outbox").await;
    assert_eq!((root.status, root.header("location")), (StatusCode::SEE_OTHER, "outbox/s/shop/overview"));
    let page = site.get("/internal/outbox/s/shop/overview").await;
    assert_eq!(page.status, StatusCode::OK);
    for asset in assets(&page.body) {
        assert_eq!(site.get(&format!("/internal/outbox{asset}")).await.status, StatusCode::OK, "{asset}");
    }
    assert!(
        !page.body.contains("href=\"/") && !page.body.contains("src=\"/"),
        "no address begins at the host's root: {}",
        page.body
    );
    let nowhere = site.get("/internal/outbox/s/shop/nowhere").await;
    assert!(nowhere.status == StatusCode::NOT_FOUND && nowhere.body.contains("../../assets/"), "{}", nowhere.body);
}

#[tokio::test]
async fn it_stands_alone() {
    let site = Site::new(console());
    assert_eq!(site.get("/").await.header("location"), "s/shop/overview");
    assert_eq!(site.get("/s").await.header("location"), "s/shop/overview");
    let empty = Site::new(Console::new(Access::loopback(Role::Read)));
    assert!(empty.get("/").await.body.contains("shows no outbox yet"));
}

#[tokio::test]
async fn the_first_page_is_at_most_300_kb_over_the_wire() {
    let site = Site::new(console());
    let page = site.get("/s/shop/overview").await;
    let assets = assets(&page.body);
    assert_eq!(assets.len(), 7, "{assets:?}");
    let mut bytes = page.body.len();
    for asset in &assets {
        let request =
            Request::builder().uri(asset.as_str()).header("host", "localhost").header("accept-encoding", "gzip");
        let request = request.body(Body::empty()).expect("a request");
        let response = site.0.clone().oneshot(request).await.expect("it answers");
        assert_eq!(response.status(), StatusCode::OK, "{asset}");
        let kept = response.headers().get("cache-control").expect("it may be kept");
        assert!(kept.to_str().is_ok_and(|kept| kept.contains("immutable")), "{asset}");
        bytes += to_bytes(response.into_body(), 10_000_000).await.expect("a body").len();
    }
    println!("the first page is {bytes} bytes over the wire");
    assert!(bytes <= 300_000, "{bytes}");
}
