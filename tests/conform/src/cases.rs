//! The cases, and the check of a single case.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::process::Running;
use crate::runners::home;

/// A request and the response that every language must give to it.
#[derive(Debug)]
pub struct Case {
    /// Name of the file below `cases/`, without `.json`.
    pub name: String,
    /// The defect that a failure of this case would reveal.
    pub why: String,
    method: String,
    path: String,
    body: String,
    status: u16,
    allow: Option<String>,
    reply: Option<Value>,
}

/// Reads all cases, sorted by name.
pub(crate) fn all() -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in fs::read_dir(home().join("cases"))? {
        for file in fs::read_dir(folder?.path())? {
            let path = file?.path();
            let case = read(&path).with_context(|| path.display().to_string())?;
            cases.push(case);
        }
    }
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(cases)
}

fn read(path: &Path) -> anyhow::Result<Case> {
    const KEYS: [&str; 8] = [
        "why", "method", "path", "request", "text", "status", "allow", "reply",
    ];
    let case: Value = serde_json::from_slice(&fs::read(path)?)?;
    let keys = case.as_object().context("a case is an object")?.keys();
    for key in keys {
        ensure!(KEYS.contains(&key.as_str()), "unknown key `{key}`");
    }
    let text = |key: &str| case.get(key).and_then(Value::as_str).map(str::to_owned);
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.context("a folder")?.to_string_lossy();
    let stem = path.file_stem().context("a name")?.to_string_lossy();
    let status = case.get("status").map_or(Some(200), Value::as_u64);
    let body = case.get("request").map(Value::to_string);
    Ok(Case {
        name: format!("{folder}/{stem}"),
        why: text("why").context("no `why`")?,
        method: text("method").unwrap_or_else(|| "POST".to_owned()),
        path: text("path").unwrap_or_else(|| format!("/{folder}")),
        body: body.or_else(|| text("text")).unwrap_or_default(),
        status: u16::try_from(status.context("`status` is a number")?)?,
        allow: text("allow"),
        reply: case.get("reply").cloned(),
    })
}

impl Case {
    /// Sends the request twice and checks that both responses are as expected, with new ids each time.
    ///
    /// # Errors
    ///
    /// The expected and the found response.
    pub fn holds(&self, running: &Running) -> anyhow::Result<()> {
        let mut ids = Vec::new();
        for _ in 0..2 {
            self.holds_once(running, &mut ids)?;
        }
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        ensure!(
            ids.len() == all,
            "{} ids of {all} came again",
            all - ids.len()
        );
        Ok(())
    }

    fn holds_once(&self, running: &Running, ids: &mut Vec<String>) -> anyhow::Result<()> {
        let mut connection = running.connect()?;
        let answer = connection.ask(&self.method, &self.path, self.body.as_bytes())?;
        let said = String::from_utf8_lossy(&answer.body);
        ensure!(
            answer.status == self.status,
            "expected status {}, found {}: {said}",
            self.status,
            answer.status
        );
        if let Some(allow) = &self.allow {
            let found = answer.header("allow").unwrap_or_default();
            let allows = found.split(',').any(|method| method.trim() == allow);
            ensure!(allows, "expected `allow: {allow}`, found `{found}`");
        }
        let Some(reply) = &self.reply else {
            return Ok(());
        };
        let kind = answer.header("content-type").unwrap_or_default();
        ensure!(
            kind.starts_with("application/json"),
            "expected JSON, found `{kind}`"
        );
        let found = serde_json::from_slice(&answer.body).context("the answer is no JSON")?;
        compare(reply, &found, "", ids)
    }
}

/// Compares `found` with `expected`, including the placeholders `$uuid` and `$any`.
fn compare(
    expected: &Value,
    found: &Value,
    place: &str,
    ids: &mut Vec<String>,
) -> anyhow::Result<()> {
    match (expected, found) {
        (Value::String(any), _) if any == "$any" => {}
        (Value::String(uuid), Value::String(id)) if uuid == "$uuid" => {
            ensure!(is_uuid(id), "{place}: `{id}` is no UUID of version 4");
            ids.push(id.to_ascii_lowercase());
        }
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                let Some(other) = found.get(key) else {
                    bail!("{place}/{key} is missing");
                };
                compare(value, other, &format!("{place}/{key}"), ids)?;
            }
            for key in found.keys() {
                ensure!(expected.contains_key(key), "{place}/{key} is too much");
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (value, other)) in expected.iter().zip(found).enumerate() {
                compare(value, other, &format!("{place}/{number}"), ids)?;
            }
        }
        _ => ensure!(
            expected == found,
            "{place}: expected {expected}, found {found}"
        ),
    }
    Ok(())
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        14 => *byte == b'4',
        19 => b"89abAB".contains(byte),
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() == 36 && bytes.iter().enumerate().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(expected: &Value, found: &Value) -> Option<String> {
        compare(expected, found, "", &mut Vec::new())
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn too_much_too_little_and_other_values_are_told_apart() {
        let expected = json!({"a": [1, "$any"]});
        assert_eq!(says(&expected, &json!({"a": [1, {}]})), None);
        let too_much = says(&expected, &json!({"a": [1, 2], "b": 1}));
        assert_eq!(too_much.as_deref(), Some("/b is too much"));
        assert_eq!(
            says(&expected, &json!({})).as_deref(),
            Some("/a is missing")
        );
        let other = says(&expected, &json!({"a": [2, 2]}));
        assert_eq!(other.as_deref(), Some("/a/0: expected 1, found 2"));
    }

    #[test]
    fn only_version_four_is_a_fresh_id() {
        assert!(is_uuid("4d0a8b1e-6d0f-4a6f-9c11-0f0d7c1b2a3e"));
        assert!(!is_uuid("4d0a8b1e-6d0f-1a6f-9c11-0f0d7c1b2a3e"));
        assert!(!is_uuid("00000000-0000-0000-0000-000000000000"));
        assert!(!is_uuid("4d0a8b1e6d0f4a6f9c110f0d7c1b2a3e"));
    }

    #[test]
    fn every_case_can_be_read_and_every_endpoint_has_some() {
        let cases = all().unwrap();
        for endpoint in ["client-awareness", "guid-response", "static-subgraph"] {
            let path = format!("/{endpoint}");
            assert!(cases.iter().filter(|case| case.path == path).count() > 10);
        }
    }
}
