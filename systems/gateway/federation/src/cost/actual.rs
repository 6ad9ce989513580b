//! What a response has cost: its objects as they are, along the formula of its operation.
//!
//! An object of a response has each key once, however many selections of the text ask for it. So
//! selections are put together by key when the formula is made ([`merged`]), and a key of a response
//! is looked up among them: a wide selection costs no more in each of a thousand objects than its width.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::formula::{Filled, Formula, Node, Request, bounded};
use super::selected::Selected;

/// Puts selections that have one key together; what comes is sorted by key.
///
/// What the first of them costs by itself stands for all. They are one field, but below fragments on types
/// of which an object has only one; there it is an approximation.
pub(super) fn merged(mut nodes: Vec<&Node>) -> Vec<Selected> {
    // Stable, so that the first of a key is that of the text.
    nodes.sort_by(|one, other| one.key.cmp(&other.key));
    let same = nodes.chunk_by(|one, other| one.key == other.key);
    same.map(|same| Selected {
        key: same[0].key.clone(),
        own: same[0].own,
        arguments: same[0].arguments,
        fields: merged(same.iter().flat_map(|node| &node.fields).collect()),
    })
    .collect()
}

/// The selection of a key.
fn find<'a>(all: &'a [Selected], key: &str) -> Option<&'a Selected> {
    let found = all.binary_search_by(|it| {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        (*it.key).cmp(key)
    });
    found.ok().map(|at| &all[at])
}

#[cfg(test)]
thread_local! {
    /// How often a key was held against a selection on this thread.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Formula {
    /// The cost of a response with this body; nothing when it is not one. The body is read once, and no
    /// tree of it is built.
    pub(crate) fn actual(&self, request: &Request<'_>, body: &[u8]) -> Option<f64> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let filled = request.fill(self);
        let counted = Response {
            formula: self,
            filled: &filled,
        };
        let fields = counted.deserialize(&mut reader).ok()?;
        Some(bounded(self.base + fields))
    }
}

/// `{"data": …}`.
struct Response<'a> {
    formula: &'a Formula,
    filled: &'a Filled<'a>,
}

impl<'de> DeserializeSeed<'de> for Response<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Response<'_> {
    type Value = f64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a response")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<f64, A::Error> {
        let mut cost = 0.0;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key != "data" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            cost += map.next_value_seed(Values {
                own: 0.0,
                selected: &self.formula.selected,
                filled: self.filled,
            })?;
        }
        Ok(cost)
    }
}

/// A value, or a list of values, of one field.
#[derive(Clone, Copy)]
struct Values<'a> {
    /// What one value costs by itself.
    own: f64,
    /// What is selected from it.
    selected: &'a [Selected],
    filled: &'a Filled<'a>,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = f64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<f64, A::Error> {
        let mut cost = 0.0;
        while let Some(one) = items.next_element_seed(self)? {
            cost += one;
        }
        Ok(cost)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<f64, A::Error> {
        let mut cost = self.own;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let Some(field) = find(self.selected, &key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let values = map.next_value_seed(Values {
                own: field.own,
                selected: &field.fields,
                filled: self.filled,
            })?;
            cost += bounded(values + self.filled.arguments(field.arguments));
        }
        Ok(cost)
    }

    fn visit_bool<E>(self, _: bool) -> Result<f64, E> {
        Ok(self.own)
    }

    fn visit_i64<E>(self, _: i64) -> Result<f64, E> {
        Ok(self.own)
    }

    fn visit_u64<E>(self, _: u64) -> Result<f64, E> {
        Ok(self.own)
    }

    fn visit_f64<E>(self, _: f64) -> Result<f64, E> {
        Ok(self.own)
    }

    fn visit_str<E>(self, _: &str) -> Result<f64, E> {
        Ok(self.own)
    }

    fn visit_unit<E>(self) -> Result<f64, E> {
        Ok(0.0)
    }
}
