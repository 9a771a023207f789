//! The suite and the ports cannot drift apart.

use std::collections::BTreeSet;

use pillarbox_testkit::conformance::BEHAVIORS;

const PORTS: [&str; 3] = [
    include_str!("../../pillarbox-core/src/store.rs"),
    include_str!("../../pillarbox-core/src/store/upkeep.rs"),
    include_str!("../../pillarbox-core/src/store/wakeup.rs"),
];

#[test]
fn every_behavior_of_the_ports_is_tested_and_no_other() {
    let bullet = |line: &'static str| line.trim().strip_prefix("/// - `")?.strip_suffix('`');
    let promised: Vec<BTreeSet<&str>> = PORTS.iter().map(|port| port.lines().filter_map(bullet).collect()).collect();
    let recognised = promised.iter().map(BTreeSet::len).collect::<Vec<_>>();
    assert!(
        recognised.iter().zip([60, 14, 1]).all(|(found, least)| *found >= least),
        "the ports' bullets were not recognised: {recognised:?}"
    );
    let promised: BTreeSet<&str> = promised.into_iter().flatten().collect();
    let tested: BTreeSet<&str> = BEHAVIORS.iter().copied().collect();
    assert_eq!(tested.len(), BEHAVIORS.len(), "a behaviour is registered twice");
    let untested: Vec<_> = promised.difference(&tested).collect();
    let unpromised: Vec<_> = tested.difference(&promised).collect();
    assert!(untested.is_empty() && unpromised.is_empty(), "untested: {untested:?}, unpromised: {unpromised:?}");
}
