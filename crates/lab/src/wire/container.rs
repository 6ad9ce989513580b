//! Containers, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::{Table, TextOr};
use crate::formats::{VariableName, Verbatim, Written};
use crate::template::{Command, Template};

/// What builds a system: commands, and beside `image` the image as the last of them.
pub(crate) type BuildFile = OneOrMany<At<TextOr<Written<Command>, ImageBuildFile>>>;

/// How an image is built by the container engine. `{{setting}}` may stand in its values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "image-build")]
pub(crate) struct ImageBuildFile {
    /// The folder that is sent to the engine, relative to the file that says so. What its
    /// `.dockerignore` names is left out.
    pub(crate) context: At<Verbatim<Template>>,
    /// The Dockerfile, relative to the context.
    #[schemars(extend("default" = "Dockerfile"))]
    pub(crate) dockerfile: Option<At<Verbatim<Template>>>,
    /// Values for the `ARG`s of the Dockerfile.
    #[serde(default)]
    pub(crate) args: Table<VariableName, At<Verbatim<Template>>>,
}

/// When an image is fetched from its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum PullFile {
    Missing,
    Always,
    Never,
}

/// Which network a container is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum NetworkFile {
    Host,
    Bridge,
}
