//! `headers`: rules for the headers of subgraph requests.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use http::{HeaderName, HeaderValue};
use regex::Regex;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::header_masking::HeaderMasking;
use crate::header_selection::HeaderSelection;
use crate::response_headers::ResponseRule;
use crate::written::{BodyPath, Written};
use crate::written_as::written_as;

written_as! {
    HeaderRule => RuleFile,
}

/// Rules for the headers of subgraph requests. Without rules, subgraphs receive no headers of the client.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Headers {
    /// Rules for all subgraphs. They run before the rules of the subgraph.
    pub all: HeaderRules,
    /// Rules for one subgraph, by its name.
    pub subgraphs: BTreeMap<String, HeaderRules>,
}

impl Headers {
    fn requests(&self) -> impl Iterator<Item = &HeaderRule> {
        let all = std::iter::once(&self.all).chain(self.subgraphs.values());
        all.flat_map(|rules| &rules.request.operations)
    }

    /// True if a rule copies all client headers that match a pattern.
    pub(crate) fn propagate_patterns(&self) -> bool {
        let mut rules = self.requests();
        rules.any(|rule| matches!(rule, HeaderRule::PropagateMatching(_)))
    }

    /// True if a rule inserts a header from the context of the request.
    #[must_use]
    pub fn read_context(&self) -> bool {
        self.requests().any(|rule| {
            let HeaderRule::Insert { value, .. } = rule else {
                return false;
            };
            matches!(value, InsertedValue::FromContext(_))
        })
    }

    /// The masked headers of requests: of the client's request, or of requests to a subgraph.
    #[must_use]
    pub fn masked_in_requests(&self, subgraph: Option<&str>) -> Vec<HeaderName> {
        self.masked(subgraph, |rules| rules.request.masking.as_ref())
    }

    /// The masked headers of responses: of the response to the client, or of a subgraph's responses.
    #[must_use]
    pub fn masked_in_responses(&self, subgraph: Option<&str>) -> Vec<HeaderName> {
        self.masked(subgraph, |rules| rules.response.masking.as_ref())
    }

    fn masked(
        &self,
        subgraph: Option<&str>,
        masking: impl Fn(&HeaderRules) -> Option<&HeaderMasking>,
    ) -> Vec<HeaderName> {
        let all = masking(&self.all).cloned().unwrap_or_default();
        let own = subgraph.and_then(|name| self.subgraphs.get(name));
        match own.and_then(masking) {
            Some(own) => own.of_subgraph(&all),
            None => all.of_all(),
        }
    }
}

/// Rules of one subgraph or of all.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderRules {
    /// Rules for requests, applied in order. The value is a list, or a mapping with `operations` and
    /// `masking`.
    #[serde(deserialize_with = "rules")]
    #[schemars(with = "RulesFile<HeaderRule>")]
    pub request: RuleList<HeaderRule>,
    /// Rules for the headers of the client's response. They run in order for each subgraph response. Apollo
    /// Router has only `masking` here.
    #[serde(deserialize_with = "rules")]
    #[schemars(with = "RulesFile<ResponseRule>")]
    pub response: RuleList<ResponseRule>,
}

/// The forms of a list of rules.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used; `rules` reads it")]
enum RulesFile<R> {
    /// The form of Apollo Router before 2.17.
    List(Vec<R>),
    /// The form of Apollo Router 2.17.
    Mapping(RuleList<R>),
}

/// Rules, and the headers that telemetry masks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    bound(deserialize = "R: Deserialize<'de>")
)]
pub struct RuleList<R> {
    /// The rules, applied in order.
    pub operations: Vec<R>,
    /// Sensitive headers. Without the key, these are the headers that usually contain credentials.
    pub masking: Option<HeaderMasking>,
}

impl<R> Default for RuleList<R> {
    fn default() -> Self {
        Self {
            operations: Vec::new(),
            masking: None,
        }
    }
}

/// Reads both forms. The errors of `untagged` would not report the mistake in a rule.
fn rules<'de, D, R>(deserializer: D) -> Result<RuleList<R>, D::Error>
where
    D: Deserializer<'de>,
    R: Deserialize<'de>,
{
    deserializer.deserialize_any(EitherForm(PhantomData))
}

struct EitherForm<R>(PhantomData<R>);

impl<'de, R: Deserialize<'de>> Visitor<'de> for EitherForm<R> {
    type Value = RuleList<R>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of rules, or `operations` with one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Ok(RuleList {
            operations: Vec::deserialize(SeqAccessDeserializer::new(list))?,
            masking: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        RuleList::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A rule for headers of subgraph requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RuleFile")]
pub enum HeaderRule {
    /// Sets a header and replaces all its values.
    Insert {
        /// The name of the header.
        name: HeaderName,
        /// The source of the header's value.
        value: InsertedValue,
    },
    /// Deletes all selected headers.
    Remove(HeaderSelection),
    /// Appends a header of the client's request, under its own or another name.
    PropagateNamed {
        /// Name in the client's request.
        named: HeaderName,
        /// Name in the subgraph request. Without a rename, it equals `named`.
        target: HeaderName,
        /// The value if the client did not send the header.
        default: Option<HeaderValue>,
    },
    /// Appends all client headers with matching lower-case names. Reserved headers are excluded.
    PropagateMatching(Regex),
}

/// Source of an inserted header's value.
#[derive(Clone, Debug)]
pub enum InsertedValue {
    /// A constant from the file.
    Static(HeaderValue),
    /// The context entry under this key, if it is a string.
    FromContext(String),
    /// A value from the client's GraphQL request.
    FromBody {
        /// The path into the request's JSON.
        path: BodyPath,
        /// The value if the path leads to no value or to null.
        default: Option<HeaderValue>,
    },
}

/// One rule for headers, with exactly one of `insert`, `remove` and `propagate`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["insert"]}, {"required": ["remove"]}, {"required": ["propagate"]}]))]
struct RuleFile {
    /// Sets a header of the subgraph request. It replaces all values of the header.
    insert: Option<InsertFile>,
    /// Deletes headers of the subgraph request.
    remove: Option<RemoveFile>,
    /// Copies headers of the client's request to the subgraph request.
    propagate: Option<PropagateFile>,
}

/// A header to set, and exactly one of `value`, `from_context` and `path`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["value"]}, {"required": ["from_context"]}, {"required": ["path"]}]))]
struct InsertFile {
    /// The name of the header.
    name: Written<HeaderName>,
    /// A constant value from the file.
    value: Option<Written<HeaderValue>>,
    /// The key of the context entry with the value. Only strings are used.
    from_context: Option<String>,
    /// The path of the value in the client's GraphQL request, such as `.extensions.x[0].y`.
    path: Option<Written<BodyPath>>,
    /// The value if `path` leads to null or to no value.
    default: Option<Written<HeaderValue>>,
}

/// Headers to delete, with exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct RemoveFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// A regular expression for lower-case names of headers. Reserved headers are excluded.
    matching: Option<Written<Regex>>,
}

/// Headers to copy, with exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct PropagateFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// The new name of the header `named` in the subgraph request.
    rename: Option<Written<HeaderName>>,
    /// The value if the client did not send the header `named`.
    default: Option<Written<HeaderValue>>,
    /// A regular expression for lower-case names of headers. Reserved headers are excluded.
    matching: Option<Written<Regex>>,
}

impl TryFrom<RuleFile> for HeaderRule {
    type Error = &'static str;

    fn try_from(rule: RuleFile) -> Result<Self, Self::Error> {
        match (rule.insert, rule.remove, rule.propagate) {
            (Some(insert), None, None) => insert.rule(),
            (None, Some(remove), None) => {
                HeaderSelection::from_keys(remove.named, remove.matching).map(Self::Remove)
            }
            (None, None, Some(propagate)) => propagate.rule(),
            _ => Err("expected exactly one of `insert`, `remove` and `propagate`"),
        }
    }
}

impl InsertFile {
    fn rule(self) -> Result<HeaderRule, &'static str> {
        // The schema has this check, too. This one also applies without a schema, and it gives the compiler
        // one case each.
        if self.default.is_some() && self.path.is_none() {
            return Err("expected `default` beside `path` only; remove it, or insert from `path`");
        }
        let value = match (self.value, self.from_context, self.path) {
            (Some(value), None, None) => InsertedValue::Static(value.0),
            (None, Some(key), None) => InsertedValue::FromContext(key),
            (None, None, Some(path)) => InsertedValue::FromBody {
                path: path.0,
                default: self.default.map(|value| value.0),
            },
            _ => return Err("expected exactly one of `value`, `from_context` and `path`"),
        };
        Ok(HeaderRule::Insert {
            name: self.name.0,
            value,
        })
    }
}

impl PropagateFile {
    fn rule(self) -> Result<HeaderRule, &'static str> {
        if self.named.is_none() && (self.rename.is_some() || self.default.is_some()) {
            return Err("expected `rename` and `default` beside `named` only; remove them");
        }
        match (self.named, self.matching) {
            (Some(Written(named)), None) => Ok(HeaderRule::PropagateNamed {
                // Resolved here, so that the code that applies rules has a single name to write.
                target: self.rename.map_or_else(|| named.clone(), |name| name.0),
                named,
                default: self.default.map(|value| value.0),
            }),
            (None, Some(matching)) => Ok(HeaderRule::PropagateMatching(matching.0)),
            _ => Err("expected exactly one of `named` and `matching`"),
        }
    }
}

#[cfg(test)]
mod tests;
