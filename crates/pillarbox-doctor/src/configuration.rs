use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pillarbox_core::examine::{Check, Checked, Severity};

/// The checks of a configuration file.
pub const ALL: &[&Check] = &[&REFUSED, &NOT_LOADED];

static REFUSED: Check = Check {
    code: "configuration-refused",
    severity: Severity::Warning,
    healthy: "the relay has refused no configuration file",
    cause: "The relay was told to read its file again, could not use it, and goes on with the one it had: nothing that was changed is in force.",
    remedy: "Mend what the evidence names, see that `pillarbox relay --config FILE --check` accepts it, and send SIGHUP again.",
};

static NOT_LOADED: Check = Check {
    code: "configuration-not-loaded",
    severity: Severity::Warning,
    healthy: "the relay works by the file as it is",
    cause: "The file has changed since the relay read it: what was changed is not in force, and a restart would bring it.",
    remedy: "Send SIGHUP to the relay, or take the change back.",
};

/// A configuration file beside the relay that works by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// A digest of the file as it is; the reason if it cannot be read.
    pub file: Result<String, String>,
    /// The file that is in force; the reason if the relay cannot be asked.
    pub relay: Result<InForce, String>,
}

/// The file that a relay works by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its digest, of the same kind.
    pub digest: String,
    /// The time at which it was read.
    pub read_at: String,
    /// The time at which another was refused after it, and the problem.
    pub refused: Option<(String, String)>,
}

/// Looks at a configuration file and at its relay, each time that a doctor examines them.
#[derive(Clone)]
pub(crate) struct Look(pub(crate) Arc<dyn Fn() -> BoxFuture<'static, Configuration> + Send + Sync>);

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look")
    }
}

pub(crate) fn judge(Configuration { file, relay }: Configuration) -> Vec<Checked> {
    let in_force = match relay {
        Ok(in_force) => in_force,
        Err(reason) => return vec![REFUSED.not_checked(reason.clone()), NOT_LOADED.not_checked(reason)],
    };
    let InForce { digest, read_at, refused } = in_force;
    let refused = refused.map(|(at, problem)| format!("refused at {at}: {problem}"));
    let loaded = match file {
        Err(reason) => NOT_LOADED.not_checked(reason),
        Ok(file) if file == digest => NOT_LOADED.healthy(),
        Ok(_) => NOT_LOADED.found(format!("the relay has read it at {read_at}, and it is another now")),
    };
    vec![REFUSED.judge(refused), loaded]
}

#[cfg(test)]
mod tests {
    use pillarbox_core::examine::Judgement;

    use super::*;

    fn judgements(file: Result<&str, &str>, refused: Option<&str>) -> Vec<Judgement> {
        let refused = refused.map(|problem| ("12:00".to_owned(), problem.to_owned()));
        let relay = Ok(InForce { digest: "a".to_owned(), read_at: "11:00".to_owned(), refused });
        let file = file.map(str::to_owned).map_err(str::to_owned);
        judge(Configuration { file, relay }).into_iter().map(|checked| checked.judgement).collect()
    }

    #[test]
    fn a_file_that_is_not_in_force_is_found() {
        let found = |evidence: &str| Judgement::Found { evidence: evidence.to_owned(), command: None };
        assert_eq!(judgements(Ok("a"), None), [Judgement::Healthy, Judgement::Healthy]);
        let other = found("the relay has read it at 11:00, and it is another now");
        assert_eq!(judgements(Ok("b"), None), [Judgement::Healthy, other.clone()]);
        assert_eq!(judgements(Ok("b"), Some("line 3")), [found("refused at 12:00: line 3"), other]);
        let gone = Judgement::NotChecked { reason: "no such file".to_owned() };
        assert_eq!(judgements(Err("no such file"), None), [Judgement::Healthy, gone]);
        let nobody = judge(Configuration { file: Ok("a".to_owned()), relay: Err("nobody answers".to_owned()) });
        assert!(nobody.iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })), "{nobody:?}");
    }
}
