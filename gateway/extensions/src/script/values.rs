//! Values of scripts: headers, methods, statuses, bodies.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Map, Position};

type Thrown<T> = Result<T, Box<EvalAltResult>>;

/// Headers of a message. Clones share the same map.
#[derive(Clone, Default)]
pub(super) struct Headers(pub(super) Rc<RefCell<HeaderMap>>);

/// A header, as a script sees it in a loop over all headers.
#[derive(Clone)]
pub(super) struct HeaderPair {
    pub(super) name: ImmutableString,
    pub(super) value: ImmutableString,
}

fn lossy(value: &HeaderValue) -> ImmutableString {
    String::from_utf8_lossy(value.as_bytes()).as_ref().into()
}

fn name(text: &str) -> Thrown<HeaderName> {
    HeaderName::from_bytes(text.as_bytes())
        .map_err(|error| format!("`{text}` is not a header name: {error}").into())
}

fn value(text: &str) -> Thrown<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|error| format!("`{text}` is not a header value: {error}").into())
}

/// An error without a message. Reading an absent header throws it.
fn wordless() -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(
        Dynamic::from(String::new()),
        Position::NONE,
    ))
}

impl Headers {
    pub(super) fn get(&mut self, key: &str) -> Thrown<ImmutableString> {
        self.0.borrow().get(key).map(lossy).ok_or_else(wordless)
    }

    pub(super) fn set(&mut self, key: &str, text: &str) -> Thrown<()> {
        self.0.borrow_mut().insert(name(key)?, value(text)?);
        Ok(())
    }

    pub(super) fn append(&mut self, key: &str, list: Array) -> Thrown<()> {
        let name = name(key)?;
        for item in list {
            // Converted before borrowing. Both conversions can fail, and an error must not leave the map
            // borrowed.
            let text = item.into_immutable_string()?;
            self.0.borrow_mut().append(name.clone(), value(&text)?);
        }
        Ok(())
    }

    pub(super) fn values(&mut self, key: &str) -> Array {
        let headers = self.0.borrow();
        headers
            .get_all(key)
            .iter()
            .map(|value| Dynamic::from(lossy(value)))
            .collect()
    }

    pub(super) fn remove(&mut self, key: &str) -> Thrown<ImmutableString> {
        let removed = self.0.borrow_mut().remove(key);
        removed.as_ref().map(lossy).ok_or_else(wordless)
    }

    pub(super) fn contains(&mut self, key: &str) -> bool {
        self.0.borrow().contains_key(key)
    }

    pub(super) fn text(&mut self) -> String {
        self.0
            .borrow()
            .iter()
            .map(|(name, value)| format!("{name}: {}\n", lossy(value)))
            .collect()
    }
}

impl IntoIterator for Headers {
    type Item = HeaderPair;
    type IntoIter = std::vec::IntoIter<HeaderPair>;

    fn into_iter(self) -> Self::IntoIter {
        // Copied, so that a script may change headers while it iterates.
        let headers = self.0.borrow();
        let pairs: Vec<HeaderPair> = headers
            .iter()
            .map(|(name, value)| HeaderPair {
                name: name.as_str().into(),
                value: lossy(value),
            })
            .collect();
        pairs.into_iter()
    }
}

/// A method. It equals a string with the same letters in any case.
#[derive(Clone)]
pub(super) struct ScriptMethod(pub(super) Method);

impl ScriptMethod {
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_str().eq_ignore_ascii_case(text)
    }
}

/// An HTTP status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptStatus(pub(super) StatusCode);

/// A GraphQL request, as scripts see it.
#[derive(Clone, Default)]
pub(super) struct RequestBody {
    pub(super) query: Dynamic,
    pub(super) operation_name: Dynamic,
    /// A map, like `extensions`.
    pub(super) variables: Dynamic,
    pub(super) extensions: Dynamic,
}

/// A GraphQL response, as scripts see it.
#[derive(Clone, Default)]
pub(super) struct ResponseBody {
    pub(super) label: Dynamic,
    /// `None` if the response has no `data` member, which differs from `null`.
    pub(super) data: Option<Dynamic>,
    pub(super) errors: Array,
    pub(super) extensions: Dynamic,
    /// Members that a client needs to combine the parts of a response. Scripts do not see them.
    parts: Vec<(&'static str, Dynamic)>,
}

/// Members that only the parts of a response have.
const OF_PARTS: [&str; 4] = ["hasNext", "pending", "incremental", "completed"];

fn parse(bytes: &[u8]) -> Map {
    serde_json::from_slice::<Dynamic>(bytes)
        .ok()
        // A script sees no members in a body that is not an object. The body stays unchanged unless the
        // script assigns one.
        .and_then(Dynamic::try_cast::<Map>)
        .unwrap_or_default()
}

fn take_map(map: &mut Map, key: &str) -> Dynamic {
    map.remove(key)
        .filter(Dynamic::is_map)
        .unwrap_or_else(|| Map::new().into())
}

fn is_empty(map: &Dynamic) -> bool {
    map.as_map_ref().is_ok_and(|map| map.is_empty())
}

impl HeaderPair {
    pub(super) fn text(&mut self) -> String {
        format!("{}: {}", self.name, self.value)
    }
}

/// JSON text as a string.
fn utf8(json: &Bytes) -> String {
    String::from_utf8_lossy(json).into_owned()
}

impl RequestBody {
    /// The body as JSON text, for `print`.
    pub(super) fn text(&mut self) -> String {
        utf8(&self.write())
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut map = parse(bytes);
        Self {
            query: map.remove("query").unwrap_or_default(),
            operation_name: map.remove("operationName").unwrap_or_default(),
            variables: take_map(&mut map, "variables"),
            extensions: take_map(&mut map, "extensions"),
        }
    }

    /// JSON text in the order that subgraphs expect, without empty members.
    pub(super) fn write(&self) -> Bytes {
        let mut members = Members::default();
        if !self.query.is_unit() {
            members.add("query", &self.query);
        }
        if !self.operation_name.is_unit() {
            members.add("operationName", &self.operation_name);
        }
        if !is_empty(&self.variables) {
            members.add("variables", &self.variables);
        }
        if !is_empty(&self.extensions) {
            members.add("extensions", &self.extensions);
        }
        members.close()
    }
}

impl ResponseBody {
    /// The body as JSON text, for `print`.
    pub(super) fn text(&mut self) -> String {
        utf8(&self.write())
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut map = parse(bytes);
        Self {
            label: map.remove("label").unwrap_or_default(),
            data: map.remove("data"),
            errors: map
                .remove("errors")
                .and_then(Dynamic::try_cast::<Array>)
                .unwrap_or_default(),
            extensions: take_map(&mut map, "extensions"),
            parts: OF_PARTS
                .into_iter()
                .filter_map(|name| Some((name, map.remove(name)?)))
                .collect(),
        }
    }

    pub(super) fn write(&self) -> Bytes {
        let mut members = Members::default();
        if !self.label.is_unit() {
            members.add("label", &self.label);
        }
        if let Some(data) = &self.data {
            members.add("data", data);
        }
        if !self.errors.is_empty() {
            members.add("errors", &self.errors);
        }
        if !is_empty(&self.extensions) {
            members.add("extensions", &self.extensions);
        }
        for (name, value) in &self.parts {
            members.add(name, value);
        }
        members.close()
    }
}

#[derive(Default)]
struct Members(Vec<u8>);

impl Members {
    fn add(&mut self, name: &str, value: &impl serde::Serialize) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        json_text::write_string(name, &mut self.0);
        self.0.push(b':');
        let before = self.0.len();
        if serde_json::to_writer(&mut self.0, value).is_err() {
            // Closures and timestamps have no JSON form.
            self.0.truncate(before);
            self.0.extend_from_slice(b"null");
        }
    }

    fn close(mut self) -> Bytes {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0.into()
    }
}

/// A value as JSON text. Values without a JSON form become `null`.
pub(super) fn to_json(value: &Dynamic) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
