use lapin::protocol::AMQPSoftError;
use pillarbox_core::publisher::{PublishError, Scope};

use crate::route::Route;

/// A message that was on a channel when the broker closed it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect<'a> {
    pub(crate) target: &'a str,
    pub(crate) route: Route<'a>,
    pub(crate) bytes: usize,
}

/// Finds the messages because of which a broker has closed a channel, by what it said; the others may be sent again at once.
/// Empty if none is to blame.
pub(crate) fn blame(complaint: &AMQPSoftError, said: &str, suspects: &[Suspect<'_>]) -> Vec<(usize, PublishError)> {
    let refused = |suspect: &Suspect<'_>| {
        PublishError::misconfigured(format!("{}: {said}", suspect.target)).limited_to(Scope::Target)
    };
    let guilty = |suspect: &Suspect<'_>| match complaint {
        AMQPSoftError::NOTFOUND | AMQPSoftError::ACCESSREFUSED => names(said, suspect.route).then(|| refused(suspect)),
        AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE if said.contains("size") => {
            // Whatever the broker's limit is, the largest is beyond it.
            let largest = suspects.iter().map(|other| other.bytes).max();
            (largest == Some(suspect.bytes)).then(|| PublishError::permanent(format!("{}: {said}", suspect.target)))
        }
        _ => None,
    };
    suspects.iter().map(guilty).enumerate().filter_map(|(index, error)| Some((index, error?))).collect()
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
    use super::*;

    #[test]
    fn only_those_are_blamed_that_the_broker_names() {
        use AMQPSoftError::{ACCESSREFUSED, NOTFOUND, PRECONDITIONFAILED, RESOURCELOCKED};
        let suspect = |target, exchange, key, bytes| Suspect { target, route: Route { exchange, key }, bytes };
        let suspects = [
            suspect("shop/a", "shop", "a", 5),
            suspect("gone/a", "gone", "a", 9),
            suspect("/queue", "", "queue", 1),
            suspect("gone/b", "gone", "b", 9),
        ];
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
            assert_eq!(blamed.iter().map(|(index, _)| *index).collect::<Vec<_>>(), expected, "{said}");
            for (index, error) in blamed {
                assert!(error.to_string().starts_with(suspects[index].target), "{error}");
            }
        }
    }
}
