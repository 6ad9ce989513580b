//! Scenarios and data, as they are written.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::grpc::GrpcFile;
use super::parts::Headers;
use super::request::{ExpectFile, RequestFile};
use super::stream::StreamEntry;
use super::websocket::WebSocketFile;
use yaml_with_places::{At, Json};

use crate::fields::{Table, TextOr};
use crate::formats::{
    HeaderName, Method, Name, Pattern, Pointer, RequestPath, Title, Verbatim, Written,
};
use crate::quantities::Numbers;

/// A scenario in a file of its own, for `weigh load --scenario`. Its requests follow one another.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "scenario")]
pub(crate) struct ScenarioFile {
    /// Its requests, in order.
    #[schemars(required, length(min = 1))]
    pub(crate) steps: Option<Vec<At<StepFile>>>,
    /// Values that differ from iteration to iteration. They are a file (CSV below a header row, or one
    /// JSON object per line) or a mapping with more keys.
    pub(crate) data: Option<At<DataEntry>>,
    /// The headers of every step. A step's own header with the same name wins.
    #[serde(default)]
    pub(crate) headers: Headers,
    /// The requirements on every answer, unless its step has an `expect` of its own.
    #[serde(default)]
    pub(crate) expect: ExpectFile,
}

/// One request of a scenario. It has at most one of `body`, `json` and `query`. An iteration ends at
/// the first step that does not pass. The steps after it count as skipped.
///
/// In an open loop, the latency of the first step counts from the planned time of its iteration. In a
/// closed loop, it counts from the send. The latency of a later step counts from the end of the answer
/// before it, plus `pause`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "step")]
pub(crate) struct StepFile {
    /// The name of the step in reports. By default its path.
    pub(crate) name: Option<At<Verbatim<Title>>>,
    /// The think time before the step, as of a user who reads. It is not part of the latency.
    #[schemars(extend("default" = "0s"))]
    pub(crate) pause: Option<Written<Duration>>,
    /// Values of its answer that later steps use as `{{name}}`, or as `{{json:name}}` with their kind
    /// in JSON. An answer without one of these values is mismatched.
    #[serde(default)]
    pub(crate) capture: Table<Name, At<CaptureFile>>,
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
    /// The requirements on its answer, instead of the lab's `expect`.
    pub(crate) expect: Option<ExpectFile>,
    /// Its answer is a stream of events. By default as in `load.stream`.
    pub(crate) stream: Option<At<StreamEntry>>,
    /// It opens a conversation over WebSocket, on a connection of its own. Captured values may be in its path, its
    /// headers, its subprotocols, the payload of `connection_init`, the subscription and the messages. A step of
    /// this kind captures no values.
    pub(crate) websocket: Option<At<WebSocketFile>>,
    /// It is a gRPC call, instead of a method, a path and a body.
    pub(crate) grpc: Option<At<GrpcFile>>,
}

impl StepFile {
    /// Returns the request that the step sends.
    pub(crate) fn request(&self) -> RequestFile {
        let step = self.clone();
        RequestFile {
            name: step.name,
            method: step.method,
            path: step.path,
            headers: step.headers,
            body: step.body,
            json: step.json,
            query: step.query,
            variables: step.variables,
            expect: step.expect,
            stream: step.stream,
            grpc: step.grpc,
            websocket: step.websocket,
            batch: None,
            weight: None,
        }
    }
}

/// The place of a value in an answer. It is in a header or at a pointer into the JSON body. With
/// neither key, `regex` finds it anywhere in the body.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "capture")]
pub(crate) struct CaptureFile {
    /// The JSON pointer of the value. Texts lose their quotes.
    pub(crate) json: Option<At<Written<Pointer>>>,
    /// The first header with this name.
    pub(crate) header: Option<At<Written<HeaderName>>>,
    /// A regular expression that selects a part of the value. It selects its first group, or its whole
    /// match.
    pub(crate) regex: Option<Written<Pattern>>,
}

/// The source of values that differ from request to request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "data")]
pub(crate) struct DataFile {
    /// Rows of values: CSV below a header row, or one JSON object per line.
    pub(crate) file: Option<At<String>>,
    /// The order of the rows: one after another, or drawn with the seed.
    #[schemars(extend("default" = "rotation"))]
    pub(crate) order: Option<At<RowOrderFile>>,
    /// Whole numbers by name: `{page: 1..20}`. `weigh` draws a new number for each request or
    /// iteration.
    #[serde(default)]
    pub(crate) ranges: Table<Name, Written<Numbers>>,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RowOrderFile {
    Rotation,
    Random,
}

/// The path of a file, or a mapping with more keys.
pub(crate) type DataEntry = TextOr<String, DataFile>;
