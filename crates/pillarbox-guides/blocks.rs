//! The blocks of code in the repository's pages. The build script, the tests, and those of the command line read them alike.
#![allow(dead_code, reason = "each of them needs a part")]

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A block of code between fences.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The page, from the root of the repository.
    pub(crate) page: String,
    /// The line of its opening fence, from 1.
    pub(crate) line: usize,
    /// The words behind the fence: `rust`, `sql postgres`, or nothing.
    pub(crate) language: String,
    /// The text, without the indentation of the fence.
    pub(crate) text: String,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages, in the order of their names: every Markdown file but those of builds and of other projects.
pub(crate) fn pages() -> io::Result<Vec<String>> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                pages.push(path.to_string_lossy().into_owned());
            }
        }
    }
    pages.sort_unstable();
    Ok(pages)
}

/// The blocks of a page.
pub(crate) fn blocks(page: &str) -> io::Result<Vec<Block>> {
    let text = fs::read_to_string(root().join(page))?;
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in text.lines().enumerate() {
        let inner = line.trim_start();
        let fence = inner.starts_with("```");
        open = match open {
            None if fence => {
                let language = inner.trim_start_matches('`').trim().to_owned();
                let indentation = line.len() - inner.len();
                Some((indentation, Block { page: page.to_owned(), line: number + 1, language, text: String::new() }))
            }
            None => None,
            Some((_, block)) if fence => {
                blocks.push(block);
                None
            }
            Some((indentation, mut block)) => {
                block.text.push_str(line.get(indentation..).unwrap_or(inner));
                block.text.push('\n');
                Some((indentation, block))
            }
        };
    }
    if let Some((_, block)) = open {
        return Err(io::Error::other(format!("{page}:{}: this block does not end", block.line)));
    }
    Ok(blocks)
}

/// A line of a harness in whose place a block of a page is compiled: `//~ docs/page.md ~ how a line of the block begins`. With
/// `each` before the page, each line of the block is a statement of its own.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) page: String,
    pub(crate) beginning: String,
    pub(crate) is_each: bool,
}

impl Place {
    /// The place that a line of a harness is, if it is one.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let (page, beginning) = line.trim().strip_prefix("//~ ")?.split_once(" ~ ")?;
        let is_each = page.starts_with("each ");
        Some(Self { page: page.trim_start_matches("each ").to_owned(), beginning: beginning.to_owned(), is_each })
    }

    /// The one block that is compiled here: of Rust, with this very line, or with one that begins so.
    pub(crate) fn block(&self) -> Result<Block, String> {
        let mut blocks = blocks(&self.page).map_err(|error| format!("{}: {error}", self.page))?;
        blocks.retain(|block| matches!(block.language.as_str(), "rust" | "rs"));
        let has = |exactly: bool| {
            let is_it = |line: &str| line == self.beginning || !exactly && line.starts_with(&self.beginning);
            blocks.iter().filter(move |block| block.text.lines().any(|line| is_it(line.trim()))).collect::<Vec<_>>()
        };
        match (&has(true)[..], &has(false)[..]) {
            ([block], _) | (_, [block]) => Ok((*block).clone()),
            (_, []) => Err(format!("{}: no block of Rust has a line that begins with `{}`", self.page, self.beginning)),
            _ => Err(format!("{}: two blocks have a line that begins with `{}`", self.page, self.beginning)),
        }
    }
}

/// The harnesses: the name of each, and its text.
pub(crate) fn harnesses() -> io::Result<Vec<(String, String)>> {
    let mut harnesses = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("harness"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        harnesses.push((name, fs::read_to_string(&path)?));
    }
    harnesses.sort_unstable();
    Ok(harnesses)
}
