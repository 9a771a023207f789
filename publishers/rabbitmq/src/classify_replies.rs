use crate::publish::UnconfirmedMessage;

/// The reply to one message on its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelReply {
    Acked,
    Nacked,
    /// Nothing was heard: the time was up, or the channel was closed.
    Unheard,
}

/// The identity of a message that came back. The client hands out returned messages with any confirmation of the channel, not with their
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Returned {
    pub(crate) id: String,
    pub(crate) exchange: String,
    pub(crate) key: String,
}

/// The outcome that a message's receipt will report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    Confirmed,
    /// It came back: it went to no queue.
    Unroutable,
    Nacked,
    /// It may have arrived or not.
    Unknown,
}

/// The outcomes of the messages of one channel, by the replies to them.
///
/// The broker returns a message before it acknowledges it, and the client hands out one that came back with each
/// acknowledgement while it has any. So once all are acknowledged, all that came back are known. Before that, an
/// acknowledged message is confirmed only if none has come back: its own return would have been handed out with its
/// acknowledgement at the latest.
pub(crate) fn classify_replies(
    sent: &[UnconfirmedMessage<'_>],
    outcomes: &[ChannelReply],
    returned: &[Returned],
) -> Vec<MessageOutcome> {
    let is = |it: &Returned, UnconfirmedMessage { message, route, .. }: &UnconfirmedMessage<'_>| {
        it.id == message.id.as_str() && it.exchange == route.exchange && it.key == route.key
    };
    let came_back = |sent: &UnconfirmedMessage<'_>| returned.iter().any(|it| is(it, sent));
    let known = returned.iter().all(|it| sent.iter().any(|sent| is(it, sent)));
    let complete = outcomes.len() == sent.len() && !outcomes.contains(&ChannelReply::Unheard) && known;
    let verdict = |(sent, outcome): (&UnconfirmedMessage<'_>, &ChannelReply)| match outcome {
        ChannelReply::Unheard => MessageOutcome::Unknown,
        ChannelReply::Nacked => MessageOutcome::Nacked,
        ChannelReply::Acked if !returned.is_empty() && came_back(sent) => MessageOutcome::Unroutable,
        ChannelReply::Acked if returned.is_empty() || complete => MessageOutcome::Confirmed,
        ChannelReply::Acked => MessageOutcome::Unknown,
    };
    let unheard = std::iter::repeat(&ChannelReply::Unheard);
    sent.iter().zip(outcomes.iter().chain(unheard)).map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;
    use pillarbox_core::publisher::Message;

    use super::*;
    use crate::route::Route;
    use ChannelReply::{Acked, Nacked, Unheard};

    #[test]
    fn nothing_is_confirmed_that_may_have_come_back() {
        use MessageOutcome::{Confirmed, Unknown, Unroutable};
        let message = |(id, target)| Message::new(target, EventId::new(id).expect("an id"), "");
        let messages = [("a", "shop/x"), ("b", "shop/y"), ("a", "shop/z")].map(message);
        let open =
            |(index, message)| UnconfirmedMessage { index, message, route: Route::of(message).expect("a route") };
        let sent: Vec<_> = messages.iter().enumerate().map(open).collect();
        let back = |id: &str, key: &str| Returned { id: id.into(), exchange: "shop".into(), key: key.into() };
        let table = [
            (vec![Acked; 3], vec![], [Confirmed; 3]),
            (vec![Acked; 3], vec![back("b", "y")], [Confirmed, Unroutable, Confirmed]),
            // The same event goes to two places, one of which is not there.
            (vec![Acked; 3], vec![back("a", "z")], [Confirmed, Confirmed, Unroutable]),
            (vec![Acked, Nacked, Acked], vec![], [Confirmed, MessageOutcome::Nacked, Confirmed]),
            // The time is up: a returned message may have been handed out in another's place.
            (vec![Acked, Acked, Unheard], vec![], [Confirmed, Confirmed, Unknown]),
            (vec![Acked, Acked, Unheard], vec![back("b", "y")], [Unknown, Unroutable, Unknown]),
            (vec![Acked, Acked, Unheard], vec![back("a", "z")], [Unknown; 3]),
            // The returned message is none of these: anything else may be wrong.
            (vec![Acked; 3], vec![back("c", "x")], [Unknown; 3]),
            (vec![], vec![], [Unknown; 3]),
        ];
        for (outcomes, returned, expected) in table {
            assert_eq!(classify_replies(&sent, &outcomes, &returned), expected, "{outcomes:?} {returned:?}");
        }
    }
}
