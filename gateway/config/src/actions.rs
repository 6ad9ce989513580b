//! `types` and `actions`: root fields with an HTTP handler.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::graphql_text::{GraphqlName, TypeReference};
use crate::remote_schemas::ConfiguredHeader;
use crate::written::{Method, ServiceAddress, TemplateJson, TemplateText, Written};

/// A root field with an HTTP handler.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The name of the root field. Each action has another name.
    pub name: Written<GraphqlName>,
    /// The root type of the field, `query_root` or `mutation_root`.
    #[serde(default, rename = "type")]
    pub kind: ActionKind,
    /// The arguments of the root field.
    #[serde(default)]
    pub arguments: Vec<ActionArgument>,
    /// The type of the field, such as `product`, `[product!]!` or a scalar.
    pub output_type: Written<TypeReference>,
    /// The URL of the handler. Templates use it as `$base_url`.
    pub handler: Written<ServiceAddress>,
    /// Headers of every request to the handler. They replace client headers of equal names.
    #[serde(default)]
    pub headers: Vec<ConfiguredHeader>,
    /// True if the gateway sends the client's headers to the handler. Headers of the connection and of
    /// content negotiation are never sent.
    #[serde(default)]
    pub forward_client_headers: bool,
    /// Client headers that the gateway does not forward. The list replaces the default list, which contains
    /// headers such as `user-agent`, `origin` and `accept-language`. Headers that belong to the connection, the
    /// body or the session are never forwarded.
    #[serde(default)]
    pub ignored_client_headers: Option<Vec<Written<HeaderName>>>,
    /// Maximum time of a request to the handler.
    #[serde(default = "thirty_seconds")]
    pub timeout: Written<Duration>,
    /// Changes to the request. Without this key, the gateway sends the whole payload with POST.
    #[serde(default)]
    pub request_transform: Option<RequestTransform>,
    /// Changes to the handler's response. They run before the gateway checks the type.
    #[serde(default)]
    pub response_transform: Option<ResponseTransform>,
    /// A note for readers, used as the description of the field.
    #[serde(default)]
    pub comment: Option<String>,
    /// The roles that may call the action, besides `admin`. Without this key, every role may. With an empty
    /// list, only `admin` may.
    #[serde(default)]
    pub permissions: Option<Vec<ActionPermission>>,
}

/// A role that may call an action.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionPermission {
    /// The name of the role, as in `x-hasura-role`.
    pub role: String,
}

fn thirty_seconds() -> Written<Duration> {
    // As in Hasura, the origin of such configurations.
    Written(Duration::from_secs(30))
}

/// The root type of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActionKind {
    /// An action that reads. The actions of one query run at the same time.
    Query,
    /// An action that writes. The actions of one mutation run one after the other.
    #[default]
    Mutation,
}

/// An argument of an action.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionArgument {
    /// The name of the argument.
    pub name: Written<GraphqlName>,
    /// The type of the argument, such as `uuid!`, `[Int!]` or an input object of `types`.
    #[serde(rename = "type")]
    pub kind: Written<TypeReference>,
    /// The description of the argument in the schema.
    #[serde(default)]
    pub description: Option<String>,
}

/// Changes to the request to a handler. Templates can use `$body`, `$base_url`, `$session_variables` and
/// `$query_params`. `$body` is the payload with `action`, `input`, `session_variables` and `request_query`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestTransform {
    /// Always 2. Version 1 is refused, because its `body` was a template without an object.
    pub version: TransformVersion,
    /// The method. The default is `POST`.
    pub method: Option<Written<Method>>,
    /// A template for the URL, such as `{{$base_url}}/product/{{$body.input.id}}`.
    pub url: Option<Written<TemplateText>>,
    /// The query parameters. They replace the parameters of the URL.
    pub query_params: QueryParameters,
    /// The body instead of the payload.
    pub body: Option<BodyTransform>,
    /// Headers that the transform adds or removes.
    pub request_headers: HeaderTransform,
    /// The language of the templates.
    pub template_engine: TemplateEngine,
}

/// The query parameters of a transformed request.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
pub enum QueryParameters {
    /// A template for each parameter by name. A parameter with the value null is left out.
    ByName(BTreeMap<String, Written<TemplateText>>),
    /// One template for the whole query, such as `id={{escapeUri($body.input.id)}}&limit=3`. Without
    /// `escapeUri`, a value with `&` adds a parameter.
    Whole(Written<TemplateText>),
}

impl Default for QueryParameters {
    fn default() -> Self {
        Self::ByName(BTreeMap::new())
    }
}

/// Reads both forms. The errors of `untagged` would not report the mistake in a template.
impl<'de> Deserialize<'de> for QueryParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QueryForms)
    }
}

struct QueryForms;

impl<'de> Visitor<'de> for QueryForms {
    type Value = QueryParameters;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("templates by name of the parameter, or one template for the whole query")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Written::deserialize(StrDeserializer::new(text)).map(QueryParameters::Whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(QueryParameters::ByName)
    }
}

/// Changes to a handler's response. Templates can use `$body` (its JSON), `$request` and `$response.status`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseTransform {
    /// Always 2. Version 1 is refused, because its `body` was a template without an object.
    pub version: TransformVersion,
    /// The body that the gateway uses as the response.
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

/// The language that templates are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum TemplateEngine {
    /// Kriti, which is JSON with `{{ … }}` in it.
    #[default]
    Kriti,
}

/// The replacement for a body.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyTransform {
    /// The kind of the replacement.
    pub action: BodyAction,
    /// The new body. Required for `transform`.
    #[serde(default)]
    pub template: Option<Written<TemplateJson>>,
    /// The fields of the form by name. Required for `x_www_form_urlencoded`.
    #[serde(default)]
    pub form_template: BTreeMap<String, Written<TemplateText>>,
}

/// The kinds of replacement for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyAction {
    /// The message has no body.
    Remove,
    /// The body is the result of `template`.
    Transform,
    /// The body is the form of `form_template`. Only requests can have it.
    XWwwFormUrlencoded,
}

/// Headers that a transform adds or removes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderTransform {
    /// Headers by name. Each value is a template.
    pub add_headers: BTreeMap<String, Written<TemplateText>>,
    /// Names of headers that are not sent.
    pub remove_headers: Vec<Written<HeaderName>>,
}
