use std::sync::Arc;

use axum::Form;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::Rule;
use super::guard::{client, cookie, refuse_for};
use super::sessions::Login::{Known, Refused, Wrong};
use super::sessions::{COOKIE, LONGEST};
use crate::app::App;
use crate::layout;

#[derive(Deserialize)]
pub(crate) struct Login {
    #[serde(default)]
    name: String,
    password: String,
}

/// The page that asks for the password.
pub(crate) async fn show_login(State(app): State<App>) -> Response {
    page(&app, None)
}

/// Opens a session for a user that knows a password.
pub(crate) async fn log_in(State(app): State<App>, request: Request) -> Response {
    use axum::extract::FromRequest as _;

    let Rule::Accounts(accounts) = &app.access.0 else { return Redirect::to("./").into_response() };
    let is_secure = came_by_tls(&request);
    let (parts, body) = request.into_parts();
    let from = client(&parts);
    let request = Request::from_parts(parts, body);
    let Ok(Form(Login { name, password })) = Form::<Login>::from_request(request, &()).await else {
        return (StatusCode::BAD_REQUEST, page(&app, Some("The form was incomplete. Try again."))).into_response();
    };
    let accounts = accounts.now();
    let name = accounts.have_names().then_some(name.trim());
    let account = match app.sessions.log_in(from, || accounts.find(name, password.trim())) {
        Known(account) => account,
        Wrong => {
            tracing::warn!("a login to the console has failed");
            let problem = Some("That is not a password of this console.");
            return (StatusCode::UNAUTHORIZED, page(&app, problem)).into_response();
        }
        Refused(wait) => return refuse_for(wait),
    };
    let user = &account.user;
    tracing::info!(user = user.name, role = user.role.name(), "somebody has logged in to the console");
    let secret = app.sessions.open(Arc::clone(account));
    // From `…/login` to `…/`, wherever it is mounted.
    with_cookie(Redirect::to("s"), &secret, LONGEST.as_secs(), is_secure)
}

/// Ends the session.
pub(crate) async fn log_out(State(app): State<App>, request: Request) -> Response {
    let is_secure = came_by_tls(&request);
    let (parts, _body) = request.into_parts();
    if let Some(secret) = cookie(&parts) {
        app.sessions.close(secret);
    }
    with_cookie(Redirect::to("login"), "", 0, is_secure)
}

fn with_cookie(redirect: Redirect, secret: &str, seconds: u64, is_secure: bool) -> Response {
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut response = redirect.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// True if a proxy in front says that the browser talks TLS to it.
fn came_by_tls(request: &Request) -> bool {
    let forwarded = request.headers().get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    forwarded.is_some_and(|protocol| protocol.split(',').next().is_some_and(|first| first.trim() == "https"))
}

fn page(app: &App, problem: Option<&str>) -> Response {
    let names = matches!(&app.access.0, Rule::Accounts(accounts) if accounts.now().have_names());
    let body = html! {
        main.login {
            h1 { "Pillarbox console" }
            @if let Some(problem) = problem { p.notice.bad role="alert" { (problem) } }
            form method="post" action="login" {
                @if names {
                    label { "Name" input name="name" autocomplete="username" required autofocus; }
                }
                label {
                    "Password or token"
                    input type="password" name="password" autocomplete="current-password" required autofocus[!names];
                }
                button.primary type="submit" { "Log in" }
            }
        }
    };
    layout::bare("Log in", "", &body).into_response()
}

/// The redirect from the root of the console to its first page.
pub(crate) fn to_first_page(request: &Parts, source: &str) -> Response {
    Redirect::to(&crate::view::from_root(request, &format!("s/{source}/overview"))).into_response()
}
