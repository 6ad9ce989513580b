//! `remote_schemas`: GraphQL services with schemas that are merged into one schema.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::graphql_text::GraphqlName;
use crate::written::{Endpoint, Written};

/// A GraphQL service whose root fields are served here.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteSchema {
    /// What the service is called in logs, metrics and keys such as `headers.subgraphs`; unique.
    pub name: String,
    /// Where the service is: `http://host:port/v1/graphql` or `unix:///socket?path=/graphql`.
    pub url: Written<Endpoint>,
    /// Headers of every request to the service; they win over headers of clients.
    #[serde(default)]
    pub headers: Vec<ConfiguredHeader>,
    /// Whether the service gets the client's headers, those of the connection and of content
    /// negotiation left out. `session_variables` decides about `x-hasura-*` headers in any case.
    #[serde(default)]
    pub forward_client_headers: bool,
    /// The longest time of a request to the service.
    #[serde(default = "sixty_seconds")]
    pub timeout: Written<Duration>,
    /// Other names for what the service has.
    #[serde(default)]
    pub customization: Customization,
    /// A note for people.
    #[serde(default)]
    pub comment: Option<String>,
}

fn sixty_seconds() -> Written<Duration> {
    // As in Hasura, the origin of such configurations.
    Written(Duration::from_secs(60))
}

/// A header with a fixed value; `${env.NAME}` fills in variables.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredHeader {
    /// Its name.
    pub name: Written<HeaderName>,
    /// Its value.
    pub value: Written<HeaderValue>,
}

/// Other names for what a service has.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Customization {
    /// A field below which all root fields of the service are moved.
    pub root_fields_namespace: Option<Written<GraphqlName>>,
    /// Other names for types. Root types, built-in scalars and names that begin with `__` keep
    /// theirs.
    pub type_names: NameChange,
    /// Other names for the fields of some types.
    pub field_names: Vec<FieldNameChange>,
}

/// How names change.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NameChange {
    /// What is put in front of names that `mapping` does not have.
    pub prefix: String,
    /// What is put behind names that `mapping` does not have.
    pub suffix: String,
    /// Old names to new names.
    pub mapping: BTreeMap<String, Written<GraphqlName>>,
}

/// How the names of a type's fields change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldNameChange {
    /// The type as the service calls it. A change of an interface's field must be repeated for the
    /// types that implement it.
    pub parent_type: String,
    /// What is put in front of names that `mapping` does not have.
    #[serde(default)]
    pub prefix: String,
    /// What is put behind names that `mapping` does not have.
    #[serde(default)]
    pub suffix: String,
    /// Old names to new names.
    #[serde(default)]
    pub mapping: BTreeMap<String, Written<GraphqlName>>,
}
