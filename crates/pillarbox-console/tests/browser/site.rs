use std::sync::Arc;

use pillarbox_console::{Access, Console, Role, Setting, Source};
use pillarbox_core::store::Store;
use pillarbox_routes::{Route, Routes};
use pillarbox_testkit::publishers::MemoryPublisher;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A console at an address of its own.
pub(crate) struct Site {
    pub(crate) address: String,
    _tasks: JoinSet<()>,
}

impl Site {
    /// The console of a store, mounted as a service mounts it.
    pub(crate) async fn serve(store: Arc<dyn Store>) -> Self {
        let setting = |key: &str, value: &str, origin: Option<&str>| Setting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: origin.map(str::to_owned),
        };
        let route = Route::to(Arc::new(MemoryPublisher::new()), "orders").named("orders").types(["order.*"]);
        let routes = Routes::new().route(route).build().expect("valid");
        let source = Source::of_store("shop", store).routes(routes).settings([
            setting("claim.max_interval", "500ms", Some("relay.toml, line 7")),
            setting("dispatch.workers", "32", None),
            setting("retry.max_attempts", "5", Some("variable PILLARBOX_RETRY_MAX_ATTEMPTS")),
        ]);
        let away = Source::away("billing", "connection refused; it is tried again");
        let console = Console::new(Access::loopback(Role::Operate)).source(source).source(away);
        let console = console.trace_link("https://traces.example/trace/{trace_id}");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = format!("http://{}/outbox", listener.local_addr().expect("an address"));
        let service = axum::Router::new().nest("/outbox", console.router());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, service).await.expect("serves") });
        Self { address, _tasks: tasks }
    }

    pub(crate) fn page(&self, page: &str) -> String {
        format!("{}/s/shop/{page}", self.address)
    }
}
