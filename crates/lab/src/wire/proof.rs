//! Proofs, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::default;
use super::parts::Headers;
use super::request::{GraphqlFile, RequestFile};
use yaml_with_places::{At, Json, OneOrMany};

use crate::fields::{Table, TextOr};
use crate::formats::{Pointer, SettingPath, StatusName, Title, Verbatim, Written};
use crate::quantities::LongerThanZero;
use crate::template::Template;

/// One piece of evidence that a variant does its work. `weigh` checks it before the load and again in
/// every round. It has one of three forms:
///
/// - `ask` reads a number from another system before and after the load. `weigh` compares the
///   difference with the number of requests:
///   `{ask: "{{origin.url}}/seen", json: /requests, at-least-per-request: 1}`. With `within`, `weigh`
///   waits for numbers that arrive late
/// - `request` sends a request of its own, and `expect` checks its answer. One example is a token that
///   must be refused: `{request: {headers: {Authorization: none}}, expect: {status: 401}}`. With
///   `times`, `weigh` sends the request several times. One example is a set of instances that must all
///   answer: `{request: {path: /who}, times: 40, expect: {distinct: {/name: {at-least: 4}}}}`
/// - `expect` alone checks more of the answers to the requests of the load than `weigh` checks during
///   the load: `{expect: {values: {X-Id: {count: 10, distinct: 10}}}}`
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "proof")]
pub(crate) struct ProofFile {
    /// The name of the proof in reports.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// The variants that must give the proof: `all`, `baseline`, `variants`, or the variants with these
    /// values of settings and factors: `{proxy.log: on, size: [1, 10]}`. A variant has the value of a
    /// setting also if it is the usual value of the lab. `target` is the system that receives the load.
    #[schemars(extend("default" = "all"))]
    pub(crate) of: Option<At<OfFile>>,
    /// A URL to `GET`, with the address of a system: `{{origin.url}}/seen`. If a system has `replicas`,
    /// `weigh` reads every instance and adds the numbers.
    pub(crate) ask: Option<At<Written<Template>>>,
    /// The place of the number in a JSON answer to `ask`. A missing number counts as 0.
    pub(crate) json: Option<At<Written<Pointer>>>,
    /// The name of the number in an answer to `ask` in the text format of Prometheus. The number is the
    /// sum of all series with this name and these labels, such as `requests_total{client="web"}`.
    pub(crate) metric: Option<At<String>>,
    /// The minimum growth of the number for each complete answer.
    #[schemars(range(min = 0))]
    pub(crate) at_least_per_request: Option<At<f64>>,
    /// The maximum growth of the number for each request sent.
    #[schemars(range(min = 0))]
    pub(crate) at_most_per_request: Option<At<f64>>,
    /// The exact growth of the number for each request.
    #[schemars(range(min = 0))]
    pub(crate) exactly_per_request: Option<At<f64>>,
    /// The value at `json` after the load.
    pub(crate) equals: Option<At<Json>>,
    /// The longest time until the number of `ask` is right, such as `2s`. Logs and spans often arrive
    /// in groups after the answers. `weigh` reads the number again until it is right or the time ends.
    /// Requests can exceed an upper limit until the time ends, so `at-most-per-request` and
    /// `exactly-per-request` always take the whole time. `weigh` also waits this long before each
    /// load, so that the number contains no earlier requests. Without this key, `weigh` reads the
    /// number once, directly after the load.
    pub(crate) within: Option<At<Written<LongerThanZero>>>,
    /// A request of its own, sent to the target. `load` supplies its path, method and headers by
    /// default.
    pub(crate) request: Option<At<RequestFile>>,
    /// The number of times that `request` is sent, each time over a connection of its own.
    #[schemars(range(min = 1, max = 10_000), extend("default" = default::TIMES))]
    pub(crate) times: Option<At<u32>>,
    /// The requirements on its answer. Without `request`, the requirements on the answers to the
    /// requests of the load.
    pub(crate) expect: Option<At<ProofExpectFile>>,
}

/// The variants that must give a proof.
pub(crate) type OfFile = TextOr<OfName, OfValues>;

/// The variants with these values of settings and factors. A list is a choice of values.
pub(crate) type OfValues = Table<SettingPath, OneOrMany<At<Verbatim<Template>>>>;

/// The variants that must give a proof, by a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum OfName {
    All,
    Baseline,
    Variants,
}

/// The requirements on an answer in a proof.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "proof-expect")]
pub(crate) struct ProofExpectFile {
    /// The status: a number, a class such as `2xx`, or several: `[200, 429]`. By default any status
    /// from 200 to 299.
    pub(crate) status: Option<At<OneOrMany<Verbatim<StatusName>>>>,
    /// The body must be a JSON object without a top-level `errors`.
    pub(crate) graphql: Option<GraphqlFile>,
    /// Headers that the answer must contain with exactly these values.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// The required numbers of header values. A name that ends in `*` stands for all headers with this
    /// beginning.
    #[serde(default)]
    pub(crate) values: Table<Title, HeaderValuesFile>,
    /// The required values in the JSON body, by JSON pointer.
    #[serde(default)]
    pub(crate) json: Table<Pointer, At<Json>>,
    /// The required number of different values in the JSON bodies of all answers together, by JSON
    /// pointer.
    #[serde(default)]
    pub(crate) distinct: Table<Pointer, At<DistinctFile>>,
    /// A file with the body, byte for byte.
    pub(crate) body: Option<At<String>>,
    /// Parts that the comparison with `body` leaves out, as JSON pointers.
    #[serde(default)]
    pub(crate) ignore: OneOrMany<Written<Pointer>>,
}

/// The values of a header.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "values")]
pub(crate) struct HeaderValuesFile {
    /// The number of values. By default at least one.
    #[schemars(range(min = 0))]
    pub(crate) count: Option<u32>,
    /// The number of different values.
    #[schemars(range(min = 0))]
    pub(crate) distinct: Option<u32>,
}

/// The number of different values. Every answer must have a value. Give at least one of the two keys.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "distinct")]
pub(crate) struct DistinctFile {
    /// The minimum, a number or a template: `"{{server.instances}}"`.
    pub(crate) at_least: Option<At<Verbatim<Template>>>,
    /// The maximum, a number or a template.
    pub(crate) at_most: Option<At<Verbatim<Template>>>,
}
