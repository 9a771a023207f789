use std::borrow::Cow;

use clap::Args;

use pillarbox_program::arguments::STORE_HELP;

/// The variable that `--store` may come from.
const STORE_VARIABLE: &str = "PILLARBOX_STORE";
const DEFAULT_TABLE: &str = "outbox_event";

/// The outbox that a command works on, and the form of its answer.
#[derive(Debug, Args)]
pub(crate) struct Target {
    #[arg(long, value_name = "URL", help = STORE_HELP, env = STORE_VARIABLE, hide_env_values = true)]
    pub(crate) store: String,
    /// The event table: `table` or `schema.table`. The tables beside it are named after it.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE)]
    pub(crate) table: String,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Target {
    /// A command on the same outbox, as it can be pasted into a shell.
    ///
    /// It names the database unless the environment does, so that it never works on another one. A password is left out: hints end up in
    /// logs.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        let mut command = "pillarbox".to_owned();
        let mut push = |word: &str| command.extend([" ", word]);
        words.iter().for_each(|word| push(&quoted(word)));
        if std::env::var(STORE_VARIABLE).as_ref() != Ok(&self.store) {
            push("--store");
            push(&quoted(&without_password(&self.store)));
        }
        if self.table != DEFAULT_TABLE {
            push("--table");
            push(&quoted(&self.table));
        }
        command
    }

    /// A text whose commands in backquotes work on this outbox, as they can be pasted. Those with a file of a relay stay as they are.
    pub(crate) fn in_commands(&self, text: &str) -> String {
        let options = self.command(&[]);
        let options = options.strip_prefix("pillarbox").unwrap_or_default();
        let parts = text.split('`').enumerate().map(|(number, part)| {
            let is_command = number % 2 == 1 && part.starts_with("pillarbox ") && !part.contains(" --config");
            if is_command { format!("{part}{options}") } else { part.to_owned() }
        });
        parts.collect::<Vec<_>>().join("`")
    }
}

/// The URL without its password; only the word `URL` if it cannot be taken out for sure, which no command takes for a database.
fn without_password(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let Some((credentials, host)) = rest.rsplit_once('@').filter(|(credentials, _)| credentials.contains(':')) else {
        return if rest.contains("password") { "URL".into() } else { url.into() };
    };
    match credentials.split_once(':') {
        Some((user, _)) if !credentials.contains(['/', '?']) && !host.contains("password") => {
            format!("{scheme}://{user}@{host}").into()
        }
        _ => "URL".into(),
    }
}

/// A word, quoted for a shell. A text from a table may be anything, even a command.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(store: &str, table: &str, words: &[&str]) -> String {
        Target { store: store.to_owned(), table: table.to_owned(), json: true }.command(words)
    }

    #[test]
    fn a_command_can_be_pasted() {
        let show = ["dead", "show", "d1"];
        assert_eq!(command("shop.db", "outbox_event", &show), "pillarbox dead show d1 --store shop.db");
        let url = "postgres://app@db/shop?sslmode=require";
        assert_eq!(
            command(url, "billing.events", &show),
            format!("pillarbox dead show d1 --store '{url}' --table billing.events")
        );
        assert_eq!(command("a b.db", "outbox_event", &["$(rm x)'"]), r"pillarbox '$(rm x)'\''' --store 'a b.db'");
    }

    #[test]
    fn commands_in_a_text_can_be_pasted() {
        let target = Target { store: "shop.db".to_owned(), table: "events".to_owned(), json: false };
        let text = "`pillarbox dead list` shows why; see `docs`, or `pillarbox relay --config FILE --check`.";
        let expected = "`pillarbox dead list --store shop.db --table events` shows why; see `docs`, or `pillarbox relay --config FILE --check`.";
        assert_eq!(target.in_commands(text), expected);
    }

    #[test]
    fn a_password_is_not_repeated() {
        for (url, named) in [
            ("postgres://app:s3cret@db/shop?sslmode=require", "'postgres://app@db/shop?sslmode=require'"),
            ("mysql://a:b@c@db/x", "mysql://a@db/x"),
            ("postgres://app@db/shop", "postgres://app@db/shop"),
            ("postgres://db:5432/shop", "postgres://db:5432/shop"),
            ("postgres://db/shop?user=app&password=s3cret", "URL"),
            ("postgres://app:s3/cret@db/shop", "URL"),
            ("postgres://app:s3?cret@db/shop", "URL"),
            ("postgres://db:5432/shop?password=s3@cret", "URL"),
            ("postgres://app:a@db/shop?password=s3cret", "URL"),
        ] {
            assert_eq!(command(url, "outbox_event", &["migrate"]), format!("pillarbox migrate --store {named}"));
        }
    }
}
