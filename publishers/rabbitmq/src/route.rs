use pillarbox_core::publisher::{Message, PublishError, TargetSyntax};

/// The exchange and the routing key of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Route<'a> {
    /// The name of the exchange; empty for the default one.
    pub(crate) exchange: &'a str,
    pub(crate) key: &'a str,
}

/// AMQP's limit for the name of an exchange, a routing key and other short texts, in bytes.
pub(crate) const SHORT: usize = 255;

/// The syntax that keeps a value within the name of the exchange, or within its word of the routing key.
pub(crate) const TARGETS: TargetSyntax = TargetSyntax::Parts(&['/', '.']);

impl<'a> Route<'a> {
    /// Of a message. A target that can be none is the event's own fault.
    pub(crate) fn of(message: &'a Message) -> Result<Self, PublishError> {
        Self::parse(&message.target, message.key.as_deref())
    }

    pub(crate) fn parse(target: &'a str, key: Option<&'a str>) -> Result<Self, PublishError> {
        let route = match target.split_once('/') {
            Some(("", "")) => return Err(refuse(target, "names neither an exchange nor a queue")),
            Some((exchange, key)) => Self { exchange, key },
            None if target.is_empty() => return Err(refuse(target, "is empty")),
            None => Self { exchange: target, key: key.unwrap_or_default() },
        };
        if route.exchange.len() > SHORT || route.key.len() > SHORT {
            return Err(refuse(target, "has an exchange or a routing key of more than 255 bytes"));
        }
        Ok(route)
    }

    /// True if it leads to the queue that the key names.
    pub(crate) fn is_a_queue(&self) -> bool {
        self.exchange.is_empty()
    }
}

fn refuse(target: &str, problem: &str) -> PublishError {
    PublishError::permanent(format!(
        "the target {target:?} {problem}; write `EXCHANGE/ROUTING.KEY`, `EXCHANGE` or `/QUEUE`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_split_at_its_first_slash() {
        let table = [
            ("shop/order.placed", None, ("shop", "order.placed")),
            ("shop/a/b", Some("k"), ("shop", "a/b")),
            ("shop/", Some("k"), ("shop", "")),
            ("shop", Some("k"), ("shop", "k")),
            ("shop", None, ("shop", "")),
            ("/orders", Some("k"), ("", "orders")),
        ];
        for (target, key, (exchange, routing)) in table {
            assert_eq!(Route::parse(target, key), Ok(Route { exchange, key: routing }), "{target}");
        }
        let long = "x".repeat(256);
        for (target, key) in [("", None), ("/", None), (&*long, None), (&format!("/{long}"), None), ("a", Some(&*long))]
        {
            let error = Route::parse(target, key).expect_err(target);
            assert!(error.to_string().contains("EXCHANGE/ROUTING.KEY"), "{error}");
        }
    }
}
