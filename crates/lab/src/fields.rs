//! A mapping with names for keys, as a field of the wire structs.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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
