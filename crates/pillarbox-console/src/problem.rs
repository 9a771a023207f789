use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use pillarbox_core::error::{StoreError, StoreErrorKind};

use crate::layout;

/// A request that cannot be answered as it was meant.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    text: String,
}

impl Problem {
    pub(crate) fn refused(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, title: "Refused", text: text.into() }
    }

    /// The answer to a change by an account that may only read.
    pub(crate) fn read_only_role() -> Self {
        Self::refused(StatusCode::FORBIDDEN, "your role is to read; to change something takes the role to operate")
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, title: "Not found", text: text.into() }
    }

    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, title: "Not understood", text: text.into() }
    }

    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, title: "The database did not answer", text: text.into() }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error.kind() {
            StoreErrorKind::Unavailable | StoreErrorKind::Contention => Self::unavailable(text),
            kind => {
                let remedy = if kind == StoreErrorKind::Denied {
                    "; docs/console.md#privileges has what a console needs"
                } else {
                    ""
                };
                let text = format!("{text}{remedy}");
                Self { status: StatusCode::BAD_GATEWAY, title: "The database refuses", text }
            }
        }
    }
}

impl Problem {
    /// The page, for an address that is this far from the root of the console.
    pub(crate) fn page(&self, root: &str) -> Response {
        let Self { status, title, text } = self;
        let body = html! {
            main.login {
                h1 { (title) }
                p.notice.bad role="alert" { (sentence(text)) "." }
                p.faint { "Go back and try again, or " a href={ (root) "s" } { "open the first page" } "." }
            }
        };
        (*status, layout::bare(title, root, &body)).into_response()
    }
}

/// The text as a sentence begins; what stands in backticks stays as it is.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

impl IntoResponse for Problem {
    /// An answer without a page, which [`protect`](crate::headers::protect) makes: it knows the address.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
