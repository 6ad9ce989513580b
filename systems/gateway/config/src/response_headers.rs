//! `headers.….response`: rules that copy headers of subgraph responses to the client's response.

use http::{HeaderName, HeaderValue};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::header_selection::HeaderSelection;
use crate::written::Written;
use crate::written_as::written_as;

written_as! {
    ResponseRule => RuleFile,
}

/// A rule for the headers of the client's response. It runs for each subgraph response, in the order of their
/// arrival.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RuleFile")]
pub enum ResponseRule {
    /// Sets a header of the client's response.
    Insert {
        /// Name of the header.
        name: HeaderName,
        /// Value of the header.
        value: HeaderValue,
    },
    /// Deletes headers that earlier rules and responses have set.
    Remove(HeaderSelection),
    /// Copies headers of the subgraph's response.
    Propagate {
        /// The headers to copy.
        from: HeaderSelection,
        /// Name in the client's response. `None` keeps the name.
        rename: Option<HeaderName>,
        /// The value if the subgraph's response lacks the header.
        default: Option<HeaderValue>,
        /// Merge rule for values of several subgraph responses.
        merge: Merge,
    },
}

/// What happens when answers of several subgraphs have the same header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// That of the last answer counts.
    #[default]
    Last,
    /// That of the first answer counts.
    First,
    /// The client gets them all.
    Append,
}

/// One rule for headers of the client's answer: exactly one of `insert`, `remove`, `propagate`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["insert"]}, {"required": ["remove"]}, {"required": ["propagate"]}]))]
struct RuleFile {
    /// Sets a header of the client's answer.
    insert: Option<InsertFile>,
    /// Deletes headers that earlier rules and answers have set.
    remove: Option<RemoveFile>,
    /// Copies headers of the subgraph's answer to the client's.
    propagate: Option<PropagateFile>,
}

/// A header to set in the client's answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InsertFile {
    /// The header's name.
    name: Written<HeaderName>,
    /// Its value.
    value: Written<HeaderValue>,
}

/// Headers to take out of the client's answer: exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct RemoveFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// All headers whose lower-case names match this regular expression, except reserved ones.
    matching: Option<Written<Regex>>,
}

/// Headers to copy to the client's answer: exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct PropagateFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// With `named`: another name in the client's answer.
    rename: Option<Written<HeaderName>>,
    /// With `named`: the value when the subgraph's answer does not have it.
    default: Option<Written<HeaderValue>>,
    /// All headers whose lower-case names match this regular expression, except reserved ones.
    matching: Option<Written<Regex>>,
    /// What happens when answers of several subgraphs have it. `set-cookie` is always appended.
    #[serde(default)]
    algorithm: Merge,
}

impl TryFrom<RuleFile> for ResponseRule {
    type Error = &'static str;

    fn try_from(rule: RuleFile) -> Result<Self, Self::Error> {
        match (rule.insert, rule.remove, rule.propagate) {
            (Some(insert), None, None) => Ok(Self::Insert {
                name: insert.name.0,
                value: insert.value.0,
            }),
            (None, Some(remove), None) => {
                HeaderSelection::from_keys(remove.named, remove.matching).map(Self::Remove)
            }
            (None, None, Some(propagate)) => propagate.rule(),
            _ => Err("expected exactly one of `insert`, `remove` and `propagate`"),
        }
    }
}

impl PropagateFile {
    fn rule(self) -> Result<ResponseRule, &'static str> {
        if self.named.is_none() && (self.rename.is_some() || self.default.is_some()) {
            return Err("expected `rename` and `default` beside `named` only; remove them");
        }
        Ok(ResponseRule::Propagate {
            from: HeaderSelection::from_keys(self.named, self.matching)?,
            rename: self.rename.map(|name| name.0),
            default: self.default.map(|value| value.0),
            merge: self.algorithm,
        })
    }
}
