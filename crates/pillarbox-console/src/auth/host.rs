use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderName, header};

/// True if the request names this host by a loopback name. A site that points its own name at this host is so refused, since
/// browsers send that name.
pub(super) fn is_loopback(request: &Parts) -> bool {
    let host = text(request, &header::HOST).or_else(|| request.uri.authority().map(Authority::as_str));
    let Some(host) = host else { return false };
    let name = without_port(host);
    matches!(name, "localhost" | "[::1]")
        || name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// True if a proxy says that it has passed the request on. Its own address may be of this host, and its clients are elsewhere. A proxy need not
/// say so.
pub(super) fn came_by_a_proxy(request: &Parts) -> bool {
    let marks = |name: &str| matches!(name, "forwarded" | "x-real-ip") || name.starts_with("x-forwarded-");
    request.headers.keys().any(|name| marks(name.as_str()))
}

/// True if a browser says that a page of the console itself made this request, or it comes from no browser's page at all but
/// names the same origin.
pub(super) fn is_same_origin(request: &Parts) -> bool {
    if let Some(site) = text(request, &HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    // Browsers send no `Sec-Fetch-Site` over plain HTTP, but to this host.
    let origin = text(request, &header::ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, host)| text(request, &header::HOST) == Some(host))
}

/// True if a browser says that a page of another site has asked, to show or run the answer within itself. A link that somebody has followed
/// is none.
pub(super) fn is_embedded_elsewhere(request: &Parts) -> bool {
    let of = |name| text(request, &HeaderName::from_static(name));
    matches!(of("sec-fetch-site"), Some("cross-site" | "same-site")) && of("sec-fetch-mode") != Some("navigate")
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

fn text<'a>(request: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    request.headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn request(headers: &[(&str, &str)]) -> Parts {
        let request = headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn only_loopback_names_are_this_host() {
        for host in ["localhost", "localhost:9465", "127.0.0.1:9465", "127.1.2.3", "[::1]:9465", "[::1]"] {
            assert!(is_loopback(&request(&[("host", host)])), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9465", "10.0.0.1:9465", "0.0.0.0", "::1", ""] {
            assert!(!is_loopback(&request(&[("host", host)])), "{host}");
        }
        assert!(!is_loopback(&request(&[])), "without a name");
    }

    #[test]
    fn a_link_may_be_followed_from_anywhere_and_nothing_is_embedded() {
        for (site, mode, embedded) in [
            ("cross-site", "navigate", false),
            ("cross-site", "no-cors", true),
            ("same-site", "cors", true),
            ("same-origin", "cors", false),
            ("none", "navigate", false),
        ] {
            let request = request(&[("sec-fetch-site", site), ("sec-fetch-mode", mode)]);
            assert_eq!(is_embedded_elsewhere(&request), embedded, "{site} {mode}");
        }
        assert!(!is_embedded_elsewhere(&request(&[])), "a program");
    }

    #[test]
    fn a_request_of_another_site_is_known() {
        for (headers, same) in [
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "same-site"), ("origin", "http://a"), ("host", "a")], false),
            (vec![("origin", "http://a:1"), ("host", "a:1")], true),
            (vec![("origin", "http://b:1"), ("host", "a:1")], false),
            (vec![("origin", "null"), ("host", "a:1")], false),
            (vec![("host", "a:1")], false),
        ] {
            assert_eq!(is_same_origin(&request(&headers)), same, "{headers:?}");
        }
    }
}
