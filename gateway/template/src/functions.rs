//! The functions that templates may call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use unicase::UniCase;

use crate::expression::Function;
use crate::json::Json;
use crate::number;
use crate::rendered::{Rendered, Value, truth, wrong};
use crate::scope::Scope;

/// Characters that a URL must escape: all except the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

impl Function {
    pub(crate) fn apply<'a>(self, arguments: Vec<Value<'a>>, scope: &Scope<'a>) -> Rendered<'a> {
        let mut arguments = arguments.into_iter();
        let value = arguments
            .next()
            .expect("the parser has checked how many arguments there are");
        let work = scope.work;
        match (self, &*value) {
            (Self::Empty, Json::Number(digits)) => work.spend(digits.len())?,
            // These functions read a fixed amount, or count their copies themselves.
            (Self::Not | Self::Empty | Self::Head | Self::GetSessionVariable, _)
            | (Self::Size, Json::List(_) | Json::Object(_)) => {}
            // The result is as large as the argument, or three times as large for an escaped text.
            (Self::EscapeUri, Json::Text(text)) => work.spend(text.len().saturating_mul(3))?,
            _ => work.see(&value)?,
        }
        let refused = |value: &Json<'_>| {
            let name = self.name();
            wrong(format!("`{name}` cannot be applied to {}", value.kind()))
        };
        let made = match (self, &*value) {
            (Self::Not, value) => Json::Bool(!truth(value, "what `not` turns around")?),
            (Self::Empty, value) => match is_empty(value) {
                Some(flag) => Json::Bool(flag),
                None => return refused(value),
            },
            (Self::Size, value) => match size(value) {
                Some(size) => size,
                None => return refused(value),
            },
            (Self::Inverse, _) => match inverse(value.into_owned()) {
                Ok(value) => value,
                Err(value) => return refused(&value),
            },
            (Self::Head, Json::List(items)) => match items.first() {
                Some(first) => work.copy(first)?,
                None => return wrong("`head` of an array without items"),
            },
            (Self::Head, Json::Text(text)) => match text.chars().next() {
                Some(first) => Json::Text(first.to_string().into()),
                None => return wrong("`head` of an empty string"),
            },
            (Self::Tail, Json::List(items)) => {
                // Unlike for `head`, an empty list is no error. Its rest is empty.
                Json::List(items.get(1..).unwrap_or_default().to_vec())
            }
            (Self::Tail, Json::Text(text)) => Json::Text(text.chars().skip(1).collect()),
            (Self::RemoveNulls, Json::List(items)) => {
                let kept = items.iter().filter(|item| **item != Json::Null);
                Json::List(kept.cloned().collect())
            }
            (Self::Concat, Json::List(items)) => return concat(items),
            (Self::ToPairs, Json::Object(members)) => to_pairs(members),
            (Self::FromPairs, Json::List(pairs)) => return from_pairs(pairs),
            (Self::GetSessionVariable, Json::Text(name)) => {
                return session_variable(name, arguments.next(), scope);
            }
            // The remaining functions apply only to strings.
            (_, Json::Text(text)) => match self.of_text(text) {
                Some(text) => Json::Text(text.into()),
                None => return refused(&value),
            },
            (_, other) => return refused(other),
        };
        Ok(Cow::Owned(made))
    }

    fn of_text(self, text: &str) -> Option<String> {
        Some(match self {
            Self::EscapeUri => utf8_percent_encode(text, RESERVED).to_string(),
            Self::ToLower => text.to_lowercase(),
            Self::ToCaseFold => UniCase::unicode(text).to_folded_case(),
            Self::ToUpper => text.to_uppercase(),
            Self::ToTitle => title(text),
            _ => return None,
        })
    }
}

fn is_empty(value: &Json<'_>) -> Option<bool> {
    match value {
        Json::Null => Some(true),
        Json::Text(text) => Some(text.trim().is_empty()),
        Json::List(items) => Some(items.is_empty()),
        Json::Object(members) => Some(members.is_empty()),
        // A number is empty if it is zero, in any form: `0`, `0.0`, `-0`.
        Json::Number(digits) => Some(number::is_zero(digits)),
        Json::Bool(_) => None,
    }
}

fn size<'a>(value: &Json<'a>) -> Option<Json<'a>> {
    let count = match value {
        Json::Null => 0,
        Json::Bool(flag) => usize::from(*flag),
        Json::Text(text) => text.chars().count(),
        Json::List(items) => items.len(),
        Json::Object(members) => members.len(),
        Json::Number(digits) => return Some(Json::Number(digits.clone())),
    };
    Some(Json::Number(count.to_string().into()))
}

/// The opposite of a value, or `Err` with the unchanged value.
fn inverse(value: Json<'_>) -> Result<Json<'_>, Json<'_>> {
    match value {
        Json::Null => Ok(Json::Null),
        Json::Bool(flag) => Ok(Json::Bool(!flag)),
        Json::Text(text) => Ok(Json::Text(text.chars().rev().collect())),
        Json::List(mut items) => {
            items.reverse();
            Ok(Json::List(items))
        }
        // The inverse of zero is infinite, and JSON cannot represent it.
        Json::Number(digits) => match digits.parse::<f64>().map(|number| 1.0 / number) {
            Ok(number) if number.is_finite() => Ok(Json::Number(number.to_string().into())),
            _ => Err(Json::Number(digits)),
        },
        // As in the original, an object is its own inverse.
        Json::Object(members) => Ok(Json::Object(members)),
    }
}

/// Writes the first letter of each word in upper case, and all later letters in lower case. White space
/// separates words.
fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut is_inside = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            is_inside = false;
            titled.push(letter);
        } else if is_inside {
            titled.extend(letter.to_lowercase());
        } else {
            is_inside = letter.is_alphabetic();
            let mut letters = letter.to_uppercase();
            titled.extend(letters.next());
            // Some letters become two, as `ß` does. Only the first of them is a capital.
            titled.extend(letters.flat_map(char::to_lowercase));
        }
    }
    titled
}

/// The members of an object as lists of a key and a value, ordered by key as in the original.
fn to_pairs<'a>(members: &[(Cow<'a, str>, Json<'a>)]) -> Json<'a> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    let pairs = members
        .into_iter()
        .map(|(key, value)| Json::List(vec![Json::Text(key.clone()), value.clone()]));
    Json::List(pairs.collect())
}

fn from_pairs<'a>(pairs: &[Json<'a>]) -> Rendered<'a> {
    let mut members = Members::default();
    for pair in pairs {
        let parts = match pair {
            Json::List(parts) => &parts[..],
            _ => &[],
        };
        let [Json::Text(key), value] = parts else {
            return wrong(format!(
                "`fromPairs` takes arrays of a string and a value, found {}",
                String::from_utf8_lossy(&pair.to_bytes())
            ));
        };
        members.insert(key, value);
    }
    Ok(Cow::Owned(Json::Object(members.in_order)))
}

/// Members of an object. A later member replaces an earlier one in its place.
#[derive(Default)]
struct Members<'a, 'b> {
    in_order: Vec<(Cow<'a, str>, Json<'a>)>,
    /// The position of each key. A table, because objects of a client can have any number of members.
    positions: HashMap<&'b str, usize>,
}

impl<'a, 'b> Members<'a, 'b> {
    #[expect(clippy::ptr_arg, reason = "the clone of a borrowed key copies no text")]
    fn insert(&mut self, key: &'b Cow<'a, str>, value: &Json<'a>) {
        match self.positions.entry(key) {
            Entry::Occupied(known) => self.in_order[*known.get()].1 = value.clone(),
            Entry::Vacant(new) => {
                new.insert(self.in_order.len());
                self.in_order.push((key.clone(), value.clone()));
            }
        }
    }
}

fn concat<'a>(items: &[Json<'a>]) -> Rendered<'a> {
    // All items must have the kind of the first.
    let unlike = |item: &Json<'_>| {
        let first = items.first().map_or("nothing", Json::kind);
        wrong(format!("`concat` cannot join {first} and {}", item.kind()))
    };
    let joined = match items {
        [] => Json::List(Vec::new()),
        [Json::Text(_), ..] => {
            let mut joined = String::new();
            for item in items {
                match item {
                    Json::Text(more) => joined.push_str(more),
                    other => return unlike(other),
                }
            }
            Json::Text(joined.into())
        }
        [Json::List(_), ..] => {
            let mut joined = Vec::new();
            for item in items {
                match item {
                    Json::List(more) => joined.extend(more.iter().cloned()),
                    other => return unlike(other),
                }
            }
            Json::List(joined)
        }
        [Json::Object(_), ..] => {
            let mut joined = Members::default();
            for item in items {
                let Json::Object(more) = item else {
                    return unlike(item);
                };
                for (key, value) in more {
                    joined.insert(key, value);
                }
            }
            Json::Object(joined.in_order)
        }
        [other] => return wrong(format!("`concat` cannot join {}", other.kind())),
        [_, next, ..] => return unlike(next),
    };
    Ok(Cow::Owned(joined))
}

fn session_variable<'a>(name: &str, default: Option<Value<'a>>, scope: &Scope<'a>) -> Rendered<'a> {
    scope.work.spend(name.len())?;
    let name = name.to_lowercase();
    let variables = scope.variable("$session_variables");
    let found = variables.and_then(|variables| variables.get(&name));
    match (found, default) {
        (Some(value), _) => scope.work.copy(value).map(Cow::Owned),
        (None, Some(default)) => Ok(default),
        (None, None) => wrong(format!("there is no session variable `{name}`")),
    }
}
