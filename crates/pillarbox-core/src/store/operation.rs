//! The operations of a store, as its errors name them: "could not claim events at …". Every store takes the names from here,
//! so that one operation has one text whatever the database.

use std::time::Duration;

/// The time within which each call of a store ends by itself, but that of [`Store::migrate`](super::Store::migrate).
pub const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Opening a store.
pub const CONNECT: &str = "connect to the database";
/// [`Store::migrate`](super::Store::migrate).
pub const MIGRATE: &str = "migrate the tables";
/// [`Store::check`](super::Store::check).
pub const CHECK: &str = "check the tables";
/// [`Store::join`](super::Store::join).
pub const JOIN: &str = "register the node";
/// [`Store::acquire`](super::Store::acquire).
pub const ACQUIRE: &str = "acquire ownership";
/// [`Store::rebalance`](super::Store::rebalance).
pub const REBALANCE: &str = "rebalance the partitions";
/// [`Store::renew`](super::Store::renew).
pub const RENEW: &str = "renew the lease";
/// [`Store::leave`](super::Store::leave).
pub const LEAVE: &str = "unregister the node";
/// [`Store::evict`](super::Store::evict).
pub const EVICT: &str = "evict a node";
/// [`Store::fetch`](super::Store::fetch).
pub const FETCH: &str = "fetch events";
/// [`Store::claim`](super::Store::claim).
pub const CLAIM: &str = "claim events";
/// [`Store::release`](super::Store::release).
pub const RELEASE: &str = "release events";
/// [`Store::reclaim`](super::Store::reclaim).
pub const RECLAIM: &str = "free the events of dead nodes";
/// [`Store::assign_partitions`](super::Store::assign_partitions).
pub const ASSIGN_PARTITIONS: &str = "assign events to partitions";
/// [`Store::promote_due`](super::Store::promote_due).
pub const PROMOTE_DUE: &str = "clear the due time of events";
/// [`Store::identify`](super::Store::identify).
pub const IDENTIFY: &str = "identify rows";
/// [`Store::writers`](super::Store::writers).
pub const WRITERS: &str = "look for open transactions of writers";
/// [`Store::raise_read_point`](super::Store::raise_read_point).
pub const RAISE_READ_POINT: &str = "raise the read point";
/// [`Store::now`](super::Store::now).
pub const NOW: &str = "read the database's clock";
/// [`Store::begin_attempt`](super::Store::begin_attempt).
pub const BEGIN_ATTEMPT: &str = "announce an attempt";
/// [`Store::settle`](super::Store::settle).
pub const SETTLE: &str = "settle events";
/// [`Store::interventions`](super::Store::interventions).
pub const INTERVENTIONS: &str = "look for changes by operators";
/// [`WakeUps::notify`](super::WakeUps::notify).
pub const WAKE: &str = "wake other nodes";
/// [`WakeUps::listen`](super::WakeUps::listen).
pub const LISTEN: &str = "listen for other nodes";
/// [`Admin::counts`](super::Admin::counts).
pub const COUNTS: &str = "count events";
/// [`Admin::backlog`](super::Admin::backlog).
pub const BACKLOG: &str = "count the backlog";
/// [`Admin::nodes`](super::Admin::nodes).
pub const NODES: &str = "list the nodes";
/// [`Admin::partitions`](super::Admin::partitions).
pub const PARTITIONS: &str = "count the backlog of the partitions";
/// [`partition_owners`](super::Admin::partition_owners)
pub const PARTITION_OWNERS: &str = "list the owners of the partitions";
/// [`Admin::blocked`](super::Admin::blocked).
pub const BLOCKED: &str = "list blocked keys";
/// [`Admin::head_of`](super::Admin::head_of).
pub const HEAD_OF: &str = "look for the event that another waits behind";
/// [`Admin::records`](super::Admin::records).
pub const RECORDS: &str = "read an event";
/// [`Admin::states`](super::Admin::states).
pub const STATES: &str = "read the states of events";
/// [`Admin::pending`](super::Admin::pending).
pub const PENDING: &str = "list pending events";
/// [`Admin::count_pending`](super::Admin::count_pending).
pub const COUNT_PENDING: &str = "count pending events";
/// [`Admin::retry_now`](super::Admin::retry_now).
pub const RETRY_NOW: &str = "retry pending events now";
/// [`Admin::cancel`](super::Admin::cancel).
pub const CANCEL: &str = "cancel pending events";
/// [`Admin::pause`](super::Admin::pause).
pub const PAUSE: &str = "pause an event type or a handler";
/// [`Admin::resume`](super::Admin::resume).
pub const RESUME: &str = "resume an event type or a handler";
/// [`Admin::pauses`](super::Admin::pauses).
pub const PAUSES: &str = "list what is paused";
/// [`Admin::count_paused`](super::Admin::count_paused).
pub const COUNT_PAUSED: &str = "count paused events";
/// [`Admin::dead`](super::Admin::dead).
pub const DEAD: &str = "list DEAD events";
/// [`Admin::count_dead`](super::Admin::count_dead).
pub const COUNT_DEAD: &str = "count DEAD events";
/// [`Admin::replay`](super::Admin::replay).
pub const REPLAY: &str = "replay DEAD events";
/// [`Admin::discard`](super::Admin::discard).
pub const DISCARD: &str = "discard DEAD events";
/// [`Admin::purge`](super::Admin::purge).
pub const PURGE: &str = "purge events";
/// [`Admin::inbox_consumers`](super::Admin::inbox_consumers).
pub const INBOX_CONSUMERS: &str = "list the consumers of the inbox";
/// [`Admin::count_inbox`](super::Admin::count_inbox).
pub const COUNT_INBOX: &str = "count the messages of the inbox";
/// [`Admin::purge_inbox`](super::Admin::purge_inbox).
pub const PURGE_INBOX: &str = "purge the inbox";
/// [`Admin::recent`](super::Admin::recent).
pub const RECENT: &str = "list events";
/// [`Admin::record_action`](super::Admin::record_action).
pub const RECORD_ACTION: &str = "record an action";
/// [`Admin::end_action`](super::Admin::end_action).
pub const END_ACTION: &str = "record the end of an action";
/// [`Admin::actions`](super::Admin::actions).
pub const ACTIONS: &str = "list the actions";
/// [`Admin::purge_actions`](super::Admin::purge_actions).
pub const PURGE_ACTIONS: &str = "purge the audit table";
/// [`Examine::examine`](super::Examine::examine).
pub const EXAMINE: &str = "examine the database";
