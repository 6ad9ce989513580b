//! The details of a status: `google.rpc.Status` in the trailer `grpc-status-details-bin`, or a list in an error of
//! Connect.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::schema::CallSchema;
use crate::wire::{Content, fields};

/// Binary metadata, with or without padding (gRPC over HTTP/2, "Requests").
const BINARY: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Details that are shown. A server may send many.
const SHOWN_MAX: usize = 8;

/// The details of a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// The number of the status, which should equal the trailer `grpc-status`.
    pub code: u64,
    /// The message.
    pub message: String,
    /// The details as text, with the names of their types.
    pub details: Vec<String>,
}

impl StatusDetails {
    /// Reads the value of the trailer. Details with a type in the schema are shown as JSON.
    ///
    /// # Errors
    /// If the value is not base64.
    pub fn read(value: &[u8], schema: Option<&CallSchema>) -> Result<StatusDetails, String> {
        let bytes = decoded(value)?;
        Ok(StatusDetails::of_status(&bytes, schema))
    }

    /// Reads the details in an error of Connect: the name of each type, and its message in base64.
    ///
    /// # Errors
    /// If a message is not base64.
    pub fn of_connect<'a>(
        details: impl Iterator<Item = (&'a str, &'a str)>,
        schema: Option<&CallSchema>,
    ) -> Result<StatusDetails, String> {
        let mut found = StatusDetails::default();
        for (name, value) in details.take(SHOWN_MAX) {
            let bytes = decoded(value.as_bytes())?;
            found.details.push(shown(name, &bytes, schema));
        }
        Ok(found)
    }

    fn of_status(bytes: &[u8], schema: Option<&CallSchema>) -> StatusDetails {
        let mut found = StatusDetails::default();
        for (number, content) in fields(bytes) {
            match (number, content) {
                (1, Content::Number(code)) => found.code = code,
                (2, Content::Bytes(text)) => {
                    found.message = String::from_utf8_lossy(text).into_owned();
                }
                (3, Content::Bytes(any)) if found.details.len() < SHOWN_MAX => {
                    found.details.push(detail(any, schema));
                }
                _ => {}
            }
        }
        found
    }
}

fn decoded(value: &[u8]) -> Result<Vec<u8>, String> {
    BINARY
        .decode(value)
        .map_err(|error| format!("expected base64, found other bytes ({error})"))
}

/// Returns a detail as text.
fn detail(any: &[u8], schema: Option<&CallSchema>) -> String {
    let (mut name, mut value) = (String::new(), &b""[..]);
    for (number, content) in fields(any) {
        match (number, content) {
            (1, Content::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (2, Content::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    shown(&name, value, schema)
}

/// Returns the message of a detail as text, after the name of its type.
fn shown(name: &str, value: &[u8], schema: Option<&CallSchema>) -> String {
    let short = name.rsplit('/').next().unwrap_or_default();
    match schema.and_then(|schema| schema.shown(short, value)) {
        Some(json) => format!("{short} {json}"),
        None => format!("{short} ({}){}", bytes_of(value.len()), texts(value)),
    }
}

fn bytes_of(count: usize) -> String {
    match count {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

/// Returns the readable texts of a message without a descriptor, at any depth of two.
fn texts(message: &[u8]) -> String {
    let mut found = Vec::new();
    for (_, content) in fields(message) {
        let Content::Bytes(bytes) = content else {
            continue;
        };
        if let Some(text) = readable(bytes) {
            found.push(format!("`{text}`"));
            continue;
        }
        let inner = fields(bytes).filter_map(|(_, content)| match content {
            Content::Bytes(bytes) => readable(bytes),
            Content::Number(_) | Content::Fixed => None,
        });
        found.extend(inner.map(|text| format!("`{text}`")));
    }
    found.truncate(SHOWN_MAX);
    match found.is_empty() {
        true => String::new(),
        false => format!(": {}", found.join(", ")),
    }
}

fn readable(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_shown = !text.is_empty() && !text.chars().any(char::is_control);
    is_shown.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::put;

    #[test]
    fn details_are_shown_with_their_types_and_texts() {
        let mut violation = Vec::new();
        put(1, b"name", &mut violation);
        put(2, b"must not be empty", &mut violation);
        let mut request = Vec::new();
        put(1, &violation, &mut request);
        let mut any = Vec::new();
        put(1, b"type.googleapis.com/google.rpc.BadRequest", &mut any);
        put(2, &request, &mut any);
        let mut status = vec![0x08, 3];
        put(2, b"wrong name", &mut status);
        put(3, &any, &mut status);
        let value = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&status);
        let found = StatusDetails::read(value.as_bytes(), None).unwrap();
        assert_eq!((found.code, found.message.as_str()), (3, "wrong name"));
        assert_eq!(
            found.details,
            ["google.rpc.BadRequest (27 bytes): `name`, `must not be empty`"]
        );
        assert!(StatusDetails::read(b"!", None).is_err());
        let value = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&request);
        let list = [("google.rpc.BadRequest", value.as_str())];
        let of_connect = StatusDetails::of_connect(list.into_iter(), None).unwrap();
        assert_eq!(of_connect.details, found.details);
        assert!(StatusDetails::of_connect([("a.B", "!")].into_iter(), None).is_err());
    }
}
