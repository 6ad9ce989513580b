//! A GraphQL request as it is written in a JSON body or in the parameters of a URL.
//!
//! The variables are read straight into the type of the library that executes them, so that
//! neither server pays for a detour.

use std::borrow::Cow;
use std::fmt;

use graphql_document::DocumentError;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::reply::{GraphqlError, Media, Reply, Status};

/// A request with its document within the limits of [`document`].
#[derive(Debug, PartialEq, Eq)]
pub struct GraphqlRequest<'a, V> {
    /// The text of the document.
    pub query: Cow<'a, str>,
    /// Which of the document's operations to execute.
    pub operation_name: Option<String>,
    /// Values of the operation's variables.
    pub variables: Option<V>,
}

/// Why there is no request to execute.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The text is not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The text is JSON, but not an object.
    #[error("the body must be one JSON object; batches are not served")]
    NotAnObject,
    /// An entry of the object is missing or has the wrong type.
    #[error("the body is not a GraphQL request: {0}")]
    NotARequest(#[source] serde_json::Error),
    /// A parameter of the URL that must be JSON is not.
    #[error("the parameter `{name}` must be a JSON object: {source}")]
    BadParameter {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A parameter of the URL appears twice.
    #[error("the parameter `{0}` is given twice")]
    TwiceGiven(&'static str),
    /// The URL has no document.
    #[error("the parameter `query` is missing; send ?query=… or a POST")]
    NoQuery,
    /// The document crosses a limit.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Media {
    /// The answer to something that is not a request.
    #[must_use]
    pub fn not_a_request(self, error: WireError) -> Reply {
        match error {
            // Well-formed, but refused: as a document that does not parse.
            WireError::Document(error) => {
                let errors = vec![GraphqlError::of_request(error)];
                self.reply(crate::reply::Outcome::Refused(errors))
            }
            other => self.refusal(Status::BadRequest, other),
        }
    }
}

/// Reads a body.
///
/// # Errors
/// When it is no JSON object with a string `query`, or an entry has the wrong type, or the
/// document crosses a limit.
pub fn from_body<V: DeserializeOwned>(body: &[u8]) -> Result<GraphqlRequest<'_, V>, WireError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "a JSON object")]
    #[serde(bound(deserialize = "V: DeserializeOwned"))]
    struct Body<'a, V> {
        #[serde(borrow)]
        query: Cow<'a, str>,
        operation_name: Option<String>,
        variables: Option<V>,
        #[serde(rename = "extensions")]
        _extensions: Option<AnyObject>,
    }

    // Arrays would pass as structs below.
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'[')) {
        return Err(WireError::NotAnObject);
    }
    let Body {
        query,
        operation_name,
        variables,
        ..
    } = serde_json::from_slice::<Body<'_, V>>(body).map_err(|error| {
        if error.is_data() {
            WireError::NotARequest(error)
        } else {
            WireError::NotJson(error)
        }
    })?;
    graphql_document::check_text(&query)?;
    Ok(GraphqlRequest {
        query,
        operation_name,
        variables,
    })
}

/// Reads the part of a URL after the question mark.
///
/// An empty `operationName`, `variables` or `extensions` counts as absent, as HTML forms and URL
/// builders send them that way.
///
/// # Errors
/// When there is no `query`, a parameter is given twice or is not the JSON it must be, or the
/// document crosses a limit.
pub fn from_parameters<V: DeserializeOwned>(
    parameters: &str,
) -> Result<GraphqlRequest<'_, V>, WireError> {
    let (mut query, mut operation_name, mut variables, mut extensions) = (None, None, None, None);
    for (key, value) in form_urlencoded::parse(parameters.as_bytes()) {
        let (slot, name) = match key.as_ref() {
            "query" => (&mut query, "query"),
            "operationName" => (&mut operation_name, "operationName"),
            "variables" => (&mut variables, "variables"),
            "extensions" => (&mut extensions, "extensions"),
            _ => continue,
        };
        if slot.replace(value).is_some() {
            return Err(WireError::TwiceGiven(name));
        }
    }
    let query = query.ok_or(WireError::NoQuery)?;
    let variables = json_parameter("variables", variables)?;
    json_parameter::<AnyObject>("extensions", extensions)?;
    graphql_document::check_text(&query)?;
    Ok(GraphqlRequest {
        query,
        operation_name: operation_name
            .filter(|name| !name.is_empty())
            .map(Cow::into_owned),
        variables,
    })
}

fn json_parameter<T: DeserializeOwned>(
    name: &'static str,
    value: Option<Cow<'_, str>>,
) -> Result<Option<T>, WireError> {
    match value {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => {
            serde_json::from_str(&text).map_err(|source| WireError::BadParameter { name, source })
        }
    }
}

/// Any JSON object, checked and thrown away: no extension is served.
#[derive(Debug)]
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = AnyObject;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyObject, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(AnyObject)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Variables = BTreeMap<String, serde_json::Value>;

    fn body(text: &str) -> Result<GraphqlRequest<'_, Variables>, String> {
        from_body(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn parameters(text: &str) -> Result<GraphqlRequest<'_, Variables>, String> {
        from_parameters(text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_same_request_reads_the_same_from_both_places() {
        let posted = body(
            r#"{"query":"{a}","operationName":"A","variables":{"n":1},"extensions":{"x":[]}}"#,
        );
        let got = parameters(
            "query=%7Ba%7D&operationName=A&variables=%7B%22n%22%3A1%7D&extensions=%7B%7D",
        );
        assert_eq!(posted, got);
        assert_eq!(posted.unwrap().variables.unwrap()["n"], 1);
    }

    #[test]
    fn null_and_empty_entries_count_as_absent() {
        let expected = Ok(GraphqlRequest {
            query: "{a}".into(),
            operation_name: None,
            variables: None,
        });
        let nulls = r#"{"query":"{a}","operationName":null,"variables":null,"extensions":null}"#;
        assert_eq!(body(nulls), expected);
        let empty = "query={a}&operationName=&variables=&extensions=&unknown=1";
        assert_eq!(parameters(empty), expected);
    }

    #[test]
    fn a_query_without_escapes_is_not_copied() {
        let request = body(r#"{"query":"{ test { id } }"}"#).unwrap();
        assert!(matches!(request.query, Cow::Borrowed(_)));
        let escaped = body(r#"{"query":"{\n  test {\n    id\n  }\n}\n"}"#).unwrap();
        assert_eq!(escaped.query, "{\n  test {\n    id\n  }\n}\n");
    }

    #[test]
    fn each_mistake_is_named() {
        let mistakes = [
            "",
            "{",
            "[]",
            r#"["{a}"]"#,
            "7",
            "{}",
            r#"{"query":7}"#,
            r#"{"query":"{a}","variables":[]}"#,
            r#"{"query":"{a}","operationName":{}}"#,
            r#"{"query":"{a}","extensions":"x"}"#,
            r#"{"query":"{a}"} x"#,
            r#"{"query":"{a}","query":"{b}"}"#,
        ];
        let named: Vec<_> = mistakes
            .iter()
            .map(|text| body(text).unwrap_err())
            .collect();
        insta::assert_snapshot!(named.join("\n"), @r#"
        the body is not JSON: EOF while parsing a value at line 1 column 0
        the body is not JSON: EOF while parsing an object at line 1 column 1
        the body must be one JSON object; batches are not served
        the body must be one JSON object; batches are not served
        the body is not a GraphQL request: invalid type: integer `7`, expected a JSON object at line 1 column 1
        the body is not a GraphQL request: missing field `query` at line 1 column 2
        the body is not a GraphQL request: invalid type: integer `7`, expected a string at line 1 column 10
        the body is not a GraphQL request: invalid type: sequence, expected a map at line 1 column 27
        the body is not a GraphQL request: invalid type: map, expected a string at line 1 column 31
        the body is not a GraphQL request: invalid type: string "x", expected a map at line 1 column 31
        the body is not JSON: trailing characters at line 1 column 17
        the body is not a GraphQL request: duplicate field `query` at line 1 column 22
        "#);
    }

    #[test]
    fn each_wrong_parameter_is_named() {
        let mistakes = [
            "",
            "variables={}",
            "query={a}&query={b}",
            "query={a}&variables=[]",
            "query={a}&variables=x",
            "query={a}&extensions=0",
        ];
        let named: Vec<_> = mistakes
            .iter()
            .map(|text| parameters(text).unwrap_err())
            .collect();
        insta::assert_snapshot!(named.join("\n"), @"
        the parameter `query` is missing; send ?query=… or a POST
        the parameter `query` is missing; send ?query=… or a POST
        the parameter `query` is given twice
        the parameter `variables` must be a JSON object: invalid type: sequence, expected a map at line 1 column 0
        the parameter `variables` must be a JSON object: expected value at line 1 column 1
        the parameter `extensions` must be a JSON object: invalid type: integer `0`, expected a map at line 1 column 1
        ");
    }

    #[test]
    fn a_document_over_a_limit_is_answered_like_one_that_does_not_parse() {
        let text = format!(
            r#"{{"query":"{}"}}"#,
            "{a".repeat(graphql_document::DEPTH_MAX + 1)
        );
        let statuses = [Media::Json, Media::GraphqlResponse].map(|media| {
            let error = from_body::<Variables>(text.as_bytes()).unwrap_err();
            media.not_a_request(error).status.code()
        });
        assert_eq!(statuses, [200, 400]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_a_mistake(bytes: Vec<u8>, text in ".*") {
            let _ = from_body::<Variables>(&bytes);
            let _ = from_parameters::<Variables>(&text);
        }
    }
}
