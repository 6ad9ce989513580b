//! The page about missing parts names a test for each row.

use std::fs;

use super::{SYSTEMS, tracked};
use crate::repository::root;

/// The names in the last column of the tables.
fn tests_of(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let last = rows.filter_map(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next());
    last.filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'))
        .collect()
}

#[test]
fn every_row_about_a_missing_part_has_a_test() {
    let page = fs::read_to_string(root().join("docs/gateway/fail-closed.md")).expect("the page");
    let names = tests_of(&page);
    let rows = page.lines().filter(|line| line.starts_with("| "));
    // Each table has one row of headings, and rows of hyphens begin without a space.
    assert_eq!(names.len(), rows.count() - 3, "each row names its test");
    let sources: Vec<String> = SYSTEMS
        .into_iter()
        .flat_map(tracked)
        .filter(|path| path.ends_with(".rs"))
        .map(|path| fs::read_to_string(root().join(path)).expect("a source"))
        .collect();
    for name in names {
        let head = format!("fn {name}() {{");
        assert!(
            sources.iter().any(|source| source.contains(&head)),
            "expected a test `{name}` in {SYSTEMS:?}, found none"
        );
    }
}
