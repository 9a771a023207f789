//! The suites and the ports cannot drift apart.

use std::collections::BTreeSet;

use pillarbox_testkit::{conformance, publishers};

const STORES: [(&str, usize); 3] = [
    (include_str!("../../../pillarbox-core/src/store.rs"), 60),
    (include_str!("../../../pillarbox-core/src/store/admin.rs"), 14),
    (include_str!("../../../pillarbox-core/src/store/wakeup.rs"), 1),
];
const PUBLISHERS: [(&str, usize); 1] = [(include_str!("../../../pillarbox-core/src/publisher.rs"), 16)];

#[test]
fn every_behavior_of_the_ports_of_stores_is_tested_and_no_other() {
    assert_same(&STORES, conformance::BEHAVIORS);
}

#[test]
fn every_behavior_of_the_port_of_publishers_is_tested_and_no_other() {
    assert_same(&PUBLISHERS, publishers::BEHAVIORS);
}

/// Each port has its source and how many bullets it has at least.
fn assert_same(ports: &[(&'static str, usize)], behaviors: &[&'static str]) {
    let bullet = |line: &'static str| line.trim().strip_prefix("/// - `")?.strip_suffix('`');
    let mut promised = BTreeSet::new();
    for (port, least) in ports {
        let own: BTreeSet<&str> = port.lines().filter_map(bullet).collect();
        assert!(own.len() >= *least, "a port's bullets were not recognised: {} of {least}", own.len());
        promised.extend(own);
    }
    let tested: BTreeSet<&str> = behaviors.iter().copied().collect();
    assert_eq!(tested.len(), behaviors.len(), "a behaviour is registered twice");
    let untested: Vec<_> = promised.difference(&tested).collect();
    let unpromised: Vec<_> = tested.difference(&promised).collect();
    assert!(untested.is_empty() && unpromised.is_empty(), "untested: {untested:?}, unpromised: {unpromised:?}");
}
