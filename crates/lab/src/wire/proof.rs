//! Proofs, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::default;
use super::request::{GraphqlFile, Headers, RequestFile};
use yaml_with_places::{At, Json, OneOrMany};

use crate::fields::Table;
use crate::formats::{Pointer, StatusName, Title, Verbatim, Written};
use crate::template::Template;

/// One thing that a variant must be seen to do, before the load and again in every round. It is one
/// of three:
///
/// - `ask` another system before and after the load what it saw, and compare the difference with the
///   number of requests: `{ask: "{{origin.url}}/seen", json: /requests, at-least-per-request: 1}`;
/// - send a `request` of its own and `expect` an answer, as of a token that must be refused:
///   `{request: {headers: {Authorization: none}}, expect: {status: 401}}`, or several `times`, as of
///   instances that must all be seen to answer:
///   `{request: {path: /who}, times: 40, expect: {distinct: {/name: {at-least: 4}}}}`;
/// - `expect` more of the answers to the requests of the load than is checked during it:
///   `{expect: {values: {X-Id: {count: 10, distinct: 10}}}}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "proof")]
pub(crate) struct ProofFile {
    /// How reports call it.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// Which variants must give it.
    #[schemars(extend("default" = "all"))]
    pub(crate) of: Option<OfFile>,
    /// A URL to `GET`, with the address of a system: `{{origin.url}}/seen`. Of a system with
    /// `replicas` every instance is asked, and their numbers are added.
    pub(crate) ask: Option<At<Written<Template>>>,
    /// The number looked at, in a JSON answer to `ask`. What is not there counts as 0.
    pub(crate) json: Option<At<Written<Pointer>>>,
    /// The number looked at, in an answer to `ask` in the text format of Prometheus: the sum of all
    /// series of this name that have these labels, such as `requests_total{client="web"}`.
    pub(crate) metric: Option<At<String>>,
    /// It grew by at least this much for each complete answer.
    #[schemars(range(min = 0))]
    pub(crate) at_least_per_request: Option<At<f64>>,
    /// It grew by at most this much for each request sent.
    #[schemars(range(min = 0))]
    pub(crate) at_most_per_request: Option<At<f64>>,
    /// It grew by exactly this much for each request.
    #[schemars(range(min = 0))]
    pub(crate) exactly_per_request: Option<At<f64>>,
    /// What stands at `json` after the load.
    pub(crate) equals: Option<At<Json>>,
    /// A request of its own, sent to the target. Paths, methods and headers that it does not name
    /// are those of `load`.
    pub(crate) request: Option<At<RequestFile>>,
    /// How often `request` is sent, each time over a connection of its own.
    #[schemars(range(min = 1, max = 10_000), extend("default" = default::TIMES))]
    pub(crate) times: Option<At<u32>>,
    /// What its answer must look like, or without `request` the answers to those of the load.
    pub(crate) expect: Option<At<ProofExpectFile>>,
}

/// Which variants must give a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum OfFile {
    All,
    Baseline,
    Variants,
}

/// What an answer must look like to be a proof.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "proof-expect")]
pub(crate) struct ProofExpectFile {
    /// The status: one, a class such as `2xx`, or several: `[200, 429]`. By default any from 200 to 299.
    pub(crate) status: Option<At<OneOrMany<Verbatim<StatusName>>>>,
    /// The body is a JSON object without a top-level `errors`.
    pub(crate) graphql: Option<GraphqlFile>,
    /// Headers that the answer must carry with exactly these values.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// How many values headers must have. A name that ends in `*` is that of all headers that begin
    /// so.
    #[serde(default)]
    pub(crate) values: Table<Title, HeaderValuesFile>,
    /// What must stand in the JSON body, by JSON pointer.
    #[serde(default)]
    pub(crate) json: Table<Pointer, At<Json>>,
    /// How many different values must stand in the JSON bodies of all answers together, by JSON
    /// pointer.
    #[serde(default)]
    pub(crate) distinct: Table<Pointer, At<DistinctFile>>,
    /// A file with the body, byte for byte.
    pub(crate) body: Option<At<String>>,
    /// What the comparison with `body` leaves out, as JSON pointers.
    #[serde(default)]
    pub(crate) ignore: OneOrMany<Written<Pointer>>,
}

/// The values of a header.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "values")]
pub(crate) struct HeaderValuesFile {
    /// How many there are. By default at least one.
    #[schemars(range(min = 0))]
    pub(crate) count: Option<u32>,
    /// How many different ones there are.
    #[schemars(range(min = 0))]
    pub(crate) distinct: Option<u32>,
}

/// How many different values there are. Every answer must have one; it is at least one of the two.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "distinct")]
pub(crate) struct DistinctFile {
    /// At least so many, a number or a template: `"{{server.instances}}"`.
    pub(crate) at_least: Option<At<Verbatim<Template>>>,
    /// At most so many.
    pub(crate) at_most: Option<At<Verbatim<Template>>>,
}
