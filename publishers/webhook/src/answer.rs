//! The meaning of an endpoint's answer.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::publisher::{PublishError, Receipt, Secret};
use reqwest::Response;
use reqwest::header::{DATE, LOCATION, RETRY_AFTER};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::target::{LEAST, shown};

/// The bytes of an answer that are read, so that its connection can be used again. A longer one costs the connection.
const READ_LIMIT: usize = 16 * 1024;
/// The time for reading an answer. The status has come by then, and it alone counts.
const READ_TIME: Duration = Duration::from_secs(1);
/// The number of characters of an answer that stand in an error.
const SHOWN: usize = 200;
/// The longest pause that an endpoint may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// The time by which the clocks of this host and of an endpoint may differ. Receivers refuse signatures that are five minutes old or ahead.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(240);

/// An answer, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The pause for which the endpoint asks.
    pub(crate) pause: Option<Duration>,
    /// The place it redirects to, as it may be shown.
    pub(crate) location: Option<String>,
    /// The difference between the clocks of this host and of the endpoint, if it is more than receivers of signatures bear.
    pub(crate) clock_difference: Option<Duration>,
    /// Its beginning, in one line.
    pub(crate) beginning: String,
}

impl Answer {
    /// Reads an answer, no longer than until `deadline`.
    pub(crate) async fn read(
        mut response: Response,
        url: &Url,
        deadline: Instant,
        now: Timestamp,
        secrets: &[Secret],
    ) -> Self {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let date = header(DATE).and_then(date);
        // A date that the endpoint names is of its own clock.
        let pause = header(RETRY_AFTER).and_then(|text| pause(text, date.unwrap_or(now)));
        let clock_difference = date.map(|date| date.since(now).max(now.since(date)));
        let location = header(LOCATION).map(|text| {
            url.join(text).map_or_else(|_| "a text that is no URL".to_owned(), |location| shown(&location))
        });
        let mut body = Vec::new();
        let _ = timeout_at(deadline.min(Instant::now() + READ_TIME), async {
            while let Ok(Some(chunk)) = response.chunk().await {
                // The rest beyond the limit was received already, and is not kept.
                let room = READ_LIMIT.saturating_sub(body.len());
                body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if body.len() >= READ_LIMIT {
                    break;
                }
            }
        })
        .await;
        Self {
            status: response.status().as_u16(),
            pause,
            location,
            clock_difference: clock_difference.filter(|difference| *difference > MAX_CLOCK_DIFFERENCE),
            // Of an answer that confirms nothing is shown.
            beginning: if response.status().is_success() { String::new() } else { one_line(&body, secrets, url) },
        }
    }

    /// True if the endpoint asks to be left alone.
    pub(crate) fn wants_a_pause(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// The receipt of a message, which was signed or not.
    pub(crate) fn receipt(&self, place: &str, is_signed: bool) -> Receipt {
        let said = if self.beginning.is_empty() { String::new() } else { format!(": {}", self.beginning) };
        let text = format!("{place} answered {}{said}", self.status);
        match self.status {
            200..=299 => Ok(None),
            429 | 503 => {
                let error = PublishError::unavailable(text);
                Err(match self.pause {
                    Some(pause) => error.retry_after(pause),
                    None => error,
                })
            }
            300..=399 => {
                let place = self.location.as_deref().unwrap_or("nowhere");
                Err(PublishError::misconfigured(format!(
                    "{text}; redirects are not followed, write the URL it leads to: {place}"
                )))
            }
            401 | 403 => Err(PublishError::misconfigured(format!("{text}; correct the credentials or `secrets`"))),
            404 | 410 => {
                Err(PublishError::misconfigured(format!("{text}; correct the target, or have the endpoint made")))
            }
            408 | 500..=599 => Err(PublishError::temporary(text)),
            _ => Err(match self.clock_difference.filter(|_| is_signed) {
                // A signature names the time, so each message would be refused, and none of them would be to blame.
                Some(difference) => PublishError::misconfigured(format!(
                    "{text}; the clocks of this host and of the endpoint differ by {} s, and receivers refuse signatures of another time; \
                     correct the clock that is wrong",
                    difference.as_secs()
                )),
                None => PublishError::permanent(text),
            }),
        }
    }
}

/// Reads `Retry-After`: seconds, or a date.
fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let pause = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => date(text)?.since(now),
    };
    Some(pause.min(LONGEST_PAUSE))
}

fn date(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text.trim()).ok().map(Timestamp::from)
}

/// The parts of a URL that may be secret, and that an answer may repeat, such as "Cannot POST /services/…": longest first.
fn parts(url: &Url) -> Vec<String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let path = url.path().trim_end_matches('/');
    let query = url.query_pairs().map(|(_, value)| value.into_owned());
    let wholes = [path.to_owned(), decoded(path), url.query().unwrap_or_default().to_owned()].into_iter().chain(query);
    let segments = path.split('/').map(decoded).filter(|segment| segment.len() >= 2 * LEAST);
    let mut parts: Vec<String> = wholes.filter(|whole| whole.len() >= LEAST).chain(segments).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

/// The beginning of a text, without line breaks, other control characters, secrets, and what may be secret of a URL.
fn one_line(bytes: &[u8], secrets: &[Secret], url: &Url) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let mut secrets: Vec<_> = secrets.iter().map(Secret::expose).filter(|secret| !secret.is_empty()).collect();
    // A short one may be within a longer one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in secrets {
        text = text.replace(secret, "(hidden)");
    }
    for part in parts(url) {
        text = text.replace(&part, "(hidden)");
    }
    let clean = text.replace(char::is_control, " ");
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::PublishErrorKind::{self, Misconfigured, Permanent, Temporary, Unavailable};

    use super::*;

    fn answer(status: u16) -> Answer {
        Answer { status, pause: None, location: None, clock_difference: None, beginning: String::new() }
    }

    fn receipt(status: u16) -> Receipt {
        answer(status).receipt("h", true)
    }

    #[test]
    fn the_status_says_whose_fault_it_is() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(receipt(status), Ok(None), "{status}");
        }
        let cases: [(PublishErrorKind, &[u16]); 4] = [
            (Unavailable, &[429, 503]),
            (Misconfigured, &[300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 410]),
            (Temporary, &[408, 500, 501, 502, 504, 507, 599]),
            (Permanent, &[199, 400, 402, 405, 406, 409, 411, 413, 415, 422, 431, 451, 600]),
        ];
        for (kind, statuses) in cases {
            for &status in statuses {
                let error = receipt(status).expect_err("not confirmed");
                assert_eq!((error.kind(), error.delay()), (kind, None), "{status}");
                assert!(error.to_string().contains(&status.to_string()));
            }
        }
    }

    #[test]
    fn the_error_says_what_the_endpoint_said() {
        let answer =
            Answer { pause: Some(Duration::from_secs(7)), beginning: "come back later".to_owned(), ..answer(503) };
        let error = answer.receipt("https://h.example/x", false).expect_err("not confirmed");
        assert_eq!(error.to_string(), "https://h.example/x answered 503: come back later");
        assert_eq!(error.delay(), Some(Duration::from_secs(7)));
        let answer = Answer { status: 308, location: Some("https://other.example/".to_owned()), ..answer };
        assert!(answer.receipt("h", false).expect_err("not followed").to_string().contains("https://other.example/"));
    }

    /// A receiver that refuses what is old answers 400, for which no event would be to blame.
    #[test]
    fn a_signature_of_another_time_is_no_fault_of_its_event() {
        let off = |status| Answer { clock_difference: Some(Duration::from_secs(600)), ..answer(status) };
        let error = off(400).receipt("h", true).expect_err("refused");
        assert!(error.kind() == Misconfigured && error.to_string().contains("differ by 600 s"), "{error}");
        assert_eq!(off(400).receipt("h", false).expect_err("refused").kind(), Permanent, "nothing was signed");
        assert_eq!(off(204).receipt("h", true), Ok(None));
        assert_eq!(off(500).receipt("h", true).expect_err("refused").kind(), Temporary);
    }

    #[test]
    fn a_pause_is_seconds_or_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = Timestamp::from_micros(784_111_777_000_000);
        for (text, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999", Some(24 * 3600)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(24 * 3600)),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
        ] {
            assert_eq!(pause(text, now), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn answers_are_shown_as_one_short_line_without_secrets() {
        let secrets = ["hunter2".into(), "".into(), "long hunter2 and tail".into()];
        let url = Url::parse("https://h.example/x").expect("a URL");
        assert_eq!(one_line(b"  a\r\n\tb\0c  ", &secrets, &url), "a b c");
        assert_eq!(one_line(b"bad token hunter2!", &secrets, &url), "bad token (hidden)!");
        assert_eq!(one_line(b"no long hunter2 and tail", &secrets, &url), "no (hidden)");
        assert_eq!(one_line(b"\xff\xfe", &[], &url), "\u{fffd}\u{fffd}");
        let slack =
            Url::parse("https://h.example/services/T0/B0/abcdefghijklmnop%20q/?key=sesame-open").expect("a URL");
        for (said, line) in [
            ("Cannot POST /services/T0/B0/abcdefghijklmnop%20q/", "Cannot POST (hidden)/"),
            ("no hook 'abcdefghijklmnop q'", "no hook '(hidden)'"),
            ("key=sesame-open or sesame-open", "(hidden) or (hidden)"),
        ] {
            assert_eq!(one_line(said.as_bytes(), &[], &slack), line);
        }
        let long = one_line("ü".repeat(300).as_bytes(), &[], &url);
        assert_eq!(long.chars().count(), SHOWN + 1);
        assert!(long.ends_with("ü…"));
    }
}
