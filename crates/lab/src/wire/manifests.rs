//! Manifests of a cluster, as a lab names them.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, OneOrMany};

use crate::fields::Table;
use crate::formats::{ServiceName, VariableName, Verbatim};
use crate::template::Template;

/// Your own manifests, instead of pods that `weigh` makes. They are for `weigh lab --on kubernetes`.
/// Each variant receives a copy of its own at each start, under generated names. References between
/// objects of the files lead to the same copy. `weigh` applies Deployment, StatefulSet, Pod, Service,
/// ConfigMap and Secret. All other objects must be left out with `without`. docs/kubernetes.md
/// describes all changes and all refused keys. Every value can contain `{{setting}}`, so a variant can
/// have other files or another image.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "manifests")]
pub(crate) struct ManifestsFile {
    /// Files with one or several objects, relative to the file that contains this key.
    #[serde(default)]
    #[schemars(required)]
    pub(crate) files: OneOrMany<At<Verbatim<Template>>>,
    /// The Service of the files that receives the load. `{{addr}}` and similar templates are its
    /// address.
    #[schemars(required)]
    pub(crate) service: Option<At<Verbatim<Template>>>,
    /// The port of that Service, if it has several ports.
    pub(crate) port: Option<At<Verbatim<Template>>>,
    /// The Deployment, StatefulSet or Pod that supplies processor time and memory. By default `weigh`
    /// counts all pods of the files.
    pub(crate) workload: Option<At<Verbatim<Template>>>,
    /// Objects of the files to leave out, as `KIND` or `KIND/NAME`. They are objects that `weigh` does
    /// not apply, such as `HorizontalPodAutoscaler`, or objects that a variant omits. `none` is no
    /// object.
    #[serde(default)]
    pub(crate) without: OneOrMany<At<Verbatim<Template>>>,
    /// Changes to Deployments, StatefulSets and Pods, by their names.
    #[serde(default)]
    pub(crate) changes: Table<ServiceName, WorkloadFile>,
}

/// Changes to one workload of the manifests. Every value can contain `{{setting}}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "workload")]
pub(crate) struct WorkloadFile {
    /// The container to change. By default the first container.
    pub(crate) container: Option<At<Verbatim<Template>>>,
    /// Variables of its environment. They are added to the variables of the file or replace them.
    #[serde(default)]
    pub(crate) env: Table<VariableName, At<Verbatim<Template>>>,
    /// The image to run, instead of its own image.
    pub(crate) image: Option<At<Verbatim<Template>>>,
    /// The number of its pods, 1 to 64. A Pod has no such number.
    pub(crate) replicas: Option<At<Verbatim<Template>>>,
}
