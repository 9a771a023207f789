use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pillarbox_core::examine::{Check, Checked, Severity};

/// The checks of a configuration file.
pub const ALL: &[&Check] = &[&UNUSABLE, &REFUSED, &NOT_LOADED];

static UNUSABLE: Check = Check {
    code: "configuration-unusable",
    severity: Severity::Critical,
    healthy: "the configuration file can be used",
    cause: "The file is wrong as it is now: a relay that is running goes on with the one it has, and none starts with this one.",
    remedy: "Mend what the evidence names, until `pillarbox relay --config FILE --check` accepts it.",
};

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
    cause: "The file, or one that it names, such as a secret, has changed since the relay read it: what was changed is not in force until the relay reads it again, or starts anew.",
    remedy: "Send SIGHUP to the relay, or take the change back.",
};

/// A configuration file beside the relay that works by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// A digest of the file as it is; the reason if it cannot be read.
    pub file: Result<String, String>,
    /// The problem for which no relay can start with the file as it is.
    pub unusable: Option<String>,
    /// The keys of the files that it names, such as secrets, which were written after the relay had read it.
    pub written_since: Vec<String>,
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

pub(crate) fn judge(Configuration { file, unusable, written_since, relay }: Configuration) -> Vec<Checked> {
    // One finding is enough for a file that has to be mended first.
    if let Some(problem) = unusable {
        let refused = relay.ok().and_then(|in_force| in_force.refused);
        let seen = refused.map(|(at, _)| format!("; the relay has refused a file at {at}")).unwrap_or_default();
        let first = "the file has to be mended first";
        return vec![
            UNUSABLE.found(format!("{problem}{seen}")),
            REFUSED.not_checked(first),
            NOT_LOADED.not_checked(first),
        ];
    }
    let usable = UNUSABLE.healthy();
    let in_force = match relay {
        Ok(in_force) => in_force,
        Err(reason) => return vec![usable, REFUSED.not_checked(reason.clone()), NOT_LOADED.not_checked(reason)],
    };
    let InForce { digest, read_at, refused } = in_force;
    // Whoever has put back the file that is in force has nothing left to mend.
    let is_another = !file.as_ref().is_ok_and(|file| *file == digest);
    let refused = refused.filter(|_| is_another).map(|(at, problem)| format!("refused at {at}: {problem}"));
    let loaded = match file {
        Err(reason) => NOT_LOADED.not_checked(reason),
        Ok(file) if file != digest => {
            NOT_LOADED.found(format!("the relay has read it at {read_at}, and it is another now"))
        }
        Ok(_) => {
            let files = written_since.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let evidence = format!("the relay has read it at {read_at}; written since: the file of {files}");
            NOT_LOADED.judge((!written_since.is_empty()).then_some(evidence))
        }
    };
    vec![usable, REFUSED.judge(refused), loaded]
}

#[cfg(test)]
mod tests {
    use pillarbox_core::examine::Judgement;

    use super::*;

    fn judgements(file: Result<&str, &str>, refused: Option<&str>) -> Vec<Judgement> {
        let refused = refused.map(|problem| ("12:00".to_owned(), problem.to_owned()));
        let relay = Ok(InForce { digest: "a".to_owned(), read_at: "11:00".to_owned(), refused });
        let file = file.map(str::to_owned).map_err(str::to_owned);
        judge(Configuration { file, unusable: None, written_since: Vec::new(), relay })
            .into_iter()
            .filter(|checked| checked.check.code != UNUSABLE.code)
            .map(|checked| checked.judgement)
            .collect()
    }

    #[test]
    fn a_file_with_which_no_relay_starts_is_found_though_none_runs() {
        let judged = |unusable: Option<&str>| {
            let unusable = unusable.map(str::to_owned);
            let (file, relay) = (Ok("a".to_owned()), Err("nobody answers".to_owned()));
            judge(Configuration { file, unusable, written_since: Vec::new(), relay }).swap_remove(0).judgement
        };
        assert_eq!(judged(None), Judgement::Healthy);
        assert_eq!(judged(Some("line 3")), Judgement::Found { evidence: "line 3".to_owned(), command: None });
        let refused = Some(("12:00".to_owned(), "line 3".to_owned()));
        let relay = Ok(InForce { digest: "a".to_owned(), read_at: "11:00".to_owned(), refused });
        let unusable = Some("line 3".to_owned());
        let all = judge(Configuration { file: Ok("b".to_owned()), unusable, written_since: Vec::new(), relay });
        let evidence = "line 3; the relay has refused a file at 12:00".to_owned();
        assert_eq!(all[0].judgement, Judgement::Found { evidence, command: None });
        assert!(all[1..].iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })), "{all:?}");
    }

    #[test]
    fn a_file_that_is_not_in_force_is_found() {
        let found = |evidence: &str| Judgement::Found { evidence: evidence.to_owned(), command: None };
        assert_eq!(judgements(Ok("a"), None), [Judgement::Healthy, Judgement::Healthy]);
        let other = found("the relay has read it at 11:00, and it is another now");
        assert_eq!(judgements(Ok("b"), None), [Judgement::Healthy, other.clone()]);
        assert_eq!(judgements(Ok("b"), Some("line 3")), [found("refused at 12:00: line 3"), other]);
        assert_eq!(judgements(Ok("a"), Some("line 3")), [Judgement::Healthy, Judgement::Healthy], "it was put back");
        let gone = Judgement::NotChecked { reason: "no such file".to_owned() };
        assert_eq!(judgements(Err("no such file"), None), [Judgement::Healthy, gone]);
        let relay = Ok(InForce { digest: "a".to_owned(), read_at: "11:00".to_owned(), refused: None });
        let written_since = vec!["source.store.url_file".to_owned()];
        let rotated = judge(Configuration { file: Ok("a".to_owned()), unusable: None, written_since, relay });
        let secret = "the relay has read it at 11:00; written since: the file of `source.store.url_file`";
        assert_eq!(rotated[2].judgement, found(secret));
        let nobody = judge(Configuration {
            file: Ok("a".to_owned()),
            unusable: None,
            written_since: Vec::new(),
            relay: Err("nobody answers".to_owned()),
        });
        assert!(
            nobody[1..].iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })),
            "{nobody:?}"
        );
    }
}
