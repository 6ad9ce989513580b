//! A GraphQL request as it is written in a JSON body or in the parameters of a URL.
//!
//! Nothing is copied that need not be: the query is borrowed from the body when it has no escapes,
//! variables and extensions stay the text they are, because the executor and the extensions read
//! them only when they must.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A request that has been understood; whether the query is one, the planner says.
#[derive(Debug)]
pub struct GraphqlRequest<'a> {
    /// The text of the document.
    pub query: Cow<'a, str>,
    /// Which of the document's operations to execute.
    pub operation_name: Option<Cow<'a, str>>,
    /// The variables: the text of a JSON object.
    pub variables: Option<Cow<'a, str>>,
    /// The extensions: the text of a JSON object.
    pub extensions: Option<Cow<'a, str>>,
}

impl GraphqlRequest<'_> {
    /// The request as the JSON of a body.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = b"{\"query\":".to_vec();
        let mut member = |name: &str, text: Option<&str>| {
            if let Some(text) = text {
                json.extend_from_slice(name.as_bytes());
                json.extend_from_slice(text.as_bytes());
            }
        };
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        member("", Some(&quoted(&self.query)));
        let name = self.operation_name.as_deref().map(quoted);
        member(",\"operationName\":", name.as_deref());
        member(",\"variables\":", self.variables.as_deref());
        member(",\"extensions\":", self.extensions.as_deref());
        json.push(b'}');
        json
    }
}

/// Why there is no request to execute.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A list of requests.
    #[error("batches are not served: send one request at a time")]
    Batch,
    /// No query, or an empty one.
    #[error("Must provide query string.")]
    NoQuery,
    /// Not JSON, or not of the right types.
    #[error("{0}")]
    Invalid(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a JSON object")]
struct Body<'a> {
    #[serde(borrow)]
    query: Option<Text<'a>>,
    #[serde(borrow)]
    operation_name: Option<Text<'a>>,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

/// Text that is borrowed when it has no escapes; serde borrows no `Option<Cow<str>>`.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a body.
///
/// # Errors
/// When it is no JSON object with a `query`, or a member has the wrong type.
pub fn from_body(body: &[u8]) -> Result<GraphqlRequest<'_>, DecodeError> {
    // A list would pass as a struct below.
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'[')) {
        return match serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(body) {
            Ok(_) => Err(DecodeError::Batch),
            Err(error) => Err(invalid(&error)),
        };
    }
    let body: Body<'_> = serde_json::from_slice(body).map_err(|error| invalid(&error))?;
    let query = body
        .query
        .map(|query| query.0)
        .filter(|query| !query.is_empty())
        .ok_or(DecodeError::NoQuery)?;
    Ok(GraphqlRequest {
        query,
        operation_name: body.operation_name.map(|name| name.0),
        variables: raw_object(body.variables, "variables")?,
        extensions: raw_object(body.extensions, "extensions")?,
    })
}

/// Reads the part of a URL after the question mark.
///
/// An empty `operationName`, `variables` or `extensions` counts as absent, as HTML forms and URL
/// builders send them that way.
///
/// # Errors
/// When there is no `query`, a parameter is given twice, or is not the JSON it must be.
pub fn from_parameters(parameters: &str) -> Result<GraphqlRequest<'_>, DecodeError> {
    let mut found: [Option<Cow<'_, str>>; 4] = Default::default();
    for (key, value) in form_urlencoded::parse(parameters.as_bytes()) {
        let place = match key.as_ref() {
            "query" => 0,
            "operationName" => 1,
            "variables" => 2,
            "extensions" => 3,
            _ => continue,
        };
        if found[place].replace(value).is_some() {
            return Err(DecodeError::Invalid(format!(
                "the parameter `{key}` is given twice"
            )));
        }
    }
    let [query, operation_name, variables, extensions] = found;
    let is_there = |value: &Cow<'_, str>| !value.is_empty();
    let query = query.filter(is_there).ok_or_else(|| {
        DecodeError::Invalid("the parameter `query` is missing; send ?query=… or a POST".to_owned())
    })?;
    let json = |value: Option<Cow<'_, str>>, name| match value.filter(is_there) {
        None => Ok(None),
        Some(text) => match serde_json::from_str::<&RawValue>(&text) {
            Ok(value) => Ok(raw_object(Some(value), name)?.map(Cow::into_owned)),
            Err(error) => Err(DecodeError::Invalid(format!(
                "the parameter `{name}` must be JSON: {error}"
            ))),
        },
    };
    Ok(GraphqlRequest {
        query,
        operation_name: operation_name.filter(is_there),
        variables: json(variables, "variables")?.map(Cow::Owned),
        extensions: json(extensions, "extensions")?.map(Cow::Owned),
    })
}

/// The text of an object; `null` counts as absent.
fn raw_object<'a>(
    value: Option<&'a RawValue>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, DecodeError> {
    match value.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(text) if text.starts_with('{') => Ok(Some(Cow::Borrowed(text))),
        Some(_) => Err(DecodeError::Invalid(format!(
            "`{name}` must be a JSON object"
        ))),
    }
}

fn invalid(error: &serde_json::Error) -> DecodeError {
    DecodeError::Invalid(format!("the body is not a GraphQL request: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str) -> String {
        match from_body(body.as_bytes()) {
            Ok(request) => format!("{request:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_can_be_borrowed_is_borrowed() {
        let body = br#"{"query":"{a}","variables":{"x": [1]},"operationName":null,"more":1}"#;
        let request = from_body(body).unwrap();
        assert!(matches!(request.query, Cow::Borrowed("{a}")));
        assert!(matches!(
            request.variables,
            Some(Cow::Borrowed(r#"{"x": [1]}"#))
        ));
        assert!(request.operation_name.is_none() && request.extensions.is_none());
    }

    #[test]
    fn wrong_bodies_are_told_apart() {
        insta::assert_snapshot!(
            [
                "", "{", "1", "[]", "[", "{}", r#"{"query":""}"#, r#"{"query":1}"#,
                r#"{"query":"{a}","variables":[]}"#, r#"{"query":"{a}","extensions":"x"}"#,
                r#"{"query":"{a}","operationName":{}}"#, "\u{0}",
            ]
            .map(read)
            .join("\n"), @"
        the body is not a GraphQL request: EOF while parsing a value at line 1 column 0
        the body is not a GraphQL request: EOF while parsing an object at line 1 column 1
        the body is not a GraphQL request: invalid type: integer `1`, expected a JSON object at line 1 column 1
        batches are not served: send one request at a time
        the body is not a GraphQL request: EOF while parsing a list at line 1 column 1
        Must provide query string.
        Must provide query string.
        the body is not a GraphQL request: invalid type: integer `1`, expected a string at line 1 column 10
        `variables` must be a JSON object
        `extensions` must be a JSON object
        the body is not a GraphQL request: invalid type: map, expected a string at line 1 column 31
        the body is not a GraphQL request: expected value at line 1 column 1
        ");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(from_body(b"{\"query\":\"\xff\"}").is_err());
    }

    #[test]
    fn parameters_say_the_same_as_a_body() {
        let request =
            from_parameters("query=%7Ba%7D&variables=%7B%22x%22%3A1%7D&operationName=&z=1")
                .unwrap();
        assert_eq!(request.query, "{a}");
        assert_eq!(request.variables.as_deref(), Some(r#"{"x":1}"#));
        assert!(request.operation_name.is_none());
        let json = request.to_json();
        assert_eq!(json, br#"{"query":"{a}","variables":{"x":1}}"#);
        for wrong in [
            "",
            "query=",
            "query=a&query=b",
            "query=a&variables=1",
            "query=a&variables=x",
        ] {
            assert!(from_parameters(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body: Vec<u8>) {
            let _ = from_body(&body);
            let _ = from_parameters(&String::from_utf8_lossy(&body));
        }
    }
}
