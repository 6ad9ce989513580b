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
        /// The name of the header.
        name: HeaderName,
        /// The value of the header.
        value: HeaderValue,
    },
    /// Deletes headers that earlier rules and responses have set.
    Remove(HeaderSelection),
    /// Copies headers of the subgraph's response.
    Propagate {
        /// The headers of the subgraph's response to copy.
        from: HeaderSelection,
        /// Name in the client's response. `None` keeps the name.
        rename: Option<HeaderName>,
        /// The value if the subgraph's response lacks the header.
        default: Option<HeaderValue>,
        /// Merge rule for values of several subgraph responses.
        merge: Merge,
    },
}

/// The rule for a header that several subgraph responses have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// The client gets the value of the last response.
    #[default]
    Last,
    /// The client gets the value of the first response.
    First,
    /// The client gets the values of all responses.
    Append,
}

/// One rule for headers of the client's response, with exactly one of `insert`, `remove` and `propagate`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["insert"]}, {"required": ["remove"]}, {"required": ["propagate"]}]))]
struct RuleFile {
    /// Sets a header of the client's response.
    insert: Option<InsertFile>,
    /// Deletes headers that earlier rules and responses have set.
    remove: Option<RemoveFile>,
    /// Copies headers of the subgraph's response to the client's response.
    propagate: Option<PropagateFile>,
}

/// A header to set in the client's response.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InsertFile {
    /// The name of the header.
    name: Written<HeaderName>,
    /// The value of the header.
    value: Written<HeaderValue>,
}

/// Headers to delete from the client's response, with exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct RemoveFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// A regular expression for lower-case names of headers. Reserved headers are excluded.
    matching: Option<Written<Regex>>,
}

/// Headers to copy to the client's response, with exactly one of `named` and `matching`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["named"]}, {"required": ["matching"]}]))]
struct PropagateFile {
    /// The header of this name.
    named: Option<Written<HeaderName>>,
    /// The new name of the header `named` in the client's response.
    rename: Option<Written<HeaderName>>,
    /// The value if the subgraph's response does not have the header `named`.
    default: Option<Written<HeaderValue>>,
    /// A regular expression for lower-case names of headers. Reserved headers are excluded.
    matching: Option<Written<Regex>>,
    /// The rule for a header that several subgraph responses have. `set-cookie` is always appended.
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
