//! Tests of the claims that become session variables.

use gateway_config::SessionVariables;
use gateway_remote::{Session, SessionError};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::stand::config;

fn rules(keys: &str) -> SessionVariables {
    config(&format!("session_variables: {keys}")).session_variables
}

fn session(keys: &str, role: Option<&'static str>, claims: &Value) -> Result<Value, SessionError> {
    let mut client = HeaderMap::new();
    if let Some(role) = role {
        client.insert("x-hasura-role", HeaderValue::from_static(role));
    }
    let session = Session::new(&rules(keys), &client, Some(claims))?;
    Ok(serde_json::from_str(&session.to_json()).unwrap())
}

#[test]
fn the_namespace_is_an_object_or_the_text_of_one() {
    let own = json!({
        "x-hasura-default-role": "user", "x-hasura-allowed-roles": ["user", "editor"],
        "X-Hasura-User-Id": "7", "x-hasura-level": 3, "other": "x",
    });
    let expected =
        Ok(json!({"x-hasura-role": "user", "x-hasura-level": "3", "x-hasura-user-id": "7"}));
    let namespace = "https://hasura.io/jwt/claims";
    for claims in [json!({namespace: own}), json!({namespace: own.to_string()})] {
        assert_eq!(session("{}", None, &claims), expected);
    }
    let elsewhere = json!({"mine": own});
    let found = session("{claims_namespace: mine}", None, &elsewhere);
    assert_eq!(found, expected);
    let nothing = session("{}", None, &elsewhere);
    assert_eq!(nothing, Ok(json!({"x-hasura-role": "anonymous"})));
}

#[test]
fn a_map_takes_variables_from_any_claim() {
    let keys = "{claims_map: {x-hasura-default-role: {default: user}, X-Hasura-User-Id: {path: $.sub}, x-hasura-allowed-roles: {path: \"$['a/b'].roles\"}, x-hasura-org: {path: $.org, default: none}, x-hasura-gone: {path: $.gone}}}";
    let claims = json!({
        "sub": "7", "a/b": {"roles": ["editor"]},
        "https://hasura.io/jwt/claims": {"x-hasura-default-role": "admin"},
    });
    let expected = |role: &str| json!({"x-hasura-role": role, "x-hasura-org": "none", "x-hasura-user-id": "7"});
    assert_eq!(session(keys, None, &claims), Ok(expected("user")));
    let editor = session(keys, Some("editor"), &claims);
    assert_eq!(editor, Ok(expected("editor")));
    let admin = session(keys, Some("admin"), &claims);
    assert_eq!(admin, Err(SessionError::Role));
}

#[test]
fn claims_that_cannot_be_variables_are_refused() {
    let namespace = "https://hasura.io/jwt/claims";
    for wrong in [
        json!("no json"),
        json!(["x"]),
        json!({"x-hasura-user-id": "a\r\nx-other: 1", "x-hasura-default-role": "user"}),
        json!({"x-hasura-user-id": "7", "X-Hasura-User-Id": "8", "x-hasura-default-role": "user"}),
        json!({"x-hasura-allowed-roles": {}, "x-hasura-default-role": "user"}),
    ] {
        let refused = session("{}", Some("user"), &json!({namespace: wrong}));
        assert!(refused.is_err(), "{wrong}: {refused:?}");
    }
}
