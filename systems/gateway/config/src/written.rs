//! Values that are written as text in a form of their own: `30s`, `16KiB`, a URL, a regular
//! expression.
//!
//! Each form is one implementation of [`Form`]; the check of the tree, serde and the JSON Schema
//! all use it, so that they cannot disagree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::graphql_text::{GraphqlName, StoredText, TypeDefinitions, TypeReference};
use crate::session_variables::SessionName;

mod claim_path;
mod rest_path;
mod template_text;

pub use claim_path::ClaimPath;
pub use rest_path::{RestPath, RestSegment};
pub use template_text::{TemplateJson, TemplateText};

/// A form of text.
pub(crate) trait Form: Sized {
    /// Its name, the `format` of the JSON Schema.
    const NAME: &'static str;

    /// Reads the text; the error says what was expected.
    fn read(text: &str) -> Result<Self, String>;

    /// The value as text again; only defaults are ever written.
    fn write(&self) -> String;
}

/// A value that is text in the file and has been parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written<T>(pub T);

impl<T> Deref for Written<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Form> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<T: Form> Visitor<'_> for Reader<T> {
            type Value = Written<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "text of the form {}", T::NAME)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Written<T>, E> {
                T::read(text).map(Written).map_err(E::custom)
            }

            // YAML makes numbers and switches of `value: 1` and `value: true`; the author means
            // text.
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Written<T>, E> {
                self.visit_str(if value { "true" } else { "false" })
            }
        }

        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// Only for the defaults in the JSON Schema.
impl<T: Form> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<T: Form> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match T::NAME {
            // `16384` is an integer to an editor's check, and a size to its author.
            "byte-size" => json_schema!({"type": ["string", "integer"], "format": T::NAME}),
            _ => json_schema!({"type": "string", "format": T::NAME}),
        }
    }
}

/// The check of a form by its name; `None` when there is no such form.
pub(crate) fn check(form: &str, text: &str) -> Option<Result<(), String>> {
    // A match and no table: the forms have no common type to put into one.
    fn with<T: Form>(text: &str) -> Option<Result<(), String>> {
        Some(T::read(text).map(|_| ()))
    }
    match form {
        Duration::NAME => with::<Duration>(text),
        ByteSize::NAME => with::<ByteSize>(text),
        HeaderName::NAME => with::<HeaderName>(text),
        HeaderValue::NAME => with::<HeaderValue>(text),
        Regex::NAME => with::<Regex>(text),
        Endpoint::NAME => with::<Endpoint>(text),
        Listen::NAME => with::<Listen>(text),
        GraphqlPath::NAME => with::<GraphqlPath>(text),
        PlainPath::NAME => with::<PlainPath>(text),
        KeySource::NAME => with::<KeySource>(text),
        Origin::NAME => with::<Origin>(text),
        BodyPath::NAME => with::<BodyPath>(text),
        Method::NAME => with::<Method>(text),
        RestPath::NAME => with::<RestPath>(text),
        TemplateText::NAME => with::<TemplateText>(text),
        TemplateJson::NAME => with::<TemplateJson>(text),
        GraphqlName::NAME => with::<GraphqlName>(text),
        TypeReference::NAME => with::<TypeReference>(text),
        TypeDefinitions::NAME => with::<TypeDefinitions>(text),
        StoredText::NAME => with::<StoredText>(text),
        ClaimPath::NAME => with::<ClaimPath>(text),
        SessionName::NAME => with::<SessionName>(text),
        _ => None,
    }
}

/// Longest time that can be written: a thousand hours. More is most likely a wrong unit.
const TIME_MAX: Duration = Duration::from_secs(3_600_000);

impl Form for Duration {
    const NAME: &'static str = "duration-text";

    fn read(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected a time such as `30s`, `250ms` or `1h 5s`, found `{text}`");
        // 128 bits: the largest number of weeks must not overflow before it is compared with the
        // limit.
        let mut total = 0_u128;
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(expected());
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: u64 = rest[..digits].parse().map_err(|_| expected())?;
            rest = rest[digits..].trim_start();
            let letters = rest
                .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
                .unwrap_or(rest.len());
            let unit_ns = unit_ns(&rest[..letters]).ok_or_else(expected)?;
            total += u128::from(number) * unit_ns;
            rest = rest[letters..].trim_start();
        }
        if total > TIME_MAX.as_nanos() {
            return Err(format!("expected at most 1000h, found `{text}`"));
        }
        u64::try_from(total)
            .map(Duration::from_nanos)
            .map_err(|_| expected())
    }

    fn write(&self) -> String {
        match (self.as_secs(), self.subsec_nanos()) {
            (seconds, 0) => format!("{seconds}s"),
            // The largest unit that is exact in any case.
            _ => format!("{}ns", self.as_nanos()),
        }
    }
}

/// Nanoseconds in a unit of time, under the names that humantime has for it.
fn unit_ns(unit: &str) -> Option<u128> {
    let seconds = 1_000_000_000;
    Some(match unit {
        "ns" | "nsec" | "nanos" => 1,
        "us" | "µs" | "usec" | "micros" => 1_000,
        "ms" | "msec" | "millis" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => seconds,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * seconds,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * seconds,
        "d" | "day" | "days" => 86_400 * seconds,
        "w" | "week" | "weeks" => 604_800 * seconds,
        _ => return None,
    })
}

/// A number of bytes: `16384`, `16KiB`, `400kb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub usize);

impl Form for ByteSize {
    const NAME: &'static str = "byte-size";

    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("expected a number of bytes such as `16KiB` or `2000000`, found `{text}`");
        let letters = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let number: usize = text[..letters].parse().map_err(|_| wrong())?;
        let factor = match text[letters..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "kib" => 1_024,
            "mb" => 1_000_000,
            "mib" => 1 << 20,
            "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            _ => return Err(wrong()),
        };
        // A product beyond the address space is a wrong size, not the largest one.
        number.checked_mul(factor).map(ByteSize).ok_or_else(wrong)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

impl Form for HeaderName {
    const NAME: &'static str = "header-name";

    fn read(text: &str) -> Result<Self, String> {
        HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
            format!("`{text}` is not the name of a header: expected letters, digits and `-`")
        })
    }

    fn write(&self) -> String {
        self.as_str().to_owned()
    }
}

impl Form for HeaderValue {
    const NAME: &'static str = "header-value";

    fn read(text: &str) -> Result<Self, String> {
        HeaderValue::from_str(text).map_err(|_| {
            format!("{text:?} is not a header value: expected one line of visible text")
        })
    }

    fn write(&self) -> String {
        let text = self.to_str();
        text.expect("`read` takes visible text only").to_owned()
    }
}

impl Form for Regex {
    const NAME: &'static str = "regex-text";

    fn read(text: &str) -> Result<Self, String> {
        Regex::new(text).map_err(|error| {
            let reason = error.to_string();
            // The crate's message draws the pattern over several lines; the last one holds the
            // reason.
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            format!("`{text}` is not a regular expression: {reason}")
        })
    }

    fn write(&self) -> String {
        self.as_str().to_owned()
    }
}

/// Where an HTTP service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Over TCP: an absolute `http` or `https` URL.
    Http(Uri),
    /// Over a Unix socket.
    Unix {
        /// The socket's absolute path.
        socket: PathBuf,
        /// Path and query of requests.
        path: String,
    },
}

impl Endpoint {
    /// Reads `http://…`, `https://…` or `unix:///sock?path=/p`.
    ///
    /// # Errors
    /// What was expected and what was found, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Form>::read(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.write())
    }
}

impl Form for Endpoint {
    const NAME: &'static str = "endpoint";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is not a URL that can be called: {why}; expected `http://host:port/path` or `unix:///path/to/socket?path=/p`"
            )
        };
        if let Some(rest) = text.strip_prefix("unix://") {
            let (socket, query) = rest.split_once('?').unwrap_or((rest, ""));
            if !socket.starts_with('/') || socket.len() == 1 {
                return Err(wrong("the path of the socket must be absolute"));
            }
            // Other parameters are ignored, as Apollo Router does.
            let mut path = "/".to_owned();
            for parameter in query.split('&') {
                if let Some(value) = parameter.strip_prefix("path=") {
                    path = if value.starts_with('/') {
                        value.to_owned()
                    } else {
                        format!("/{value}")
                    };
                }
            }
            return Ok(Self::Unix {
                socket: socket.into(),
                path,
            });
        }
        let uri: Uri = text.parse().map_err(|_| wrong("it cannot be read"))?;
        match uri.scheme_str() {
            // `http:///path` parses as a URI without a host.
            Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => {
                Ok(Self::Http(uri))
            }
            Some("http" | "https") => Err(wrong("the host is missing")),
            Some(_) => Err(wrong("its scheme is not known")),
            None => Err(wrong("the scheme is missing")),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Http(uri) => uri.to_string(),
            Self::Unix { socket, path } => format!("unix://{}?path={path}", socket.display()),
        }
    }
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// Host and port; port 0 takes a free one.
    Tcp(String),
    /// A Unix socket, which is created at start.
    Unix(PathBuf),
}

impl Listen {
    /// Reads `127.0.0.1:4000`, `[::1]:4000`, `localhost:4000`, or the path of a Unix socket.
    ///
    /// # Errors
    /// What was expected and what was found, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Form>::read(text)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => formatter.write_str(address),
            Self::Unix(path) => write!(formatter, "unix://{}", path.display()),
        }
    }
}

impl Form for Listen {
    const NAME: &'static str = "listen-address";

    fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Ok(Self::Unix(path.into()));
        }
        // No host and no port contains a slash.
        if text.contains('/') {
            return Ok(Self::Unix(text.into()));
        }
        let wrong = || {
            format!(
                "expected an address such as `127.0.0.1:4000` or the path of a Unix socket, found `{text}`"
            )
        };
        // From the right, because an IPv6 address has colons of its own.
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(Self::Tcp(text.to_owned()))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// The path of the GraphQL endpoint: `/graphql`, `/graphql/*`, `/:tenant/graphql`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphqlPath(pub String);

impl Form for GraphqlPath {
    const NAME: &'static str = "graphql-path";

    fn read(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!(
                "expected a path that starts with `/`, found `{text}`"
            ));
        }
        // In reverse, because only the last segment may be the star.
        let mut segments = text[1..].split('/').rev();
        let last = segments.next().unwrap_or_default();
        let is_star_inside = last.contains('*') && last != "*";
        if is_star_inside || segments.any(|segment| segment.contains('*')) {
            return Err(format!(
                "`*` can only be the whole last segment of a path, found `{text}`; write `/graphql/*`, or `/:name/graphql` for one segment of any text"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// A path that is compared as it is: `/health`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPath(pub String);

impl Form for PlainPath {
    const NAME: &'static str = "plain-path";

    fn read(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && !text.contains(['?', '#', '*', ' ']) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("expected a path such as `/health`, found `{text}`"))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// Where a set of keys is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// A URL that is polled.
    Url(Uri),
}

impl Form for KeySource {
    const NAME: &'static str = "key-source";

    fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::File(path.into()));
        }
        match Endpoint::read(text) {
            Ok(Endpoint::Http(uri)) => Ok(Self::Url(uri)),
            _ => Err(format!(
                "expected `https://…`, `http://…` or `file://…`, found `{text}`"
            )),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::File(path) => format!("file://{}", path.display()),
            Self::Url(uri) => uri.to_string(),
        }
    }
}

/// An origin of the web as browsers send it: scheme, host and port, no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(pub String);

impl Form for Origin {
    const NAME: &'static str = "web-origin";

    fn read(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Err("`*` is not an origin; set `allow_any_origin: true` instead".to_owned());
        }
        if text.ends_with('/') {
            let without = text.trim_end_matches('/');
            return Err(format!(
                "an origin has no `/` at its end: write `{without}`"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// A path into a JSON value: `.extensions.x[0].y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPath(pub Vec<PathStep>);

/// One step of a [`BodyPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The member of an object.
    Key(String),
    /// The item of a list, from 0.
    Index(usize),
}

impl Form for BodyPath {
    const NAME: &'static str = "json-path";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a path such as `.operationName` or `.extensions.x[0].y`, found `{text}`"
            )
        };
        let mut steps = Vec::new();
        for part in text.strip_prefix('.').ok_or_else(wrong)?.split('.') {
            let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            // A key with special letters is written in quotes.
            let key = key.trim_matches('"');
            if key.is_empty() {
                return Err(wrong());
            }
            steps.push(PathStep::Key(key.to_owned()));
            while !rest.is_empty() {
                let (inside, after) = rest
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'))
                    .ok_or_else(wrong)?;
                match inside.parse() {
                    Ok(index) => steps.push(PathStep::Index(index)),
                    // `["key"]` is a member as well.
                    Err(_) => {
                        steps.push(PathStep::Key(inside.trim_matches(['"', '\'']).to_owned()))
                    }
                }
                rest = after;
            }
        }
        Ok(Self(steps))
    }

    fn write(&self) -> String {
        let steps = self.0.iter().map(|step| match step {
            PathStep::Key(key) => format!(".{key}"),
            PathStep::Index(index) => format!("[{index}]"),
        });
        steps.collect()
    }
}

/// A method of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method(pub http::Method);

impl Form for Method {
    const NAME: &'static str = "http-method";

    fn read(text: &str) -> Result<Self, String> {
        http::Method::from_bytes(text.as_bytes())
            .map(Method)
            .map_err(|_| format!("expected a method such as `POST`, found `{text}`"))
    }

    fn write(&self) -> String {
        self.0.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests;
