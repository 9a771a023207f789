use axum::body::Body;
use axum::http::{Request, StatusCode};
use pillarbox_console::{Access, Console, Role, User};
use pillarbox_memory::MemoryStore;

use crate::site::{OPERATOR, READER, Site, accounts, event, source, users, write_dead};

fn guarded(store: &MemoryStore) -> Site {
    Site::new(Console::new(Access::accounts(accounts())).source(source(store)))
}

#[tokio::test]
async fn a_console_without_a_password_answers_to_names_of_this_host_alone() {
    let site = Site::open(&MemoryStore::new());
    for host in ["localhost:9465", "127.0.0.1:9465", "[::1]:9465"] {
        assert_eq!(site.get_with("/s/shop/overview", &[("host", host)]).await.status, StatusCode::OK, "{host}");
    }
    for path in ["/", "/s/shop/overview", "/s/shop/series"] {
        let answer = site.get_with(path, &[("host", "rebound.example:9465")]).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert!(!answer.body.contains("shop"), "{}", answer.body);
    }
}

/// A proxy on this host would let everybody in, if it names the host as it is named to it.
#[tokio::test]
async fn a_console_without_a_password_answers_to_no_proxy() {
    let store = MemoryStore::new();
    let (open, guarded) = (Site::open(&store), guarded(&store));
    for header in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP"] {
        let headers = [(header, "203.0.113.7")];
        for path in ["/", "/login", "/s/shop/overview"] {
            let answer = open.get_with(path, &headers).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{header} {path}");
            assert!(answer.body.contains("give the console a password"), "{}", answer.body);
        }
        assert_eq!(guarded.get_with("/login", &headers).await.status, StatusCode::OK, "{header}");
    }
}

#[tokio::test]
async fn every_answer_forbids_what_browsers_may_not_do() {
    let site = Site::open(&MemoryStore::new());
    for path in ["/s/shop/overview", "/s/shop/series", "/nowhere", "/login", "/assets/0/console.js"] {
        let answer = site.get(path).await;
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        assert_eq!(
            [answer.header("x-content-type-options"), answer.header("x-frame-options")],
            ["nosniff", "DENY"],
            "{path}"
        );
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    }
}

#[tokio::test]
async fn users_not_logged_in_are_redirected_to_the_login_from_any_path() {
    let site = guarded(&MemoryStore::new());
    for (path, login) in [("/", "login"), ("/s/shop/dead", "../../login"), ("/s/shop/event/1", "../../../login")] {
        let answer = site.get(path).await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, login), "{path}");
    }
    let part = site.get_with("/s/shop/dead", &[("hx-request", "true")]).await;
    assert_eq!((part.status, part.header("hx-redirect")), (StatusCode::UNAUTHORIZED, "../../login"));
    let unsent = site.post("/s/shop/act", "do=replay&seq=1", &[]).await;
    assert_eq!((unsent.status, unsent.header("location")), (StatusCode::SEE_OTHER, "../../login"));
}

#[tokio::test]
async fn a_session_is_opened_by_a_password_and_closed_by_logging_out() {
    let site = guarded(&MemoryStore::new());
    let wrong = site.post("/login", "name=ada&password=wrong-horse-battery", &[]).await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    let other = site.post("/login", &format!("name=bob&password={OPERATOR}"), &[]).await;
    assert_eq!(other.status, StatusCode::UNAUTHORIZED, "the password of another user");

    let right = site.post("/login", &format!("name=ada&password={OPERATOR}"), &[]).await;
    assert_eq!((right.status, right.header("location")), (StatusCode::SEE_OTHER, "s"));
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(right.header("set-cookie").contains(part), "{right:?}");
    }
    let cookie = right.cookie();
    let page = site.get_with("/s/shop/overview", &[("cookie", &cookie)]).await;
    assert!(page.status == StatusCode::OK && page.body.contains("ada · operate"), "{}", page.body);

    let ended = site.post("/logout", "", &[("cookie", &cookie)]).await;
    assert!(ended.header("set-cookie").contains("Max-Age=0"), "{ended:?}");
    assert_eq!(site.get_with("/s/shop/overview", &[("cookie", &cookie)]).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_password_that_was_changed_opens_nothing_and_ends_the_sessions_of_its_user() {
    let access = Access::accounts(accounts());
    let site = Site::new(Console::new(access.clone()).source(source(&MemoryStore::new())));
    let (ada, bob) = (site.log_in("ada", OPERATOR).await, site.log_in("bob", READER).await);
    let status = async |cookie: &str| site.get_with("/s/shop/overview", &[("cookie", cookie)]).await.status;
    assert_eq!([status(&ada).await, status(&bob).await], [StatusCode::OK; 2]);
    access.replace_accounts(users(&format!("ada:operate:rotated-horse-battery\nbob:read:{READER}\n")));
    assert_eq!([status(&ada).await, status(&bob).await], [StatusCode::SEE_OTHER, StatusCode::OK]);
    let bearer = format!("Bearer {OPERATOR}");
    let by_token = site.get_with("/s/shop/series", &[("authorization", &bearer)]).await;
    assert_eq!(by_token.status, StatusCode::UNAUTHORIZED);
    let login = site.post("/login", &format!("name=ada&password={OPERATOR}"), &[]).await;
    assert_eq!(login.status, StatusCode::UNAUTHORIZED);
    let anew = site.log_in("ada", "rotated-horse-battery").await;
    access.replace_accounts(users(&format!("bob:read:{READER}\n")));
    assert_eq!([status(&anew).await, status(&bob).await], [StatusCode::SEE_OTHER, StatusCode::OK], "one is gone");
}

#[tokio::test]
async fn a_cookie_that_came_by_tls_goes_by_tls_alone() {
    let site = guarded(&MemoryStore::new());
    let form = format!("name=ada&password={OPERATOR}");
    let answer = site.post("/login", &form, &[("x-forwarded-proto", "https")]).await;
    assert!(answer.header("set-cookie").ends_with("; Secure"), "{answer:?}");
    let answer = site.post("/login", &form, &[]).await;
    assert!(!answer.header("set-cookie").contains("Secure"), "{answer:?}");
}

#[tokio::test]
async fn a_token_is_sent_with_each_request() {
    let site = guarded(&MemoryStore::new());
    let bearer = format!("Bearer {READER}");
    let page = site.get_with("/s/shop/series", &[("authorization", &bearer)]).await;
    assert_eq!(page.status, StatusCode::OK);
    let wrong = site.get_with("/s/shop/series", &[("authorization", "Bearer wrong-horse-battery")]).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn guessing_passwords_is_refused_after_ten_failures() {
    let site = guarded(&MemoryStore::new());
    for _ in 0..10 {
        let answer = site.post("/login", "name=ada&password=wrong-horse-battery", &[]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let form = format!("name=ada&password={OPERATOR}");
    assert_eq!(site.post("/login", &form, &[]).await.status, StatusCode::TOO_MANY_REQUESTS);
    let bearer = site.get_with("/s/shop/series", &[("authorization", &format!("bearer {OPERATOR}"))]).await;
    assert_eq!(bearer.status, StatusCode::TOO_MANY_REQUESTS, "guessing by token is slowed down, too");
    assert!(matches!(bearer.header("retry-after").parse::<u64>(), Ok(1..=61)), "{bearer:?}");
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(site.post("/login", &form, &[]).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn readers_see_no_actions_and_may_take_none() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = guarded(&store);
    let cookie = site.log_in("bob", READER).await;
    let cookie = [("cookie", &*cookie)];
    let seq = store.inspect().rows()[0].seq;
    for path in ["/s/shop/dead".to_owned(), format!("/s/shop/event/{seq}")] {
        let page = site.get_with(&path, &cookie).await;
        assert!(page.body.contains("order.placed") && !page.body.contains("confirm?"), "{}", page.body);
    }
    let confirm = site.get_with("/s/shop/confirm?do=replay", &cookie).await;
    assert_eq!(confirm.status, StatusCode::FORBIDDEN);
    let answer = site.post("/s/shop/act", &format!("do=replay&seq={seq}"), &cookie).await;
    assert!(answer.status == StatusCode::FORBIDDEN && answer.body.contains("role"), "{}", answer.body);
    assert_eq!(store.inspect().rows()[0].replays, 0);
}

#[tokio::test]
async fn a_console_that_is_read_only_lets_nobody_operate() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let console = Console::new(Access::loopback(Role::Operate)).source(source(&store)).read_only(true);
    let site = Site::new(console);
    assert_eq!(site.get("/s/shop/confirm?do=replay").await.status, StatusCode::FORBIDDEN);
    assert_eq!(site.post("/s/shop/act", "do=replay", &[]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_change_needs_the_token_of_its_own_session() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let seq = store.inspect().rows()[0].seq;
    let site = guarded(&store);
    let (cookie, other) = (site.log_in("ada", OPERATOR).await, site.log_in("ada", OPERATOR).await);
    let confirm = format!("/s/shop/confirm?do=replay&seq={seq}");
    let foreign = site.get_with(&confirm, &[("cookie", &other)]).await.field("token").to_owned();
    for token in [String::new(), "token=0".to_owned(), format!("token={foreign}")] {
        let answer = site.post("/s/shop/act", &format!("do=replay&seq={seq}&{token}"), &[("cookie", &cookie)]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{token}");
    }
    assert_eq!(store.inspect().rows()[0].replays, 0);
    let question = site.get_with(&confirm, &[("cookie", &cookie)]).await;
    let (own, event) = (question.field("token"), question.field("row_event"));
    let form = format!("do=replay&seq={seq}&token={own}&row_event={event}");
    let answer = site.post("/s/shop/act", &form, &[("cookie", &cookie)]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    assert_eq!(store.inspect().rows()[0].replays, 1);
}

#[tokio::test]
async fn a_change_from_another_site_is_refused_before_its_form_is_read() {
    let store = MemoryStore::new();
    write_dead(&store, [event("order.placed")]).await;
    let site = Site::open(&store);
    let token = site.get("/s/shop/confirm?do=replay").await.field("token").to_owned();
    for headers in [
        vec![("sec-fetch-site", "cross-site")],
        vec![("sec-fetch-site", "same-site")],
        vec![("origin", "http://evil.example")],
        vec![],
    ] {
        let mut request = Request::builder().method("POST").uri("/s/shop/act").header("host", "localhost:9465");
        request = request.header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let answer = site.ask(request.body(Body::from(format!("do=replay&token={token}"))).expect("a request")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert_eq!(store.inspect().rows()[0].replays, 0);
}

#[tokio::test]
async fn a_service_says_who_its_users_are() {
    let access = Access::decided_by(|request| {
        let name = request.headers.get("x-employee")?.to_str().ok()?;
        Some(User::new(name, Role::Read))
    });
    let site = Site::new(Console::new(access).source(source(&MemoryStore::new())));
    let answer = site.get_with("/s/shop/overview", &[("host", "shop.example")]).await;
    assert!(answer.status == StatusCode::FORBIDDEN && !answer.body.contains("shop"), "{}", answer.body);
    let page = site.get_with("/s/shop/overview", &[("host", "shop.example"), ("x-employee", "<i>eve</i>")]).await;
    assert!(page.status == StatusCode::OK && page.body.contains("&lt;i&gt;eve&lt;/i&gt; · read"), "{}", page.body);
}
