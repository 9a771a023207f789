//! JSON for people: indented, its parts told apart, its secrets masked. Numbers and texts stay as they are written.

use maud::{Markup, PreEscaped, Render as _};

use crate::mask::{MASK, is_secret};

/// Indentations that are followed; deeper ones stay on one level.
const DEEPEST: usize = 40;

/// Values within one another that are indented. Each is a call within a call.
const NESTED: usize = 200;

/// The text indented; `None` if it is no JSON, or its values are nested too deeply.
pub(crate) fn pretty(text: &str) -> Option<Markup> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    if is_deep(text) {
        return None;
    }
    let mut writer = Writer { out: String::with_capacity(text.len() * 2), depth: 0 };
    writer.value(&mut Tokens(text), false)?;
    Some(PreEscaped(writer.out))
}

/// The text without its secrets, on one line as it was; `None` if it is no JSON.
pub(crate) fn masked(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let (mut out, mut tokens, mut name_is_secret) = (String::with_capacity(text.len()), Tokens(text), false);
    while let Some((space, token)) = tokens.next_with_space() {
        out.push_str(space);
        if name_is_secret && !matches!(token, ":") {
            let mut writer = Writer { out: String::new(), depth: 0 };
            writer.rest_of(&mut tokens, token)?;
            out.push('"');
            out.push_str(MASK);
            out.push('"');
            name_is_secret = false;
            continue;
        }
        out.push_str(token);
        if token.starts_with('"') && tokens.is_followed_by_colon() {
            name_is_secret = is_secret(&unquoted(token));
        }
    }
    Some(out)
}

fn is_deep(text: &str) -> bool {
    let (mut open, mut tokens) = (0_usize, Tokens(text));
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => open += 1,
            "}" | "]" => open = open.saturating_sub(1),
            _ => {}
        }
        if open > NESTED {
            return true;
        }
    }
    false
}

struct Writer {
    out: String,
    depth: usize,
}

impl Writer {
    /// Writes a value that begins with the next token.
    fn value(&mut self, tokens: &mut Tokens<'_>, hide: bool) -> Option<()> {
        let token = tokens.next()?;
        if hide {
            self.rest_of(tokens, token)?;
            self.span("js", &format!("\"{MASK}\""));
            return Some(());
        }
        match token {
            "{" => return self.members(tokens, "}"),
            "[" => return self.members(tokens, "]"),
            _ if token.starts_with('"') => self.span("js", token),
            _ => self.span("jn", token),
        }
        Some(())
    }

    fn members(&mut self, tokens: &mut Tokens<'_>, end: &str) -> Option<()> {
        self.out.push_str(if end == "}" { "{" } else { "[" });
        if tokens.peek()? == end {
            tokens.next();
            self.out.push_str(end);
            return Some(());
        }
        self.depth += 1;
        loop {
            self.line();
            let hide = if end == "}" {
                let name = tokens.next()?;
                self.span("jk", name);
                tokens.next()?;
                self.out.push_str(": ");
                is_secret(&unquoted(name))
            } else {
                false
            };
            self.value(tokens, hide)?;
            if tokens.next()? == end {
                break;
            }
            self.out.push(',');
        }
        self.depth -= 1;
        self.line();
        self.out.push_str(end);
        Some(())
    }

    /// Passes over the rest of a value that began with this token.
    fn rest_of(&mut self, tokens: &mut Tokens<'_>, first: &str) -> Option<()> {
        let mut open = usize::from(matches!(first, "{" | "["));
        while open > 0 {
            match tokens.next()? {
                "{" | "[" => open += 1,
                "}" | "]" => open -= 1,
                _ => {}
            }
        }
        Some(())
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.depth.min(DEEPEST) {
            self.out.push_str("  ");
        }
    }

    fn span(&mut self, class: &str, text: &str) {
        self.out.push_str("<span class=\"");
        self.out.push_str(class);
        self.out.push_str("\">");
        text.render_to(&mut self.out);
        self.out.push_str("</span>");
    }
}

/// A name as it is meant, for the comparison with those of secrets.
fn unquoted(token: &str) -> String {
    // One that cannot be read, such as half of a pair of surrogates, is compared as it is written.
    serde_json::from_str(token).unwrap_or_else(|_| token.to_owned())
}

/// The tokens of a text that is known to be JSON.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.next_with_space().map(|(_, token)| token)
    }

    fn peek(&self) -> Option<&'a str> {
        Tokens(self.0).next()
    }

    fn is_followed_by_colon(&self) -> bool {
        self.peek() == Some(":")
    }

    fn next_with_space(&mut self) -> Option<(&'a str, &'a str)> {
        let rest = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let (space, _) = self.0.split_at(self.0.len() - rest.len());
        let end = match rest.bytes().next()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => end_of_text(rest)?,
            _ => rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        self.0 = after;
        Some((space, token))
    }
}

/// The place behind the quote that ends a text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(place + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        let html = pretty(text)?.into_string();
        let without = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        Some(
            without
                .collect::<String>()
                .replace("&quot;", "\"")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&"),
        )
    }

    #[test]
    fn it_is_indented_and_nothing_else_changes() {
        let text = r#"{"b":1.0000000000000000001,"a":["x\"<y>",null,{}],"e":[]}"#;
        let expected = "{\n  \"b\": 1.0000000000000000001,\n  \"a\": [\n    \"x\\\"<y>\",\n    null,\n    {}\n  ],\n  \"e\": []\n}";
        assert_eq!(plain(text).as_deref(), Some(expected));
        assert_eq!(plain(" true "), Some("true".to_owned()));
    }

    #[test]
    fn text_that_is_no_json_is_left_alone() {
        for text in ["", "{", "order", "{\"a\":}"] {
            assert!(pretty(text).is_none() && masked(text).is_none(), "{text}");
        }
    }

    #[test]
    fn secrets_are_masked_at_any_depth_and_whatever_their_form() {
        let text = r#"{"user":{"passw\u006frd": "s3cret", "n": 1},"api_key":{"v":["s3cret"]},"apiKeys":["s3cret"],"last": "ok"}"#;
        for shown in [plain(text), masked(text)].map(|shown| shown.expect("JSON")) {
            assert!(!shown.contains("s3cret") && shown.contains("ok") && shown.matches(MASK).count() == 3, "{shown}");
        }
        assert_eq!(masked(r#"{"a" : [1 , 2]}"#).as_deref(), Some(r#"{"a" : [1 , 2]}"#));
    }

    /// Each level was a call within a call, and one payload ended the process.
    #[test]
    fn values_nested_in_one_another_by_the_thousand_are_not_indented() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(pretty(&deep(NESTED)).is_some());
        for levels in [NESTED + 1, 32_000] {
            assert!(pretty(&deep(levels)).is_none());
            assert_eq!(masked(&deep(levels)), Some(deep(levels)));
        }
    }

    #[test]
    fn markup_in_a_payload_stays_text() {
        let html = pretty(r#"{"<script>": "</pre><script>alert(1)</script>"}"#).expect("JSON").into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
    }
}
