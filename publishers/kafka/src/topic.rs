use pillarbox_core::publisher::PublishError;

/// Kafka's own limit.
const LONGEST: usize = 249;

/// Accepts a target that can be the name of a topic.
pub(crate) fn accept(target: &str) -> Result<(), PublishError> {
    let problem = if target.is_empty() {
        "is empty".to_owned()
    } else if target.len() > LONGEST {
        format!("has {} bytes, over the limit of {LONGEST}", target.len())
    } else if matches!(target, "." | "..") {
        format!("is {target:?}")
    } else if let Some(c) = target.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c))) {
        format!("({target:?}) holds {c:?}")
    } else {
        return Ok(());
    };
    Err(PublishError::permanent(format!(
        "the topic's name {problem}; it may have letters, digits, full stops, underscores and hyphens"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_a_name_that_kafka_takes() {
        for target in ["orders", "Orders.placed_v2-eu", "a", "...", &"x".repeat(249)] {
            assert_eq!(accept(target), Ok(()), "{target}");
        }
        for target in ["", ".", "..", "a b", "a/b", "ü", "a\0", "a:b", &"x".repeat(250)] {
            let error = accept(target).expect_err("refused");
            assert!(error.to_string().contains("letters, digits"), "{error}");
        }
    }
}
