//! Rules for the headers of subgraph requests, put into the order they run in.
//!
//! The semantics in one place: rules run in order; a target that an earlier
//! propagation filled is skipped by later ones; insert and remove are not
//! subject to that; patterns never touch headers of the connection or of
//! content negotiation.

use std::cell::OnceCell;

use bytes::Bytes;
use gateway_config::{BodyPath, HeaderRule, HeaderSelection, Headers, InsertedValue, PathStep};
use gateway_telemetry::{TEXT_CHARS_MAX, shortened};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use crate::context::Context;

/// The client's GraphQL request, parsed when the first rule asks for it.
#[derive(Debug, Default)]
pub struct ClientBody {
    text: Bytes,
    value: OnceCell<Value>,
}

impl ClientBody {
    /// The request as JSON.
    pub fn new(text: Bytes) -> Self {
        Self {
            text,
            value: OnceCell::new(),
        }
    }

    /// The request as it was given.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    fn at(&self, path: &BodyPath) -> Option<&Value> {
        let value = self
            .value
            // A body that is not JSON has no values; the rule then uses its default, as for an
            // absent member.
            .get_or_init(|| serde_json::from_slice(&self.text).unwrap_or_default());
        path.0.iter().try_fold(value, |value, step| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::Index(index) => value.get(index),
        })
    }
}

/// The rules of one subgraph, its own behind those for all.
#[derive(Clone, Debug, Default)]
pub struct Rules(Box<[HeaderRule]>);

/// Headers that patterns never touch.
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
    /// The rules for `subgraph`; empty without rules for it.
    pub fn of_subgraph(headers: &Headers, subgraph: &str) -> Self {
        let own = headers.subgraphs.get(subgraph);
        // The rules for all run first, so that a subgraph's own can override them.
        let own = own.into_iter().flat_map(|rules| &rules.request);
        Self(headers.all.request.iter().chain(own).cloned().collect())
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Carries the rules out on the headers of a subgraph request.
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
                    // Appended, not replaced: a header may have several values, and earlier
                    // insertions stay.
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
                    // Matches are compared with earlier rules only: within one rule a header with
                    // several values is propagated whole.
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

/// A context entry by its key, or a value inside one by `key#/json/pointer`, so
/// that claims of a token can be reached:
/// `apollo::authentication::jwt_claims#/client_name`.
fn from_context<T>(key: &str, context: &Context, look: impl FnOnce(Option<&Value>) -> T) -> T {
    match key.split_once('#') {
        // A key with `#` that exists is that key; only otherwise does it mean a pointer.
        Some((entry, pointer)) if !context.contains(key) => context.with(entry, |value| {
            look(value.and_then(|value| value.pointer(pointer)))
        }),
        _ => context.with(key, look),
    }
}
