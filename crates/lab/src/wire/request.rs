//! Requests and what their answers must look like, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany};

use super::default;
use crate::fields::{Table, TextOr};
use crate::formats::{
    HeaderName, HeaderValue, Method, Pointer, RequestPath, StatusName, Title, Verbatim, Written,
};

/// Headers by name.
pub(crate) type Headers = Table<HeaderName, At<Verbatim<HeaderValue>>>;

/// A choice between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Switch {
    On,
    Off,
}

/// The pattern of files of requests, or a request written out.
pub(crate) type RequestEntry = TextOr<String, RequestFile>;

/// A request written out in the lab. It has at most one of `body`, `json`, `query` and `batch`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "request")]
pub(crate) struct RequestFile {
    /// How reports call it. By default its path.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// Its method. By default `load.method`, else `POST` with a body and `GET` without.
    pub(crate) method: Option<Written<Method>>,
    /// Its path and query. By default `load.path`.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Its headers, besides those of `load.headers`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file whose bytes are the body.
    pub(crate) body: Option<At<String>>,
    /// A body in JSON, written as YAML.
    pub(crate) json: Option<At<Json>>,
    /// A GraphQL query; the body becomes `{"query": …, "variables": …}`.
    pub(crate) query: Option<At<String>>,
    /// The variables of `query`.
    pub(crate) variables: Option<At<Json>>,
    /// Files of requests, as in `requests`, that go out together: the body is the JSON array of their
    /// bodies, a batch of GraphQL operations. A file named twice is in it twice. The answer is an array,
    /// so `graphql: no-errors` does not apply to it: with `same-as: baseline` it must hold what the
    /// baseline answered to the requests of the same names, in this order; else the body is expected
    /// that `expect` names.
    pub(crate) batch: Option<At<OneOrMany<At<String>>>>,
    /// What its answers must look like, instead of the lab's `expect`.
    pub(crate) expect: Option<ExpectFile>,
    /// How often it is sent for each time a request of weight 1 is.
    #[schemars(range(min = 1, max = 1000), extend("default" = default::WEIGHT))]
    pub(crate) weight: Option<u32>,
}

/// What every answer must look like to count as passed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "expect")]
pub(crate) struct ExpectFile {
    /// The status: one, a class such as `2xx`, or several: `[200, 429]`, `[2xx, 429]`. By default any
    /// from 200 to 299. Where several are right, the report has the counts and the latency of each, and
    /// what else is expected of the body is expected of answers of the first: bodies are compared within
    /// one status only. A load of which 429 or 503 is expected is not ended when the target asks for less.
    pub(crate) status: Option<At<OneOrMany<Verbatim<StatusName>>>>,
    /// The body is a JSON object without a top-level `errors`.
    pub(crate) graphql: Option<GraphqlFile>,
    /// The body equals, byte for byte, the one that the baseline gave to the same request in its
    /// proof.
    pub(crate) same_as: Option<SameAsFile>,
    /// Headers that the answer must carry with exactly these values, in which `{{setting}}` and
    /// `{{name}}` are filled in.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file with the body, byte for byte.
    pub(crate) body: Option<At<String>>,
    /// What comparisons of bodies leave out, as JSON pointers: members that differ by nature, such
    /// as timings. Bodies are then right when they are the same bytes, or the same JSON without
    /// these members.
    #[serde(default)]
    pub(crate) ignore: OneOrMany<Written<Pointer>>,
}

/// What is asked of a GraphQL answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum GraphqlFile {
    NoErrors,
}

/// Whose answers are the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum SameAsFile {
    Baseline,
}
