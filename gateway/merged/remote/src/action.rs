//! A prepared action: the request to its handler, and the handling of the response.

use std::borrow::Cow;

use bytes::Bytes;
use gateway_config::{
    Action as WrittenAction, BodyAction, QueryParameters, RequestTransform, ResponseTransform,
    ServiceAddress, TemplateJson, TemplateText, Written,
};
use gateway_federation::GraphqlError;
use gateway_template::{Json, JsonError, RenderError, Scope, Template, Work};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use crate::asking::Asking;
use crate::call::{Call, CallAnswer, Forwarding, HeaderSettings};
use crate::failure;
use crate::names::{MUTATION_ROOT, QUERY_ROOT};
use crate::session::Session;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// A handler's response after its transformation.
pub(crate) type Transformed<'a> = Result<Cow<'a, Json<'a>>, RenderError>;

/// An action with parsed templates.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) name: String,
    base_url: String,
    headers: HeaderSettings,
    is_query: bool,
    /// The roles that may call the action. `None` if every role may.
    roles: Option<Vec<String>>,
    request: Option<Request>,
    response: Option<Template>,
}

/// The transformation of a request.
#[derive(Debug, Default)]
struct Request {
    method: Option<Method>,
    url: Option<Template>,
    query: Query,
    body: Body,
    added: Vec<(HeaderName, Template)>,
    removed: Vec<HeaderName>,
}

/// The query parameters of a transformed request.
#[derive(Debug)]
enum Query {
    ByName(Vec<(String, Template)>),
    Whole(Template),
}

impl Default for Query {
    fn default() -> Self {
        Self::ByName(Vec::new())
    }
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    Payload,
    None,
    Json(Template),
    Form(Vec<(String, Template)>),
}

/// An error of a request transformation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransformError {
    #[error("{what}: {source}")]
    Template { what: String, source: RenderError },
    #[error("the url rendered to null")]
    NoUrl,
    #[error("`{value}` is not a valid value for the header `{name}`")]
    Header { name: HeaderName, value: String },
    #[error("the payload cannot be read")]
    Payload,
}

/// Parses a template. The configuration check has already parsed every template.
fn read_text(text: &Written<TemplateText>) -> Option<Template> {
    Template::text(&text.0.0).ok()
}

fn read_json(text: Option<&Written<TemplateJson>>) -> Option<Template> {
    Template::json(&text?.0.0).ok()
}

impl Action {
    pub(crate) fn new(written: &WrittenAction) -> Self {
        let base_url = match &written.handler.0 {
            ServiceAddress::Http(uri) => uri.to_string(),
            ServiceAddress::Unix { path, .. } => format!("http://localhost{path}"),
        };
        Self {
            name: written.name.0.0.clone(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            headers: HeaderSettings::new(&written.headers, forwarding(written)),
            is_query: written.kind == gateway_config::ActionKind::Query,
            roles: written.permissions.as_ref().map(|permissions| {
                let roles = permissions.iter().map(|permission| permission.role.clone());
                roles.collect()
            }),
            request: written.request_transform.as_ref().map(Request::new),
            response: written.response_transform.as_ref().and_then(response),
        }
    }

    /// An error if the session's role may not call the action. It has the words for a field that does not
    /// exist, as in Hasura, so that a client learns nothing about the action.
    pub(crate) fn permit(&self, session: &Session) -> Result<(), GraphqlError> {
        let is_permitted = |roles: &Vec<String>| {
            session.is_admin() || roles.iter().any(|role| session.has_role(role))
        };
        if self.roles.as_ref().is_none_or(is_permitted) {
            return Ok(());
        }
        let root = if self.is_query {
            QUERY_ROOT
        } else {
            MUTATION_ROOT
        };
        let message = format!("field '{}' not found in type: '{root}'", self.name);
        let path = failure::root_path(&self.name);
        Err(failure::error(message, &path, "validation-failed"))
    }

    /// The request for a payload. The output of its templates counts as `work`.
    pub(crate) fn call(
        &self,
        source: usize,
        payload: Vec<u8>,
        asking: Asking<'_>,
        work: &Work,
    ) -> Result<Call, TransformError> {
        let mut headers = self.headers.of(asking.client, asking.session);
        // `or_insert`, because a configured or forwarded content type takes precedence over ours.
        headers.entry(header::CONTENT_TYPE).or_insert(JSON);
        let call = Call {
            source,
            method: Method::POST,
            url: None,
            headers,
            body: Bytes::new(),
            is_idempotent: self.is_query,
        };
        let Some(request) = &self.request else {
            return Ok(Call {
                body: payload.into(),
                ..call
            });
        };
        request.apply(call, payload, &self.base_url, work)
    }

    /// Converts the handler's response to the action's value, or to an error.
    pub(crate) fn judge<'a>(
        &self,
        answer: &CallAnswer,
        body: &'a Result<Json<'a>, JsonError>,
        transformed: Option<&'a Transformed<'a>>,
    ) -> Result<&'a Json<'a>, GraphqlError> {
        let path = failure::root_path(&self.name);
        let unexpected = |message: &str| failure::error(message, &path, "unexpected");
        // A handler refuses with 4xx and its own error for the client. Every other status except 2xx is a
        // failure of the handler.
        let is_refusal = answer.status.is_client_error();
        if !answer.status.is_success() && !is_refusal {
            let found = answer.status.as_u16();
            let reason = format!("expecting 2xx or 4xx status code, but found {found}");
            return Err(unexpected("internal error").with("internal", reason));
        }
        // Checked after the status: for a proxy's HTML page with a 502, the status is the better explanation.
        let Ok(body) = body else {
            return Err(unexpected("not a valid json response from webhook"));
        };
        let value: &Json<'_> = match transformed {
            None => body,
            Some(Ok(value)) => value,
            // Templates are written for success. A refusal may lack the members that they read.
            Some(Err(_)) if is_refusal => body,
            Some(Err(reason)) => {
                let error = unexpected("Response Transformation Failed");
                return Err(error.with("internal", reason.to_string()));
            }
        };
        if is_refusal {
            return Err(refusal(value, &path));
        }
        Ok(value)
    }

    /// Transforms the handler's response. `None` without a response template. The output of the template
    /// counts as `work`.
    pub(crate) fn transformed<'a>(
        &'a self,
        body: &'a Json<'a>,
        status: &'a Json<'a>,
        work: &'a Work,
    ) -> Option<Transformed<'a>> {
        let template = self.response.as_ref()?;
        let scope = Scope::new(work)
            .with("$body", body)
            .with("$response", status);
        Some(template.render(&scope))
    }
}

/// The value of `$response` in templates.
pub(crate) fn response_variable(status: StatusCode) -> Json<'static> {
    let status = Json::Number(status.as_u16().to_string().into());
    Json::Object(vec![("status".into(), status)])
}

fn forwarding(written: &WrittenAction) -> Forwarding {
    match &written.ignored_client_headers {
        Some(ignored) if written.forward_client_headers => {
            Forwarding::Except(ignored.iter().map(|name| name.0.clone()).collect())
        }
        _ => Forwarding::usual_if(written.forward_client_headers),
    }
}

/// The error that a handler returned with 4xx.
fn refusal(body: &Json<'_>, path: &str) -> GraphqlError {
    let text = |key: &str| match body.get(key) {
        Some(Json::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    let Some(message) = text("message") else {
        let reason = "the handler refused without a `message`";
        return failure::error("internal error", path, "unexpected").with("internal", reason);
    };
    // `serde_json` rejects a lone surrogate, which the gateway's reader accepts. In that case only `code` is
    // used.
    if let Some(extensions @ Json::Object(_)) = body.get("extensions")
        && let Ok(serde_json::Value::Object(extensions)) =
            serde_json::from_slice(&extensions.to_bytes())
    {
        return GraphqlError {
            message,
            extensions,
            ..GraphqlError::default()
        };
    }
    let code = text("code").unwrap_or_else(|| "unexpected".to_owned());
    failure::error(message, "$", &code)
}

fn response(written: &ResponseTransform) -> Option<Template> {
    let body = written.body.as_ref()?;
    match body.action {
        BodyAction::Transform => read_json(body.template.as_ref()),
        BodyAction::Remove | BodyAction::XWwwFormUrlencoded => None,
    }
}

fn named<K: Clone, V: Clone>(
    of: &std::collections::BTreeMap<K, V>,
    make: impl Fn(&V) -> Option<Template>,
) -> Vec<(K, Template)> {
    let entries = of.iter();
    entries
        .filter_map(|(key, text)| Some((key.clone(), make(text)?)))
        .collect()
}

impl Request {
    fn new(written: &RequestTransform) -> Self {
        let text = read_text;
        let added = named(&written.request_headers.add_headers, text);
        let added = added
            .into_iter()
            .filter_map(|(name, template)| {
                Some((HeaderName::from_bytes(name.as_bytes()).ok()?, template))
            })
            .collect();
        let removed = written.request_headers.remove_headers.iter();
        Self {
            method: written.method.as_ref().map(|it| it.0.0.clone()),
            url: written.url.as_ref().and_then(text),
            query: Query::new(&written.query_params),
            body: match &written.body {
                None => Body::Payload,
                Some(body) => match body.action {
                    BodyAction::Remove => Body::None,
                    BodyAction::Transform => {
                        read_json(body.template.as_ref()).map_or(Body::Payload, Body::Json)
                    }
                    BodyAction::XWwwFormUrlencoded => Body::Form(named(&body.form_template, text)),
                },
            },
            added,
            removed: removed.map(|it| it.0.clone()).collect(),
        }
    }

    fn apply(
        &self,
        mut call: Call,
        payload: Vec<u8>,
        base_url: &str,
        work: &Work,
    ) -> Result<Call, TransformError> {
        let tree = Json::parse(&payload).map_err(|_| TransformError::Payload)?;
        // `$base_url` has no trailing slash, because templates append paths to it. See `new`.
        let base = Json::Text(base_url.into());
        let query = query_of(base_url);
        let nothing = Json::Null;
        // Headers are added after the body is rendered, so that a template can replace the content type of a
        // form.
        let scope = Scope::new(work)
            .with("$body", &tree)
            .with("$base_url", &base)
            .with("$query_params", &query)
            .with(
                "$session_variables",
                tree.get("session_variables").unwrap_or(&nothing),
            );
        call.url = self.url(&scope, base_url)?;
        if let Some(method) = &self.method {
            call.method = method.clone();
        }
        for name in &self.removed {
            call.headers.remove(name);
        }
        let rendered = |what: &str, template: &Template| rendered(what, template, &scope);
        let body: Bytes = match &self.body {
            // The payload moves into the call at the end, because the templates' `tree` borrows it until
            // then.
            Body::Payload => Bytes::new(),
            Body::None => Bytes::new(),
            Body::Json(template) => {
                let value = template.render(&scope);
                let value = value.map_err(|source| TransformError::Template {
                    what: "body".to_owned(),
                    source,
                })?;
                value.to_bytes().into()
            }
            Body::Form(fields) => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                for (name, template) in fields {
                    // If a template renders to null, its field, header or parameter is left out.
                    if let Some(value) = rendered(name, template)? {
                        form.append_pair(name, &value);
                    }
                }
                call.headers.insert(header::CONTENT_TYPE, FORM);
                form.finish().into()
            }
        };
        for (name, template) in &self.added {
            if let Some(value) = rendered(name.as_str(), template)? {
                let value = HeaderValue::from_str(&value).map_err(|_| TransformError::Header {
                    name: name.clone(),
                    value,
                })?;
                call.headers.insert(name.clone(), value);
            }
        }
        call.body = match self.body {
            Body::Payload => payload.into(),
            _ => body,
        };
        Ok(call)
    }

    /// The URL, if a template changes it.
    fn url(&self, scope: &Scope<'_>, base_url: &str) -> Result<Option<String>, TransformError> {
        let render = |what: &str, template: &Template| rendered(what, template, scope);
        let mut url = match &self.url {
            Some(template) => render("url", template)?.ok_or(TransformError::NoUrl)?,
            // If neither the URL nor its parameters change, the configured endpoint is used, with its
            // connection pool.
            None if self.query.is_unchanged() => return Ok(None),
            None => base_url.to_owned(),
        };
        if !self.query.is_unchanged() {
            // `query_params` replace the URL's own parameters, which templates can copy from
            // `$query_params`.
            if let Some(at) = url.find('?') {
                url.truncate(at);
            }
            let parameters = self.query.write(scope)?;
            if !parameters.is_empty() {
                url.push('?');
                url.push_str(&parameters);
            }
        }
        Ok(Some(url))
    }
}

impl Query {
    fn new(written: &QueryParameters) -> Self {
        match written {
            QueryParameters::ByName(parameters) => Self::ByName(named(parameters, read_text)),
            QueryParameters::Whole(text) => {
                read_text(text).map_or_else(|| Self::ByName(Vec::new()), Self::Whole)
            }
        }
    }

    /// True if the parameters of the URL stay.
    fn is_unchanged(&self) -> bool {
        matches!(self, Self::ByName(parameters) if parameters.is_empty())
    }

    fn write(&self, scope: &Scope<'_>) -> Result<String, TransformError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match self {
            Self::ByName(parameters) => {
                for (name, template) in parameters {
                    if let Some(value) = rendered(name, template, scope)? {
                        form.append_pair(name, &value);
                    }
                }
            }
            Self::Whole(template) => {
                let text = rendered("query_params", template, scope)?.unwrap_or_default();
                // Written again, because a rendered value may contain characters that a URL cannot contain.
                let text = text.strip_prefix('?').unwrap_or(&text);
                form.extend_pairs(form_urlencoded::parse(text.as_bytes()));
            }
        }
        Ok(form.finish())
    }
}

/// Renders a template. An error names the field, header or parameter `what`.
fn rendered(
    what: &str,
    template: &Template,
    scope: &Scope<'_>,
) -> Result<Option<String>, TransformError> {
    let rendered = template.render_text(scope);
    rendered.map_err(|source| TransformError::Template {
        what: what.to_owned(),
        source,
    })
}

/// `$query_params`: the parameters of the handler's own URL.
fn query_of(url: &str) -> Json<'static> {
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    // A URL without a question mark has no parameters.
    let members = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| {
        let name = Cow::Owned(name.into_owned());
        (name, Json::Text(value.into_owned().into()))
    });
    Json::Object(members.collect())
}
