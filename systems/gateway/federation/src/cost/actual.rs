//! What a response has cost: its objects as they are, along the formula of its operation.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::formula::{Filled, Formula, Node, Request, bounded};

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
            let nodes: Vec<&Node> = self.formula.fields.iter().collect();
            cost += map.next_value_seed(Values {
                own: 0.0,
                nodes: &nodes,
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
    nodes: &'a [&'a Node],
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
            // Several selections of one key are one field.
            let same: Vec<&Node> = self
                .nodes
                .iter()
                .copied()
                .filter(|node| *node.key == *key)
                .collect();
            let Some(first) = same.first() else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let selected: Vec<&Node> = same.iter().flat_map(|node| &node.fields).collect();
            let values = map.next_value_seed(Values {
                own: first.own,
                nodes: &selected,
                filled: self.filled,
            })?;
            cost += bounded(values + self.filled.arguments(first));
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
