use std::io::{IsTerminal as _, Write as _, stderr, stdin};

use pillarbox::Store;
use pillarbox_program::report::plain;

use crate::failure::Failure;

/// Asks the person at the terminal, unless the command line has the answer, and says which outbox is meant: a variable may have named it. Without
/// a terminal it fails.
pub(crate) fn confirm(store: &dyn Store, yes: bool, about_to: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Failure::NobodyToAsk { about_to: about_to.to_owned() });
    }
    // A question that nobody sees is not answered with yes.
    let info = store.info();
    let _ =
        write!(stderr(), "About to {about_to}, in {} at {}. Go on? [y/N] ", plain(&info.table), plain(&info.address));
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(Failure::of_system("read the answer"))?;
    if is_yes(&answer) { Ok(()) } else { Err(Failure::Declined) }
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Yes\n", " YES "].into_iter().all(is_yes));
        assert!(!["", "\n", "n\n", "yeah\n"].into_iter().any(is_yes));
    }
}
