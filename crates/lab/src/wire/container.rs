//! Containers, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::{Table, TextOr};
use crate::formats::{VariableName, Verbatim, Written};
use crate::template::{Command, Template};

/// The build of a system: commands. With `image`, the last entry can be the build of the image.
pub(crate) type BuildFile = OneOrMany<At<TextOr<Written<Command>, ImageBuildFile>>>;

/// The build of an image by the container engine. Its values can contain `{{setting}}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "image-build")]
pub(crate) struct ImageBuildFile {
    /// The folder that `weigh` sends to the engine, relative to the file that contains this key. Files
    /// that match its `.dockerignore` are left out.
    pub(crate) context: At<Verbatim<Template>>,
    /// The Dockerfile, relative to the context.
    #[schemars(extend("default" = "Dockerfile"))]
    pub(crate) dockerfile: Option<At<Verbatim<Template>>>,
    /// Values for the `ARG`s of the Dockerfile.
    #[serde(default)]
    pub(crate) args: Table<VariableName, At<Verbatim<Template>>>,
}

/// The condition for fetching an image from its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum PullFile {
    Missing,
    Always,
    Never,
}

/// The network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum NetworkFile {
    Host,
    Bridge,
}
