//! Tests the newer features of metacontroller: credentials of calls, and entity tags.

use std::fs;

use test_client::{Request, Response};

use crate::server::{command, start};

const BODY: &str = include_str!("../../../../labs/webhook/requests/route.json");
const ANSWER: &str = include_str!("../../../../labs/webhook/expected/today.json");
const CERTIFICATE: &str = include_str!("../../cases/certificate.json");
const HOOKS: [&str; 2] = ["/webhook/sync", "/webhook/addons/certmanager/sync"];

fn call(server: &test_client::Process, target: &str, headers: &[(&str, &str)]) -> Response {
    let is_certificate = target.contains("certmanager");
    let body = if is_certificate { CERTIFICATE } else { BODY };
    server.send(&Request {
        method: "POST",
        target,
        headers,
        body: body.as_bytes(),
    })
}

#[test]
fn a_call_without_the_credentials_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "0123456789abcdef").unwrap();
    let server = start(&["--bearer-token-file", file.to_str().unwrap()]);
    for hook in HOOKS {
        for headers in [&[][..], &[("authorization", "Bearer 0123456789abcdeX")]] {
            let refused = call(&server, hook, headers);
            assert_eq!(refused.status, 401, "{hook}");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        let right = [("authorization", "Bearer 0123456789abcdef")];
        assert_eq!(call(&server, hook, &right).status, 200, "{hook}");
    }
    // Probes need no credentials.
    for path in ["/status", "/health", "/healthz"] {
        assert_eq!(server.client().get(path).status, 200, "{path}");
    }
    fs::write(&file, "").unwrap();
    let headers = [("authorization", "Bearer 0123456789abcdef")];
    let refused = call(&server, "/sync", &headers);
    assert_eq!(refused.status, 503);
    assert!(!refused.body.contains("children"), "{}", refused.body);
}

#[test]
fn an_empty_or_missing_file_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    for flag in ["--bearer-token-file", "--basic-credentials-file"] {
        let _ = fs::remove_file(&file);
        let output = command(&[flag, file.to_str().unwrap()]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(flag), "{told}");
        fs::write(&file, "").unwrap();
        let output = command(&[flag, file.to_str().unwrap()]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains("has 0 bytes"),
            "{told}"
        );
    }
}

#[test]
fn a_password_is_taken_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "keeper:0123456789").unwrap();
    let server = start(&["--basic-credentials-file", file.to_str().unwrap()]);
    let refused = call(&server, "/sync", &[]);
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Basic realm="), "{challenge}");
    let right = [("authorization", "Basic a2VlcGVyOjAxMjM0NTY3ODk=")];
    let answer = call(&server, "/sync", &right);
    assert_eq!((answer.status, &*answer.body), (200, ANSWER));
}

#[test]
fn an_answer_that_the_caller_has_is_not_sent_again() {
    let server = start(&["--etags"]);
    for hook in HOOKS {
        let first = call(&server, hook, &[]);
        let tag = first.header("etag").unwrap().to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        let again = call(&server, hook, &[("if-none-match", &tag)]);
        assert_eq!((again.status, &*again.body), (304, ""), "{hook}");
        assert_eq!(again.header("etag"), Some(&*tag));
        assert_eq!(again.header("content-type"), None);
        let other = call(&server, hook, &[("if-none-match", "\"other\"")]);
        assert_eq!((other.status, &*other.body), (200, &*first.body), "{hook}");
    }
    // A refusal has no tag, and is never replaced by 304.
    let refused = server.client().post("/sync", b"{}");
    assert_eq!((refused.status, refused.header("etag")), (400, None));
    let plain = start(&[]);
    assert_eq!(call(&plain, "/sync", &[]).header("etag"), None);
}

/// Some readers of JSON keep the first of two members with one name, and some the last.
#[test]
fn a_name_twice_is_never_passed_on() {
    let server = start(&[]);
    let twice = r#"{"q":"1","q":"2"}"#;
    let condition = r#"{"type":"Available","q":1,"\u0071":2}"#;
    for (place, spec, conditions) in [
        (
            "parent.spec.annotations",
            format!("\"annotations\":{twice}"),
            "",
        ),
        ("parent.spec.labels", format!("\"labels\":{twice}"), ""),
        (
            "parent.spec.resources",
            format!("\"resources\":{{\"limits\":{twice}}}"),
            "",
        ),
        ("parent.spec.env[0]", format!("\"env\":[{twice}]"), ""),
        ("parent.spec.envFrom", format!("\"envFrom\":[{twice}]"), ""),
        (
            "parent.spec.propSources",
            format!("\"propSources\":[{twice}]"),
            "",
        ),
        (
            r#"children["Deployment.apps/v1"].a.status.conditions[0]"#,
            "\"image\":\"b\"".to_owned(),
            condition,
        ),
    ] {
        let body = format!(
            r#"{{"parent":{{"metadata":{{"name":"a","namespace":"n","generation":1}},"spec":{{"routeConfigMap":"c","replicas":1,{spec}}}}},"children":{{"Deployment.apps/v1":{{"a":{{"status":{{"replicas":1,"conditions":[{conditions}]}}}}}}}}}}"#
        );
        let refused = server
            .client()
            .request("POST", "/sync", &[], body.into_bytes());
        assert_eq!(refused.status, 400, "{place}: {}", refused.body);
        let told = format!(
            "Wrong type in request: expected {place} to be JSON with each name of an object once, found a name twice"
        );
        assert_eq!(refused.body, told);
    }
}
