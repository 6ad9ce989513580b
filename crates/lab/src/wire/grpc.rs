//! gRPC calls, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany};

use super::parts::{Headers, Switch};
use crate::formats::Written;
use crate::quantities::LongerThanZero;

/// A call of gRPC, gRPC-Web or Connect. A call of gRPC needs `http2: on`. The status at the end of an answer
/// decides if it is right. A call of a method with a stream of answers has events, as with `stream`.
///
/// A message may contain `{{name}}` of the data and of captured values. Its field decides the type of the
/// value, and every row of the data is checked before the load.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "grpc")]
pub(crate) struct GrpcFile {
    /// The method: `package.Service/Method`.
    pub(crate) method: At<String>,
    /// The protocol: `grpc`, `grpc-web` or `connect`, with binary messages. gRPC needs `http2: on`. gRPC-Web and
    /// Connect also work over HTTP/1.1 and HTTP/3. gRPC-Web sends one message. Connect needs HTTP/2 for streams in
    /// both directions.
    #[schemars(extend("default" = "grpc"))]
    pub(crate) protocol: Option<At<RpcProtocolFile>>,
    /// The `.proto` files with the method and its messages. Imports are found next to these files and below
    /// `import-paths`. Give `proto`, `descriptors` or `reflection`.
    #[serde(default)]
    pub(crate) proto: OneOrMany<At<String>>,
    /// The folders of imported files.
    #[serde(default)]
    pub(crate) import_paths: OneOrMany<At<String>>,
    /// A file with a set of descriptors, as `protoc --include_imports --descriptor_set_out` writes it.
    pub(crate) descriptors: Option<At<String>>,
    /// `on` asks the server for the descriptors before the load (`grpc.reflection.v1`, or `v1alpha`), always by a
    /// call of gRPC over HTTP/2.
    pub(crate) reflection: Option<At<Switch>>,
    /// The message in JSON, written as YAML. By default an empty message.
    pub(crate) message: Option<At<Json>>,
    /// The messages of a method that takes a stream of messages. They leave together.
    pub(crate) messages: Option<At<Vec<At<Json>>>>,
    /// The messages of a method that takes a stream of messages, each with its times.
    pub(crate) sends: Option<At<Vec<At<GrpcSendFile>>>>,
    /// `order`: each answer is the reply to the oldest message without a reply. The report then contains
    /// round trips, from the planned time of each message. A call without a reply to each message did not
    /// pass.
    pub(crate) replies: Option<At<String>>,
    /// The time after which no further message leaves. Only for a method that takes a stream of messages. The
    /// proof sends each message once.
    pub(crate) hold: Option<At<Written<LongerThanZero>>>,
    /// The metadata of the call. The value of a key that ends with `-bin` is base64.
    #[serde(default)]
    pub(crate) metadata: Headers,
    /// The time limit that the server receives. After it, the generator ends the call, which then has the
    /// status 4.
    pub(crate) deadline: Option<Written<LongerThanZero>>,
    /// `gzip` compresses the messages, and lets the server compress its answers.
    pub(crate) compression: Option<At<CompressionFile>>,
    /// The right status of the call, 0 to 16.
    #[schemars(range(min = 0, max = 16), extend("default" = 0))]
    pub(crate) status: Option<u32>,
    /// The fields that each answer must have, in JSON written as YAML. Other fields may have any value.
    pub(crate) answer: Option<At<Json>>,
    /// Texts that each answer must contain. An answer is compared as JSON without spaces, such as
    /// `{"text":"hello"}`.
    #[serde(default)]
    pub(crate) contains: OneOrMany<At<String>>,
}

/// A message of a call with its times.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "grpc-send")]
pub(crate) struct GrpcSendFile {
    /// The message in JSON, written as YAML.
    pub(crate) message: At<Json>,
    /// The time from the start of the call to the first send. By default the message leaves at once.
    pub(crate) after: Option<Written<LongerThanZero>>,
    /// The planned time between two sends. By default the message is sent once.
    pub(crate) every: Option<Written<LongerThanZero>>,
    /// The number of sends of a message with `every`. By default it is sent until the end of `hold`.
    #[schemars(range(min = 1))]
    pub(crate) count: Option<At<u64>>,
}

/// The protocol of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum RpcProtocolFile {
    Grpc,
    GrpcWeb,
    Connect,
}

/// The compression of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum CompressionFile {
    Gzip,
}
