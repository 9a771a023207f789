use lapin::protocol::AMQPSoftError;
use pillarbox_core::publisher::{FailureScope, PublishError};

use crate::publish::Open;
use crate::route::Route;

/// Finds the messages because of which a broker has closed a channel, by what it said; the others may be sent again at once.
/// Empty if none is to blame.
pub(crate) fn blame<'a>(complaint: &AMQPSoftError, said: &str, suspects: &[Open<'a>]) -> Vec<(Open<'a>, PublishError)> {
    let text = |suspect: &Open<'_>| format!("{}: {said}", suspect.message.target);
    let refused = |suspect: &Open<'_>| PublishError::misconfigured(text(suspect)).limited_to(FailureScope::Target);
    let guilty = |suspect: &Open<'_>| match complaint {
        AMQPSoftError::NOTFOUND | AMQPSoftError::ACCESSREFUSED => names(said, suspect.route).then(|| refused(suspect)),
        AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE if said.contains("size") => {
            // Whatever the broker's limit is, the largest is beyond it.
            let largest = suspects.iter().map(|other| other.message.body.len()).max();
            (largest == Some(suspect.message.body.len())).then(|| PublishError::permanent(text(suspect)))
        }
        _ => None,
    };
    suspects.iter().filter_map(|suspect| Some((*suspect, guilty(suspect)?))).collect()
}

/// True if the complaint names this exchange and, where it is about one routing key alone, that key.
fn names(said: &str, route: Route<'_>) -> bool {
    let exchange = if route.exchange.is_empty() { "amq.default" } else { route.exchange };
    let about_keys = said.contains(" topic '");
    said.contains(&format!("exchange '{exchange}'"))
        && (!about_keys || said.contains(&format!("topic '{}'", route.key)))
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;
    use pillarbox_core::publisher::Message;

    use super::*;

    #[test]
    fn only_those_are_blamed_that_the_broker_names() {
        use AMQPSoftError::{ACCESSREFUSED, NOTFOUND, PRECONDITIONFAILED, RESOURCELOCKED};
        let message = |(target, bytes)| Message::new(target, EventId::new("e-1").expect("an id"), vec![0; bytes]);
        let messages = [("shop/a", 5), ("gone/a", 9), ("/queue", 1), ("gone/b", 9)].map(message);
        let suspect = |(index, message)| Open { index, message, route: Route::of(message).expect("a route") };
        let suspects: Vec<_> = messages.iter().enumerate().map(suspect).collect();
        let table = [
            (NOTFOUND, "NOT_FOUND - no exchange 'gone' in vhost '/'", vec![1, 3]),
            (ACCESSREFUSED, "ACCESS_REFUSED - access to exchange 'shop' in vhost '/' refused for user 'u'", vec![0]),
            (ACCESSREFUSED, "access to exchange 'amq.default' in vhost '/' refused for user 'u'", vec![2]),
            (ACCESSREFUSED, "write access to topic 'b' in exchange 'gone' in vhost '/' refused", vec![3]),
            (PRECONDITIONFAILED, "message size 9 is larger than configured max size 8", vec![1, 3]),
            (PRECONDITIONFAILED, "invalid expiration", vec![]),
            (RESOURCELOCKED, "exchange 'shop'", vec![]),
        ];
        for (complaint, said, expected) in table {
            let blamed = blame(&complaint, said, &suspects);
            assert_eq!(blamed.iter().map(|(guilty, _)| guilty.index).collect::<Vec<_>>(), expected, "{said}");
            for (guilty, error) in blamed {
                assert!(error.to_string().starts_with(&*guilty.message.target), "{error}");
            }
        }
    }
}
