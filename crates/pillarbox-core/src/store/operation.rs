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
/// [`Store::share`](super::Store::share).
pub const SHARE: &str = "rebalance the partitions";
/// [`Store::renew`](super::Store::renew).
pub const RENEW: &str = "renew the lease";
/// [`Store::leave`](super::Store::leave).
pub const LEAVE: &str = "unregister the node";
/// [`Store::evict`](super::Store::evict).
pub const EVICT: &str = "clear a node away";
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
/// [`Upkeep::counts`](super::Upkeep::counts).
pub const COUNTS: &str = "count events";
/// [`Upkeep::backlog`](super::Upkeep::backlog).
pub const BACKLOG: &str = "count the backlog";
/// [`Upkeep::nodes`](super::Upkeep::nodes).
pub const NODES: &str = "list the nodes";
/// [`Upkeep::partitions`](super::Upkeep::partitions).
pub const PARTITIONS: &str = "count the backlog of the partitions";
/// [`partition_owners`](super::Upkeep::partition_owners)
pub const PARTITION_OWNERS: &str = "list the owners of the partitions";
/// [`Upkeep::blocked`](super::Upkeep::blocked).
pub const BLOCKED: &str = "list blocked keys";
/// [`Upkeep::head_of`](super::Upkeep::head_of).
pub const HEAD_OF: &str = "look for the event that another waits behind";
/// [`Upkeep::records`](super::Upkeep::records).
pub const RECORDS: &str = "read an event";
/// [`Upkeep::states`](super::Upkeep::states).
pub const STATES: &str = "read the states of events";
/// [`Upkeep::pending`](super::Upkeep::pending).
pub const PENDING: &str = "list pending events";
/// [`Upkeep::count_pending`](super::Upkeep::count_pending).
pub const COUNT_PENDING: &str = "count pending events";
/// [`Upkeep::retry_now`](super::Upkeep::retry_now).
pub const RETRY_NOW: &str = "retry pending events now";
/// [`Upkeep::cancel`](super::Upkeep::cancel).
pub const CANCEL: &str = "cancel pending events";
/// [`Upkeep::pause`](super::Upkeep::pause).
pub const PAUSE: &str = "pause an event type or a handler";
/// [`Upkeep::resume`](super::Upkeep::resume).
pub const RESUME: &str = "resume an event type or a handler";
/// [`Upkeep::pauses`](super::Upkeep::pauses).
pub const PAUSES: &str = "list what is paused";
/// [`Upkeep::count_paused`](super::Upkeep::count_paused).
pub const COUNT_PAUSED: &str = "count paused events";
/// [`Upkeep::dead`](super::Upkeep::dead).
pub const DEAD: &str = "list DEAD events";
/// [`Upkeep::count_dead`](super::Upkeep::count_dead).
pub const COUNT_DEAD: &str = "count DEAD events";
/// [`Upkeep::replay`](super::Upkeep::replay).
pub const REPLAY: &str = "replay DEAD events";
/// [`Upkeep::discard`](super::Upkeep::discard).
pub const DISCARD: &str = "discard DEAD events";
/// [`Upkeep::purge`](super::Upkeep::purge).
pub const PURGE: &str = "purge events";
/// [`Upkeep::inbox_consumers`](super::Upkeep::inbox_consumers).
pub const INBOX_CONSUMERS: &str = "list the consumers of the inbox";
/// [`Upkeep::count_inbox`](super::Upkeep::count_inbox).
pub const COUNT_INBOX: &str = "count the messages of the inbox";
/// [`Upkeep::purge_inbox`](super::Upkeep::purge_inbox).
pub const PURGE_INBOX: &str = "purge the inbox";
/// [`Upkeep::recent`](super::Upkeep::recent).
pub const RECENT: &str = "list events";
/// [`Upkeep::record_action`](super::Upkeep::record_action).
pub const RECORD_ACTION: &str = "record an action";
/// [`Upkeep::end_action`](super::Upkeep::end_action).
pub const END_ACTION: &str = "record the end of an action";
/// [`Upkeep::actions`](super::Upkeep::actions).
pub const ACTIONS: &str = "list the actions";
/// [`Upkeep::purge_actions`](super::Upkeep::purge_actions).
pub const PURGE_ACTIONS: &str = "purge the audit table";
/// [`Examine::examine`](super::Examine::examine).
pub const EXAMINE: &str = "examine the database";
