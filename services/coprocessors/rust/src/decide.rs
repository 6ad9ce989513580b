//! The pure decision: selects the messages to change, and changes them.

use serde_json::{Map, Value, json};

use crate::token::Keys;

/// The endpoint of a message.
#[derive(Clone, Copy)]
pub enum Endpoint {
    StaticSubgraph,
    GuidResponse,
    ClientAwareness,
}

/// Handles one message. Changes it only at the stage of the endpoint.
pub fn decide(endpoint: Endpoint, message: Map<String, Value>, keys: &Keys) -> Map<String, Value> {
    let stage = message.get("stage").and_then(Value::as_str);
    match (endpoint, stage) {
        (Endpoint::StaticSubgraph, Some("SubgraphRequest")) => add_source(message),
        (Endpoint::GuidResponse, Some("RouterResponse")) => add_ids(message),
        (Endpoint::ClientAwareness, Some("RouterRequest")) => identify_client(message, keys),
        _ => message,
    }
}

fn add_source(mut message: Map<String, Value>) -> Map<String, Value> {
    set_header(&mut message, "source", json!(["coprocessor"]));
    message
}

fn add_ids(mut message: Map<String, Value>) -> Map<String, Value> {
    let ids: Vec<String> = (0..10).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    set_header(&mut message, "GUID", ids.into());
    message
}

fn identify_client(mut message: Map<String, Value>, keys: &Keys) -> Map<String, Value> {
    let value = message
        .get("headers")
        .and_then(|headers| headers.get("authentication")?.get(0)?.as_str());
    match value.and_then(|value| keys.client(value)) {
        Some(client) => {
            set_header(
                &mut message,
                "apollographql-client-name",
                json!([client.name]),
            );
            set_header(
                &mut message,
                "apollographql-client-version",
                json!([client.version]),
            );
        }
        None => {
            message.insert("control".to_owned(), json!({"break": 401}));
        }
    }
    message
}

/// Has no effect if the message has no headers.
fn set_header(message: &mut Map<String, Value>, name: &str, values: Value) {
    if let Some(headers) = message.get_mut("headers").and_then(Value::as_object_mut) {
        headers.insert(name.to_owned(), values);
    }
}
