//! Requests and what their answers must look like, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany, Place};

use super::default;
use super::grpc::GrpcFile;
use super::parts::Headers;
use super::stream::StreamEntry;
use super::websocket::WebSocketFile;
use crate::fields::TextOr;
use crate::formats::{Method, Pointer, RequestPath, StatusName, Title, Verbatim, Written};

/// The pattern of files of requests, or a request written out.
pub(crate) type RequestEntry = TextOr<String, RequestFile>;

/// A request written out in the lab. It has at most one of `body`, `json`, `query` and `batch`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "request")]
pub(crate) struct RequestFile {
    /// The name of the request in reports. By default its path.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// Its method. By default `load.method`, or else `POST` with a body and `GET` without a body.
    pub(crate) method: Option<Written<Method>>,
    /// Its path and query. By default `load.path`.
    pub(crate) path: Option<At<Written<RequestPath>>>,
    /// Its headers, in addition to `load.headers`.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file with the bytes of the body.
    pub(crate) body: Option<At<String>>,
    /// A body in JSON, written as YAML.
    pub(crate) json: Option<At<Json>>,
    /// A GraphQL query. The body becomes `{"query": …, "variables": …}`.
    pub(crate) query: Option<At<String>>,
    /// The variables of `query`.
    pub(crate) variables: Option<At<Json>>,
    /// Files of requests, as in `requests`, that are sent together. The body is the JSON array of their
    /// bodies, a batch of GraphQL operations. A file that is listed twice is in the array twice. The
    /// answer is an array, so `graphql: no-errors` does not apply to it. With `same-as: baseline`, the
    /// answer must contain the baseline's answers to the requests with the same names, in this order.
    /// Otherwise the body must equal the `body` of `expect`.
    pub(crate) batch: Option<At<OneOrMany<At<String>>>>,
    /// The requirements on its answers, instead of the lab's `expect`.
    pub(crate) expect: Option<ExpectFile>,
    /// Its answer is a stream of events. By default as in `load.stream`. The report then contains the time
    /// to the first event and the gaps between events. The body as a whole is not compared.
    pub(crate) stream: Option<At<StreamEntry>>,
    /// It opens a conversation over WebSocket. Every message of the target is an event. All requests of a load
    /// are then of this kind. `{{name}}` is filled in as in a body.
    pub(crate) websocket: Option<At<WebSocketFile>>,
    /// It is a gRPC call, instead of a method, a path and a body.
    pub(crate) grpc: Option<At<GrpcFile>>,
    /// The number of times that it is sent for each send of a request with weight 1.
    #[schemars(range(min = 1, max = 1000), extend("default" = default::WEIGHT))]
    pub(crate) weight: Option<u32>,
}

impl RequestFile {
    /// The keys that give it a body, with their places.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = (&'static str, Place)> {
        let keys = [
            self.body.as_ref().map(|it| ("body", it.place)),
            self.json.as_ref().map(|it| ("json", it.place)),
            self.query.as_ref().map(|it| ("query", it.place)),
            self.batch.as_ref().map(|it| ("batch", it.place)),
        ];
        keys.into_iter().flatten()
    }
}

/// The requirements on every answer that counts as passed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "expect")]
pub(crate) struct ExpectFile {
    /// The status: a number, a class such as `2xx`, or several: `[200, 429]`, `[2xx, 429]`. By default
    /// any status from 200 to 299. If several are right, the report contains the counts and the latency
    /// of each status. All requirements on the body then apply to answers with the first status,
    /// because bodies are compared within one status only. If 429 or 503 is expected, the load does not
    /// end when the target requests less load.
    pub(crate) status: Option<At<OneOrMany<Verbatim<StatusName>>>>,
    /// The body must be a JSON object without a top-level `errors`.
    pub(crate) graphql: Option<GraphqlFile>,
    /// The body must equal, byte for byte, the baseline's answer to the same request in its proof.
    pub(crate) same_as: Option<SameAsFile>,
    /// Headers that the answer must contain with exactly these values. `{{setting}}` and `{{name}}` are
    /// filled in.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// A file with the body, byte for byte.
    pub(crate) body: Option<At<String>>,
    /// Parts that comparisons of bodies leave out, as JSON pointers. They are members that differ by
    /// nature, such as timings. Bodies are then right if they are the same bytes, or the same JSON
    /// without these members.
    #[serde(default)]
    pub(crate) ignore: OneOrMany<Written<Pointer>>,
}

/// The requirement on a GraphQL answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum GraphqlFile {
    NoErrors,
}

/// The source of the expected answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum SameAsFile {
    Baseline,
}
