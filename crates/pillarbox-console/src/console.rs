use std::fmt;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use tokio::runtime::Handle;

use crate::actions::{self, Jobs};
use crate::app::{App, Inner, Sources};
use crate::auth::{self, Access, Sessions};
use crate::csrf::Csrf;
use crate::examine::Examinations;
use crate::problem::Problem;
use crate::sample::Samples;
use crate::source::Source;
use crate::{assets, headers, pages};

/// Bytes of a form.
const FORM: usize = 64 * 1024;

/// A console, to be mounted.
#[derive(Clone)]
pub struct Console {
    access: Access,
    sources: Sources,
    read_only: bool,
    mask_payloads: bool,
    trace_link: Option<String>,
}

impl Console {
    /// A console without sources, which these may see.
    #[must_use]
    pub fn new(access: Access) -> Self {
        let sources: Sources = Arc::new(Vec::new);
        Self { access, sources, read_only: false, mask_payloads: false, trace_link: None }
    }

    /// Shows another source. Those with a name that is there already are hidden.
    #[must_use]
    pub fn source(self, source: Source) -> Self {
        let others = self.sources;
        let sources: Sources = Arc::new(move || {
            let mut all = others();
            all.push(source.clone());
            all
        });
        Self { sources, ..self }
    }

    /// Shows the sources that this function returns at each moment, in the place of all others.
    #[must_use]
    pub fn sources(self, sources: impl Fn() -> Vec<Source> + Send + Sync + 'static) -> Self {
        Self { sources: Arc::new(sources), ..self }
    }

    /// Lets nobody change anything, whatever the role.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Shows no payload, but its size and type.
    #[must_use]
    pub fn mask_payloads(self, mask_payloads: bool) -> Self {
        Self { mask_payloads, ..self }
    }

    /// Links the trace of an event: `https://tracing.example/trace/{trace_id}`. Without `{trace_id}` in it there is no link.
    #[must_use]
    pub fn trace_link(self, address: impl Into<String>) -> Self {
        let address = address.into();
        let is_link =
            address.contains("{trace_id}") && (address.starts_with("https://") || address.starts_with("http://"));
        Self { trace_link: is_link.then_some(address), ..self }
    }

    /// The console as a router, for any path of a service: `router.nest("/outbox", console.router())`.
    ///
    /// It takes a sample of each source every few seconds, for as long as the router lives: from this call on if it is made within a
    /// runtime, else from the first request on.
    pub fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let app = App::new(Inner {
            access: self.access,
            read_only: self.read_only,
            mask_payloads: self.mask_payloads,
            trace_link: self.trace_link,
            sources: self.sources,
            sessions: Sessions::default(),
            csrf: Csrf::new(),
            samples: Arc::new(Samples::default()),
            jobs: Jobs::default(),
            examinations: Examinations::default(),
        });
        let sampling = Sampling::default();
        if Handle::try_current().is_ok() {
            sampling.begin(&app);
        }
        let sample = move |State(app): State<App>, request: Request, next: Next| {
            sampling.begin(&app);
            next.run(request)
        };
        routes()
            .layer(DefaultBodyLimit::max(FORM))
            .layer(from_fn_with_state(app.clone(), auth::guard))
            .layer(from_fn_with_state(app.clone(), sample))
            .merge(assets::router())
            .layer(from_fn(headers::protect))
            .with_state(app)
    }
}

/// Begins to take samples, once.
#[derive(Clone, Default)]
struct Sampling(Arc<OnceLock<()>>);

impl Sampling {
    fn begin(&self, app: &App) {
        self.0.get_or_init(|| {
            let (samples, sources) = (Arc::clone(&app.samples), Arc::clone(&app.sources));
            app.jobs.run(async move { samples.keep(sources).await });
        });
    }
}

fn routes() -> Router<App> {
    Router::new()
        .route("/", get(first_page))
        .route("/s", get(first_page))
        .route("/login", get(auth::show_login).post(auth::log_in))
        .route("/logout", post(auth::log_out))
        .route("/go", get(pages::go))
        .route("/s/{source}", get(pages::of_source))
        .route("/s/{source}/", get(pages::of_source))
        .route("/s/{source}/overview", get(pages::overview::page))
        .route("/s/{source}/series", get(pages::overview::series))
        .route("/s/{source}/events", get(pages::events::page))
        .route("/s/{source}/event/{seq}", get(pages::event::page))
        .route("/s/{source}/dead", get(pages::dead::page))
        .route("/s/{source}/reasons", get(pages::reasons::page))
        .route("/s/{source}/keys", get(pages::keys::page))
        .route("/s/{source}/pauses", get(pages::pauses::page))
        .route("/s/{source}/nodes", get(pages::nodes::page))
        .route("/s/{source}/routes", get(pages::routes::page))
        .route("/s/{source}/settings", get(pages::settings::page))
        .route("/s/{source}/doctor", get(pages::doctor::page))
        .route("/s/{source}/audit", get(pages::audit::page))
        .route("/s/{source}/confirm", get(actions::confirm))
        .route("/s/{source}/act", post(actions::act))
        .route("/s/{source}/probe", post(actions::probe))
        .route("/s/{source}/pause-route", post(actions::pause_route))
        .route("/s/{source}/resume-route", post(actions::resume_route))
        .route("/s/{source}/pause", post(actions::pause))
        .route("/s/{source}/resume", post(actions::resume))
        .route("/s/{source}/job/{job}", get(pages::job::page))
        .fallback(async || Problem::not_found("there is no such page"))
}

/// Leads to the first page of the first source.
async fn first_page(State(app): State<App>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    match (app.sources)().first() {
        Some(source) if parts.uri.path() == "/" => auth::to_first_page(&parts, source.name()),
        Some(source) => Redirect::to(&format!("s/{}/overview", source.name())).into_response(),
        None => Problem::not_found("this console shows no outbox yet").into_response(),
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut console = f.debug_struct("Console");
        console.field("access", &self.access).field("read_only", &self.read_only);
        console.field("mask_payloads", &self.mask_payloads).finish_non_exhaustive()
    }
}
