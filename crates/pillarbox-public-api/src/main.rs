//! Lists the public API of crates, one file for each. `scripts/public-api` runs it.
//!
//! The arguments are the folder of the lists, and the files that rustdoc has written as JSON, of which each is named by its crate.

use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use public_api::{Builder, PublicApi};

/// A trait that the compiler derives beside `PartialEq`, which nobody can use.
const NO_TRAIT: &str = "impl core::marker::StructuralPartialEq for";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let lists = arguments.next().ok_or("name the folder of the lists, and the files of rustdoc")?;
    for json in arguments {
        let name = json.file_stem().ok_or("name a file")?;
        let list = list(&json).map_err(|error| format!("{}: {error}", json.display()))?;
        fs::write(lists.join(name).with_extension("txt"), list.join("\n") + "\n")?;
    }
    Ok(())
}

/// The items of a crate, a line each. Of what is derived the trait is listed, without its methods.
fn list(json: &Path) -> Result<Vec<String>, public_api::Error> {
    let read = |derived: bool| -> Result<PublicApi, public_api::Error> {
        Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(!derived)
            .build()
    };
    let written: HashSet<String> = read(false)?.items().map(ToString::to_string).collect();
    let is_listed = |item: &String| written.contains(item) || item.starts_with("impl ") && !item.starts_with(NO_TRAIT);
    Ok(read(true)?.items().map(ToString::to_string).filter(is_listed).collect())
}
