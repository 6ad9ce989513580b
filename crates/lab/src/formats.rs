//! Values that are written as text of a certain form: paths, header names, names of settings.
//!
//! A format has a name in the JSON Schema for the structural check, and one reader, which that check and the
//! decoding share. Formats with units are in `quantities`.

use std::borrow::Cow;

use model::{Gate, Goal, StatusPart};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::json;
pub(crate) use yaml_with_places::Misspelling;

/// A value that is written as text of a certain form.
pub(crate) trait Format: Sized {
    /// Name of the format in the schema. Names that JSON Schema defines itself have a different meaning
    /// there.
    const NAME: &'static str;
    /// One valid text, if an example helps.
    const EXAMPLE: Option<&'static str>;

    /// Reads a text.
    fn read(text: &str) -> Result<Self, Misspelling>;
}

/// A value of a format, as a field of a wire struct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Written<F>(pub(crate) F);

impl<'de, F: Format> Deserialize<'de> for Written<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        F::read(&text)
            .map(Written)
            .map_err(|wrong| serde::de::Error::custom(wrong.message))
    }
}

impl<F: Format> JsonSchema for Written<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        F::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({"type": "string", "format": F::NAME});
        if let Some(example) = F::EXAMPLE {
            schema.insert("examples".to_owned(), json!([example]));
        }
        schema
    }
}

/// Text, a number or `true`/`false`, kept as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verbatim<F>(pub(crate) F);

impl<'de, F: Format> Deserialize<'de> for Verbatim<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer).map(|Written(value)| Verbatim(value))
    }
}

impl<F: Format> JsonSchema for Verbatim<F> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("verbatim-{}", F::NAME).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"], "format": F::NAME})
    }
}

/// True if a text may be a header name, a method or the name of a protocol (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// A request method, in capitals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method(pub(crate) String);

impl Format for Method {
    const NAME: &'static str = "method";
    const EXAMPLE: Option<&'static str> = Some("POST");

    fn read(text: &str) -> Result<Self, Misspelling> {
        // Methods are case-sensitive (RFC 9110, section 9.1). A server would refuse `post` with 405.
        if is_token(text) && !text.bytes().any(|b| b.is_ascii_lowercase()) {
            return Ok(Method(text.to_owned()));
        }
        let upper = text.to_ascii_uppercase();
        Err(Misspelling::new(
            format!("`{text}` is not a method"),
            if is_token(text) {
                format!("write `{upper}`")
            } else {
                "write for example `POST`".to_owned()
            },
        ))
    }
}

/// A status, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusName(pub(crate) StatusPart);

impl Format for StatusName {
    const NAME: &'static str = "status";
    const EXAMPLE: Option<&'static str> = Some("2xx");

    fn read(text: &str) -> Result<Self, Misspelling> {
        StatusPart::read(text).map(StatusName).map_err(|_| {
            Misspelling::new(
                format!("`{text}` is not a status"),
                "write a number from 100 to 599, a class such as `2xx`, or a list of them: `[200, 429]`",
            )
        })
    }
}

/// Path and query of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlPath(pub(crate) String);

impl Format for UrlPath {
    const NAME: &'static str = "path-and-query";
    const EXAMPLE: Option<&'static str> = Some("/graphql");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if !text.starts_with('/') {
            return Err(Misspelling::new(
                format!("`{text}` is not a path: it must begin with `/`"),
                "the system defines address and port. Write for example `/graphql`",
            ));
        }
        // A fragment is never sent (RFC 9110, section 7.1).
        match text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            Some(bad) => Err(Misspelling::new(
                format!("`{text}` is not a path: it contains {bad:?}"),
                "write the encoded path, with `%20` for a space",
            )),
            None => Ok(UrlPath(text.to_owned())),
        }
    }
}

/// Path and query of a request, which may contain places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestPath(pub(crate) String);

impl Format for RequestPath {
    const NAME: &'static str = "path-with-places";
    const EXAMPLE: Option<&'static str> = Some("/graphql");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            plain.push_str(before);
            // A letter for each place, so that the text around it is checked as part of the final path. A raw
            // value at the begin has the slash of the path.
            let is_start = plain.is_empty() && after.trim_start().starts_with("raw:");
            plain.push(if is_start { '/' } else { 'x' });
            rest = after.split_once("}}").map_or("", |(_, after)| after);
        }
        plain.push_str(rest);
        UrlPath::read(&plain).map_err(|wrong| Misspelling {
            message: wrong.message.replacen(&plain, text, 1),
            ..wrong
        })?;
        Ok(RequestPath(text.to_owned()))
    }
}

/// The text of a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(pub(crate) String);

impl Format for Pattern {
    const NAME: &'static str = "pattern";
    const EXAMPLE: Option<&'static str> = Some("/users/([0-9]+)");

    fn read(text: &str) -> Result<Self, Misspelling> {
        match regex::Regex::new(text) {
            Ok(_) => Ok(Pattern(text.to_owned())),
            Err(error) => {
                let message = error.to_string();
                // Earlier lines draw the pattern with a mark, which a one-line message cannot contain.
                let last = message.lines().last().unwrap_or_default();
                Err(Misspelling::new(
                    format!("`{text}` is not a regular expression: {last}"),
                    "write `\\(` for a literal bracket",
                ))
            }
        }
    }
}

/// A member of a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(pub(crate) String);

impl Format for Pointer {
    const NAME: &'static str = "pointer";
    const EXAMPLE: Option<&'static str> = Some("/extensions/timing");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if text.len() > 1 && text.starts_with('/') {
            return Ok(Pointer(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not a JSON pointer: it must begin with `/` and name a member"),
            "write for example `/extensions/timing`",
        ))
    }
}

/// Header lines that the generator writes itself, because the connection depends on them.
const OWN_HEADERS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// The name of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderName(pub(crate) String);

impl Format for HeaderName {
    const NAME: &'static str = "header-name";
    const EXAMPLE: Option<&'static str> = Some("Content-Type");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if !is_token(text) {
            return Err(Misspelling::new(
                format!("`{text}` is not a header name"),
                "write for example `Content-Type`",
            ));
        }
        Ok(HeaderName(text.to_owned()))
    }
}

impl HeaderName {
    /// True if the generator writes the header itself.
    pub(crate) fn is_own(&self) -> bool {
        OWN_HEADERS.contains(&self.0.to_ascii_lowercase().as_str())
    }
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderValue(pub(crate) String);

impl Format for HeaderValue {
    const NAME: &'static str = "header-value";
    const EXAMPLE: Option<&'static str> = Some("application/json");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if text.chars().any(char::is_control) {
            return Err(Misspelling::new(
                format!("{text:?} is not a header value: it contains a control character"),
                "write one line of text",
            ));
        }
        // Spaces around a value are no part of it (RFC 9110, section 5.5).
        Ok(HeaderValue(text.trim().to_owned()))
    }
}

/// The name of a system or of a setting: a word that fits between `{{` and `.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

/// True if a text is a word of letters, digits, `-` and `_`.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

impl Format for Name {
    const NAME: &'static str = "name";
    const EXAMPLE: Option<&'static str> = Some("server");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if is_name(text) {
            return Ok(Name(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not a name"),
            "a name is a letter followed by letters, digits, `-` and `_`",
        ))
    }
}

/// The name of a choice of a setting, as variants and the command line write it: `1KB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceName;

impl Format for ChoiceName {
    const NAME: &'static str = "choice";
    const EXAMPLE: Option<&'static str> = Some("1KB");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if text.trim().is_empty() {
            return Err(Misspelling::new(
                "the name of a choice is empty",
                "write a word, such as `small`",
            ));
        }
        if text.trim() != text || text.contains("{{") || text.chars().any(char::is_control) {
            return Err(Misspelling::new(
                format!("{text:?} is not the name of a choice"),
                "write one line without a template and without spaces at its ends",
            ));
        }
        Ok(ChoiceName)
    }
}

/// A setting as variants name it: `system.setting` or a lab-wide `setting`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingPath {
    pub(crate) system: Option<String>,
    pub(crate) setting: String,
}

impl std::fmt::Display for SettingPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.system {
            Some(system) => write!(f, "{system}.{}", self.setting),
            None => f.write_str(&self.setting),
        }
    }
}

impl Format for SettingPath {
    const NAME: &'static str = "setting";
    const EXAMPLE: Option<&'static str> = Some("server.stack");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let (system, setting) = match text.split_once('.') {
            Some((system, setting)) => (Some(system), setting),
            None => (None, text),
        };
        if !is_name(setting) || !system.is_none_or(is_name) {
            return Err(Misspelling::new(
                format!("`{text}` is not a setting"),
                "write `system.setting`, or the name of a lab-wide setting",
            ));
        }
        Ok(SettingPath {
            system: system.map(str::to_owned),
            setting: setting.to_owned(),
        })
    }
}

/// A name for a row or a heading: one line of text that is not blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Title(pub(crate) String);

impl Format for Title {
    const NAME: &'static str = "title";
    const EXAMPLE: Option<&'static str> = None;

    fn read(text: &str) -> Result<Self, Misspelling> {
        if text.trim().is_empty() {
            return Err(Misspelling::new("the text is empty", "write a few words"));
        }
        if text.trim().chars().any(char::is_control) {
            return Err(Misspelling::new(
                format!("{text:?} is more than one line"),
                "write one line of text",
            ));
        }
        Ok(Title(text.trim().to_owned()))
    }
}

/// The goal of the rounds.
impl Format for Goal {
    const NAME: &'static str = "until";
    const EXAMPLE: Option<&'static str> = Some("p99 ±2%");

    fn read(text: &str) -> Result<Self, Misspelling> {
        text.parse().map_err(|error: model::UntilError| {
            let text = error.to_string();
            // The error of `model` ends with the advice, which a finding shows on its own line.
            let (message, help) = text.rsplit_once(". Write ").unwrap_or((&text, ""));
            Misspelling::new(message, format!("write {help}"))
        })
    }
}

/// A limit to keep.
impl Format for Gate {
    const NAME: &'static str = "gate";
    const EXAMPLE: Option<&'static str> = Some("p99 overhead < 0.2ms");

    fn read(text: &str) -> Result<Self, Misspelling> {
        text.parse().map_err(|error: model::GateError| {
            let text = error.to_string();
            // The error of `model` ends with the advice, which a finding shows on its own line.
            let (message, help) = text.rsplit_once(". A gate ").unwrap_or((&text, ""));
            Misspelling::new(message, format!("a gate {help}"))
        })
    }
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableName(pub(crate) String);

impl Format for VariableName {
    const NAME: &'static str = "variable-name";
    const EXAMPLE: Option<&'static str> = None;

    fn read(text: &str) -> Result<Self, Misspelling> {
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Ok(VariableName(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not the name of a variable"),
            "use letters, digits and `_`",
        ))
    }
}

/// True for the characters of names of services and files.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The name of a service in a compose file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceName(pub(crate) String);

impl Format for ServiceName {
    const NAME: &'static str = "service-name";
    const EXAMPLE: Option<&'static str> = Some("nginx");

    fn read(text: &str) -> Result<Self, Misspelling> {
        if !text.is_empty() && text.chars().all(is_plain) {
            return Ok(ServiceName(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not the name of a service"),
            "use letters, digits, `.`, `_` and `-`",
        ))
    }
}

/// A DNS domain: `cluster.local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostName(pub(crate) String);

impl Format for HostName {
    const NAME: &'static str = "dns-domain";
    const EXAMPLE: Option<&'static str> = Some("cluster.local");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let is_label = |label: &str| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(is_inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() <= 200 && text.split('.').all(is_label) {
            return Ok(HostName(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not a DNS domain"),
            "write labels of lower-case letters, digits and `-`, separated by dots: `cluster.local`",
        ))
    }
}

/// The name of a configuration file, perhaps with folders: `conf.d/site.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileName(pub(crate) String);

impl Format for FileName {
    const NAME: &'static str = "file-name";
    const EXAMPLE: Option<&'static str> = Some("nginx.conf");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let is_part = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && part.chars().all(is_plain)
        };
        // A longer name is too long for some file systems.
        if text.len() <= 200 && text.split('/').all(is_part) {
            return Ok(FileName(text.to_owned()));
        }
        Err(Misspelling::new(
            format!("`{text}` is not the name of a configuration file"),
            "use letters, digits, `.`, `_` and `-`, with `/` between folders: `conf.d/site.conf`",
        ))
    }
}
