use lapin::protocol::AMQPSoftError;
use pillarbox_core::publisher::{FailureScope, PublishError};

use crate::publish::UnconfirmedMessage;
use crate::route::Route;

/// Finds the messages because of which a broker has closed a channel, by the text of its error, and gives each its error. The others may be
/// sent again at once. Empty if the error names none.
pub(crate) fn classify_channel_error<'a>(
    complaint: &AMQPSoftError,
    said: &str,
    unconfirmed: &[UnconfirmedMessage<'a>],
) -> Vec<(UnconfirmedMessage<'a>, PublishError)> {
    let text = |sent: &UnconfirmedMessage<'_>| format!("{}: {said}", sent.message.target);
    let misconfigured =
        |sent: &UnconfirmedMessage<'_>| PublishError::misconfigured(text(sent)).limited_to(FailureScope::Target);
    let refusal = |sent: &UnconfirmedMessage<'_>| match complaint {
        AMQPSoftError::NOTFOUND | AMQPSoftError::ACCESSREFUSED => names(said, sent.route).then(|| misconfigured(sent)),
        AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE if said.contains("size") => {
            // The broker's limit is unknown, and the largest message is beyond it.
            let largest = unconfirmed.iter().map(|other| other.message.body.len()).max();
            (largest == Some(sent.message.body.len())).then(|| PublishError::permanent(text(sent)))
        }
        _ => None,
    };
    unconfirmed.iter().filter_map(|sent| Some((*sent, refusal(sent)?))).collect()
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
    fn only_messages_that_the_broker_names_are_refused() {
        use AMQPSoftError::{ACCESSREFUSED, NOTFOUND, PRECONDITIONFAILED, RESOURCELOCKED};
        let message = |(target, bytes)| Message::new(target, EventId::new("e-1").expect("an id"), vec![0; bytes]);
        let messages = [("shop/a", 5), ("gone/a", 9), ("/queue", 1), ("gone/b", 9)].map(message);
        let sent =
            |(index, message)| UnconfirmedMessage { index, message, route: Route::of(message).expect("a route") };
        let unconfirmed: Vec<_> = messages.iter().enumerate().map(sent).collect();
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
            let classified = classify_channel_error(&complaint, said, &unconfirmed);
            assert_eq!(classified.iter().map(|(refused, _)| refused.index).collect::<Vec<_>>(), expected, "{said}");
            for (refused, error) in classified {
                assert!(error.to_string().starts_with(&*refused.message.target), "{error}");
            }
        }
    }
}
