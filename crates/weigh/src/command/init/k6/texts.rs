//! Texts with placeholders in the form of a lab.

use k6_script::{CallBody, TextPart};

use super::places::Places;
use super::targets::unknown;

/// A text of a lab, with the words of its placeholders.
#[derive(Debug, Default)]
pub(super) struct LabText {
    pub(super) text: String,
    pub(super) words: Vec<String>,
}

/// The text of a lab for parts of a request.
///
/// # Errors
/// The reason why a part is not known.
pub(super) fn text(what: &str, parts: &[TextPart], places: &Places) -> Result<LabText, String> {
    let mut found = LabText::default();
    for part in parts {
        if let TextPart::Plain(text) = part {
            found.text += text;
            continue;
        }
        let word = places.word(part).ok_or_else(|| unknown(what, part))?;
        found.text += &format!("{{{{{word}}}}}");
        found.words.push(word);
    }
    Ok(found)
}

/// Path and query. Characters that HTTP does not allow are encoded, as k6 encodes them.
pub(super) fn path(parts: &[TextPart], places: &Places) -> Result<LabText, String> {
    let encoded: Vec<TextPart> = parts
        .iter()
        .map(|part| match part {
            TextPart::Plain(text) => TextPart::Plain(encoded(text)),
            other => other.clone(),
        })
        .collect();
    text("its path", &encoded, places)
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_graphic() => encoded.push(char::from(byte)),
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// A body in the form of a lab.
#[derive(Debug, Default)]
pub(super) struct LabBody {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) words: Vec<String>,
}

/// The body of a call.
pub(super) fn body(body: Option<&CallBody>, places: &Places) -> Result<LabBody, String> {
    let parts = match body {
        None => return Ok(LabBody::default()),
        Some(CallBody::Bytes(bytes)) => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(bytes);
            return Ok(LabBody {
                bytes: Some(bytes.map_err(|error| error.to_string())?),
                ..LabBody::default()
            });
        }
        Some(CallBody::Text(parts)) => parts,
    };
    let found = text("its body", parts, places)?;
    Ok(LabBody {
        bytes: Some(found.text.into_bytes()),
        words: found.words,
    })
}
