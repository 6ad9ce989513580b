//! Evaluates the condition of a stage with the data available at that point.

use gateway_config::{Condition, Operand, Selector, SelectorSource};
use http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::exchange::{Exchange, Response, StageRequest};
use crate::json;

/// The data that a condition can read.
#[derive(Clone, Copy)]
pub(crate) struct ConditionInput<'a> {
    pub(crate) exchange: &'a Exchange,
    pub(crate) request: Option<&'a StageRequest>,
    pub(crate) response: Option<&'a Response>,
    pub(crate) subgraph: Option<&'a str>,
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
}

/// True if `condition` holds.
pub(crate) fn holds(condition: &Condition, input: &ConditionInput<'_>) -> bool {
    match condition {
        Condition::Always(answer) => *answer,
        Condition::Equal(one, other) => match (operand(one, input), operand(other, input)) {
            // An absent value equals no other value, not even another absent value.
            (Some(one), Some(other)) => one == other,
            _ => false,
        },
        Condition::Greater(one, other) => {
            compare(one, other, input) == Some(std::cmp::Ordering::Greater)
        }
        Condition::Less(one, other) => compare(one, other, input) == Some(std::cmp::Ordering::Less),
        Condition::Exists(selector) => select(selector, input).is_some(),
        Condition::All(list) => list.iter().all(|condition| holds(condition, input)),
        Condition::Any(list) => list.iter().any(|condition| holds(condition, input)),
        Condition::Not(inner) => !holds(inner, input),
    }
}

fn compare(
    one: &Operand,
    other: &Operand,
    input: &ConditionInput<'_>,
) -> Option<std::cmp::Ordering> {
    // Values of different kinds have no order, so neither `gt` nor `lt` holds.
    match (operand(one, input)?, operand(other, input)?) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(&other)),
        _ => None,
    }
}

fn operand(operand: &Operand, input: &ConditionInput<'_>) -> Option<Value> {
    match operand {
        Operand::Literal(value) => Some(value.clone()),
        Operand::Selector(selector) => select(selector, input),
    }
}

fn select(selector: &Selector, input: &ConditionInput<'_>) -> Option<Value> {
    find(&selector.source, input).or_else(|| selector.default.clone())
}

fn find(source: &SelectorSource, input: &ConditionInput<'_>) -> Option<Value> {
    let text = |text: &str| Some(Value::from(text));
    let header = |headers: &HeaderMap, name| {
        let value: &http::HeaderValue = headers.get(name)?;
        // A value that is not text counts as absent, because the protocol has only text.
        text(std::str::from_utf8(value.as_bytes()).ok()?)
    };
    let client = &input.exchange.client;
    match source {
        SelectorSource::RequestHeader(name) => header(
            input
                .request
                .map_or(&client.headers, |request| &request.headers),
            name,
        ),
        SelectorSource::SupergraphRequestHeader(name) => header(&client.headers, name),
        SelectorSource::RequestMethod => text(
            input
                .request
                .map_or(&client.method, |request| &request.method)
                .as_str(),
        ),
        SelectorSource::ResponseHeader(name) => header(&input.response?.headers, name),
        SelectorSource::ResponseStatusCode => Some(input.response?.status.as_u16().into()),
        SelectorSource::ResponseStatusReason => text(input.response?.status.canonical_reason()?),
        SelectorSource::OnGraphqlError => Some(json::has_errors(&input.response?.body).into()),
        SelectorSource::Context(key) => input.exchange.context.get(key),
        SelectorSource::OperationName => text(input.exchange.operation_name.as_deref()?),
        SelectorSource::OperationNameHash => {
            let name = input.exchange.operation_name.as_deref()?;
            text(&hex(&Sha256::digest(name)))
        }
        SelectorSource::OperationKind => text(input.exchange.operation_kind?),
        SelectorSource::Environment(name) => text(&(input.environment)(name)?),
        SelectorSource::IsPrimaryResponse => Some((!input.response?.is_further()).into()),
        SelectorSource::SubgraphName => text(input.subgraph?),
        SelectorSource::Static(value) => Some(value.clone()),
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        })
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use http::StatusCode;

    use super::*;
    use crate::exchange::ClientHead;

    fn judged(yaml_as_json: &str, input: &ConditionInput<'_>) -> bool {
        holds(&serde_json::from_str(yaml_as_json).unwrap(), input)
    }

    #[test]
    fn every_test_and_selector_looks_where_it_says() {
        let mut client = ClientHead::default();
        client.headers.insert("x-a", "b".parse().unwrap());
        let mut exchange = Exchange::new(Rc::new(client));
        exchange.operation_name = Some("Q".into());
        exchange.context.insert("k", Value::from(3));
        let response = Response {
            status: StatusCode::NOT_FOUND,
            body: r#"{"errors":[{"message":"m"}]}"#.into(),
            headers: [(http::header::VARY, "origin".parse().unwrap())]
                .into_iter()
                .collect(),
            part: None,
        };
        let input = ConditionInput {
            exchange: &exchange,
            request: None,
            response: Some(&response),
            subgraph: Some("reviews"),
            environment: &|name| (name == "STAGE").then(|| "test".to_owned()),
        };
        for (condition, expected) in [
            ("true", true),
            ("false", false),
            (r#"{"eq":[{"request_header":"x-a"},"b"]}"#, true),
            (r#"{"eq":[{"request_header":"x-b"},"b"]}"#, false),
            (
                r#"{"eq":[{"request_header":"x-b","default":"b"},"b"]}"#,
                true,
            ),
            (r#"{"exists":{"request_header":"x-b"}}"#, false),
            (r#"{"not":{"exists":{"request_header":"x-b"}}}"#, true),
            (r#"{"eq":[{"request_method":true},"GET"]}"#, true),
            (r#"{"eq":[{"response_header":"vary"},"origin"]}"#, true),
            (r#"{"eq":[{"response_status":"code"},404]}"#, true),
            (r#"{"gt":[{"response_status":"code"},399]}"#, true),
            (r#"{"lt":[{"response_status":"code"},399]}"#, false),
            (r#"{"eq":[{"response_status":"reason"},"Not Found"]}"#, true),
            (r#"{"eq":[{"on_graphql_error":true},true]}"#, true),
            (r#"{"eq":[{"operation_name":"string"},"Q"]}"#, true),
            (r#"{"eq":[{"env":"STAGE"},"test"]}"#, true),
            (r#"{"eq":[{"request_context":"k"},3]}"#, true),
            (r#"{"eq":[{"subgraph_name":true},"reviews"]}"#, true),
            (r#"{"all":[true,{"any":[false,true]}]}"#, true),
            (r#"{"all":[true,false]}"#, false),
        ] {
            assert_eq!(judged(condition, &input), expected, "{condition}");
        }
    }
}
