//! Parts of a call in the words of a lab: its name, its line, its statuses, and its user.

use k6_script::{AcceptedStatus, ScriptCall, TextPart};

use super::line_of;

/// Maximum number of single statuses in `expect`.
const STATUSES_MAX: usize = 12;

/// Method and URL, as the list of omissions shows a call.
pub(super) fn name(call: &ScriptCall) -> String {
    let url = call.url.iter().map(|part| match part {
        TextPart::Plain(text) => text.clone(),
        TextPart::Environment(name) => format!("${{__ENV.{name}}}"),
        _ => "${…}".to_owned(),
    });
    let file = call.place.as_ref().filter(|place| !place.is_entry);
    let file = file.map(|place| format!("{place} ")).unwrap_or_default();
    format!(
        "{file}{} {}",
        call.method,
        without_user(&url.collect::<String>())
    )
}

/// The URL without user and password.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The line of a call in the script itself.
pub(super) fn line(call: &ScriptCall) -> Option<usize> {
    call.place
        .as_ref()
        .filter(|place| place.is_entry)
        .and_then(line_of)
}

/// The statuses as in labs. Empty for every status from 200 to 299.
pub(super) fn statuses(accepted: Option<&AcceptedStatus>) -> Result<Vec<String>, String> {
    let list = match accepted {
        None => return Ok(Vec::new()),
        Some(AcceptedStatus::Any) => {
            return Err("the script accepts any status. The lab expects 200 to 299".to_owned());
        }
        Some(AcceptedStatus::These(list)) => list,
    };
    let mut found = Vec::new();
    for class in 2..=5 {
        let of_class: Vec<u16> = list
            .iter()
            .copied()
            .filter(|status| status / 100 == class)
            .collect();
        match of_class.len() {
            100 => found.push(format!("{class}xx")),
            _ => found.extend(of_class.iter().map(u16::to_string)),
        }
    }
    if found.len() > STATUSES_MAX {
        return Err("the script accepts many statuses. The lab expects 200 to 299".to_owned());
    }
    if found == ["2xx"] {
        found.clear();
    }
    Ok(found)
}

/// A text without percent-encoding.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let pair = bytes
            .get(index + 1..index + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match pair
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .filter(|_| *byte == b'%')
        {
            Some(value) => {
                decoded.push(value);
                index += 3;
            }
            None => {
                decoded.push(*byte);
                index += 1;
            }
        }
    }
    decoded
}
