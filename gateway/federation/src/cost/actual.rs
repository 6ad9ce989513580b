//! The actual cost of a response, counted over its objects along the formula of its operation.
//!
//! An object of a response has each key once, even if the operation selects it many times. So the formula
//! contains its selections combined by key ([`merged`]), and each response key is looked up in them. The work
//! per object then depends on its own width, not on the number of selections.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::formula::{Filled, Formula, Node, Request, bounded};
use super::selected::Selected;

/// Combines the selections of each key. The result is sorted by key.
///
/// The own cost of the first selection applies to all. Selections of one key are normally one field. Only
/// fragments on different object types can select different fields, and then this cost is an approximation.
pub(super) fn merged(mut nodes: Vec<&Node>) -> Vec<Selected> {
    // A stable sort, so that the first selection of a key is also the first in the text.
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

/// Finds the selection of a key.
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
    /// Number of comparisons of a key with a selection on this thread.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Formula {
    /// The cost of a response with this body. `None` if the body is not a GraphQL response. The body is read
    /// once, without building a tree.
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

/// Reads the object `{"data": …}`.
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
    /// Cost of one value without its selections.
    own: f64,
    /// The selections below a value.
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
