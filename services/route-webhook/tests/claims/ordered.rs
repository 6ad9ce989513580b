//! JSON that keeps the order of members. Two values are equal only if their JSON text would be equal.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ordered {
    Null,
    Truth(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl Ordered {
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let mut members = members.iter();
        members
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn members(&self) -> &[(String, Ordered)] {
        match self {
            Self::Object(members) => members,
            other => panic!("expected an object, found {other}"),
        }
    }

    pub(crate) fn items(&self) -> &[Ordered] {
        match self {
            Self::List(items) => items,
            other => panic!("expected a list, found {other}"),
        }
    }

    /// The value at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Self> {
        let mut tokens = pointer.split('/').skip(1);
        tokens.try_fold(self, |value, token| match value {
            Self::List(items) => items.get(token.parse::<usize>().ok()?),
            value => value.get(&unescaped(token)),
        })
    }

    /// Sets the value at a JSON pointer, or removes it.
    pub(crate) fn change(&mut self, pointer: &str, new: Option<Ordered>) {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        let mut place = self;
        for token in parent.split('/').skip(1) {
            let name = unescaped(token);
            let Self::Object(members) = place else {
                panic!("{pointer}: no object");
            };
            let mut members = members.iter_mut();
            let found = members.find(|(known, _)| *known == name);
            place = &mut found.unwrap_or_else(|| panic!("{pointer}")).1;
        }
        let Self::Object(members) = place else {
            panic!("{pointer}: no object");
        };
        let name = unescaped(last);
        let index = members.iter().position(|(known, _)| *known == name);
        match (index, new) {
            (Some(index), Some(new)) => members[index].1 = new,
            (None, Some(new)) => members.push((name, new)),
            (Some(index), None) => drop(members.remove(index)),
            (None, None) => panic!("{pointer}: nothing to take away"),
        }
    }
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// In the form of the webhook's responses: no spaces, and unescaped letters.
impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &String| serde_json::to_string(text).unwrap();
        match self {
            Self::Null => f.write_str("null"),
            Self::Truth(is_true) => write!(f, "{is_true}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(value) => f.write_str(&text(value)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", text(name)));
                write!(f, "{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Truth(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
                Ok(Ordered::Number(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
                Ok(Ordered::Number(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
                Ok(Ordered::Number(
                    serde_json::Number::from_f64(value).unwrap(),
                ))
            }

            fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
                Ok(Ordered::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ordered, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Ordered::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered::Object(members))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
