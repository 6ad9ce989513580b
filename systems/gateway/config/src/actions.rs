//! `types` and `actions`: root fields with an HTTP handler.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::graphql_text::{GraphqlName, TypeReference};
use crate::remote_schemas::ConfiguredHeader;
use crate::written::{Endpoint, Method, TemplateJson, TemplateText, Written};

/// A root field that an HTTP handler answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The name of the root field; unique.
    pub name: Written<GraphqlName>,
    /// Whether it is a field of `query_root` or of `mutation_root`.
    #[serde(default, rename = "type")]
    pub kind: ActionKind,
    /// The field's arguments.
    #[serde(default)]
    pub arguments: Vec<ActionArgument>,
    /// The field's type: `product`, `[product!]!`, a scalar.
    pub output_type: Written<TypeReference>,
    /// Where the handler is; `$base_url` of transforms.
    pub handler: Written<Endpoint>,
    /// Headers of every request to the handler; they win over headers of clients.
    #[serde(default)]
    pub headers: Vec<ConfiguredHeader>,
    /// Whether the handler gets the client's headers, those of the connection and of content
    /// negotiation left out.
    #[serde(default)]
    pub forward_client_headers: bool,
    /// The longest time of a request to the handler.
    #[serde(default = "thirty_seconds")]
    pub timeout: Written<Duration>,
    /// How the request to the handler is made, when it is not a POST of the whole payload.
    #[serde(default)]
    pub request_transform: Option<RequestTransform>,
    /// What is made of the handler's answer before its type is checked.
    #[serde(default)]
    pub response_transform: Option<ResponseTransform>,
    /// A note for people; the description of the field.
    #[serde(default)]
    pub comment: Option<String>,
}

fn thirty_seconds() -> Written<Duration> {
    // As in Hasura, the origin of such configurations.
    Written(Duration::from_secs(30))
}

/// Which root type an action belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// It reads; actions of one query run side by side.
    Query,
    /// It writes; actions of one mutation run one after the other.
    #[default]
    Mutation,
}

/// An argument of an action.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionArgument {
    /// Its name.
    pub name: Written<GraphqlName>,
    /// Its type: `uuid!`, `[Int!]`, an input object of `types`.
    #[serde(rename = "type")]
    pub kind: Written<TypeReference>,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
}

/// How the request to a handler is made. Templates see `$body` (the payload: `action`, `input`,
/// `session_variables`, `request_query`), `$base_url`, `$session_variables` and `$query_params`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestTransform {
    /// 2; 1 is refused, its `body` was a bare template.
    pub version: TransformVersion,
    /// The method, `POST` when left out.
    pub method: Option<Written<Method>>,
    /// A template of the URL: `{{$base_url}}/product/{{$body.input.id}}`.
    pub url: Option<Written<TemplateText>>,
    /// Query parameters by name, each a template; one that renders to null is left out. They
    /// replace those of the URL.
    pub query_params: BTreeMap<String, Written<TemplateText>>,
    /// What is sent instead of the payload.
    pub body: Option<BodyTransform>,
    /// Headers that change.
    pub request_headers: HeaderTransform,
    /// The language of the templates.
    pub template_engine: TemplateEngine,
}

/// What is made of a handler's answer. Templates see `$body` (its JSON), `$request` and
/// `$response.status`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseTransform {
    /// 2; 1 is refused, its `body` was a bare template.
    pub version: TransformVersion,
    /// What counts as the answer.
    pub body: Option<BodyTransform>,
    /// The language of the templates.
    pub template_engine: TemplateEngine,
}

/// The format version of a transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransformVersion;

impl<'de> Deserialize<'de> for TransformVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            // Version 1 writes a body as text alone. `import` converts it.
            2 => Ok(Self),
            other => Err(serde::de::Error::custom(format!(
                "expected version 2, found {other}"
            ))),
        }
    }
}

impl JsonSchema for TransformVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TransformVersion".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "minimum": 2})
    }
}

/// The language of templates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum TemplateEngine {
    /// Kriti: JSON with `{{ … }}` in it.
    #[default]
    Kriti,
}

/// What becomes of a body.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyTransform {
    /// What is done.
    pub action: BodyAction,
    /// The new body, for `transform`.
    #[serde(default)]
    pub template: Option<Written<TemplateJson>>,
    /// The fields of the form by name, for `x_www_form_urlencoded`.
    #[serde(default)]
    pub form_template: BTreeMap<String, Written<TemplateText>>,
}

/// What is done with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyAction {
    /// No body is sent.
    Remove,
    /// `template` makes it.
    Transform,
    /// `form_template` makes a form of it; for requests only.
    XWwwFormUrlencoded,
}

/// Headers of a request that change.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderTransform {
    /// Headers by name, each a template.
    pub add_headers: BTreeMap<String, Written<TemplateText>>,
    /// Names of headers that are not sent.
    pub remove_headers: Vec<Written<HeaderName>>,
}
