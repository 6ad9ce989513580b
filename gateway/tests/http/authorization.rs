//! Tests authorization through the whole gateway: tokens, policies of scripts and coprocessors, and
//! supergraphs that the gateway refuses.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{self, Answer, Stub};

const SDL: &str = include_str!("../../federation/tests/authorization.graphql");
const KEYS: &str = r#"{"keys":[{"kty":"oct","k":"YXBvbGxv"}]}"#;
const JWT: &str = "authentication: {router: {jwt: {jwks: [{url: 'file://keys.json'}]}}}";

/// Tokens signed with the key, valid until 2100: without scopes, with `other read:email`, and with
/// `read:emails xread:email`.
const PLAIN: &str = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDB9.BUPfk3MxbU6LSXDuGR9JP0e8Fq_uTKfZT_FuTZG_qnI";
const SCOPED: &str = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDAsInNjb3BlIjoib3RoZXIgcmVhZDplbWFpbCJ9.v8UaFyIfoYx8WK_8trBDqiaZtwWOkj6odCVnxZKeibQ";
const NEARLY: &str = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjQxMDI0NDQ4MDAsInNjb3BlIjoicmVhZDplbWFpbHMgeHJlYWQ6ZW1haWwifQ.OCDlv4Y50KIIaooIydw3UsWqrpOWwP4U8hWJEPtdrJ0";

/// Returns all fields, even if they are not requested.
fn blog() -> Stub {
    Stub::start(|_| {
        let user = json!({"id": "1", "name": "A", "email": "e", "card": "c", "secret": "s"});
        stub::json(json!({"data": {"me": user, "open": user, "erase": 1}}))
    })
}

fn setup(blog: &Stub, keys: &str) -> Setup {
    let url = &blog.url;
    let config = format!("override_subgraph_url: {{blog: '{url}/b', stock: '{url}/s'}}\n{keys}\n");
    Setup::new(&config)
        .file("supergraph.graphql", SDL)
        .file("keys.json", KEYS)
}

fn ask(gateway: &Gateway, query: &str, headers: &[(&'static str, &'static str)]) -> (u16, Value) {
    let body = json!({ "query": query }).to_string();
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let request = Request {
        headers: &all,
        ..post(&body)
    };
    let response = gateway.send(&request);
    (response.status, response.json())
}

const MINE: &str = "{ me { name } open { name email } }";

#[test]
fn claims_of_a_token_open_fields() {
    let blog = blog();
    let mut gateway = setup(&blog, JWT).start();
    let all = json!({"me": {"name": "A"}, "open": {"name": "A", "email": "e"}});
    let no_email = json!({"me": {"name": "A"}, "open": {"name": "A", "email": null}});
    let nothing = json!({"me": null, "open": {"name": "A", "email": null}});
    // Twice, so that plans also come from the cache. A plan for one client must not be used for another.
    for _ in 0..2 {
        for (token, data, errors) in [
            (None, &nothing, 2),
            (Some(PLAIN), &no_email, 1),
            (Some(NEARLY), &no_email, 1),
            (Some(SCOPED), &all, 0),
        ] {
            let header = token.map(|token| ("authorization", token));
            let (status, answer) = ask(&gateway, MINE, header.as_slice());
            assert_eq!((status, &answer["data"]), (200, data), "{answer}");
            let found = answer["errors"].as_array().map_or(0, Vec::len);
            assert_eq!(found, errors, "{answer}");
        }
    }
    let line = gateway.wait_for("unauthorized:");
    let message = line["message"].as_str().unwrap();
    assert!(message.ends_with("/me /open/email"), "{message}");
    // The gateway did not request the unauthorized fields.
    let asked = blog.seen();
    assert!(
        !asked[0].body.contains("email") && !asked[0].body.contains("me{"),
        "{asked:?}"
    );
}

#[test]
fn requests_can_be_refused_as_a_whole() {
    let blog = blog();
    let reject = format!(
        "{JWT}\nauthorization: {{directives: {{reject_unauthorized: true}}}}\nsupergraph: {{redact_query_validation_errors: true}}"
    );
    let gateway = setup(&blog, &reject).start();
    let (status, answer) = ask(&gateway, MINE, &[]);
    assert_eq!(status, 400);
    let paths: Vec<&Value> = answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["path"])
        .collect();
    assert_eq!(
        paths,
        [&json!(["me"]), &json!(["open", "email"])],
        "{answer}"
    );
    assert!(answer.get("data").is_none());
    assert!(blog.seen().is_empty());
    assert_eq!(ask(&gateway, MINE, &[("authorization", SCOPED)]).0, 200);

    let required = format!("{JWT}\nauthorization: {{require_authentication: true}}");
    let gateway = setup(&blog, &required).start();
    let (status, answer) = ask(&gateway, "{ __typename }", &[]);
    assert_eq!(status, 401);
    assert_eq!(answer["errors"][0]["extensions"]["code"], "AUTH_ERROR");
    let token = [("authorization", PLAIN)];
    assert_eq!(ask(&gateway, "{ __typename }", &token).0, 200);
}

#[test]
fn policies_are_answered_by_scripts() {
    let blog = blog();
    let script = r#"fn supergraph_service(service) { service.map_request(|request| {
        let policies = request.context["apollo::authorization::required_policies"];
        if policies != () {
            for key in policies.keys() { policies[key] = request.headers["x-admin"] == "yes"; }
            request.context["apollo::authorization::required_policies"] = policies;
        }
    }); }"#;
    let gateway = setup(&blog, "rhai: {scripts: rhai}")
        .file("rhai/main.rhai", script)
        .start();
    let query = "mutation { erase }";
    let (_, answer) = ask(&gateway, query, &[("x-admin", "no")]);
    assert_eq!(answer["data"], json!({"erase": null}), "{answer}");
    assert!(blog.seen().is_empty());
    let (_, answer) = ask(&gateway, query, &[("x-admin", "yes")]);
    assert_eq!(answer, json!({"data": {"erase": 1}}));
    // An operation without policies needs no decision.
    let (status, _) = ask(&gateway, "{ open { name } }", &[]);
    assert_eq!(status, 200);
}

#[test]
fn a_policy_that_no_stage_decides_closes_its_fields() {
    let blog = blog();
    let gateway = setup(&blog, "").start();
    let (_, answer) = ask(&gateway, "mutation { erase }", &[("x-admin", "yes")]);
    assert_eq!(answer["data"], json!({"erase": null}), "{answer}");
    assert!(blog.seen().is_empty());
}

#[test]
fn policies_are_answered_by_coprocessors() {
    let blog = blog();
    let coprocessor = Stub::coprocessor(|message| {
        let policies =
            &mut message["context"]["entries"]["apollo::authorization::required_policies"];
        assert_eq!(
            *policies,
            json!({"admin": null, "internal": null, "read card": null})
        );
        *policies = json!({"admin": false, "internal": true, "read card": true});
    });
    let url = &coprocessor.url;
    let keys = format!("coprocessor: {{url: '{url}', supergraph: {{request: {{context: all}}}}}}");
    let gateway = setup(&blog, &keys).start();
    let (_, answer) = ask(&gateway, "{ open { id card } }", &[]);
    assert_eq!(answer, json!({"data": {"open": {"id": "1", "card": "c"}}}));
    // Without a decision, the policy is denied.
    let alone = setup(&blog, "").start();
    let (_, answer) = ask(&alone, "{ open { id card } }", &[]);
    assert_eq!(answer["data"], json!({"open": {"id": "1", "card": null}}));
}

#[test]
fn a_query_that_a_stage_puts_in_place_is_checked_as_well() {
    let blog = blog();
    let coprocessor = Stub::coprocessor(|message| {
        message["body"]["query"] = json!("{ me { name } }");
    });
    let url = &coprocessor.url;
    for stage in ["supergraph", "execution"] {
        let keys = format!("coprocessor: {{url: '{url}', {stage}: {{request: {{body: true}}}}}}");
        let gateway = setup(&blog, &keys).start();
        let (_, answer) = ask(&gateway, "{ open { name } }", &[]);
        assert_eq!(answer["data"], json!({"me": null}), "{stage}: {answer}");
    }
    assert!(blog.seen().is_empty());
}

#[test]
fn an_unknown_feature_stops_the_start_and_a_reload() {
    let link = "specs.apollo.dev/join/v0.3";
    let unknown = SDL.replace(link, "specs.apollo.dev/join/v0.9");
    let blog = blog();
    let (status, log) = setup(&blog, "").file("supergraph.graphql", &unknown).fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("https://specs.apollo.dev/join/v0.9"), "{log}");
    let mut gateway = setup(&blog, "").start();
    fs::write(gateway.path("supergraph.graphql"), unknown).unwrap();
    gateway.signal(Signal::HUP);
    let line = gateway.wait_for("not reloaded");
    let message = line["message"].as_str().unwrap();
    assert!(message.contains("join/v0.9"), "{message}");
    let (status, _) = ask(&gateway, "{ open { name } }", &[]);
    assert_eq!(status, 200);
}

#[test]
fn it_is_ready_once_the_keys_are_there() {
    let blog = blog();
    let keys = Stub::start(|_| Answer::With(500, None, Vec::new()));
    let url = keys.url.clone();
    let jwt = format!("authentication: {{router: {{jwt: {{jwks: [{{url: '{url}'}}]}}}}}}");
    let mut gateway = setup(&blog, &jwt).start();
    let ready = gateway.ask_health("/health?ready");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains(&url), "{}", ready.text());
    let token = [("authorization", SCOPED)];
    assert_eq!(ask(&gateway, MINE, &token).0, 503);
    // The key server comes back. The gateway loads the keys without waiting for a request.
    let listener = std::net::TcpListener::bind(keys.stop()).unwrap();
    let _keys = Stub::on(listener, |_| stub::json(KEYS));
    gateway.wait_for("are available now");
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
    let (_, answer) = ask(&gateway, MINE, &token);
    assert_eq!(answer["data"]["open"]["email"], "e");
}
