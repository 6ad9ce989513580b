//! Evaluates conditions and selectors of stages and of telemetry, with the data available at that point.

use std::cell::OnceCell;

use data_encoding::HEXLOWER;
use gateway_config::{Condition, DataStep, Operand, QuerySize, Selector, SelectorSource};
use http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cost;
use crate::exchange::{Exchange, OperationSize, Response, StageRequest};
use crate::json;

/// The data that a condition can read.
pub(crate) struct ConditionInput<'a> {
    pub(crate) exchange: &'a Exchange,
    pub(crate) request: Option<&'a StageRequest>,
    pub(crate) response: Option<&'a Response>,
    pub(crate) subgraph: Option<&'a str>,
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Number of times that a subgraph request was sent again.
    pub(crate) resend_count: u32,
    /// The reason why there is no response.
    pub(crate) failure: Option<&'a str>,
    pub(crate) bodies: ParsedBodies,
}

/// The bodies of both messages, parsed when the first selector reads them.
#[derive(Default)]
pub(crate) struct ParsedBodies {
    request: OnceCell<Value>,
    response: OnceCell<Value>,
}

impl<'a> ConditionInput<'a> {
    /// The data of a stage, without a failure.
    pub(crate) fn new(
        exchange: &'a Exchange,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self {
            exchange,
            request: None,
            response: None,
            subgraph: None,
            environment,
            resend_count: 0,
            failure: None,
            bodies: ParsedBodies::default(),
        }
    }

    /// The GraphQL request of the client, as JSON. Before the operation is known, it is the body of the stage.
    fn client_request(&self) -> Option<&Value> {
        let parsed = self.exchange.client_body.parsed();
        match parsed {
            Value::Null if self.subgraph.is_none() => self.request_body(),
            _ => Some(parsed),
        }
    }

    /// The body of the stage's request, as JSON. A body that is not JSON has no values.
    fn request_body(&self) -> Option<&Value> {
        let request = self.request?;
        let parsed = &self.bodies.request;
        Some(parsed.get_or_init(|| serde_json::from_slice(&request.body).unwrap_or_default()))
    }

    /// The response as JSON. A body that is not JSON has no values.
    fn response_body(&self) -> Option<&Value> {
        let response = self.response?;
        let parsed = &self.bodies.response;
        Some(parsed.get_or_init(|| serde_json::from_slice(&response.body).unwrap_or_default()))
    }
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

/// The value of a selector, or its default.
pub(crate) fn select(selector: &Selector, input: &ConditionInput<'_>) -> Option<Value> {
    find(&selector.source, input).or_else(|| selector.default.clone())
}

/// The value of a source, unmasked.
pub(crate) fn find(source: &SelectorSource, input: &ConditionInput<'_>) -> Option<Value> {
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
            text(&HEXLOWER.encode(&Sha256::digest(name)))
        }
        SelectorSource::OperationKind => text(input.exchange.operation_kind?),
        SelectorSource::Environment(name) => text(&(input.environment)(name)?),
        SelectorSource::IsPrimaryResponse => Some((!input.response?.is_further()).into()),
        SelectorSource::SubgraphName => text(input.subgraph?),
        SelectorSource::Static(value) => Some(value.clone()),
        other => in_contents(other, input),
    }
}

/// The values inside of traces, baggage, operations and bodies.
fn in_contents(source: &SelectorSource, input: &ConditionInput<'_>) -> Option<Value> {
    let exchange = input.exchange;
    match source {
        SelectorSource::TraceId(format) => Some(exchange.trace.as_ref()?.shown_id(*format).into()),
        SelectorSource::Baggage(name) => baggage(&exchange.client.headers, name),
        SelectorSource::Query => input.client_request()?.get("query").cloned(),
        SelectorSource::QuerySize(size) => Some(size_of(*size, exchange.operation_size?).into()),
        SelectorSource::QueryVariable(name) => {
            let variables = input.client_request()?.get("variables")?;
            variables.get(name).cloned()
        }
        SelectorSource::SubgraphQuery => input.request_body()?.get("query").cloned(),
        SelectorSource::SubgraphQueryVariable(name) => {
            input.request_body()?.get("variables")?.get(name).cloned()
        }
        SelectorSource::SubgraphOperationName => {
            input.request_body()?.get("operationName").cloned()
        }
        SelectorSource::SubgraphOperationKind => {
            Some(kind_of(input.request_body()?.get("query")?.as_str()?).into())
        }
        SelectorSource::ResendCount => Some(input.resend_count.into()),
        SelectorSource::ResponseBody => {
            let body = &input.response?.body;
            Some(std::str::from_utf8(body).ok()?.into())
        }
        SelectorSource::ResponseData(path) => at(input.response_body()?.get("data")?, &path.0),
        SelectorSource::ResponseErrors(path) => at(input.response_body()?.get("errors")?, &path.0),
        SelectorSource::ErrorReason => Some(input.failure?.into()),
        SelectorSource::Cost(form) => cost::value(*form, &exchange.context),
        _ => None,
    }
}

fn size_of(asked: QuerySize, sizes: OperationSize) -> u64 {
    match asked {
        QuerySize::Aliases => sizes.aliases,
        QuerySize::Depth => sizes.depth,
        QuerySize::Height => sizes.height,
        QuerySize::RootFields => sizes.root_fields,
    }
}

/// The kind of the operation in a text of the query planner. It contains one operation at its beginning.
pub(crate) fn kind_of(query: &str) -> &'static str {
    let word = query.trim_start();
    let kinds = ["mutation", "subscription"];
    let kind = kinds.into_iter().find(|kind| word.starts_with(kind));
    kind.unwrap_or("query")
}

/// The item of a `baggage` header, with its escapes resolved.
fn baggage(headers: &HeaderMap, name: &str) -> Option<Value> {
    let lines = headers.get_all("baggage").iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let mut items = lines.flat_map(|line| line.split(','));
    items.find_map(|item| {
        // Properties after the value belong to the item.
        let (key, value) = item.split(';').next()?.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim());
        (key.trim() == name).then(|| Value::from(value.decode_utf8_lossy()))
    })
}

/// The value at a path. A path with a star has a list of all values that it reaches. An empty list counts as
/// no value.
fn at(value: &Value, path: &[DataStep]) -> Option<Value> {
    let Some((step, rest)) = path.split_first() else {
        return Some(value.clone()).filter(|value| !value.is_null());
    };
    match step {
        DataStep::Key(key) => at(value.get(key)?, rest),
        DataStep::Index(index) => at(value.get(index)?, rest),
        DataStep::Every => {
            let found: Vec<Value> = match value {
                Value::Array(items) => items.iter().filter_map(|item| at(item, rest)).collect(),
                Value::Object(members) => {
                    let values = members.values();
                    values.filter_map(|value| at(value, rest)).collect()
                }
                _ => Vec::new(),
            };
            (!found.is_empty()).then(|| found.into())
        }
    }
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
        let environment = |name: &str| (name == "STAGE").then(|| "test".to_owned());
        let input = ConditionInput {
            response: Some(&response),
            subgraph: Some("reviews"),
            ..ConditionInput::new(&exchange, &environment)
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

    #[test]
    fn sizes_of_an_operation_exist_after_planning() {
        let mut exchange = Exchange::new(Rc::default());
        let sizes = [
            ("aliases", 1),
            ("depth", 2),
            ("height", 3),
            ("root_fields", 4),
        ];
        let texts = |name: &str| {
            ["query", "supergraph_query"].map(|key| format!(r#"{{"{key}":"{name}"}}"#))
        };
        for (name, _) in sizes {
            let input = ConditionInput::new(&exchange, &|_| None);
            for text in texts(name) {
                assert_eq!(selected(&text, &input), Value::Null, "{text}");
            }
        }
        exchange.operation_size = Some(OperationSize {
            aliases: 1,
            depth: 2,
            height: 3,
            root_fields: 4,
        });
        // Later parts of a response have the sizes, too.
        let exchange = exchange.shared();
        let input = ConditionInput::new(&exchange, &|_| None);
        for (name, size) in sizes {
            for text in texts(name) {
                assert_eq!(selected(&text, &input), size, "{text}");
            }
        }
        assert!(judged(r#"{"gt":[{"query":"depth"},1]}"#, &input));
        assert!(!judged(r#"{"gt":[{"query":"depth"},2]}"#, &input));
    }

    /// The value of a selector in a file.
    fn selected(selector: &str, input: &ConditionInput<'_>) -> Value {
        select(&serde_json::from_str(selector).unwrap(), input).unwrap_or_default()
    }

    #[test]
    fn telemetry_reads_operations_bodies_and_failures() {
        let mut client = ClientHead::default();
        let baggage = "user=Ada%20L;secret=1,tier = gold";
        client.headers.insert("baggage", baggage.parse().unwrap());
        let mut exchange = Exchange::new(Rc::new(client));
        let text = r#"{"query":"query A { a }","variables":{"id":7}}"#;
        exchange.client_body = Rc::new(crate::header_rules::ClientBody::new(text.into()));
        let request = StageRequest {
            body: r#"{"query":" mutation M { b }","operationName":"M","variables":{"x":[1]}}"#
                .into(),
            ..StageRequest::default()
        };
        let response = Response {
            body: r#"{"data":{"list":[{"id":1},{"id":2},{}],"none":null},"errors":[{"message":"m","extensions":{"code":"C"}}]}"#.into(),
            ..Response::default()
        };
        let input = ConditionInput {
            request: Some(&request),
            response: Some(&response),
            resend_count: 2,
            failure: Some("closed"),
            ..ConditionInput::new(&exchange, &|_| None)
        };
        for (selector, expected) in [
            (r#"{"baggage":"user"}"#, Value::from("Ada L")),
            (r#"{"baggage":"tier"}"#, "gold".into()),
            (r#"{"baggage":"secret"}"#, Value::Null),
            (r#"{"query":"string"}"#, "query A { a }".into()),
            (r#"{"supergraph_query_variable":"id"}"#, 7.into()),
            (r#"{"subgraph_query":"string"}"#, " mutation M { b }".into()),
            (r#"{"subgraph_query_variable":"x"}"#, vec![1].into()),
            (r#"{"subgraph_operation_name":"string"}"#, "M".into()),
            (r#"{"subgraph_operation_kind":"string"}"#, "mutation".into()),
            (r#"{"subgraph_resend_count":true}"#, 2.into()),
            (r#"{"response_errors":"$[0].extensions.code"}"#, "C".into()),
            (r#"{"response_errors":"$[1].message"}"#, Value::Null),
            (
                r#"{"subgraph_response_errors":"$[*].message"}"#,
                vec!["m"].into(),
            ),
            (r#"{"response_data":"$.list[*].id"}"#, vec![1, 2].into()),
            (r#"{"response_data":"$.list[1].id"}"#, 2.into()),
            (r#"{"response_data":"$.none","default":"d"}"#, "d".into()),
            (r#"{"error":"reason"}"#, "closed".into()),
            (
                r#"{"trace_id":"datadog","default":"no trace"}"#,
                "no trace".into(),
            ),
        ] {
            assert_eq!(selected(selector, &input), expected, "{selector}");
        }
        let whole = selected(r#"{"response_body":true}"#, &input);
        assert!(whole.as_str().unwrap().starts_with(r#"{"data""#));
    }
}
