//! The parts of a destination that the receipts of a call blame.

use std::collections::HashMap;
use std::sync::Arc;

use pillarbox_core::publisher::{FailureScope, PublishError, PublishErrorKind, Receipt};

use super::answer::verdict;
use crate::breaker::{CallResult, Part, Parts};

/// The receipt of a server that is there, whatever its target says.
static TAKEN: Receipt = Ok(None);

/// The conclusions from a call about the destination as a whole, and about its parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) whole: Option<CallResult>,
    pub(super) parts: Vec<(Part, CallResult)>,
}

impl Findings {
    /// Every message was taken, and nothing is known against any part.
    pub(super) fn well() -> Self {
        Self { whole: Some(CallResult::Well), parts: Vec::new() }
    }
}

/// Reads the receipts of a call; `parts` has, in their order, what each message needed, and `None` where the target is the same
/// for every event.
pub(super) fn findings(parts: &[Option<Parts>], receipts: &[Receipt]) -> Findings {
    let both = || parts.iter().zip(receipts);
    if both().all(|(parts, _)| parts.is_none()) {
        return Findings { whole: verdict(receipts), parts: Vec::new() };
    }
    // An error about a part says nothing about the whole.
    let of_whole = |(parts, receipt): &(&Option<Parts>, &Receipt)| match receipt {
        Ok(_) => true,
        Err(error) => parts.is_none() || blames(error, FailureScope::Broker),
    };
    let whole = verdict(both().filter(of_whole).map(|(_, receipt)| receipt));
    let mut by_part: HashMap<&Part, Vec<&Receipt>> = HashMap::new();
    for (parts, receipt) in both().filter_map(|(parts, receipt)| Some((parts.as_ref()?, receipt))) {
        let error = receipt.as_ref().err();
        let about_nothing =
            error.is_some_and(|error| blames(error, FailureScope::Broker) || error.scope() == FailureScope::Message);
        if about_nothing {
            continue;
        }
        let is_of_server = error.is_some_and(|error| blames(error, FailureScope::Server));
        if let Some(server) = &parts.server {
            // A message that will never be taken may not have been sent; any other answer shows that the server is there.
            if error.is_none_or(|error| error.kind() != PublishErrorKind::Permanent) {
                by_part.entry(server).or_default().push(if is_of_server { receipt } else { &TAKEN });
            }
        }
        if !is_of_server || parts.server.is_none() {
            by_part.entry(&parts.target).or_default().push(receipt);
        }
    }
    let parts = by_part.into_iter().filter_map(|(part, receipts)| Some((part.clone(), verdict(receipts)?)));
    Findings { whole, parts: parts.collect() }
}

/// The part of the destination that does not take a message, by its error; `None` for the whole.
pub(super) fn part_of<'a>(error: &PublishError, parts: Option<&'a Parts>) -> Option<&'a Part> {
    let parts = parts?;
    match error.scope() {
        FailureScope::Server => Some(parts.server.as_ref().unwrap_or(&parts.target)),
        FailureScope::Target | FailureScope::Message => Some(&parts.target),
        FailureScope::Broker => None,
    }
}

/// True if a message may be taken later, and its target or server has not taken it now.
pub(super) fn blames_a_part(receipt: &Receipt) -> bool {
    receipt.as_ref().is_err_and(|error| {
        let is_of_part = error.scope() != FailureScope::Message && !blames(error, FailureScope::Broker);
        is_of_part && error.kind() != PublishErrorKind::Permanent
    })
}

fn blames(error: &PublishError, scope: FailureScope) -> bool {
    error.blames_the_destination() && error.scope() == scope
}

/// The parts whose trouble may be that of the destination as a whole: targets, or servers where targets name them. A target in trouble
/// whose server is there shows that the destination can be reached.
pub(super) fn may_stand_for_whole(findings: &Findings) -> impl Fn(&Part) -> bool + use<> {
    let is_server = |part: &Part| matches!(part, Part::Server(_));
    let servers = findings.parts.iter().any(|(part, _)| is_server(part));
    move |part| !servers || is_server(part)
}

/// The conclusion about the whole from trouble of these parts, of which nothing was known before: if one after the other fails, and nothing
/// is taken in between, the destination is in trouble.
pub(super) fn escalated<'a>(trouble: impl IntoIterator<Item = &'a CallResult>) -> Option<CallResult> {
    trouble.into_iter().find_map(|called| match called {
        CallResult::Refused { problem, .. } | CallResult::Declined { problem } => {
            Some(CallResult::Declined { problem: Arc::clone(problem) })
        }
        CallResult::Well | CallResult::Answered | CallResult::PauseRequested { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(target: &str) -> Option<Parts> {
        let server = target.split('/').next().map(|server| Part::Server(server.into()));
        Some(Parts { server, target: Part::Target(target.into()) })
    }

    fn found(receipts: Vec<(&str, Receipt)>) -> (Option<CallResult>, Vec<String>) {
        let (parts, receipts): (Vec<_>, Vec<_>) =
            receipts.into_iter().map(|(target, receipt)| (at(target), receipt)).unzip();
        let Findings { whole, parts } = findings(&parts, &receipts);
        let mut parts: Vec<String> = parts.iter().map(|(part, called)| format!("{part:?} {called:?}")).collect();
        parts.sort();
        (whole, parts)
    }

    #[test]
    fn each_error_blames_the_part_that_it_names() {
        let busy = || Err(PublishError::unavailable("busy").limited_to(FailureScope::Target));
        let away = || Err(PublishError::unavailable("away").limited_to(FailureScope::Server));
        let behind = || Err(PublishError::unavailable("behind").limited_to(FailureScope::Message));
        let cut = || Err(PublishError::unavailable("cut"));
        let odd = || Err(PublishError::temporary("500"));
        let refused = |text: &str| CallResult::Refused { problem: text.into(), after: None };

        let (whole, parts) = found(vec![("a/1", Ok(None)), ("a/2", busy()), ("b/1", away()), ("b/2", behind())]);
        assert_eq!(whole, Some(CallResult::Well));
        assert_eq!(
            parts,
            [
                "Server(\"a\") Well",
                r#"Server("b") Refused { problem: "away", after: None }"#,
                "Target(\"a/1\") Well",
                r#"Target("a/2") Refused { problem: "busy", after: None }"#,
            ]
        );
        let (whole, parts) = found(vec![("a/1", odd()), ("a/2", busy())]);
        assert_eq!((whole, parts.len()), (None, 3), "nothing is known of the whole");
        assert!(parts.contains(&r#"Target("a/1") Declined { problem: "500" }"#.to_owned()), "{parts:?}");
        assert_eq!(found(vec![("a/1", cut()), ("a/2", busy())]).0, Some(refused("cut")));
        assert_eq!(found(vec![("a/1", behind())]), (None, vec![]));
    }

    #[test]
    fn a_part_that_asks_for_a_pause_gets_it_though_it_takes_others() {
        let after = Duration::from_secs(7);
        let asks = |scope| Err(PublishError::unavailable("slow").limited_to(scope).retry_after(after));
        for (scope, shown) in [(FailureScope::Server, "Server(\"a\")"), (FailureScope::Target, "Target(\"a/1\")")] {
            let (whole, parts) = found(vec![("a/1", Ok(None)), ("a/1", asks(scope)), ("a/2", Ok(None))]);
            assert_eq!(whole, Some(CallResult::Well));
            let expected = format!("{shown} PauseRequested {{ problem: \"slow\", after: 7s }}");
            assert!(parts.contains(&expected) && parts.len() == 3, "{parts:?}");
            assert_eq!(parts.iter().filter(|part| part.ends_with("Well")).count(), 2, "{parts:?}");
        }
        let (whole, _) = found(vec![("a/1", Ok(None)), ("a/2", asks(FailureScope::Broker))]);
        assert_eq!(whole, Some(CallResult::PauseRequested { problem: "slow".into(), after }));
    }

    #[test]
    fn targets_stand_for_the_whole_only_where_they_name_no_server() {
        let silent = || Err(PublishError::unavailable("silent").limited_to(FailureScope::Target));
        let of = |parts: Option<Parts>| findings(&[parts], &[silent()]);
        let (with, without) = (at("a/1"), Some(Parts { server: None, target: Part::Target("1".into()) }));
        let parts = |found: Findings| {
            let stands = may_stand_for_whole(&found);
            found
                .parts
                .iter()
                .filter(|(part, _)| stands(part))
                .map(|(part, called)| format!("{part:?} {called:?}"))
                .collect()
        };
        let (with, without): (Vec<_>, Vec<_>) = (parts(of(with)), parts(of(without)));
        assert_eq!(with, ["Server(\"a\") Well"], "the server is there");
        assert_eq!(without, [r#"Target("1") Refused { problem: "silent", after: None }"#]);
        assert_eq!(escalated(&[CallResult::Well]), None);
        let refused = CallResult::Refused { problem: "silent".into(), after: None };
        assert_eq!(escalated(&[CallResult::Well, refused]), Some(CallResult::Declined { problem: "silent".into() }));
    }

    #[test]
    fn trouble_is_that_of_the_part_which_the_error_names() {
        let (with, without) = (at("a/1").expect("parts"), Parts { server: None, target: Part::Target("1".into()) });
        let of = |scope, parts| part_of(&PublishError::unavailable("").limited_to(scope), Some(parts)).cloned();
        assert_eq!(of(FailureScope::Broker, &with), None);
        assert_eq!(
            (of(FailureScope::Server, &with), of(FailureScope::Server, &without)),
            (with.server.clone(), Some(without.target.clone()))
        );
        assert_eq!(of(FailureScope::Target, &with), Some(with.target.clone()));
    }

    #[test]
    fn without_parts_the_whole_is_to_blame() {
        let receipts = [Err(PublishError::unavailable("busy").limited_to(FailureScope::Target))];
        let found = findings(&[None], &receipts);
        assert_eq!(found.whole, Some(CallResult::Refused { problem: "busy".into(), after: None }));
        assert!(found.parts.is_empty());
    }
}
