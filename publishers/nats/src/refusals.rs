use std::collections::HashMap;

use async_nats::{Event, ServerError};
use tokio::sync::watch;
use tokio::time::Instant;

/// The refusals of a server on one connection.
///
/// A server answers a message that is not permitted by an error beside the connection, and never confirms it. Without listening
/// to those, such a message would look like a server that hangs.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The time of the last refusal to publish to a subject.
    subjects: HashMap<String, Instant>,
    /// True if the server refuses to send confirmations.
    confirmations_refused: bool,
}

/// The permission that the server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Publish,
    Confirmations,
}

/// More subjects than one connection's messages under way can have, or nearly.
const MOST_SUBJECTS: usize = 4096;

impl Refusals {
    pub(crate) fn note(&self, event: &Event, now: Instant) {
        let Event::ServerError(ServerError::Other(text)) = event else { return };
        let Some((refusal, subject)) = parse(text) else { return };
        self.seen.send_modify(|seen| match refusal {
            Refusal::Confirmations => seen.confirmations_refused = true,
            Refusal::Publish => {
                if seen.subjects.len() >= MOST_SUBJECTS {
                    seen.subjects.clear();
                }
                seen.subjects.insert(subject, now);
            }
        });
    }

    /// Waits until the server has refused what was published to `subject` at `since`. Permissions can be given while the
    /// connection lasts, so what was refused before says nothing.
    pub(crate) async fn wait(&self, subject: &str, since: Instant) -> Refusal {
        let mut seen = self.seen.subscribe();
        let refused =
            |seen: &Seen| seen.confirmations_refused || seen.subjects.get(subject).is_some_and(|at| *at >= since);
        match seen.wait_for(refused).await {
            Ok(seen) if seen.confirmations_refused => Refusal::Confirmations,
            // The sender lives in `self`, so waiting ends only when it is so.
            Ok(_) | Err(_) => Refusal::Publish,
        }
    }
}

/// `Permissions Violation for Publish to "orders.placed"`, and the same of a subscription.
fn parse(text: &str) -> Option<(Refusal, String)> {
    let text = text.trim_matches('\'');
    let (refusal, rest) = if let Some(rest) = strip(text, "permissions violation for publish to ") {
        (Refusal::Publish, rest)
    } else {
        // The only subscription of a publisher is the one to its confirmations.
        (Refusal::Confirmations, strip(text, "permissions violation for subscription to ")?)
    };
    Some((refusal, unquote(rest.strip_prefix('"')?)?))
}

/// The text before the closing quote, as the server quotes it: by the rules of Go (`%q`), which escape quotes, backslashes, and what is
/// no printable character. `None` if it breaks them.
fn unquote(quoted: &str) -> Option<String> {
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted.chars();
    loop {
        let escape = match rest.next()? {
            '"' => return Some(text),
            '\\' => rest.next()?,
            plain => {
                text.push(plain);
                continue;
            }
        };
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '"' | '\\' => {
                text.push(escape);
                continue;
            }
            // The others stand for control characters, which no subject has.
            _ => return None,
        };
        let (code, after) = rest.as_str().split_at_checked(digits)?;
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = after.chars();
    }
}

fn strip<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn permission_violations_are_parsed() {
        use Refusal::{Confirmations, Publish};
        let table = [
            ("Permissions Violation for Publish to \"a.b\"", Some((Publish, "a.b"))),
            ("'permissions violation for publish to \"a.b\"'", Some((Publish, "a.b"))),
            ("Permissions Violation for Subscription to \"_INBOX.x.*\"", Some((Confirmations, "_INBOX.x.*"))),
            (
                "Permissions Violation for Subscription to \"_INBOX.x.*\" using queue \"q\"",
                Some((Confirmations, "_INBOX.x.*")),
            ),
            (r#"Permissions Violation for Publish to "a\"b\\c""#, Some((Publish, r#"a"b\c"#))),
            (
                r#"Permissions Violation for Publish to "\x7f\u00ad.\U000e0001" "x""#,
                Some((Publish, "\u{7f}\u{ad}.\u{e0001}")),
            ),
            ("Permissions Violation for Publish to \"\u{e5}\u{1f980}\"", Some((Publish, "\u{e5}\u{1f980}"))),
            (r#"Permissions Violation for Publish to "a\"#, None),
            (r#"Permissions Violation for Publish to "a\""#, None),
            (r#"Permissions Violation for Publish to "a\n""#, None),
            (r#"Permissions Violation for Publish to "a\u00""#, None),
            (r#"Permissions Violation for Publish to "a\ud800""#, None),
            ("Permissions Violation for Publish to \"\\u00\u{e5}\"", None),
            ("Permissions Violation for Publish to a.b", None),
            ("Maximum Connections Exceeded", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected.map(|(refusal, subject)| (refusal, subject.to_owned())), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_from_before_says_nothing() {
        let refusals = Refusals::default();
        let refuse = |subject: &str| {
            let text = format!("Permissions Violation for Publish to \"{subject}\"");
            refusals.note(&Event::ServerError(ServerError::Other(text)), Instant::now());
        };
        let second = Duration::from_secs(1);
        refuse("a");
        tokio::time::advance(second).await;
        let sent = Instant::now();
        assert!(timeout(second, refusals.wait("a", sent)).await.is_err(), "refused before it was sent");
        refuse("b");
        assert!(timeout(second, refusals.wait("a", sent)).await.is_err(), "another subject was refused");
        refuse("a");
        assert_eq!(timeout(second, refusals.wait("a", sent)).await, Ok(Refusal::Publish));
    }
}
