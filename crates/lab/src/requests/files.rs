//! Files for requests, and the bodies that are made from them.

use std::path::{Path, PathBuf};

use yaml_with_places::{Finding, Place, quote};

use crate::reading::{Reading, tidy};

/// Returns the files for a path or a pattern. A named file must exist. A pattern must match at least one
/// file.
pub(super) fn named(pattern: &str, place: Place, reading: &mut Reading<'_>) -> Vec<PathBuf> {
    if pattern.contains('*') {
        glob(pattern, place, reading)
    } else {
        vec![reading.resolve(pattern, place)]
    }
}

/// Returns the files with names that match a pattern, in the order of their names.
fn glob(pattern: &str, place: Place, reading: &mut Reading<'_>) -> Vec<PathBuf> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    if folder.contains('*') {
        reading.findings.add(
            Finding::new(place, format!("`{pattern}` has a `*` in a folder name"))
                .help("write `*` only in the name of the file: `queries/*.json`"),
        );
        return Vec::new();
    }
    let folder = reading.resolve(folder, place);
    let listed = match reading.files.list(&folder) {
        Ok(listed) => listed,
        Err(why) => {
            let message = format!("cannot list `{}`: {why}", folder.display());
            reading.findings.add(
                Finding::new(place, message)
                    .help("paths are relative to the file that contains them"),
            );
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = listed
        .iter()
        .filter(|path| {
            path.file_name()
                .is_some_and(|it| matches(name, &it.to_string_lossy()))
        })
        .map(|path| tidy(path))
        .collect();
    // The file system lists a folder in any order, and the order of requests is part of the experiment.
    paths.sort();
    if paths.is_empty() {
        let path = folder.join(name);
        reading.findings.add(
            Finding::new(place, format!("no file matches `{}`", path.display()))
                .help("paths are relative to the file that contains them"),
        );
    }
    paths
}

/// True if a file name matches a pattern. `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let (first, last) = (pieces.next().unwrap_or_default(), pieces.next_back());
    let Some(last) = last else {
        return pattern == name;
    };
    // A leading dot marks hidden files.
    let middle = name
        .strip_prefix(first)
        .filter(|_| !name.starts_with('.') || first.starts_with('.'))
        .and_then(|rest| rest.strip_suffix(last));
    let Some(mut rest) = middle else {
        return false;
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

/// A body, and its media type unless a header sets it.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) is_json: bool,
}

/// Reports the place in the file at which it stops being JSON.
pub(super) fn check_json(
    path: &Path,
    text: &str,
    asked_for: Place,
    reading: &mut Reading<'_>,
) -> Option<()> {
    // A place may stand for a number: `{"id": {{id}}}`.
    let plain = without_places(text);
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&plain) else {
        return Some(());
    };
    // The parser counts lines and columns from 1, but places of mistakes are in bytes.
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let column = error.column().saturating_sub(1);
    let message = error.to_string();
    let why = message.split(" at line ").next().unwrap_or_default();
    let source = reading.source(path, text.to_owned());
    // A file that ends too early is wrong after its last byte, which has no place.
    let start = (line_start + column).min(text.len().saturating_sub(1));
    let place = Place {
        start,
        end: start + 1,
        ..source
    };
    reading.findings.add(
        Finding::new(place, format!("this is not JSON: {why}"))
            .related(asked_for, "this names the file"),
    );
    None
}

/// Returns a text with a number of equal length instead of each place.
fn without_places(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((word, after)) = after.split_once("}}").filter(|(word, _)| {
            let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.: ".contains(c);
            !word.is_empty() && word.chars().all(is_of_word)
        }) else {
            break;
        };
        plain.push_str(before);
        // As long as the place with its braces, so that columns match the file.
        plain.push_str(&"1".repeat(word.len() + 4));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

pub(super) fn graphql_body(query: &str, variables: Option<&str>) -> Vec<u8> {
    let query = quote(query);
    match variables {
        Some(variables) => format!(r#"{{"query":{query},"variables":{variables}}}"#),
        None => format!(r#"{{"query":{query}}}"#),
    }
    .into_bytes()
}

pub(crate) fn bytes(path: &Path, place: Place, reading: &mut Reading<'_>) -> Option<Vec<u8>> {
    reading
        .files
        .read(path)
        .map_err(|why| {
            reading.findings.add(
                Finding::new(place, format!("cannot read `{}`: {why}", path.display()))
                    .help("paths are relative to the file that contains them"),
            );
        })
        .ok()
}
