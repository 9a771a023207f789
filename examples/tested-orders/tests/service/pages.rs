//! The code on the pages is the code of this service and of its tests.

const SOURCES: [&str; 6] = [
    include_str!("../../src/lib.rs"),
    include_str!("../../src/orders.rs"),
    include_str!("../../src/receipts.rs"),
    include_str!("../../src/operations.rs"),
    include_str!("main.rs"),
    include_str!("database.rs"),
];

/// The lines of a text that say something, without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// The blocks of a page that are marked as Rust of this service.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|block| lines(block.split("```").next().unwrap_or_default())).collect()
}

#[test]
fn every_block_on_the_pages_is_in_the_service() {
    let pages = [
        ("testing", include_str!("../../../../docs/testing.md"), 5),
        ("coming-from", include_str!("../../../../docs/coming-from.md"), 5),
    ];
    let sources = SOURCES.map(lines);
    for (name, page, least) in pages {
        let blocks = blocks(page);
        assert!(blocks.len() >= least, "docs/{name}.md has {} blocks", blocks.len());
        for block in blocks {
            let found = sources.iter().any(|source| source.windows(block.len()).any(|window| window == block));
            assert!(found, "docs/{name}.md: this is not in the service:\n{}", block.join("\n"));
        }
    }
}
