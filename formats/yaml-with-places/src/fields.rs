//! Field types that read more from the tree than serde's own types.
//!
//! [`At`] keeps the place of a value, [`OneOrMany`] accepts a list or one item, and [`Json`] accepts any
//! value.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::decode::{AT, ONE_OR_MANY};
use crate::tree::Place;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct At<T> {
    /// The place of the value in its source.
    pub place: Place,
    /// The value, decoded.
    pub value: T,
}

/// A list of items, or a single item.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

/// Any value, as compact JSON text with the keys in the order they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(pub String);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = At<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value and its place")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<At<T>, A::Error> {
                let missing = || serde::de::Error::custom("expected a value and its place");
                // The form that `decode` uses for a place.
                let [source, start, end]: [usize; 3] = pair.next_element()?.ok_or_else(missing)?;
                let value = pair.next_element()?.ok_or_else(missing)?;
                let place = Place { source, start, end };
                Ok(At { place, value })
            }
        }
        deserializer.deserialize_newtype_struct(AT, Reader(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of them")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(OneOrMany(items))
            }
        }
        deserializer.deserialize_newtype_struct(ONE_OR_MANY, Reader(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E>(self) -> Result<String, E> {
                Ok("null".to_owned())
            }

            fn visit_bool<E>(self, value: bool) -> Result<String, E> {
                Ok(value.to_string())
            }

            fn visit_u64<E>(self, value: u64) -> Result<String, E> {
                Ok(value.to_string())
            }

            fn visit_i64<E>(self, value: i64) -> Result<String, E> {
                Ok(value.to_string())
            }

            fn visit_f64<E>(self, value: f64) -> Result<String, E> {
                // In serde_json's format. Rust would write 1e21 with all its zeros.
                Ok(serde_json::Value::from(value).to_string())
            }

            fn visit_str<E>(self, value: &str) -> Result<String, E> {
                Ok(quote(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
                let mut items: Vec<String> = Vec::new();
                while let Some(Json(item)) = list.next_element()? {
                    items.push(item);
                }
                Ok(format!("[{}]", items.join(",")))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
                let mut members: Vec<String> = Vec::new();
                while let Some((key, Json(value))) = map.next_entry::<String, Json>()? {
                    members.push(format!("{}:{value}", quote(&key)));
                }
                Ok(format!("{{{}}}", members.join(",")))
            }
        }
        deserializer.deserialize_any(Reader).map(Json)
    }
}

/// Text as a JSON string.
#[must_use]
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

macro_rules! schema_of {
    ($name:literal, $schema:expr) => {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            $name.into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
            schema(generator)
        }
    };
}

impl<T: JsonSchema> JsonSchema for At<T> {
    schema_of!("at", |generator| generator.subschema_for::<T>());
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    schema_of!("one-or-many", |generator| {
        let item = generator.subschema_for::<T>();
        json_schema!({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})
    });
}

impl JsonSchema for Json {
    schema_of!("json", |_| json_schema!({}));
}
