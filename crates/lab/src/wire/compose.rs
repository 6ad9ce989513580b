//! Services of a compose file, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{ServiceName, VariableName, Verbatim};
use crate::template::Template;

/// Services of a compose file that together are the system. `weigh` starts a project of its own for
/// every variant and removes it when it is done. Each service has a line of its own in the report,
/// `SYSTEM/SERVICE`. The file does not change. `weigh` starts a copy without fixed ports and names, so
/// that several variants can be up at once. docs/compose.md describes all other changes and all refused
/// keys. Every value can contain `{{setting}}`, so a variant can change any value. A value cannot
/// contain addresses of other systems, because containers have a network of their own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "compose")]
pub(crate) struct ComposeFile {
    /// The compose file, relative to the file that contains this key. `docker compose`, or else
    /// `docker-compose`, reads it with the `.env` next to it.
    #[schemars(required)]
    pub(crate) file: Option<At<Verbatim<Template>>>,
    /// The service that receives the load. `{{addr}}` and similar templates are its address.
    #[schemars(required)]
    pub(crate) service: Option<At<Verbatim<Template>>>,
    /// The port of the service within its container. By default the port that the file publishes or
    /// exposes.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// Profiles of the file. Their services run as well.
    #[serde(default)]
    pub(crate) profiles: OneOrMany<At<Verbatim<Template>>>,
    /// Variables for the `${…}` of the file. The key `services` changes the environment of a service.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// Services to leave out, with every `depends_on` on them. `none` is no service. References to them
    /// in the environment or configuration of other services stay. Change these references under
    /// `services`.
    #[serde(default)]
    pub(crate) without: OneOrMany<At<Verbatim<Template>>>,
    /// Changes to services, by name.
    #[serde(default)]
    pub(crate) services: Table<ServiceName, ServiceFile>,
}

/// Changes to one service of a compose file. Every value can contain `{{setting}}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "service")]
pub(crate) struct ServiceFile {
    /// Variables of its environment. They are added to the variables of the file or replace them.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// The image to run, instead of its own image and its `build`.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// The number of its containers, 1 to 64, or a template for this number. The service that receives
    /// the load has one container.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
}
