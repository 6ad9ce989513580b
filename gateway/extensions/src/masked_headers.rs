//! Masks the values of sensitive headers in the log, in traces and in metrics.

use std::collections::BTreeMap;

use gateway_config::{Headers, Redact, Selector, SelectorSource};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

/// The text for a masked value. Apollo Router writes the same text.
const MASKED: &str = "***MASKED***";

/// The masked headers of a configuration.
#[derive(Debug)]
pub(crate) struct MaskedHeaders {
    requests: Names,
    responses: Names,
}

/// The masked headers of one direction.
#[derive(Debug)]
struct Names {
    /// For messages of clients, and of subgraphs without a list.
    all: Vec<HeaderName>,
    subgraphs: BTreeMap<String, Vec<HeaderName>>,
}

impl Names {
    fn new(headers: &Headers, masked: fn(&Headers, Option<&str>) -> Vec<HeaderName>) -> Self {
        let subgraphs = headers.subgraphs.keys();
        Self {
            all: masked(headers, None),
            subgraphs: subgraphs
                .map(|name| (name.clone(), masked(headers, Some(name))))
                .collect(),
        }
    }

    fn contain(&self, name: &HeaderName, subgraph: Option<&str>) -> bool {
        let own = subgraph.and_then(|subgraph| self.subgraphs.get(subgraph));
        own.unwrap_or(&self.all).contains(name)
    }

    fn shown(&self, headers: &HeaderMap, subgraph: Option<&str>) -> Value {
        let mut all = Map::new();
        for name in headers.keys() {
            let value = if self.contain(name, subgraph) {
                MASKED.to_owned()
            } else {
                let values = headers.get_all(name).iter();
                let values = values.map(|it| String::from_utf8_lossy(it.as_bytes()));
                values.collect::<Vec<_>>().join(", ")
            };
            all.insert(name.as_str().to_owned(), value.into());
        }
        all.into()
    }
}

impl MaskedHeaders {
    /// Resolves the lists of a configuration.
    pub(crate) fn new(headers: &Headers) -> Self {
        Self {
            requests: Names::new(headers, Headers::masked_in_requests),
            responses: Names::new(headers, Headers::masked_in_responses),
        }
    }

    /// The headers of a request for the log.
    pub(crate) fn shown_request(&self, headers: &HeaderMap, subgraph: Option<&str>) -> Value {
        self.requests.shown(headers, subgraph)
    }

    /// The headers of a response for the log.
    pub(crate) fn shown_response(&self, headers: &HeaderMap, subgraph: Option<&str>) -> Value {
        self.responses.shown(headers, subgraph)
    }

    /// The value of a selector for telemetry.
    pub(crate) fn shown(&self, selector: &Selector, subgraph: Option<&str>, value: Value) -> Value {
        let is_sensitive = match &selector.source {
            SelectorSource::RequestHeader(name) => self.requests.contain(name, subgraph),
            SelectorSource::SupergraphRequestHeader(name) => self.requests.contain(name, None),
            SelectorSource::ResponseHeader(name) => self.responses.contain(name, subgraph),
            _ => return value,
        };
        match selector.redact {
            Some(Redact::Allow) => value,
            None if !is_sensitive => value,
            Some(Redact::Mask) | None => MASKED.into(),
        }
    }
}
