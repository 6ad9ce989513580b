//! Rules for the headers of subgraph requests, in their order of execution.
//!
//! If an earlier propagation has set a header, later propagations skip it. This does not apply to insert and
//! remove. Patterns never match headers of the connection or of content negotiation.

use std::cell::OnceCell;

use bytes::Bytes;
use gateway_config::{BodyPath, HeaderRule, HeaderSelection, Headers, InsertedValue, PathStep};
use gateway_telemetry::{TEXT_CHARS_MAX, shortened};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use crate::context::Context;

/// The client's GraphQL request, parsed when the first rule needs it.
#[derive(Debug, Default)]
pub struct ClientBody {
    text: Bytes,
    value: OnceCell<Value>,
}

impl ClientBody {
    /// Creates it from the JSON text of the request.
    pub fn new(text: Bytes) -> Self {
        Self {
            text,
            value: OnceCell::new(),
        }
    }

    /// The request text, unchanged.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The request as JSON. A body that is not JSON has no values, as if each member were absent.
    pub(crate) fn parsed(&self) -> &Value {
        self.value
            .get_or_init(|| serde_json::from_slice(&self.text).unwrap_or_default())
    }

    fn at(&self, path: &BodyPath) -> Option<&Value> {
        let value = self.parsed();
        path.0.iter().try_fold(value, |value, step| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::Index(index) => value.get(index),
        })
    }
}

/// The rules of one subgraph: first the rules for all subgraphs, then its own rules.
#[derive(Clone, Debug, Default)]
pub struct Rules(Box<[HeaderRule]>);

/// True for headers that patterns never match.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    gateway_hop::is_hop_by_hop(name.as_str())
        || [
            header::EXPECT,
            header::CONTENT_LENGTH,
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::HOST,
            header::ACCEPT,
            header::ACCEPT_ENCODING,
        ]
        .contains(name)
}

impl Rules {
    /// The rules for `subgraph`. The list may be empty.
    pub fn of_subgraph(headers: &Headers, subgraph: &str) -> Self {
        let own = headers.subgraphs.get(subgraph);
        // The rules for all subgraphs run first, so that a subgraph's own rules can override them.
        let own = own.into_iter().flat_map(|rules| &rules.request.operations);
        let all = &headers.all.request.operations;
        Self(all.iter().chain(own).cloned().collect())
    }

    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies the rules to the headers of a subgraph request.
    pub fn apply(
        &self,
        client: &HeaderMap,
        context: &Context,
        body: &ClientBody,
        target: &mut HeaderMap,
    ) {
        let mut propagated: Vec<HeaderName> = Vec::new();
        for rule in &self.0 {
            match rule {
                HeaderRule::Insert { name, value } => {
                    if let Some(value) = inserted(name, value, context, body) {
                        target.insert(name.clone(), value);
                    }
                }
                HeaderRule::Remove(HeaderSelection::Named(name)) => {
                    target.remove(name);
                }
                HeaderRule::Remove(HeaderSelection::Matching(pattern)) => {
                    let matching: Vec<HeaderName> = target
                        .keys()
                        .filter(|name| !is_reserved(name) && pattern.is_match(name.as_str()))
                        .cloned()
                        .collect();
                    for name in matching {
                        target.remove(name);
                    }
                }
                HeaderRule::PropagateNamed {
                    named,
                    target: to,
                    default,
                } => {
                    if propagated.contains(to) {
                        continue;
                    }
                    // Appended, not replaced, because a header may have several values, and values from
                    // earlier inserts stay.
                    let before = target.len();
                    for value in client.get_all(named) {
                        target.append(to.clone(), value.clone());
                    }
                    if target.len() == before
                        && let Some(default) = default
                    {
                        target.append(to.clone(), default.clone());
                    }
                    if target.len() > before {
                        propagated.push(to.clone());
                    }
                }
                HeaderRule::PropagateMatching(pattern) => {
                    // A match is compared with earlier rules only. Within one rule, all values of a header
                    // are propagated.
                    let before = propagated.len();
                    for (name, value) in client {
                        if !is_reserved(name)
                            && !propagated[..before].contains(name)
                            && pattern.is_match(name.as_str())
                        {
                            target.append(name.clone(), value.clone());
                            if !propagated[before..].contains(name) {
                                propagated.push(name.clone());
                            }
                        }
                    }
                }
            }
        }
    }
}

fn inserted(
    name: &HeaderName,
    value: &InsertedValue,
    context: &Context,
    body: &ClientBody,
) -> Option<HeaderValue> {
    let legal = |text: &str| match HeaderValue::from_str(text) {
        Ok(value) => Some(value),
        Err(_) => {
            let text = shortened(text, TEXT_CHARS_MAX);
            log::error!("header rule for `{name}`: `{text}` is not a legal header value");
            None
        }
    };
    match value {
        InsertedValue::Static(value) => Some(value.clone()),
        InsertedValue::FromContext(key) => from_context(key, context, |found| match found {
            Some(Value::String(text)) => legal(text),
            Some(_) => {
                log::error!("header rule for `{name}`: context entry `{key}` is not a string");
                None
            }
            None => None,
        }),
        InsertedValue::FromBody { path, default } => match body.at(path) {
            None | Some(Value::Null) => default.clone(),
            Some(Value::String(text)) => legal(text),
            Some(other) => legal(&other.to_string()),
        },
    }
}

/// Reads a context entry by its key. `key#/json/pointer` reads a value inside an entry, for example a claim
/// of a token: `apollo::authentication::jwt_claims#/client_name`.
fn from_context<T>(key: &str, context: &Context, look: impl FnOnce(Option<&Value>) -> T) -> T {
    match key.split_once('#') {
        // If a key with `#` exists, it is used as it is. Otherwise the part after `#` is a JSON pointer.
        Some((entry, pointer)) if !context.contains(key) => context.with(entry, |value| {
            look(value.and_then(|value| value.pointer(pointer)))
        }),
        _ => context.with(key, look),
    }
}
