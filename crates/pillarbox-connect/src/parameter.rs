use pillarbox_core::error::ConfigError;

/// Refuses a parameter of a URL, `?name=value`, that is none of `known`.
#[must_use]
pub fn unknown_parameter(name: &str, known: &[&str]) -> ConfigError {
    // A password that was not encoded may have ended up here, so only what looks like a name is repeated.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    let problem = if name.len() <= 40 && name.bytes().all(is_plain) {
        format!("has the unknown parameter `{name}`")
    } else {
        "has a parameter with a malformed name".to_owned()
    };
    let mut known = known.to_vec();
    known.sort_unstable();
    ConfigError::new("url", problem, format!("remove it, or use one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_named_and_secrets_are_not() {
        let text = unknown_parameter("ssl_mod", &["ssl-mode", "socket"]).to_string();
        assert_eq!(
            text,
            "setting `url` has the unknown parameter `ssl_mod`; remove it, or use one of socket, ssl-mode"
        );
        for name in ["hunter2", "Hunter", "hunter@h", &"h".repeat(41)] {
            let text = unknown_parameter(name, &["socket"]).to_string();
            assert!(text.contains("a parameter with a malformed name") && !text.contains("unter"), "{text}");
        }
    }
}
