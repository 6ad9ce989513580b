//! Constant values of a script, and operations on them as in JavaScript.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// Maximum length of texts and lists. It stops constants that double one another.
const LENGTH_MAX: usize = 1 << 22;

/// A value that can be calculated before the script runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Js {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Js>),
    Object(Vec<(String, Js)>),
    /// The value of an environment variable (`__ENV.NAME`), followed by a text. A URL may have an unknown
    /// server and a constant path.
    Environment {
        name: String,
        after: String,
    },
    /// An unknown member of an object, with the reason. The other members can still be used.
    Unknown(String),
}

impl Js {
    /// True if JavaScript treats the value as true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Js::Undefined | Js::Null | Js::Environment { .. } | Js::Unknown(_) => false,
            Js::Bool(is) => *is,
            Js::Number(number) => *number != 0.0 && !number.is_nan(),
            Js::Text(text) => !text.is_empty(),
            Js::List(_) | Js::Object(_) => true,
        }
    }

    /// The text of the value in a template.
    ///
    /// # Errors
    /// The reason why it is unknown.
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

    /// Concatenates two values, as `+` and templates do.
    ///
    /// # Errors
    /// The reason why the text is unknown.
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

    /// A member of an object, or an item of a list.
    pub(super) fn member(&self, name: &str) -> Js {
        let found = match self {
            // If a name appears twice, the last member counts.
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

    /// The output of `JSON.stringify`. `undefined` for values that it leaves out.
    ///
    /// # Errors
    /// The reason why a part is unknown.
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

    /// The reason why a part of the value is unknown.
    fn unknown(&self) -> Option<String> {
        match self {
            Js::Environment { name, .. } => Some(of_the_environment(name)),
            Js::Unknown(why) => Some(why.clone()),
            Js::List(items) => items.iter().find_map(Js::unknown),
            Js::Object(members) => members.iter().find_map(|(_, it)| it.unknown()),
            _ => None,
        }
    }

    /// True if lists and objects are nested deeper than `levels`.
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
                // Numbers outside of JSON, such as infinity, become `null`, as in JavaScript.
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

/// The reason why a text with an environment variable is unknown.
pub(super) fn of_the_environment(name: &str) -> String {
    format!("`__ENV.{name}` is known only when it runs")
}

/// A number below 10^21 in JavaScript's notation.
fn written(number: f64) -> String {
    match whole(number) {
        Some(whole) => whole.to_string(),
        None if number.is_infinite() => "Infinity".to_owned(),
        None => number.to_string(),
    }
}

/// A whole number that a double represents exactly.
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

/// Appends to a list or object, up to the maximum length.
pub(super) fn extend<T>(known: &mut Vec<T>, more: Vec<T>) -> Result<(), String> {
    known.extend(more);
    if known.len() > LENGTH_MAX / 64 {
        return Err(format!("a list is longer than {}", LENGTH_MAX / 64));
    }
    Ok(())
}
