//! Tests session variables through the whole gateway: the identity that a service receives.

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{self, Stub};

/// `{"keys": …}` for the secret `apollo`.
const KEYS: &str = r#"{"keys":[{"kty":"oct","k":"YXBvbGxv"}]}"#;
/// A token signed with this secret, valid until 2100: user 7 with the roles `user` (the default) and
/// `editor`.
const TOKEN: &str = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vaGFzdXJhLmlvL2p3dC9jbGFpbXMiOnsieC1oYXN1cmEtZGVmYXVsdC1yb2xlIjoidXNlciIsIngtaGFzdXJhLWFsbG93ZWQtcm9sZXMiOlsidXNlciIsImVkaXRvciJdLCJYLUhhc3VyYS1Vc2VyLUlkIjoiNyJ9fQ.tLi5xSRMaVhYHfidFqyD8oq_QTLlyvkKaNv0ll4WGSQ";

const TYPES: &str = "types: 'type thing { id: ID }'\n";

/// A gateway with an action. Its handler also receives the headers of rules and forwarded client headers.
fn gateway(handler: &Stub, keys: &str) -> Gateway {
    let config = format!(
        "{TYPES}actions: [{{name: thing, type: query, output_type: thing, handler: '{}', forward_client_headers: true}}]\nheaders: {{all: {{request: [{{propagate: {{matching: '.*'}}}}]}}}}\n{keys}\n",
        handler.url
    );
    Setup::merged(&config).file("keys.json", KEYS).start()
}

/// Sends a query with these session headers. Returns the status and the headers that the handler received.
fn ask(
    gateway: &Gateway,
    handler: &Stub,
    headers: &[(&'static str, &'static str)],
) -> (u16, Vec<(String, String)>) {
    let mut all = vec![("content-type", "application/json"), ("x-own", "1")];
    all.extend(headers);
    let before = handler.seen().len();
    let request = Request {
        headers: &all,
        ..post(r#"{"query":"{ thing { id } }"}"#)
    };
    let status = gateway.send(&request).status;
    let seen = handler.seen();
    let Some(seen) = seen.get(before) else {
        return (status, Vec::new());
    };
    let mut told: Vec<(String, String)> = seen
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-hasura-"))
        .cloned()
        .collect();
    told.sort();
    // The payload and the headers contain equal session variables.
    let session = seen.json()["session_variables"]
        .as_object()
        .unwrap()
        .clone();
    let mut in_body: Vec<(String, String)> = session
        .into_iter()
        .map(|(name, value)| (name, value.as_str().unwrap().to_owned()))
        .collect();
    in_body.sort();
    assert_eq!(told, in_body);
    assert_eq!(seen.header("x-own"), Some("1"));
    (status, told)
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const CLAIMED: &[(&str, &str)] = &[
    ("x-hasura-role", "admin"),
    ("x-hasura-user-id", "1"),
    ("x-hasura-admin-secret", "guess"),
];

#[test]
fn what_a_client_says_of_itself_does_not_count() {
    let handler = Stub::start(|_| stub::json(r#"{"id":"1"}"#));
    let plain = gateway(&handler, "");
    let everyone = pairs(&[("x-hasura-role", "anonymous")]);
    assert_eq!(ask(&plain, &handler, CLAIMED), (200, everyone.clone()));
    assert_eq!(ask(&plain, &handler, &[]), (200, everyone));
    let named = gateway(&handler, "session_variables: {unauthorized_role: guest}");
    let guest = pairs(&[("x-hasura-role", "guest")]);
    assert_eq!(ask(&named, &handler, CLAIMED), (200, guest));
}

#[test]
fn the_secret_of_the_administrator_opens_and_stays_here() {
    let handler = Stub::start(|_| stub::json(r#"{"id":"1"}"#));
    let gateway = gateway(&handler, "session_variables: {admin_secret: open}");
    assert_eq!(ask(&gateway, &handler, CLAIMED), (401, Vec::new()));
    let admin = pairs(&[("x-hasura-role", "admin"), ("x-hasura-user-id", "1")]);
    let known = [("x-hasura-admin-secret", "open"), ("x-hasura-user-id", "1")];
    assert_eq!(ask(&gateway, &handler, &known), (200, admin));
    let everyone = pairs(&[("x-hasura-role", "anonymous")]);
    let unknown = [("x-hasura-role", "admin")];
    assert_eq!(ask(&gateway, &handler, &unknown), (200, everyone));
}

#[test]
fn a_token_says_who_asks() {
    let handler = Stub::start(|_| stub::json(r#"{"id":"1"}"#));
    let jwt = "authentication: {router: {jwt: {jwks: [{url: 'file://keys.json'}]}}}";
    let gateway = gateway(&handler, jwt);
    let everyone = pairs(&[("x-hasura-role", "anonymous")]);
    assert_eq!(ask(&gateway, &handler, CLAIMED), (200, everyone));
    let token = ("authorization", TOKEN);
    let user = pairs(&[("x-hasura-role", "user"), ("x-hasura-user-id", "7")]);
    assert_eq!(ask(&gateway, &handler, &[token]), (200, user.clone()));
    let other = [
        token,
        ("x-hasura-user-id", "1"),
        ("x-hasura-admin-secret", "x"),
    ];
    assert_eq!(ask(&gateway, &handler, &other), (200, user));
    let editor = pairs(&[("x-hasura-role", "editor"), ("x-hasura-user-id", "7")]);
    let asked = [token, ("x-hasura-role", "editor")];
    assert_eq!(ask(&gateway, &handler, &asked), (200, editor));
    let admin = [token, ("x-hasura-role", "admin")];
    assert_eq!(ask(&gateway, &handler, &admin), (403, Vec::new()));
}

#[test]
fn trusting_clients_and_checking_their_tokens_contradict() {
    let (status, log) = Setup::merged(&format!(
        "{TYPES}actions: [{{name: thing, type: query, output_type: thing, handler: 'http://h'}}]\nsession_variables: {{trust_clients: true}}\nauthentication: {{router: {{jwt: {{jwks: [{{url: 'file://keys.json'}}]}}}}}}\n"
    ))
    .file("keys.json", KEYS)
    .fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("cannot be used together"), "{log}");
}
