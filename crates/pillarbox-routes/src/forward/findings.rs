//! The parts of a destination that the receipts of a call blame.

use std::collections::HashMap;
use std::sync::Arc;

use pillarbox_core::publisher::{PublishError, PublishErrorKind, Receipt, Scope};

use super::answer::{refusal, verdict};
use crate::guard::{CallResult, Part, Parts};

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
        Err(error) => parts.is_none() || blames(error, Scope::Broker),
    };
    let whole = verdict(both().filter(of_whole).map(|(_, receipt)| receipt));
    let mut by_target: HashMap<&Part, Vec<&Receipt>> = HashMap::new();
    let mut by_server: HashMap<&Part, CallResult> = HashMap::new();
    for (parts, receipt) in both().filter_map(|(parts, receipt)| Some((parts.as_ref()?, receipt))) {
        let error = receipt.as_ref().err();
        let about_nothing = error.is_some_and(|error| blames(error, Scope::Broker) || error.scope() == Scope::Message);
        if about_nothing {
            continue;
        }
        let of_server = error.filter(|error| blames(error, Scope::Server));
        if let Some(server) = &parts.server {
            match of_server {
                // A message that will never be taken may not have been sent; any other answer shows that the server is there.
                None if error.is_some_and(|error| error.kind() == PublishErrorKind::Permanent) => {}
                None => drop(by_server.insert(server, CallResult::Well)),
                Some(error) => drop(by_server.entry(server).or_insert_with(|| refusal(error))),
            }
        }
        if of_server.is_none() || parts.server.is_none() {
            by_target.entry(&parts.target).or_default().push(receipt);
        }
    }
    let targets = by_target.into_iter().filter_map(|(part, receipts)| Some((part.clone(), verdict(receipts)?)));
    let servers = by_server.into_iter().map(|(part, called)| (part.clone(), called));
    Findings { whole, parts: servers.chain(targets).collect() }
}

fn blames(error: &PublishError, scope: Scope) -> bool {
    error.blames_the_destination() && error.scope() == scope
}

/// The conclusion about the whole from trouble of parts: if one target after the other fails that was well before, and nothing is
/// taken in between, the destination is in trouble.
pub(super) fn escalated(findings: &Findings, is_new: bool) -> Option<CallResult> {
    let problem = findings.parts.iter().find_map(|(_, called)| match called {
        CallResult::Refused { problem, .. } | CallResult::Declined { problem } => Some(Arc::clone(problem)),
        CallResult::Well | CallResult::Answered => None,
    });
    problem.filter(|_| is_new).map(|problem| CallResult::Declined { problem })
}

#[cfg(test)]
mod tests {
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
        let busy = || Err(PublishError::unavailable("busy").limited_to(Scope::Target));
        let away = || Err(PublishError::unavailable("away").limited_to(Scope::Server));
        let behind = || Err(PublishError::unavailable("behind").limited_to(Scope::Message));
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
    fn without_parts_the_whole_is_to_blame() {
        let receipts = [Err(PublishError::unavailable("busy").limited_to(Scope::Target))];
        let found = findings(&[None], &receipts);
        assert_eq!(found.whole, Some(CallResult::Refused { problem: "busy".into(), after: None }));
        assert!(found.parts.is_empty());
    }
}
