//! Takes the program out of the README, so that what is compiled here is what newcomers copy.
#![allow(clippy::print_stdout, reason = "that is how a build script speaks to cargo")]

use std::error::Error;
use std::path::Path;
use std::{env, fs};

const README: &str = "../../README.md";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={README}");
    let text = fs::read_to_string(README)?;
    let (_, program) = text.split_once("\n```rust\n").ok_or("the README has no block of Rust")?;
    let (program, _) = program.split_once("\n```\n").ok_or("its block of Rust has no end")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("program.rs"), program)?;
    Ok(())
}
