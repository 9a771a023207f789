//! The suite and the port cannot drift apart.

use std::collections::BTreeSet;

use pillarbox_testkit::conformance::BEHAVIORS;

const PORT: &str = include_str!("../../pillarbox-core/src/store.rs");

#[test]
fn every_behavior_of_the_port_is_tested_and_no_other() {
    let bullet = |line: &'static str| line.trim().strip_prefix("/// - `")?.strip_suffix('`');
    let promised: BTreeSet<&str> = PORT.lines().filter_map(bullet).collect();
    let tested: BTreeSet<&str> = BEHAVIORS.iter().copied().collect();
    assert_eq!(tested.len(), BEHAVIORS.len(), "a behaviour is registered twice");
    assert!(promised.len() > 40, "the port's bullets were not recognised: {promised:?}");
    assert_eq!(promised, tested);
}
