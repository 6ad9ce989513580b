//! `remote_schemas`: GraphQL services with schemas that are merged into one schema.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::graphql_text::GraphqlName;
use crate::written::{ServiceAddress, Written};

/// A GraphQL service. The gateway serves its root fields.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteSchema {
    /// The unique name of the service in logs, metrics and keys such as `headers.subgraphs`.
    pub name: String,
    /// The address of the service, `http://host:port/v1/graphql` or `unix:///socket?path=/graphql`.
    pub url: Written<ServiceAddress>,
    /// Headers of every request to the service. They replace client headers of equal names.
    #[serde(default)]
    pub headers: Vec<ConfiguredHeader>,
    /// True if the gateway sends the client's headers to the service. Headers of the connection and of
    /// content negotiation are never sent. `session_variables` always decides about `x-hasura-*` headers.
    #[serde(default)]
    pub forward_client_headers: bool,
    /// Maximum time of a request to the service.
    #[serde(default = "sixty_seconds")]
    pub timeout: Written<Duration>,
    /// Other names for the service's types and fields.
    #[serde(default)]
    pub customization: Customization,
    /// A note for readers, without effect.
    #[serde(default)]
    pub comment: Option<String>,
}

fn sixty_seconds() -> Written<Duration> {
    // As in Hasura, the origin of such configurations.
    Written(Duration::from_secs(60))
}

/// A header with a fixed value. `${env.NAME}` inserts an environment variable.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredHeader {
    /// The name of the header.
    pub name: Written<HeaderName>,
    /// The value of the header.
    pub value: Written<HeaderValue>,
}

/// Other names for a service's types and fields.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Customization {
    /// The field that contains all root fields of the service.
    pub root_fields_namespace: Option<Written<GraphqlName>>,
    /// Other names for types. Root types, built-in scalars and names that begin with `__` keep their names.
    pub type_names: NameChange,
    /// Other names for the fields of some types.
    pub field_names: Vec<FieldNameChange>,
}

/// The rules for new names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NameChange {
    /// Text in front of names that are not in `mapping`.
    pub prefix: String,
    /// Text behind names that are not in `mapping`.
    pub suffix: String,
    /// Old names to new names.
    pub mapping: BTreeMap<String, Written<GraphqlName>>,
}

/// The rules for new names of a type's fields.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldNameChange {
    /// The type's name in the service. If a field of an interface gets a new name, the types that implement
    /// it need the same change.
    pub parent_type: String,
    /// Text in front of names that are not in `mapping`.
    #[serde(default)]
    pub prefix: String,
    /// Text behind names that are not in `mapping`.
    #[serde(default)]
    pub suffix: String,
    /// Old names to new names.
    #[serde(default)]
    pub mapping: BTreeMap<String, Written<GraphqlName>>,
}
