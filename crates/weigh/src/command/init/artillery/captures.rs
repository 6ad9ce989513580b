//! Values that a request captures from its answer.

use serde_json::Value;

use crate::command::init::placeholders::{json_pointer, selecting, word};
use crate::command::init::requests::{Captured, CapturedFrom};
use crate::command::init::values::plain;

/// The captured values of a step, by their names in the test.
#[derive(Debug, Default)]
pub(super) struct Captures {
    pub(super) captured: Vec<(String, Captured)>,
    /// Values that a lab cannot capture, with the reason.
    pub(super) unknown: Vec<(String, String)>,
}

/// Reads `capture` of a step.
pub(super) fn captures(written: Option<&Value>) -> Captures {
    let mut captures = Captures::default();
    let specs = match written {
        Some(Value::Array(specs)) => specs.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => &[],
    };
    for spec in specs {
        let Some(name) = spec.get("as").map(plain).filter(|name| !name.is_empty()) else {
            continue;
        };
        match capture(spec, &name) {
            Ok(found) => captures.captured.push((name, found)),
            Err(why) => captures.unknown.push((name, why)),
        }
    }
    captures
}

fn capture(spec: &Value, name: &str) -> Result<Captured, String> {
    let text = |key: &str| spec.get(key).map(plain).filter(|it| !it.is_empty());
    let (from, regex) = if let Some(path) = text("json") {
        let pointer = json_pointer(&path).ok_or_else(|| {
            format!("`{name}` is captured from `{path}`, which is no JSON pointer")
        })?;
        (CapturedFrom::Json(pointer), None)
    } else if let Some(header) = text("header") {
        (CapturedFrom::Header(header), None)
    } else if let Some(pattern) = text("regexp") {
        let group = text("group").and_then(|it| it.parse().ok()).unwrap_or(0);
        let flags = text("flags").unwrap_or_default();
        let flags: String = flags.chars().filter(|it| "ims".contains(*it)).collect();
        let pattern = match flags.as_str() {
            "" => pattern,
            flags => format!("(?{flags}){pattern}"),
        };
        let regex = selecting(&pattern, group)
            .ok_or_else(|| format!("`{name}` is captured by a pattern that labs cannot read"))?;
        (CapturedFrom::Body, Some(regex))
    } else {
        return Err(format!("`{name}` is captured from HTML or XML"));
    };
    Ok(Captured {
        name: word(name),
        from,
        regex,
    })
}

/// The expected statuses of the expect plugin, and the names of its other expectations.
pub(super) fn expectations(written: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let (mut statuses, mut others) = (Vec::new(), Vec::new());
    let specs = match written {
        Some(Value::Array(specs)) => specs.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => &[],
    };
    for (key, value) in specs.iter().filter_map(Value::as_object).flatten() {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            single => std::slice::from_ref(single),
        };
        let is_status =
            |text: &String| text.parse::<u16>().is_ok_and(|it| (100..600).contains(&it));
        match key.as_str() {
            "statusCode" => {
                let texts: Vec<String> = values.iter().map(plain).collect();
                match texts.iter().all(is_status) {
                    true => statuses.extend(texts),
                    false => others.push(key.clone()),
                }
            }
            _ => others.push(key.clone()),
        }
    }
    // A lab requires success without a status.
    if statuses.len() == 1 && statuses[0] == "200" {
        statuses.clear();
    }
    (statuses, others)
}
