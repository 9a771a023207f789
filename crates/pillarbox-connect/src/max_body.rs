//! The option `max_body`: the largest body that is sent, in bytes.

use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{Message, PublishError};

/// Refuses a limit that no message keeps.
///
/// # Errors
/// When it is 0.
pub fn check(max_body: usize) -> Result<(), ConfigError> {
    if max_body > 0 {
        return Ok(());
    }
    let remedy = "set the largest body in bytes, or remove it";
    Err(ConfigError::new("max_body", "is 0, which would send nothing", remedy))
}

/// The error of a message that is larger; `None` if it is not.
pub fn refuse(message: &Message, max_body: usize) -> Option<PublishError> {
    let bytes = message.body.len();
    let problem = || format!("the body has {bytes} bytes, more than the {max_body} of `max_body`");
    (bytes > max_body).then(|| PublishError::permanent(problem()))
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    #[test]
    fn a_body_is_at_most_as_large_as_the_limit() {
        assert_eq!((check(1), check(0).map_err(|error| error.field())), (Ok(()), Err("max_body")));
        let message = Message::new("orders", EventId::new("e-1").expect("an id"), "abcd");
        assert!(refuse(&message, 4).is_none());
        let refused = refuse(&message, 3).expect("refused").to_string();
        assert!(refused.contains("the body has 4 bytes, more than the 3 of `max_body`"), "{refused}");
    }
}
