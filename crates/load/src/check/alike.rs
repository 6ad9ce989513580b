//! Compares two JSON bodies without the members that differ by nature, such as timings.
//!
//! Both sides lose the parts that the pointers (RFC 6901) name. The rest must be equal as values, so the
//! order of members and white space do not count. A pointer to a missing part is no mistake, because a
//! volatile member may be missing.

use serde_json::Value;

/// The first difference between two bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// JSON pointer to the place. Empty for the whole body.
    pub(super) pointer: String,
    pub(super) expected: String,
    pub(super) found: String,
}

/// Length in characters beyond which messages cut a value.
const SHOWN_MAX: usize = 80;

/// The correct body, without the ignored parts.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// `None` if the correct body itself is no JSON. Only equal bytes are then correct.
    value: Option<Value>,
    ignore: Vec<String>,
}

impl Pattern {
    pub(super) fn new(body: &[u8], ignore: &[String]) -> Pattern {
        Pattern {
            value: read(body, ignore),
            ignore: ignore.to_vec(),
        }
    }

    /// Returns the first difference that is not ignored.
    pub(super) fn differs_from(&self, body: &[u8]) -> Option<Difference> {
        let whole = |expected: &str, found: &str| Difference {
            pointer: String::new(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        let Some(expected) = &self.value else {
            return Some(whole(
                "the known bytes of a body that is not JSON",
                "other bytes",
            ));
        };
        let Some(found) = read(body, &self.ignore) else {
            return Some(whole("JSON", "a body that is not JSON"));
        };
        difference(expected, &found, String::new())
    }
}

fn read(body: &[u8], ignore: &[String]) -> Option<Value> {
    let mut value = serde_json::from_slice(body).ok()?;
    for pointer in ignore {
        remove(&mut value, pointer);
    }
    Some(value)
}

/// Removes the part that a pointer names. An item of a list becomes `null`, so that other items keep their
/// places.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&last);
        }
        Some(Value::Array(items)) => {
            let item = last.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = item {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

fn difference(expected: &Value, found: &Value, pointer: String) -> Option<Difference> {
    match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            let missing = one.iter().filter(|(name, _)| !other.contains_key(*name));
            let added = other.iter().filter(|(name, _)| !one.contains_key(*name));
            let below =
                |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            // Common members come first, because a change is more useful in a message than an addition.
            let both = one
                .iter()
                .find_map(|(name, expected)| difference(expected, other.get(name)?, below(name)));
            let missing = missing.map(|(name, expected)| (name, Some(expected), None));
            let added = added.map(|(name, found)| (name, None, Some(found)));
            both.or_else(|| {
                missing
                    .chain(added)
                    .next()
                    .map(|(name, expected, found)| Difference {
                        pointer: below(name),
                        expected: shown(expected),
                        found: shown(found),
                    })
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .find_map(|(at, (expected, found))| {
                difference(expected, found, format!("{pointer}/{at}"))
            }),
        _ => (expected != found).then(|| Difference {
            pointer,
            expected: shown(Some(expected)),
            found: shown(Some(found)),
        }),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), |value| format!("`{value}`"));
    if text.chars().count() <= SHOWN_MAX {
        return text;
    }
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    format!("{cut}…`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(expected: &str, found: &str, ignore: &[&str]) -> String {
        let ignore: Vec<String> = ignore.iter().map(|&pointer| pointer.to_owned()).collect();
        let pattern = Pattern::new(expected.as_bytes(), &ignore);
        pattern.differs_from(found.as_bytes()).map_or_else(
            || "alike".to_owned(),
            |it| format!("{}: {}, {}", it.pointer, it.expected, it.found),
        )
    }

    #[test]
    fn what_is_ignored_may_differ_or_be_missing() {
        let expected = r#"{"data":1,"extensions":{"ms":5,"a/b":[1,2]}}"#;
        for found in [
            r#"{"extensions":{"ms":9,"a/b":[1,2]},"data":1}"#,
            r#"{ "data": 1, "extensions": {"a/b":[1,7]} }"#,
        ] {
            let ignore = ["/extensions/ms", "/extensions/a~1b/1", "/not/there"];
            assert_eq!(compare(expected, found, &ignore), "alike", "{found}");
        }
        assert_eq!(compare("{}", "[]", &[""]), "alike");
    }

    #[test]
    fn the_rest_must_be_equal_and_the_difference_is_pointed_out() {
        let expected = r#"{"a":{"t":1,"b":[1,2]}}"#;
        for (found, difference) in [
            (r#"{"a":{"t":2,"b":[1,3]}}"#, "/a/b/1: `2`, `3`"),
            (r#"{"a":{"t":2,"b":[1]}}"#, "/a/b: `[1,2]`, `[1]`"),
            (r#"{"a":{"t":2}}"#, "/a/b: `[1,2]`, nothing"),
            (r#"{"a":{"b":[1,2]},"c/d":0}"#, "/c~1d: nothing, `0`"),
            (r#"{"a":"#, ": JSON, a body that is not JSON"),
        ] {
            assert_eq!(compare(expected, found, &["/a/t"]), difference, "{found}");
        }
    }
}
