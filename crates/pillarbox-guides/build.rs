//! Puts the Rust of the guides into the harnesses, so that what people copy is what is compiled.
#![allow(clippy::print_stdout, reason = "that is how a build script speaks to cargo")]

mod blocks;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use blocks::Place;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=harness");
    println!("cargo::rerun-if-changed=blocks.rs");
    let mut modules = String::new();
    for (name, harness) in blocks::harnesses()? {
        let mut code = String::new();
        for line in harness.lines() {
            match Place::of(line) {
                Some(place) => {
                    println!("cargo::rerun-if-changed={}", blocks::root().join(&place.page).display());
                    code.push_str(&filled(&place.block()?.text, place.is_each));
                }
                None => code.push_str(line),
            }
            code.push('\n');
        }
        fs::write(Path::new(&folder).join(format!("{name}.rs")), code)?;
        writeln!(modules, "mod {name} {{ include!(concat!(env!(\"OUT_DIR\"), \"/{name}.rs\")); }}")?;
    }
    fs::write(Path::new(&folder).join("harnesses.rs"), modules)?;
    Ok(())
}

/// The text with code where the guide leaves something out: `…` as a body, as the rest of a struct, or as the answer of an arm.
fn filled(text: &str, is_each: bool) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("… }") {
        let open = before.rfind('{').unwrap_or_default();
        let name = before[..open].trim_end();
        let word = name.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        // The name of a struct stands before its braces. Before a body stands the type that it returns, which ends with `>`.
        let is_struct = word.starts_with(char::is_uppercase);
        code.push_str(before);
        code.push_str(if is_struct { "..unimplemented!() }" } else { "unimplemented!() }" });
        rest = after;
    }
    code.push_str(rest);
    let code = code.replace("=> …,", "=> unimplemented!(),");
    if !is_each {
        return code;
    }
    code.lines().map(|line| format!("let _ = {line}\n;\n")).collect()
}
