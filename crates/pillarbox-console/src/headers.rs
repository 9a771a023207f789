use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::Problem;
use crate::view::up;

/// Nothing from another host, nothing that stands in the page itself, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The problem that a library has answered as bare text, or without any: an address or a form that cannot be read.
fn of_plain(response: &Response) -> Option<Problem> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_plain = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    let htmx = response.headers().contains_key("hx-redirect");
    (response.status().is_client_error() && is_plain && !htmx).then(|| match response.status() {
        StatusCode::NOT_FOUND => Problem::not_found("there is no such page"),
        StatusCode::METHOD_NOT_ALLOWED => Problem::refused(response.status(), "this address takes no such request"),
        status => Problem::refused(status, "the address or the form is not as this console writes them"),
    })
}

/// Adds to each answer what browsers may not do with it, and makes the page of a problem.
pub(crate) async fn protect(request: Request, next: Next) -> Response {
    let root = up(request.uri().path());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions().get::<Problem>().cloned().or_else(|| of_plain(&response)) {
        let wait = response.headers().get(header::RETRY_AFTER).cloned();
        response = problem.page(&root);
        response.headers_mut().extend(wait.map(|wait| (header::RETRY_AFTER, wait)));
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
        (header::HeaderName::from_static("x-robots-tag"), "noindex"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
