use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::sessions::{COOKIE, Login};
use super::{Accounts, Role, Rule, User, host};
use crate::app::App;
use crate::problem::Problem;
use crate::view::up;

/// The user behind a request. Only [`guard`] puts one into a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// The session or the user that the tokens of its forms are bound to.
    pub(crate) subject: String,
}

/// Lets requests of users through that may see the console, and changes that a page of the console itself asks for.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path();
    if let Rule::Loopback(_) = app.access.0
        && !host::is_loopback(&parts)
    {
        let problem =
            "the request names another host than this one; open the console at http://localhost, or give it a password";
        return Problem::refused(StatusCode::MISDIRECTED_REQUEST, problem).into_response();
    }
    if let Rule::Loopback(_) = app.access.0
        && host::came_by_a_proxy(&parts)
    {
        let problem = "the request came by a proxy, and anybody may be behind that; give the console a password";
        return Problem::refused(StatusCode::FORBIDDEN, problem).into_response();
    }
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if let Rule::Loopback(_) = app.access.0
        && host::is_embedded_elsewhere(&parts)
    {
        let problem = "another site has asked for it; open the console itself";
        return Problem::refused(StatusCode::FORBIDDEN, problem).into_response();
    }
    let caller = match caller(&app, &parts) {
        Ok(caller) => caller,
        Err(wait) => return refuse_for(wait),
    };
    let by_token = matches!(&caller, Some((_, Proof::Token)));
    if !reads && !by_token && !host::is_same_origin(&parts) {
        let problem = "the request does not come from a page of this console; open the page anew, and try again";
        return Problem::refused(StatusCode::FORBIDDEN, problem).into_response();
    }
    if path == "/login" || path.starts_with("/assets/") {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let Some((mut caller, _)) = caller else { return not_known(&app, &parts) };
    if app.read_only {
        caller.user.role = Role::Read;
    }
    parts.extensions.insert(caller);
    next.run(Request::from_parts(parts, body)).await
}

/// The proof of a user's identity.
enum Proof {
    /// A cookie, an address, or what the service around the console knows: a browser sends it for any page.
    Ambient,
    /// A token, which a browser does not send by itself.
    Token,
}

/// The caller, if it is known; the time to wait for where too many have failed.
fn caller(app: &App, request: &Parts) -> Result<Option<(Caller, Proof)>, Duration> {
    Ok(match &app.access.0 {
        Rule::Loopback(role) => Some((of_user(User::new("local", *role)), Proof::Ambient)),
        Rule::Service(user) => user(request).map(|user| (of_user(user), Proof::Ambient)),
        Rule::Accounts(accounts) => match bearer(request) {
            Some(token) => match app.sessions.log_in(client(request), || accounts.now().find(None, token).cloned()) {
                Login::Known(account) => Some((of_user(account.user.clone()), Proof::Token)),
                Login::Wrong => None,
                Login::Refused(wait) => return Err(wait),
            },
            None => of_session(app, &accounts.now(), request),
        },
    })
}

fn of_session(app: &App, accounts: &Accounts, request: &Parts) -> Option<(Caller, Proof)> {
    let secret = cookie(request)?;
    let account = app.sessions.account(secret)?;
    if !accounts.have(&account) {
        // Its password was changed since, or it was taken away.
        app.sessions.close(secret);
        return None;
    }
    Some((Caller { user: account.user.clone(), subject: format!("session {secret}") }, Proof::Ambient))
}

/// The address of the client, if the server of the console has put it into the request, as axum does.
pub(super) fn client(request: &Parts) -> Option<IpAddr> {
    request.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip().to_canonical())
}

/// Refuses a login that was not looked at.
pub(super) fn refuse_for(wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let problem = format!("too many logins from here have failed; try again in {seconds} seconds");
    let mut response = Problem::refused(StatusCode::TOO_MANY_REQUESTS, problem).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

fn of_user(user: User) -> Caller {
    let subject = format!("user {}", user.name);
    Caller { user, subject }
}

fn not_known(app: &App, request: &Parts) -> Response {
    if !matches!(app.access.0, Rule::Accounts(_)) {
        let problem = "the service around this console does not let you see it; log in there first";
        return Problem::refused(StatusCode::FORBIDDEN, problem).into_response();
    }
    if bearer(request).is_some() {
        return Problem::refused(StatusCode::UNAUTHORIZED, "the token is not one of this console's").into_response();
    }
    let login = match request.uri.path() {
        "/" => crate::view::from_root(request, "login"),
        path => format!("{}login", up(path)),
    };
    // A part of a page would be shown the login within that page.
    if request.headers.contains_key("hx-request") {
        let mut response = StatusCode::UNAUTHORIZED.into_response();
        if let Ok(login) = HeaderValue::from_str(&login) {
            response.headers_mut().insert("hx-redirect", login);
        }
        return response;
    }
    Redirect::to(&login).into_response()
}

fn bearer(request: &Parts) -> Option<&str> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The secret of the session, as the cookie holds it.
pub(super) fn cookie(request: &Parts) -> Option<&str> {
    let all = request.headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}
