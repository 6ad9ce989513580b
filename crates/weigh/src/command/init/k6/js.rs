//! Values of a script that are the same in each run, and what is made of them as JavaScript makes it.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// Longest text and list: constants that double one another grow no further.
const LENGTH_MAX: usize = 1 << 22;

/// A value that is known before the script runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Js {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Js>),
    Object(Vec<(String, Js)>),
    /// What the environment says (`__ENV.NAME`), and a text after it: a URL whose server is not known
    /// beforehand has a path that is.
    Environment {
        name: String,
        after: String,
    },
    /// A member of an object that is not known beforehand, and why: the others can still be used.
    Unknown(String),
}

impl Js {
    /// What counts as true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Js::Undefined | Js::Null | Js::Environment { .. } | Js::Unknown(_) => false,
            Js::Bool(is) => *is,
            Js::Number(number) => *number != 0.0 && !number.is_nan(),
            Js::Text(text) => !text.is_empty(),
            Js::List(_) | Js::Object(_) => true,
        }
    }

    /// The text that a template makes of it.
    ///
    /// # Errors
    /// Why it makes none.
    pub(super) fn text(&self) -> Result<String, String> {
        Ok(match self {
            Js::Undefined => "undefined".to_owned(),
            Js::Null => "null".to_owned(),
            Js::Bool(is) => is.to_string(),
            Js::Number(number) => written(*number),
            Js::Text(text) => text.clone(),
            Js::List(items) => {
                let items: Result<Vec<String>, String> = items.iter().map(Js::text).collect();
                items?.join(",")
            }
            Js::Object(_) => return Err("an object stands where a text is wanted".to_owned()),
            Js::Environment { name, .. } => return Err(of_the_environment(name)),
            Js::Unknown(why) => return Err(why.clone()),
        })
    }

    /// The two one after the other, as `+` and templates write them.
    ///
    /// # Errors
    /// Why there is no such text.
    pub(super) fn then(self, next: &Js) -> Result<Js, String> {
        let joined = match self {
            Js::Environment { name, after } => Js::Environment {
                after: bounded(after + &next.text()?)?,
                name,
            },
            Js::Text(text) if text.is_empty() => match next {
                Js::Environment { .. } => next.clone(),
                next => Js::Text(next.text()?),
            },
            first => Js::Text(bounded(first.text()? + &next.text()?)?),
        };
        Ok(joined)
    }

    /// A member or an item.
    pub(super) fn member(&self, name: &str) -> Js {
        let found = match self {
            // Of two of one name the last one counts.
            Js::Object(members) => members.iter().rev().find(|(own, _)| own == name),
            Js::List(items) if name == "length" => {
                return Js::Number(u32::try_from(items.len()).map_or(f64::INFINITY, f64::from));
            }
            Js::List(items) => {
                let index = name.parse::<usize>().ok();
                return index
                    .and_then(|index| items.get(index))
                    .cloned()
                    .unwrap_or(Js::Undefined);
            }
            _ => None,
        };
        found.map_or(Js::Undefined, |(_, value)| value.clone())
    }

    /// As `JSON.stringify` writes it, and nothing for what it leaves out.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn json(&self) -> Result<Js, String> {
        if let Some(why) = self.unknown() {
            return Err(why);
        }
        if *self == Js::Undefined {
            return Ok(Js::Undefined);
        }
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        Ok(Js::Text(bounded(text)?))
    }

    /// Why a part of it is not known beforehand.
    fn unknown(&self) -> Option<String> {
        match self {
            Js::Environment { name, .. } => Some(of_the_environment(name)),
            Js::Unknown(why) => Some(why.clone()),
            Js::List(items) => items.iter().find_map(Js::unknown),
            Js::Object(members) => members.iter().find_map(|(_, it)| it.unknown()),
            _ => None,
        }
    }

    /// Whether lists and objects lie in it more than so many levels deep.
    pub(super) fn is_deeper_than(&self, levels: usize) -> bool {
        let mut inner: Box<dyn Iterator<Item = &Js>> = match self {
            Js::List(items) => Box::new(items.iter()),
            Js::Object(members) => Box::new(members.iter().map(|(_, value)| value)),
            _ => return false,
        };
        levels == 0 || inner.any(|it| it.is_deeper_than(levels - 1))
    }

    pub(super) fn members(&self) -> &[(String, Js)] {
        match self {
            Js::Object(members) => members,
            _ => &[],
        }
    }
}

impl From<Value> for Js {
    fn from(value: Value) -> Js {
        match value {
            Value::Null => Js::Null,
            Value::Bool(is) => Js::Bool(is),
            Value::Number(number) => Js::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Js::Text(text),
            Value::Array(items) => Js::List(items.into_iter().map(Js::from).collect()),
            Value::Object(members) => Js::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Js::from(value)))
                    .collect(),
            ),
        }
    }
}

impl Serialize for Js {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Js::Undefined | Js::Null | Js::Environment { .. } | Js::Unknown(_) => {
                serializer.serialize_unit()
            }
            Js::Bool(is) => serializer.serialize_bool(*is),
            Js::Number(number) => match whole(*number) {
                Some(whole) => serializer.serialize_i64(whole),
                // What is no number is `null` in JSON, in JavaScript as here.
                None => serializer.serialize_f64(*number),
            },
            Js::Text(text) => serializer.serialize_str(text),
            Js::List(items) => serializer.collect_seq(items),
            Js::Object(members) => {
                let mut map = serializer.serialize_map(None)?;
                for (name, value) in members.iter().filter(|(_, it)| *it != Js::Undefined) {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// Why a text with a variable of the environment is none.
pub(super) fn of_the_environment(name: &str) -> String {
    format!("`__ENV.{name}` is known only when it runs")
}

/// A number as JavaScript writes it, below 10^21.
fn written(number: f64) -> String {
    match whole(number) {
        Some(whole) => whole.to_string(),
        None if number.is_infinite() => "Infinity".to_owned(),
        None => number.to_string(),
    }
}

/// A whole number that a double holds exactly.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is looked at before"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

fn bounded(text: String) -> Result<String, String> {
    if text.len() > LENGTH_MAX {
        return Err(format!("a text is longer than {LENGTH_MAX} bytes"));
    }
    Ok(text)
}

/// A list or object that another one is added to.
pub(super) fn extend<T>(known: &mut Vec<T>, more: Vec<T>) -> Result<(), String> {
    known.extend(more);
    if known.len() > LENGTH_MAX / 64 {
        return Err(format!("a list is longer than {}", LENGTH_MAX / 64));
    }
    Ok(())
}
