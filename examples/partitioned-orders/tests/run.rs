//! The program as its users meet it.

#![allow(clippy::expect_used, reason = "a test's helpers fail as the test does")]

use std::process::Command;

#[test]
fn each_order_is_followed_in_its_order_by_one_of_two_nodes() {
    let output = Command::new(env!("CARGO_BIN_EXE_partitioned-orders")).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), 20, "{text}");
    for line in text.lines() {
        let (order, told) = line.split_once(": ").expect("an order");
        let node = told.strip_prefix("placed, paid, shipped (told by ").expect("each stage once, and in order");
        assert!(["first)", "second)"].contains(&node), "{order}: {told}");
    }
    for node in ["first", "second"] {
        assert!(text.contains(node), "both have delivered: {text}");
    }
}
