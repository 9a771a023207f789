use axum::extract::{FromRequestParts, OriginalUri, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use pillarbox_core::clock::{Clock as _, SystemClock, Timestamp};
use pillarbox_core::store::Store;

use crate::app::App;
use crate::auth::{Caller, Role, User};
use crate::problem::Problem;
use crate::source::Source;

/// The context of a page of a source: the user, the source, and the addresses of other pages.
pub(crate) struct View {
    pub(crate) app: App,
    pub(crate) user: User,
    pub(crate) subject: String,
    pub(crate) source: Source,
    /// The names of all sources.
    pub(crate) sources: Vec<String>,
    /// Leads from this page to the root of the console: `../../`.
    pub(crate) root: String,
    pub(crate) now: Timestamp,
}

impl View {
    /// The address of a page of this source.
    pub(crate) fn href(&self, page: &str) -> String {
        format!("{}s/{}/{page}", self.root, self.source.name())
    }

    /// The store of the source.
    pub(crate) fn store(&self) -> Result<&dyn Store, Problem> {
        self.source.store().map_err(Problem::unavailable)
    }

    pub(crate) fn may_operate(&self) -> bool {
        self.user.role >= Role::Operate
    }

    /// The token of the forms of this user.
    pub(crate) fn token(&self) -> String {
        self.app.csrf.token(&self.subject)
    }
}

impl FromRequestParts<App> for View {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let unknown = || Problem::refused(StatusCode::FORBIDDEN, "nobody has said who you are");
        let Caller { user, subject } = caller.ok_or_else(unknown)?;
        let root = up(parts.uri.path());
        let params = RawPathParams::from_request_parts(parts, app).await;
        let params = params.map_err(|_| Problem::not_found("there is no such page"))?;
        let name = params.iter().find(|(key, _)| *key == "source").map(|(_, name)| name).unwrap_or_default();
        let all = (app.sources)();
        let sources = all.iter().map(|source| source.name().to_owned()).collect();
        let source = all.into_iter().find(|source| source.name() == name);
        let source = source.ok_or_else(|| Problem::not_found("there is no source of that name"))?;
        Ok(Self { app: app.clone(), user, subject, source, sources, root, now: SystemClock.now() })
    }
}

/// Leads from a page to the root of the console, wherever that is mounted.
pub(crate) fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count().saturating_sub(1))
}

/// The address of a page as seen from the root of the console, which may be asked for with a slash at its end or without.
pub(crate) fn from_root(request: &Parts, page: &str) -> String {
    let asked = request.extensions.get::<OriginalUri>().map_or_else(|| request.uri.path(), |uri| uri.path());
    match asked.rsplit('/').next() {
        None | Some("") => page.to_owned(),
        Some(last) => format!("{last}/{page}"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn addresses_lead_to_the_root_from_any_depth() {
        assert_eq!(["/", "/login", "/s/shop/dead", "/s/shop/event/17"].map(up), ["", "", "../../", "../../../"]);
    }

    #[test]
    fn the_root_is_found_with_and_without_a_slash() {
        for (asked, target) in [("/", "login"), ("/console", "console/login"), ("/a/console/", "login")] {
            let parts = Request::builder().uri(asked).body(()).expect("a request").into_parts().0;
            assert_eq!(from_root(&parts, "login"), target, "{asked}");
        }
    }
}
