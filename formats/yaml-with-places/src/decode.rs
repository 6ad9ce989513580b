//! Decodes the tree into structs: a serde deserializer over [`Node`].
//!
//! The types of `fields` need more than serde offers (places, a list even if there is one item). They request
//! it by the name of a newtype struct. This is serde's way for a field to address its format.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Number, Value as JsonValue};

use crate::tree::{Entry, Node, Place, Value, scalar};

/// A newtype struct of this name reads the place of a value, then the value.
pub(crate) const AT: &str = "yaml-with-places::At";
/// A newtype struct of this name reads a list, or one item as a list of one.
pub(crate) const ONE_OR_MANY: &str = "yaml-with-places::OneOrMany";

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Scalar { text, plain } => match scalar(text, *plain) {
                JsonValue::Null => visitor.visit_unit(),
                JsonValue::Bool(value) => visitor.visit_bool(value),
                JsonValue::Number(number) => visit_number(&number, visitor),
                _ => visitor.visit_str(text),
            },
            Value::List(items) => {
                visitor.visit_seq(SeqDeserializer::<_, Error>::new(known(items).map(Known)))
            }
            Value::Map(entries) => {
                let entries = entries
                    .iter()
                    // Skipped like a missing key: the mistake is reported, and the rest of the file is still
                    // read to find further mistakes.
                    .filter(|entry| entry.node.value != Value::Reported)
                    .map(|entry| (Key(entry), Known(&entry.node)));
                visitor.visit_map(MapDeserializer::<_, Error>::new(entries))
            }
            Value::Reported => Err(serde::de::Error::custom("the value was wrong")),
        }
    }

    // A field of text takes the text as written: `version: 1.10` stays `1.10`.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Scalar { text, .. } => visitor.visit_str(text),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // Never `None` here: keys without a value were left out before, and `null` is a value that the field
        // may read.
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(StrDeserializer::<Error>::new(
            // A list or mapping matches no variant. serde then lists the existing variants.
            self.text().unwrap_or_default(),
        ))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (name, &self.value) {
            (AT, _) => visitor.visit_seq(Placed {
                place: Some(self.place),
                value: Some(self),
            }),
            (ONE_OR_MANY, Value::List(_)) => self.deserialize_any(visitor),
            (ONE_OR_MANY, _) => visitor.visit_seq(SeqDeserializer::<_, Error>::new(
                std::iter::once(Known(self)),
            )),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    if let Some(value) = number.as_u64() {
        visitor.visit_u64(value)
    } else if let Some(value) = number.as_i64() {
        visitor.visit_i64(value)
    } else {
        visitor.visit_f64(
            number
                .as_f64()
                .expect("a scalar is a u64, an i64 or a finite f64"),
        )
    }
}

/// The items without mistakes.
fn known(items: &[Node]) -> impl Iterator<Item = &Node> {
    items.iter().filter(|item| item.value != Value::Reported)
}

/// A node that serde's own list and map readers can convert to a deserializer.
struct Known<'a>(&'a Node);

impl<'a> IntoDeserializer<'a, Error> for Known<'a> {
    type Deserializer = &'a Node;

    fn into_deserializer(self) -> &'a Node {
        self.0
    }
}

/// A key of a mapping, with its place.
struct Key<'a>(&'a Entry);

impl<'a> IntoDeserializer<'a, Error> for Key<'a> {
    type Deserializer = Key<'a>;

    fn into_deserializer(self) -> Key<'a> {
        self
    }
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.0.key)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match name {
            AT => visitor.visit_seq(Placed {
                place: Some(self.0.key_place),
                value: Some(self),
            }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A place, then the value at it, as [`At`] reads them.
struct Placed<D> {
    place: Option<Place>,
    value: Option<D>,
}

impl<'de, D: Deserializer<'de, Error = Error>> SeqAccess<'de> for Placed<D> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if let Some(place) = self.place.take() {
            let numbers = [place.source, place.start, place.end];
            // serde has no type for a place, so it is passed as a list of numbers. `At` converts it back.
            let numbers = numbers.into_iter().map(|number| number as u64);
            return seed.deserialize(SeqDeserializer::new(numbers)).map(Some);
        }
        match self.value.take() {
            Some(value) => seed.deserialize(value).map(Some),
            None => Ok(None),
        }
    }
}
