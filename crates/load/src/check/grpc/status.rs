//! The status of a call: in trailers, or in an error of Connect.

use grpc_schema::{CallSchema, StatusDetails, of_connect};
use httparse::Header;
use serde_json::Value;

use super::quoted;
use crate::call_form::{Form, trailer_lines};
use crate::parser::Head;

/// The details of an error of Connect that are kept. A server may send many.
const DETAILS_MAX: usize = 8;

/// Characters of a message that are kept. An error of Connect may have a long message.
const MESSAGE_MAX: usize = 4096;

/// The status of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// `None` until a status arrived.
    pub(super) number: Option<u32>,
    message: Option<String>,
    details: Details,
}

/// The details of a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Details {
    #[default]
    None,
    /// The value of `grpc-status-details-bin`.
    Binary(Vec<u8>),
    /// Names of types, each with a message in base64.
    Connect(Vec<(String, String)>),
}

impl Status {
    /// The status of a call that succeeded.
    pub(super) fn ok() -> Status {
        Status {
            number: Some(0),
            ..Status::default()
        }
    }

    /// No status, because its text cannot be read.
    pub(super) fn unreadable(reason: String) -> Status {
        Status {
            message: Some(reason),
            ..Status::default()
        }
    }

    /// Reads the status from trailers, or from the head of a response without messages.
    pub(super) fn of(lines: &Head<'_>) -> Status {
        let text = |name: &str| {
            let value = lines.header(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let Some(written) = text("grpc-status") else {
            return Status::default();
        };
        let Ok(number) = written.trim().parse() else {
            let reason = format!("`grpc-status: {}` is no status", quoted(&written));
            return Status::unreadable(reason);
        };
        let message = lines.header("grpc-message");
        let message = message.map(|message| limited(&decoded(message)));
        let details = lines.header("grpc-status-details-bin");
        Status {
            number: Some(number),
            message: message.filter(|message| !message.is_empty()),
            details: details.map_or(Details::None, |value| Details::Binary(value.to_vec())),
        }
    }

    /// Reads the status from the message at the end of an answer.
    pub(super) fn of_end(form: Form, message: &[u8]) -> Status {
        let read = match form {
            Form::ConnectStream => of_last_json(message),
            _ => of_last_trailers(message),
        };
        read.unwrap_or_else(Status::unreadable)
    }

    /// Reads the error of a call of Connect with one message.
    ///
    /// # Errors
    /// If it has no known code.
    pub(super) fn of_error(body: &[u8]) -> Result<Status, String> {
        let error = serde_json::from_slice(body).map_err(|_| "no JSON".to_owned())?;
        of_json(&error)
    }

    /// The message with the details, which the schema describes.
    pub(super) fn words(self, schema: Option<&CallSchema>) -> Option<String> {
        let found = match &self.details {
            Details::None => return self.message,
            Details::Binary(value) => StatusDetails::read(value, schema)
                .map_err(|reason| format!("`grpc-status-details-bin`: {reason}")),
            Details::Connect(list) => {
                let list = list.iter().map(|(name, value)| (&**name, &**value));
                StatusDetails::of_connect(list, schema)
                    .map_err(|reason| format!("`details`: {reason}"))
            }
        };
        let shown = match found {
            Ok(found) => {
                let mut parts = found.details;
                if self.message.is_none() && !found.message.is_empty() {
                    parts.insert(0, found.message);
                }
                parts.join("; ")
            }
            Err(reason) => reason,
        };
        Some(match (self.message, shown.is_empty()) {
            (Some(message), true) => message,
            (Some(message), false) => format!("{message} [{shown}]"),
            (None, _) => format!("[{shown}]"),
        })
    }
}

/// Reads the trailers of gRPC-Web.
fn of_last_trailers(message: &[u8]) -> Result<Status, String> {
    let lines = trailer_lines(message)?;
    let lines: Vec<Header<'_>> = lines
        .iter()
        .map(|(name, value)| Header {
            name,
            value: value.as_bytes(),
        })
        .collect();
    Ok(Status::of(&Head::new(200, &lines)))
}

/// Reads the last message of a stream of Connect.
fn of_last_json(message: &[u8]) -> Result<Status, String> {
    let end: Value =
        serde_json::from_slice(message).map_err(|_| "the last message is no JSON".to_owned())?;
    let end = end.as_object();
    let end = end.ok_or("the last message is JSON without fields")?;
    match end.get("error") {
        None | Some(Value::Null) => Ok(Status::ok()),
        Some(error) => of_json(error),
    }
}

fn of_json(error: &Value) -> Result<Status, String> {
    let text = |of: &Value, name: &str| Some(of.get(name)?.as_str()?.to_owned());
    let code = text(error, "code").ok_or("the error has no code")?;
    let number = of_connect(&code);
    let details = error.get("details").and_then(Value::as_array);
    let details = details.into_iter().flatten().take(DETAILS_MAX);
    let details: Vec<(String, String)> = details
        .filter_map(|detail| Some((text(detail, "type")?, text(detail, "value")?)))
        .collect();
    Ok(Status {
        number: Some(number.ok_or_else(|| format!("the code `{}` is unknown", quoted(&code)))?),
        message: text(error, "message")
            .filter(|message| !message.is_empty())
            .map(|message| limited(&message)),
        details: match details.is_empty() {
            true => Details::None,
            false => Details::Connect(details),
        },
    })
}

fn limited(message: &str) -> String {
    message.chars().take(MESSAGE_MAX).collect()
}

/// Decodes the percent encoding of a message. Bytes that are not UTF-8 are replaced.
pub(super) fn decoded(message: &[u8]) -> String {
    percent_encoding::percent_decode(message)
        .decode_utf8_lossy()
        .into_owned()
}
