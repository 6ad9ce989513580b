//! Values that are text with a format of their own: `30s`, `16KiB`, a URL, a regular expression.
//!
//! Each format is one implementation of [`Form`]. The check of the tree, serde and the JSON Schema all use
//! it, so they cannot disagree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use http::{HeaderName, HeaderValue};
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod address;
mod amount;
mod claim_path;
mod data_path;
mod otlp;
mod path;
mod rest_path;
mod template_text;

pub use address::{KeySource, Listen, RedisAddress, ServiceAddress, WebOrigin};
pub use amount::ByteSize;
pub use claim_path::ClaimPath;
pub use data_path::{DataPath, DataStep};
pub use otlp::{OtlpEndpoint, Sampler};
pub use path::{BodyPath, GraphqlPath, PathStep, PlainPath};
pub use rest_path::{RestPath, RestSegment};
pub use template_text::{TemplateJson, TemplateText};

/// A format of text values.
pub(crate) trait Form: Sized {
    /// The `format` name in the JSON Schema.
    const NAME: &'static str;

    /// Parses the text. The error describes the expected format.
    fn read(text: &str) -> Result<Self, String>;

    /// The value as text. Only defaults are ever written.
    fn write(&self) -> String;
}

/// A value that is text in the file and parsed here.
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

            // YAML reads `value: 1` and `value: true` as a number and a switch, but the author means text.
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

/// Used only for the defaults in the JSON Schema.
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
            // `16384` is an integer for an editor's check, but a size for its author.
            "byte-size" => json_schema!({"type": ["string", "integer"], "format": T::NAME}),
            "sampler" => json_schema!({"type": ["string", "number"], "format": T::NAME}),
            _ => json_schema!({"type": "string", "format": T::NAME}),
        }
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
            // The crate's message spreads the pattern over several lines. The last line contains the reason.
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            format!("`{text}` is not a regular expression: {reason}")
        })
    }

    fn write(&self) -> String {
        self.as_str().to_owned()
    }
}

/// An HTTP method.
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
