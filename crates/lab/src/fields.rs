//! Fields of the wire structs: a mapping with names for keys, and a text that may stand for a mapping.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use yaml_with_places::At;

use crate::formats::Format;

/// A mapping from names of a format to values, in the order they are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table<K, T>(pub(crate) Vec<(At<K>, T)>);

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Table(Vec::new())
    }
}

impl<'de, K: Format, T: Deserialize<'de>> Deserialize<'de> for Table<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<K, T>(PhantomData<(K, T)>);
        impl<'de, K: Format, T: Deserialize<'de>> Visitor<'de> for Reader<K, T> {
            type Value = Table<K, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<K, T>, A::Error> {
                let mut rows = Vec::new();
                // A list and not a map, because reports and starts follow the order of the file. Duplicate
                // keys were reported when the text was read.
                while let Some((key, value)) = map.next_entry::<At<String>, T>()? {
                    let read = K::read(&key.value)
                        .map_err(|wrong| serde::de::Error::custom(wrong.message))?;
                    let place = key.place;
                    rows.push((At { place, value: read }, value));
                }
                Ok(Table(rows))
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

impl<K: Format, T: JsonSchema> JsonSchema for Table<K, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "table".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({
            "type": "object",
            "propertyNames": {"format": K::NAME},
            "additionalProperties": value,
        })
    }
}

/// A text, or a mapping with more details.
#[derive(Clone, Debug)]
pub(crate) enum TextOr<W, T> {
    Text(W),
    /// In a box, because it is much larger than a text.
    Mapping(Box<T>),
}

impl<'de, W: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for TextOr<W, T> {
    // Written by hand, because serde's `untagged` copies the value before it tries the forms, and the copy
    // has no places.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<W, T>(PhantomData<(W, T)>);
        impl<'de, W: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Reader<W, T> {
            type Value = TextOr<W, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a mapping")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TextOr<W, T>, E> {
                W::deserialize(StrDeserializer::new(text)).map(TextOr::Text)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<W, T>, A::Error> {
                let mapping = T::deserialize(MapAccessDeserializer::new(map));
                mapping.map(|mapping| TextOr::Mapping(Box::new(mapping)))
            }
        }
        // A number is text as it is written, such as `1.10`.
        deserializer.deserialize_str(Reader(PhantomData))
    }
}

impl<W: JsonSchema, T: JsonSchema> JsonSchema for TextOr<W, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "text-or-mapping".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<W>();
        let mapping = generator.subschema_for::<T>();
        json_schema!({"anyOf": [text, mapping]})
    }
}
