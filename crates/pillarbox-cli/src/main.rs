//! The command line of Pillarbox.

fn main() {}
