//! Services of a compose file, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{ServiceName, VariableName, Verbatim};
use crate::template::Template;

/// A compose file whose services are the system: a project of its own is started for every variant
/// and removed when it is done. Each service has a line of its own in the report, `SYSTEM/SERVICE`.
/// The file is left as it is; `weigh` starts a copy without fixed ports and names, so that several
/// variants can be up at once (docs/compose.md says what else it changes and refuses). `{{setting}}`
/// may stand in every value, and so a variant changes what it differs in; addresses of other systems
/// may not, because containers have a network of their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "compose")]
pub(crate) struct ComposeFile {
    /// The compose file, relative to the file that says so. `docker compose`, or else
    /// `docker-compose`, reads it, with the `.env` beside it.
    #[schemars(required)]
    pub(crate) file: Option<At<Verbatim<Template>>>,
    /// The service that gets the load; `{{addr}}` and the like are its address.
    #[schemars(required)]
    pub(crate) service: Option<At<Verbatim<Template>>>,
    /// The port that it listens on within its container. Without this key it is the one that the file
    /// publishes or exposes.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// Profiles of the file whose services run as well.
    #[serde(default)]
    pub(crate) profiles: OneOrMany<At<Verbatim<Template>>>,
    /// Variables for the `${…}` of the file. The environment of a service is changed under `services`.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// Services that are left out, with every `depends_on` on them; `none` is no service. What others
    /// are told of them in their environment or configuration stays: change it under `services`.
    #[serde(default)]
    pub(crate) without: OneOrMany<At<Verbatim<Template>>>,
    /// What the lab changes in services, by name.
    #[serde(default)]
    pub(crate) services: Table<ServiceName, ServiceFile>,
}

/// What a lab changes in one service of a compose file. `{{setting}}` may stand in every value.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "service")]
pub(crate) struct ServiceFile {
    /// Variables of its environment, added to those of the file or in place of them.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// The image that it runs, in place of its own and of its `build`.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// How many containers of it run, 1 to 64, or a template that says so. The service that gets the
    /// load has one.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
}
