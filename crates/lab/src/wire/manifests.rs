//! Manifests of a cluster, as a lab names them.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{ServiceName, VariableName, Verbatim};
use crate::template::Template;

/// Your own manifests, instead of pods that are made by `weigh`: for `weigh lab --on kubernetes`. Each
/// variant gets a copy of its own at each start, under generated names; what names each other in the
/// files finds its own copy. Deployment, StatefulSet, Pod, Service, ConfigMap and Secret are applied,
/// and what else the files hold must be left out with `without` (docs/kubernetes.md says what is changed and
/// refused). `{{setting}}` may stand in every value, and so a variant has other files or another image.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "manifests")]
pub(crate) struct ManifestsFile {
    /// Files of one or several objects, relative to the file that says so.
    #[serde(default)]
    #[schemars(required)]
    pub(crate) files: OneOrMany<At<Verbatim<Template>>>,
    /// The Service of the files that gets the load; `{{addr}}` and the like are its address.
    #[schemars(required)]
    pub(crate) service: Option<At<Verbatim<Template>>>,
    /// The port of that Service, where it has several.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// The Deployment, StatefulSet or Pod whose processor time and memory are counted. By default all
    /// pods of the files are.
    pub(crate) workload: Option<At<Verbatim<Template>>>,
    /// What of the files is left out, as `KIND` or `KIND/NAME`: what is not applied at all, such as
    /// `HorizontalPodAutoscaler`, or what a variant does without. `none` is nothing.
    #[serde(default)]
    pub(crate) without: OneOrMany<At<Verbatim<Template>>>,
    /// What the lab changes in Deployments, StatefulSets and Pods, by their names.
    #[serde(default)]
    pub(crate) changes: Table<ServiceName, WorkloadFile>,
}

/// What a lab changes in one workload of its manifests. `{{setting}}` may stand in every value.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "workload")]
pub(crate) struct WorkloadFile {
    /// The container that is changed. By default the first one.
    pub(crate) container: Option<At<Verbatim<Template>>>,
    /// Variables of its environment, added to those of the file or in place of them.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// The image that it runs, in place of its own.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// How many pods of it run, 1 to 64. A Pod has no such number.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
}
