//! Tests that the curl lines of the README work on both databases.

use std::process::Command;

use crate::databases::Database;
use crate::server::start;

/// Each curl line with the response below it. `…` stands for parts that depend on the time.
fn lines() -> Vec<(String, String)> {
    let readme = include_str!("../../README.md").replace("\\\n", " ");
    let mut lines = readme.lines();
    let mut pairs = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("curl ") {
            let answer = lines.next().and_then(|answer| answer.strip_prefix("# "));
            let answer = answer.unwrap_or_else(|| panic!("no answer below {line}"));
            pairs.push((line.to_owned(), answer.to_owned()));
        }
    }
    pairs
}

#[test]
fn the_lines_of_the_readme_print_what_stands_below_them() {
    if !judged::is_installed("curl") {
        return;
    }
    let lines = lines();
    assert!(lines.len() >= 6, "the README lost its lines");
    for database in Database::both() {
        let flags = ["--seed-products", "10000", "--seed-line-items", "100000"];
        let server = start(&database, &flags);
        for (line, answer) in &lines {
            let line = line.replace("localhost:4010", &server.address);
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let mut rest = printed.as_str();
            for part in answer.split('…') {
                let at = rest.find(part);
                let at = at.unwrap_or_else(|| panic!("{line} printed {printed}, not {answer}"));
                rest = &rest[at + part.len()..];
            }
        }
    }
}
