//! Reads a request: its members, and errors for missing members.
//!
//! Only the needed members are read. The rest of a body is checked for its syntax and skipped.

mod parts;

use std::borrow::Cow;
use std::fmt;

use json_text::Ambiguity;
use serde_json::value::RawValue;

use parts::{Index, Parts};

/// Maximum number of items in a list, and of members in an object, if they are read one by one. A pod cannot
/// have as many.
const ITEMS_MAX: usize = 10_000;

/// Maximum number of names, values and ends of objects and lists in a body. They take 4 MiB. A route has
/// hundreds.
const PARTS_MAX: usize = 1 << 19;

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is not JSON.
    #[error("Failed to parse request body: {0}")]
    NoJson(String),
    /// A required member is missing.
    #[error("Missing field from request: {0}")]
    Missing(String),
    /// A member has the wrong type.
    #[error("Wrong type in request: expected {place} to be {expected}, found {found}")]
    Unfit {
        /// The location of the member.
        place: String,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
    },
}

/// A body that is JSON.
#[derive(Debug)]
pub struct Body<'a> {
    text: &'a str,
    parts: Parts,
}

/// A value of the body, with its location.
#[derive(Clone, Copy, Debug)]
pub struct BodyNode<'a, 'p> {
    body: &'p Body<'a>,
    index: Index,
    place: Place<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Place<'p> {
    Body,
    Member(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Body => f.write_str("the body"),
            Place::Member(Place::Body, name) => f.write_str(name),
            Place::Member(place, name) if name.contains(['.', '/']) => {
                write!(f, "{place}[\"{name}\"]")
            }
            Place::Member(place, name) => write!(f, "{place}.{name}"),
            Place::Item(place, index) => write!(f, "{place}[{index}]"),
        }
    }
}

impl<'a> Body<'a> {
    /// Checks the body of a request.
    ///
    /// # Errors
    ///
    /// Fails if the body is not JSON in UTF-8, or has too many values. Their parts would take a multiple of
    /// its size in memory.
    pub fn read(body: &'a [u8]) -> Result<Self, Refusal> {
        let no_json = |why: &dyn fmt::Display| Refusal::NoJson(why.to_string());
        let text = std::str::from_utf8(body).map_err(|error| no_json(&error))?;
        // As raw text: this checks the syntax without an allocation.
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| no_json(&error))?;
        // serde_json accepts them in raw text and refuses them only when the text is unescaped. That would be
        // in the middle of a response.
        if let Some(escape) = lone_surrogate(text) {
            return Err(no_json(&format!("`{escape}` is half of a letter")));
        }
        let text = raw.get();
        let parts = Parts::of(text, PARTS_MAX).ok_or_else(|| Refusal::Unfit {
            place: Place::Body.to_string(),
            expected: "JSON of at most 524288 names, values and ends of objects and lists",
            found: "more",
        })?;
        Ok(Self { text, parts })
    }

    /// The value of the whole body.
    #[must_use]
    pub fn root(&self) -> BodyNode<'a, '_> {
        BodyNode {
            body: self,
            index: Index::ROOT,
            place: Place::Body,
        }
    }

    /// The content of a text, without quotes and escapes.
    fn unquoted(&self, index: Index) -> Cow<'a, str> {
        let json = self.parts.text(self.text, index);
        if !self.parts.is_escaped(index) {
            return Cow::Borrowed(&json[1..json.len() - 1]);
        }
        let text = serde_json::from_str(json);
        // `read` has parsed the whole body and refused lone surrogates, so this text is valid. If it were
        // not, a client must still not be able to end the thread.
        debug_assert!(text.is_ok(), "{json} was checked before");
        Cow::Owned(text.unwrap_or_default())
    }
}

impl<'a, 'p> BodyNode<'a, 'p> {
    /// The unchanged JSON of this value.
    #[must_use]
    pub fn json(&self) -> &'a str {
        self.body.parts.text(self.body.text, self.index)
    }

    /// The unchanged JSON of this value, for the answer.
    ///
    /// # Errors
    ///
    /// Fails if an object in it has a name twice. The original keeps the last value, and other readers the first.
    pub fn passed_on(&self) -> Result<&'a str, Refusal> {
        let json = self.json();
        match json_text::check_unambiguous(json) {
            Err(Ambiguity::GivenTwice { .. }) => Err(self.given_twice()),
            // The other differences between readers are not made worse by passing the text on.
            _ => Ok(json),
        }
    }

    fn given_twice(&self) -> Refusal {
        self.unfit("JSON with each name of an object once", "a name twice")
    }

    /// Members of an object by name. If a name occurs twice, the last one counts.
    ///
    /// # Errors
    ///
    /// Fails if this is not an object.
    pub fn members<'s, const N: usize>(
        &'s self,
        names: [&'s str; N],
    ) -> Result<[Option<BodyNode<'a, 's>>; N], Refusal> {
        self.must_be(b'{', "an object")?;
        let mut found = [None; N];
        for (name, index) in self.body.parts.members(self.index) {
            let name = self.body.unquoted(name);
            // A linear search over a handful of names, which is faster than a table of all members.
            if let Some(wanted) = names.iter().position(|wanted| *wanted == name) {
                found[wanted] = Some(BodyNode {
                    body: self.body,
                    index,
                    place: Place::Member(&self.place, names[wanted]),
                });
            }
        }
        Ok(found)
    }

    /// One member of an object. `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if this is not an object.
    pub fn member<'s>(&'s self, name: &'s str) -> Result<Option<BodyNode<'a, 's>>, Refusal> {
        self.members([name]).map(|[member]| member)
    }

    /// Required members of an object. The error names the first missing member.
    ///
    /// # Errors
    ///
    /// Fails if this is not an object, or a member is missing.
    pub fn required<'s, const N: usize>(
        &'s self,
        names: [&'s str; N],
    ) -> Result<[BodyNode<'a, 's>; N], Refusal> {
        let found = self.members(names)?;
        if let Some(index) = found.iter().position(Option::is_none) {
            return Err(self.missing(names[index]));
        }
        Ok(found.map(|member| member.expect("an absent one has ended this above")))
    }

    /// The error for a missing member.
    #[must_use]
    pub fn missing(&self, name: &str) -> Refusal {
        Refusal::Missing(Place::Member(&self.place, name).to_string())
    }

    /// All members of an object with their names, in order, for the answer.
    ///
    /// # Errors
    ///
    /// Fails if this is not an object, has a name twice, or has more members than a Kubernetes object can have.
    pub fn entries(&self) -> Result<Vec<(Cow<'a, str>, &'a str)>, Refusal> {
        self.must_be(b'{', "an object")?;
        let Body { text, parts } = self.body;
        let entries: Vec<_> = parts
            .members(self.index)
            // One more than allowed, to detect more members without counting all.
            .take(ITEMS_MAX + 1)
            .map(|(name, value)| (self.body.unquoted(name), parts.text(text, value)))
            .collect();
        if entries.len() > ITEMS_MAX {
            return Err(self.unfit("an object of at most 10000 members", "more"));
        }
        // The values are texts of Kubernetes. A value that is an object is passed on, too.
        self.passed_on()?;
        Ok(entries)
    }

    /// The items of a list.
    ///
    /// # Errors
    ///
    /// Fails if this is not a list, or is longer than any list of a pod.
    pub fn items(&self) -> Result<Vec<BodyNode<'a, '_>>, Refusal> {
        self.must_be(b'[', "a list")?;
        let parts = &self.body.parts;
        let items: Vec<_> = parts
            .items(self.index)
            .take(ITEMS_MAX + 1)
            .enumerate()
            .map(|(number, index)| BodyNode {
                body: self.body,
                index,
                place: Place::Item(&self.place, number),
            })
            .collect();
        if items.len() > ITEMS_MAX {
            return Err(self.unfit("a list of at most 10000 items", "more"));
        }
        Ok(items)
    }

    /// The content of a text.
    ///
    /// # Errors
    ///
    /// Fails if this is not a text.
    pub fn text(&self) -> Result<Cow<'a, str>, Refusal> {
        self.must_be(b'"', "a text")?;
        Ok(self.body.unquoted(self.index))
    }

    /// This value, unless it is `null`.
    #[must_use]
    pub fn unless_null(self) -> Option<Self> {
        (self.json() != "null").then_some(self)
    }

    /// This value, unless it is empty: null, false, 0, and texts, lists and objects without content.
    #[must_use]
    pub fn unless_empty(self) -> Option<Self> {
        let json = self.json();
        let inside = json.get(1..json.len().saturating_sub(1));
        // True if there is only white space between its brackets. The text is valid JSON, so other characters
        // are a value.
        let is_hollow = inside.is_some_and(|inside| inside.trim().is_empty());
        let is_empty = match json.bytes().next() {
            Some(b'n' | b'f') => true,
            Some(b'{' | b'[') => is_hollow,
            Some(b'"') => json.len() == 2,
            Some(b't') => false,
            // Parsed, because zero has many spellings: `-0`, `0.0`, `0e9`.
            _ => json.parse().is_ok_and(|number: f64| number == 0.0),
        };
        (!is_empty).then_some(self)
    }

    /// This value, if it is an object.
    ///
    /// # Errors
    ///
    /// Fails if this is not an object.
    pub fn object(self) -> Result<Self, Refusal> {
        self.must_be(b'{', "an object").map(|()| self)
    }

    /// This value, if it is a list.
    ///
    /// # Errors
    ///
    /// Fails if this is not a list.
    pub fn list(self) -> Result<Self, Refusal> {
        self.must_be(b'[', "a list").map(|()| self)
    }

    /// True if both are the same number, or the same text.
    #[must_use]
    pub fn is_same_as(&self, other: &str) -> bool {
        let number = |json: &str| json.parse::<f64>().ok();
        self.json() == other
            || number(self.json())
                .zip(number(other))
                .is_some_and(|(own, other)| own == other)
    }

    /// The error for a value that is not of the expected type.
    #[must_use]
    pub fn unfit(&self, expected: &'static str, found: &'static str) -> Refusal {
        Refusal::Unfit {
            place: self.place.to_string(),
            expected,
            found,
        }
    }

    /// The error for a value without any of the expected members.
    #[must_use]
    pub fn neither(&self, expected: &'static str) -> Refusal {
        self.unfit(expected, kind(self.json()))
    }

    fn must_be(&self, first: u8, expected: &'static str) -> Result<(), Refusal> {
        if self.json().as_bytes().first() == Some(&first) {
            return Ok(());
        }
        Err(self.neither(expected))
    }
}

fn kind(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    }
}

/// The first escape of a surrogate without its other half.
fn lone_surrogate(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut open: Option<&str> = None;
    while let Some(place) = rest.find('\\') {
        // The other half must be the next escape.
        if open.is_some() && place > 0 {
            return open;
        }
        let escape = &rest[place..];
        let unit = escape
            .strip_prefix("\\u")
            .and_then(|digits| u16::from_str_radix(digits.get(..4)?, 16).ok());
        // `\uXXXX` or a backslash with one letter. The syntax was checked before.
        let length = if unit.is_some() { 6 } else { 2 };
        let written = &escape[..length];
        match (unit, open) {
            (Some(0xdc00..=0xdfff), Some(_)) => open = None,
            (_, Some(high)) => return Some(high),
            (Some(0xd800..=0xdbff), None) => open = Some(written),
            (Some(0xdc00..=0xdfff), None) => return Some(written),
            _ => {}
        }
        rest = &escape[length..];
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Body<'_> {
        Body::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_last_member_of_a_name_counts_and_escapes_are_read() {
        let body = read(r#" {"a": 1, "\u0062": [ ], "a": "\u00e9" } "#);
        let body = body.root();
        let [a, b, c] = body.members(["a", "b", "c"]).unwrap();
        assert_eq!(a.unwrap().text().unwrap(), "é");
        assert_eq!(b.unwrap().items().unwrap().len(), 0);
        assert!(c.is_none());
        assert!(b.unwrap().unless_empty().is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let body = read(r#"{"a": {"b.c": [1, null]}}"#);
        let body = body.root();
        let a = body.member("a").unwrap().unwrap();
        let list = a.member("b.c").unwrap().unwrap();
        let items = list.items().unwrap();
        assert_eq!(
            items[1].text().unwrap_err().to_string(),
            r#"Wrong type in request: expected a["b.c"][1] to be a text, found null"#
        );
        assert_eq!(
            a.required(["b.c", "d"]).unwrap_err(),
            Refusal::Missing("a.d".to_owned())
        );
        let unfit = read("[]").root().member("a").unwrap_err().to_string();
        assert!(unfit.ends_with("expected the body to be an object, found a list"));
    }

    #[test]
    fn half_letters_and_half_bodies_are_no_json() {
        for wrong in [
            "",
            "{",
            "{} {}",
            "nul",
            "NaN",
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\n""#,
            r#""\ud800x\udc00""#,
            r#""\ud800\ud800\udc00""#,
        ] {
            let refusal = Body::read(wrong.as_bytes()).unwrap_err().to_string();
            assert!(
                refusal.starts_with("Failed to parse request body: "),
                "{wrong}: {refusal}"
            );
        }
        assert!(Body::read(b"\"\xff\"").is_err());
        read(r#""\ud83d\ude00\\ud800 \u00e9""#);
    }

    #[test]
    fn a_list_that_no_pod_could_have_is_refused() {
        let long = format!("[{}0]", "0,".repeat(ITEMS_MAX));
        assert!(read(&long).root().items().is_err());
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(read(&deep).root().items().unwrap().len(), 1);
        let most = "[".repeat(PARTS_MAX / 2) + &"]".repeat(PARTS_MAX / 2);
        read(&most);
        let more = Body::read(format!("[{most}]").as_bytes()).unwrap_err();
        assert!(more.to_string().ends_with("objects and lists, found more"));
    }

    #[test]
    fn empty_is_what_holds_nothing() {
        for empty in [
            "null", "false", "0", "-0", "0.0", "\"\"", "[]", "{ }", "[\n]",
        ] {
            assert!(read(empty).root().unless_empty().is_none(), "{empty}");
        }
        for full in ["true", "1", "\" \"", "[0]", "{\"\":0}", "1e-9"] {
            assert!(read(full).root().unless_empty().is_some(), "{full}");
        }
    }
}
