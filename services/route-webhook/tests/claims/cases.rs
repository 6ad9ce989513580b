//! Runs the cases of the contract (`../cases`) against the services in Rust and in Python.
//!
//! A case starts from one of the two bodies next to the folders and changes it. It lists the expected
//! response as a whole (`body`), in parts (`members`, `absent`), or as text. Objects are equal only if their
//! members are in the same order. Every JSON response must be written without spaces.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use test_client::{Process, Response};

use crate::ordered::Ordered;
use crate::python;
use crate::server::start;

/// Placeholder in cases for the unpredictable current time.
const NOW: &str = "$now";

struct Case {
    name: String,
    fields: Ordered,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn read(path: &Path) -> Ordered {
    Ordered::read(&fs::read_to_string(path).unwrap())
}

/// All cases in the subfolders, sorted by name.
fn cases() -> Vec<Case> {
    let mut cases = BTreeMap::new();
    for group in fs::read_dir(folder()).unwrap() {
        let group = group.unwrap().path();
        let files = group.is_dir().then(|| fs::read_dir(&group).unwrap());
        for file in files.into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(folder()).unwrap().display().to_string();
            cases.insert(name, read(&path));
        }
    }
    let cases = cases.into_iter();
    cases.map(|(name, fields)| Case { name, fields }).collect()
}

impl Case {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Ordered::text)
    }

    fn format(&self) -> &str {
        self.field("format").unwrap_or("today")
    }

    fn body(&self) -> Vec<u8> {
        if let Some(text) = self.field("text") {
            return text.as_bytes().to_vec();
        }
        if let Some(digits) = self.field("bytes") {
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            return (0..digits.len()).step_by(2).map(byte).collect();
        }
        let start = self.field("start").unwrap();
        let mut body = read(&folder().join(format!("{start}.json")));
        for (pointer, value) in self.fields.get("set").map_or(&[][..], Ordered::members) {
            body.change(pointer, Some(value.clone()));
        }
        for pointer in self.fields.get("remove").map_or(&[][..], Ordered::items) {
            body.change(pointer.text().unwrap(), None);
        }
        body.to_string().into_bytes()
    }

    /// Sends the request of the case. Returns the mistakes in the response, or an empty list.
    fn ask(&self, server: &Process) -> Vec<String> {
        let headers = self.fields.get("headers");
        let headers = headers.map_or(&[][..], Ordered::members).iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.text().unwrap()))
            .collect();
        let response = server.client().request(
            self.field("method").unwrap_or("POST"),
            self.field("path").unwrap_or("/webhook/sync"),
            &headers,
            self.body(),
        );
        let mut wrong = Vec::new();
        for (key, expected) in self.fields.get("answer").unwrap().members() {
            let is_right = matches(key, expected, &response);
            if !is_right {
                wrong.push(format!("{}: {key} is not {expected}", self.name));
            }
        }
        let is_json = response.header("content-type") == Some("application/json");
        if is_json && !response.body.is_empty() {
            let body = Ordered::read(&response.body);
            if body.to_string() != response.body {
                wrong.push(format!("{}: spaces or escapes", self.name));
            }
        }
        if !wrong.is_empty() {
            wrong.push(format!("  {response:?}"));
        }
        wrong
    }
}

/// True if the response matches one line of a case.
fn matches(key: &str, expected: &Ordered, response: &Response) -> bool {
    let body = || Ordered::read(&response.body);
    match key {
        "status" => expected.to_string() == response.status.to_string(),
        "text" => expected.text() == Some(&response.body),
        "text-starts" => response.body.starts_with(expected.text().unwrap()),
        "headers" => expected.members().iter().all(|(name, value)| {
            let expected = value.text().unwrap().to_ascii_lowercase();
            let found = response.header(name);
            // Methods may be in any order.
            found.is_some_and(|found| sorted(&found.to_ascii_lowercase()) == sorted(&expected))
        }),
        // A URL with the host, or only its path.
        "location" => {
            let location = response.header("location").unwrap_or_default();
            let path = location.split_once("://").map_or(location, |(_, rest)| {
                rest.find('/').map_or("", |slash| &rest[slash..])
            });
            expected.text() == Some(path)
        }
        "body" => is_same(&body(), expected),
        "members" => expected.members().iter().all(|(pointer, expected)| {
            body()
                .at(pointer)
                .is_some_and(|found| is_same(found, expected))
        }),
        "absent" => expected
            .items()
            .iter()
            .all(|pointer| body().at(pointer.text().unwrap()).is_none()),
        other => panic!("a case cannot say `{other}` of an answer"),
    }
}

fn sorted(list: &str) -> Vec<&str> {
    let mut items: Vec<&str> = list.split(", ").collect();
    items.sort_unstable();
    items
}

/// True if both are equal. `$now` in a case matches any time in the form of Kubernetes.
fn is_same(found: &Ordered, expected: &Ordered) -> bool {
    match (found, expected) {
        (Ordered::Text(time), Ordered::Text(expected)) if expected == NOW => is_time(time),
        (Ordered::List(found), Ordered::List(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| is_same(a, b))
        }
        (Ordered::Object(found), Ordered::Object(expected)) => {
            let is_same_member =
                |((name, a), (expected, b)): (&(_, _), &(_, _))| name == expected && is_same(a, b);
            found.len() == expected.len() && found.iter().zip(expected).all(is_same_member)
        }
        _ => found == expected,
    }
}

fn is_time(text: &str) -> bool {
    let pattern = "0000-00-00T00:00:00Z";
    text.len() == pattern.len()
        && text.chars().zip(pattern.chars()).all(|(letter, pattern)| {
            if pattern == '0' {
                letter.is_ascii_digit()
            } else {
                letter == pattern
            }
        })
}

fn check(start: impl Fn(&str) -> Process) {
    let cases = cases();
    assert!(cases.len() > 100, "cases were lost: {}", cases.len());
    let mut wrong = Vec::new();
    for format in ["today", "seed"] {
        let server = start(format);
        let of_format = cases.iter().filter(|case| case.format() == format);
        wrong.extend(of_format.flat_map(|case| case.ask(&server)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn rust_answers_as_the_cases_say() {
    check(|format| start(&["--compat", format]));
}

#[test]
fn python_answers_as_the_cases_say() {
    if let Err(missing) = python::build() {
        judged::not_run(missing);
        return;
    }
    judged::ran();
    check(python::start);
}

#[test]
fn a_case_can_fail() {
    let answer = |body: &str| Response::new(200, &[("content-type", "text/plain")], body);
    let expected = Ordered::read(r#"{"a": "$now", "b": [1]}"#);
    for (body, is_right) in [
        (r#"{"a":"2026-01-02T03:04:05Z","b":[1]}"#, true),
        (r#"{"b":[1],"a":"2026-01-02T03:04:05Z"}"#, false),
        (r#"{"a":"2026-01-02T03:04:05Z","b":[1,2]}"#, false),
        (r#"{"a":"now","b":[1]}"#, false),
    ] {
        assert_eq!(
            matches("body", &expected, &answer(body)),
            is_right,
            "{body}"
        );
    }
    let absent = Ordered::read(r#"["/b"]"#);
    assert!(!matches("absent", &absent, &answer(r#"{"b":null}"#)));
    assert!(matches("absent", &absent, &answer("{}")));
    assert!(!matches("text", &Ordered::read("\"x\""), &answer("xy")));
}
