//! docs/lessons.md names a test for each lesson; this is what keeps it from naming one that is not there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

#[test]
fn every_lesson_has_the_test_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lessons = fs::read_to_string(root.join("docs/lessons.md")).expect("docs/lessons.md is there");
    let rows = lessons.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    let lessons: Vec<&str> = rows.filter(|line| !line.contains("What happened")).collect();
    let mut source = String::new();
    for folder in ["crates", "stores", "adapters", "publishers"] {
        read(&root.join(folder), &mut source).expect("the sources can be read");
    }
    let mut missing = BTreeSet::new();
    for lesson in &lessons {
        let tests = lesson.rsplit('|').nth(1).expect("a row has cells");
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test is named: {lesson}");
        // A function of that name, or a row of the scenarios that says which function it is.
        let forms = |name: &str| [format!("fn {name}("), format!("fn {name}<"), format!("        {name} =")];
        missing.extend(names.into_iter().filter(|name| !forms(name).iter().any(|form| source.contains(form))));
    }
    assert!(
        lessons.len() > 25 && missing.is_empty(),
        "{} lessons; tests that do not exist: {missing:?}",
        lessons.len()
    );
}

fn read(folder: &Path, source: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, source)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            source.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
