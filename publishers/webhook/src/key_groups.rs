//! The messages of a call by tenant, server and key.

use std::collections::HashMap;

use indexmap::IndexMap;
use pillarbox_core::publisher::Message;

/// Messages that wait for one another, since they have a key and a server in common, with their places in the call.
pub(crate) type KeyGroup = Vec<(usize, Message)>;

/// The groups of each server, in the order of their first messages; `None` for targets that name no server.
pub(crate) type KeyGroupsByServer = IndexMap<Option<String>, Vec<KeyGroup>>;

/// The messages of each tenant. A group belongs to the tenant of its first message: the tenant is no part of a key.
pub(crate) fn by_tenant(
    messages: Vec<Message>,
    server: impl Fn(&Message) -> Option<String>,
) -> IndexMap<Option<Box<str>>, KeyGroupsByServer> {
    let mut tenants: IndexMap<Option<Box<str>>, KeyGroupsByServer> = IndexMap::new();
    let mut of_key: HashMap<(Option<String>, Box<str>), [usize; 3]> = HashMap::new();
    for (index, message) in messages.into_iter().enumerate() {
        let server = server(&message);
        let key = message.key.clone().map(|key| (server.clone(), key));
        if let Some([tenant, place, group]) = key.as_ref().and_then(|key| of_key.get(key)).copied() {
            let groups = tenants.get_index_mut(tenant).and_then(|(_, servers)| servers.get_index_mut(place));
            if let Some(group) = groups.and_then(|(_, groups)| groups.get_mut(group)) {
                group.push((index, message));
            }
            continue;
        }
        let servers = tenants.entry(message.tenant.clone());
        let tenant = servers.index();
        let groups = servers.or_default().entry(server);
        let place = groups.index();
        let groups = groups.or_default();
        of_key.extend(key.map(|key| (key, [tenant, place, groups.len()])));
        groups.push(vec![(index, message)]);
    }
    tenants
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::EventId;

    use super::*;

    /// The places of messages in the call, by tenant, server and group.
    type Places = Vec<Vec<Vec<Vec<usize>>>>;

    fn places(messages: &[(&'static str, &'static str, Option<&'static str>)]) -> Places {
        let message = |(tenant, target, key): &(&'static str, &'static str, Option<&'static str>)| {
            let mut message = Message::new(*target, EventId::new("1").expect("an id"), "");
            (message.tenant, message.key) = (Some((*tenant).into()), key.map(Into::into));
            message
        };
        let server = |message: &Message| message.target.split('/').next().map(str::to_owned);
        let of_server = |groups: Vec<KeyGroup>| {
            groups.into_iter().map(|group| group.into_iter().map(|(index, _)| index).collect()).collect()
        };
        let of_tenant = |servers: KeyGroupsByServer| servers.into_values().map(of_server).collect();
        by_tenant(messages.iter().map(message).collect(), server).into_values().map(of_tenant).collect()
    }

    #[test]
    fn messages_of_a_key_and_a_server_stand_in_one_group() {
        let one = [Some("a"), None, Some("b"), Some("a"), None, Some("b"), Some("a")].map(|key| ("t", "x", key));
        assert_eq!(places(&one), [[[vec![0, 3, 6], vec![1], vec![2, 5], vec![4]]]]);
        let two = [("t", "x/1", Some("a")), ("t", "y/1", Some("a")), ("t", "x/2", Some("a")), ("t", "y/1", None)];
        assert_eq!(places(&two), [vec![vec![vec![0, 2]], vec![vec![1], vec![3]]]]);
    }

    #[test]
    fn tenants_stand_apart_but_for_a_key_that_they_share() {
        let messages = [("t", "x", None), ("u", "x", Some("a")), ("t", "y", None), ("t", "x", Some("a"))];
        assert_eq!(places(&messages), [vec![vec![vec![0]], vec![vec![2]]], vec![vec![vec![1, 3]]]]);
    }
}
