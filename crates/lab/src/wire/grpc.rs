//! gRPC calls, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany};

use super::parts::Headers;
use crate::formats::Written;
use crate::quantities::LongerThanZero;

/// A gRPC call. The load needs `http2: on`. The trailers of an answer decide whether it is right. A call of a
/// method with a stream of answers has events, as with `stream`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "grpc")]
pub(crate) struct GrpcFile {
    /// The method: `package.Service/Method`.
    pub(crate) method: At<String>,
    /// The `.proto` files with the method and its messages. Imports are found next to these files and below
    /// `import-paths`. Give `proto` or `descriptors`.
    #[serde(default)]
    pub(crate) proto: OneOrMany<At<String>>,
    /// The folders of imported files.
    #[serde(default)]
    pub(crate) import_paths: OneOrMany<At<String>>,
    /// A file with a set of descriptors, as `protoc --include_imports --descriptor_set_out` writes it.
    pub(crate) descriptors: Option<At<String>>,
    /// The message in JSON, written as YAML. By default an empty message. Each send has the same bytes, so
    /// templates can only contain settings.
    pub(crate) message: Option<At<Json>>,
    /// The messages of a method that takes a stream of messages. They leave together.
    pub(crate) messages: Option<At<Vec<At<Json>>>>,
    /// The metadata of the call. The value of a key that ends with `-bin` is base64.
    #[serde(default)]
    pub(crate) metadata: Headers,
    /// The time limit that the server receives.
    pub(crate) deadline: Option<Written<LongerThanZero>>,
    /// The right status of the call, 0 to 16.
    #[schemars(range(min = 0, max = 16), extend("default" = 0))]
    pub(crate) status: Option<u32>,
}
