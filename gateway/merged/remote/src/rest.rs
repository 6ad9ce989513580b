//! Stored operations as REST endpoints: finds the operation of a request, and its variables.

use std::borrow::Cow;

use gateway_config::{Config, RestEndpoint, RestSegment};
use gateway_federation::inner_name;
use gateway_template::{Json, write_text};
use graphql_tools::parser::parse_query;
use graphql_tools::parser::query::{Definition, OperationDefinition};
use graphql_tools::parser::schema::Type;
use json_text::Ambiguity;
use percent_encoding::percent_decode_str;

use crate::answer::{Answer, Data};

/// The prefix of all paths of REST endpoints.
pub const REST_PREFIX: &str = "/api/rest/";

/// Scalars with numbers as JSON values.
const NUMERIC: &[&str] = &[
    "Int",
    "Float",
    "smallint",
    "int",
    "integer",
    "bigint",
    "int2",
    "int4",
    "int8",
    "float",
    "float4",
    "float8",
    "double",
    "decimal",
    "numeric",
    "real",
    "money",
    "serial",
    "bigserial",
];

/// The REST endpoints of a configuration.
#[derive(Debug, Default)]
pub struct RestEndpoints(Vec<Endpoint>);

#[derive(Debug)]
struct Endpoint {
    segments: Vec<RestSegment>,
    methods: Vec<&'static str>,
    query: String,
    variables: Vec<(String, Type<'static, String>)>,
}

/// An error response to a request without an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestError {
    /// The HTTP status of the response.
    pub status: u16,
    /// Description of the error for the client.
    pub message: String,
    /// A short code for programs, such as `bad-request`.
    pub code: &'static str,
    /// The methods for the `allow` header of a 405.
    pub allow: Option<String>,
}

impl RestError {
    fn new(status: u16, message: impl Into<String>, code: &'static str) -> Self {
        Self {
            status,
            message: message.into(),
            code,
            allow: None,
        }
    }

    /// The body of the response: `{"path","error","code"}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        error_body("$", &self.message, self.code)
    }
}

fn error_body(path: &str, message: &str, code: &str) -> Vec<u8> {
    let mut out = b"{\"path\":".to_vec();
    write_text(path, &mut out);
    out.extend_from_slice(b",\"error\":");
    write_text(message, &mut out);
    out.extend_from_slice(b",\"code\":");
    write_text(code, &mut out);
    out.push(b'}');
    out
}

/// A REST request.
#[derive(Clone, Copy, Debug)]
pub struct RestRequest<'a> {
    /// The HTTP method of the request.
    pub method: &'a str,
    /// The path, including [`REST_PREFIX`].
    pub path: &'a str,
    /// The query string without the question mark.
    pub parameters: &'a str,
    /// The body, which may be empty.
    pub body: &'a [u8],
}

impl RestEndpoints {
    /// The endpoints of a checked configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let endpoints = config.rest_endpoints.iter();
        // The configuration check ensures that collection and query exist and that the query parses. No
        // endpoint is dropped here.
        Self(endpoints.filter_map(|it| endpoint(config, it)).collect())
    }

    /// True if the configuration has no REST endpoint.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The GraphQL request of a REST request, as the JSON of a body.
    ///
    /// # Errors
    /// 404 if no endpoint matches, 405 for another method, 400 for invalid variables, 500 if several
    /// endpoints match.
    pub fn graphql(&self, request: RestRequest<'_>) -> Result<Vec<u8>, RestError> {
        // Callers only pass paths with the prefix. Another path matches no endpoint.
        let path = request.path.strip_prefix(REST_PREFIX).unwrap_or_default();
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<&str> = path.split('/').collect();
        let fitting: Vec<(&Endpoint, Vec<(&str, String)>)> = self
            .0
            .iter()
            .filter_map(|endpoint| Some((endpoint, endpoint.captures(&segments)?)))
            // All matching endpoints are collected. Two matches are a mistake of the configuration, and the
            // result must not depend on their order.
            .collect();
        if fitting.is_empty() {
            return Err(RestError::new(404, "Endpoint not found", "not-found"));
        }
        let mut allowed = fitting
            .iter()
            // A matching path decides between 404 and 405. The method is compared only afterwards.
            .filter(|(it, _)| it.methods.contains(&request.method));
        match (allowed.next(), allowed.next()) {
            (Some((endpoint, captures)), None) => endpoint.graphql(request, captures),
            (Some(_), Some(_)) => Err(RestError::new(
                500,
                "Multiple endpoints match request",
                "unexpected",
            )),
            (None, _) => {
                let methods = fitting
                    .iter()
                    .flat_map(|(it, _)| it.methods.iter().copied());
                let mut methods: Vec<&str> = methods.collect();
                methods.dedup();
                let methods = methods.join(",");
                let message = format!("Method not allowed. Allowed methods: {methods}");
                let error = RestError::new(405, message, "method-not-allowed");
                Err(RestError {
                    allow: Some(methods.replace(',', ", ")),
                    ..error
                })
            }
        }
    }
}

fn endpoint(config: &Config, written: &RestEndpoint) -> Option<Endpoint> {
    let collections = config.query_collections.iter();
    let query = collections
        .filter(|it| it.name == written.query.collection_name)
        .flat_map(|it| &it.queries)
        .find(|it| it.name == written.query.query_name)?;
    let text = &query.query.0.0;
    let document = parse_query::<String>(text).ok()?.into_static();
    let declared = document.definitions.into_iter().find_map(|it| match it {
        Definition::Operation(OperationDefinition::Query(it)) => Some(it.variable_definitions),
        Definition::Operation(OperationDefinition::Mutation(it)) => Some(it.variable_definitions),
        Definition::Operation(_) => Some(Vec::new()),
        Definition::Fragment(_) => None,
    })?;
    let variables = declared.into_iter().map(|it| (it.name, it.var_type));
    Some(Endpoint {
        segments: written.url.0.0.clone(),
        methods: written.methods.iter().map(|it| it.as_str()).collect(),
        query: text.clone(),
        variables: variables.collect(),
    })
}

impl Endpoint {
    /// The variables in a path. `None` if the path does not match.
    fn captures(&self, segments: &[&str]) -> Option<Vec<(&str, String)>> {
        if segments.len() != self.segments.len() {
            return None;
        }
        let mut captures = Vec::new();
        for (own, found) in self.segments.iter().zip(segments) {
            let found = percent_decoded(found);
            match own {
                RestSegment::Literal(text) if *text == found => {}
                RestSegment::Variable(name) if !found.is_empty() => {
                    captures.push((name.as_str(), found));
                }
                _ => return None,
            }
        }
        Some(captures)
    }

    fn graphql(
        &self,
        request: RestRequest<'_>,
        captures: &[(&str, String)],
    ) -> Result<Vec<u8>, RestError> {
        // Decoding would replace such bytes by another character, which the client did not send.
        let is_text = |encoded: &str| percent_decode_str(encoded).decode_utf8().is_ok();
        if !is_text(request.path) || !is_text(request.parameters) {
            let message = "expected UTF-8 in the escapes of the URL, found other bytes";
            return Err(RestError::new(400, message, "bad-request"));
        }
        // In the order body, parameters, path. A later value replaces an earlier one.
        let mut given: Vec<(String, Vec<u8>)> = Vec::new();
        let mut give =
            |name: &str, value: Vec<u8>| match given.iter_mut().find(|(it, _)| it == name) {
                Some((_, known)) => *known = value,
                None => given.push((name.to_owned(), value)),
            };
        for (name, value) in body_members(request.body)? {
            self.declared(&name)?;
            give(&name, value);
        }
        // Split here, because `form_urlencoded` does not distinguish `name` from `name=`, and a Boolean
        // without a value is true.
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        for pair in request.parameters.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = form_urlencoded::parse(pair.as_bytes())
                .next()
                .expect("a pair that is not empty has a name");
            // A proxy in between may have checked the other value.
            if seen.contains(&name) {
                let message = format!("the parameter `{name}` is given twice; give it once");
                return Err(RestError::new(400, message, "bad-request"));
            }
            let value = pair.contains('=').then_some(value);
            give(&name, self.decode(&name, value.as_deref())?);
            seen.push(name);
        }
        for (name, value) in captures {
            give(name, self.decode(name, Some(value))?);
        }
        let mut out = b"{\"query\":".to_vec();
        write_text(&self.query, &mut out);
        out.extend_from_slice(b",\"variables\":{");
        for (position, (name, value)) in given.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            write_text(name, &mut out);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.extend_from_slice(b"}}");
        Ok(out)
    }

    fn declared(&self, name: &str) -> Result<&Type<'static, String>, RestError> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, kind)| kind).ok_or_else(|| {
            RestError::new(400, format!("Unexpected variable {name}"), "bad-request")
        })
    }

    /// The JSON of a text from a path or a query string.
    fn decode(&self, name: &str, text: Option<&str>) -> Result<Vec<u8>, RestError> {
        let kind = self.declared(name)?;
        let (is_nullable, bare) = match kind {
            Type::NonNullType(inner) => (false, inner.as_ref()),
            other => (true, other),
        };
        if matches!(bare, Type::ListType(_)) {
            let message = "List variables are not currently supported in URL or Query parameters";
            return Err(RestError::new(400, message, "bad-request"));
        }
        let scalar = inner_name(bare);
        let wrong = |expected: &str| {
            let found = text.unwrap_or_default();
            let message = format!("expected {expected} for the variable {name}, found \"{found}\"");
            Err(RestError::new(400, message, "bad-request"))
        };
        match (scalar, text) {
            ("Boolean", None) => Ok(b"true".to_vec()),
            (_, None | Some("")) if is_nullable => Ok(b"null".to_vec()),
            ("Boolean", Some(word @ ("true" | "false"))) => Ok(word.as_bytes().to_vec()),
            ("Boolean", _) => wrong("true or false"),
            (numeric, text) if NUMERIC.contains(&numeric) => {
                // Not nullable, so a missing number is an error. The empty text is not a number.
                let text = text.unwrap_or_default();
                match Json::parse(text.as_bytes()) {
                    Ok(Json::Number(digits)) => Ok(digits.as_bytes().to_vec()),
                    _ => wrong("a number"),
                }
            }
            (_, text) => {
                let mut out = Vec::new();
                write_text(text.unwrap_or_default(), &mut out);
                Ok(out)
            }
        }
    }
}

/// The members of the body's object. Empty without a body.
fn body_members(body: &[u8]) -> Result<Vec<(String, Vec<u8>)>, RestError> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let read = Json::parse(body);
    // After the reader, because its errors are more precise about text that is not JSON.
    if read.is_ok()
        && let Err(ambiguity) = check(body)
    {
        let message = format!("the body cannot be used: {ambiguity}");
        return Err(RestError::new(400, message, "bad-request"));
    }
    match read {
        Ok(Json::Object(members)) => Ok(members
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.to_bytes()))
            .collect()),
        Ok(other) => Err(RestError::new(
            400,
            format!("the body must be a JSON object, found {}", other.kind()),
            "bad-request",
        )),
        Err(error) => Err(RestError::new(
            400,
            format!("the body is not JSON: {error}"),
            "bad-request",
        )),
    }
}

fn check(body: &[u8]) -> Result<(), Ambiguity> {
    let not_utf8 = |error: std::str::Utf8Error| Ambiguity::NotJson {
        at: error.valid_up_to(),
    };
    json_text::check_unambiguous(std::str::from_utf8(body).map_err(not_utf8)?)
}

fn percent_decoded(segment: &str) -> String {
    // A plus has no special meaning in a path.
    let kept = segment.replace('+', "%2B");
    let decoded = form_urlencoded::parse(kept.as_bytes()).next();
    // `form_urlencoded` would split at these characters. A segment with them is not encoded by its rules.
    let is_plain = !kept.contains(['&', '=']);
    match decoded {
        Some((name, _)) if is_plain => name.into_owned(),
        _ => segment.to_owned(),
    }
}

/// The REST response for a GraphQL response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestAnswer {
    /// Status 200 with this body, the value of `data`.
    Data(Vec<u8>),
    /// This status with this body, `{"path","error","code"}`.
    Error(u16, Vec<u8>),
}

/// Unwraps the data or the first error of a GraphQL response.
#[must_use]
pub fn unwrap_response(body: &[u8]) -> RestAnswer {
    let Ok(answer) = Answer::read(body) else {
        return RestAnswer::Error(500, error_body("$", "internal error", "unexpected"));
    };
    if let Some(errors) = answer.errors {
        return first_error(errors);
    }
    match answer.data {
        Data::Nothing => RestAnswer::Data(b"null".to_vec()),
        Data::Members(members) => {
            let mut out = b"{".to_vec();
            for (position, (key, raw)) in members.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_text(key, &mut out);
                out.push(b':');
                out.extend_from_slice(raw.as_bytes());
            }
            out.push(b'}');
            RestAnswer::Data(out)
        }
    }
}

fn first_error(errors: &str) -> RestAnswer {
    // The whole response was already read as JSON. Parsing fails only if it is nested deeper than the
    // reader's limit. The client then receives the general error.
    let parsed = Json::parse(errors.as_bytes()).unwrap_or(Json::Null);
    let first = match &parsed {
        Json::List(items) => items.first().unwrap_or(&Json::Null),
        other => other,
    };
    let text = |value: Option<&Json<'_>>| match value {
        Some(Json::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    let extension = |key: &str| text(first.get("extensions").and_then(|it| it.get(key)));
    let message = text(first.get("message")).unwrap_or_else(|| "internal error".to_owned());
    let code = extension("code").unwrap_or_else(|| "unexpected".to_owned());
    let path = extension("path").unwrap_or_else(|| "$".to_owned());
    let status = match code.as_str() {
        "access-denied" => 403,
        "not-found" => 404,
        "unexpected" | "remote-schema-error" | "unexpected-payload" => 500,
        _ => 400,
    };
    RestAnswer::Error(status, error_body(&path, &message, &code))
}
