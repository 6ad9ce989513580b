//! Tests calls of coprocessors: at subgraphs, under conditions, over several kinds of connections.

use gateway_extensions::Step;
use http::StatusCode;
use serde_json::{Value, json};

use crate::coprocessors::{REQUEST_ALL, code, config, down, echo, noted, request, service};
use crate::stand::{Seen, fetch, json as answer, origin, run, serve_unix, worker};

#[test]
fn a_coprocessor_that_is_down_is_500_and_at_a_subgraph_an_error_of_the_fetch() {
    run(async {
        let yaml = config(&down(), "router", "request", REQUEST_ALL);
        let router = worker(&yaml, "http://localhost:1");
        let step = service(&router, "router")
            .request(&noted(), &mut request())
            .await;
        assert!(matches!(step, Step::Break(response) if response.status == 500));

        let origin = origin().await;
        for side in ["request", "response"] {
            let yaml = config(&down(), "subgraph", side, REQUEST_ALL);
            let outcome = fetch(&worker(&yaml, &origin.url), &noted()).await;
            assert_eq!(code(&outcome.body), "SUBREQUEST_HTTP_ERROR");
            let text = String::from_utf8(outcome.body.to_vec()).unwrap();
            assert!(text.contains("HTTP fetch failed from 'one': "), "{text}");
            assert!(!text.contains("127.0.0.1"), "{text}");
        }
    });
}

#[test]
fn a_subgraph_stage_is_called_once_for_each_fetch_and_sees_what_goes_out() {
    run(async {
        let origin = origin().await;
        let coprocessor = echo(json!({"headers": {"source": ["coprocessor"]}})).await;
        let switches = r#""headers": true, "body": true, "uri": true, "service_name": true, "subgraph_request_id": true"#;
        let yaml = config(&coprocessor.url, "subgraph", "request", switches);
        let worker = worker(&yaml, &format!("{}/q", origin.url));
        let exchange = noted();
        for _ in 0..2 {
            let outcome = fetch(&worker, &exchange).await;
            assert_eq!(outcome.body, r#"{"data":{"a":1}}"#);
        }
        let messages: Vec<Value> = coprocessor.seen().iter().map(Seen::json).collect();
        assert_eq!(messages.len(), 2);
        let first = &messages[0];
        assert_eq!(first["stage"], "SubgraphRequest");
        assert_eq!(first["serviceName"], "one");
        assert_eq!(first["method"], "POST");
        assert_eq!(first["uri"], format!("{}/q", origin.url));
        assert_eq!(first["body"]["operationName"], "Q__one__0");
        assert_eq!(first["id"], messages[1]["id"]);
        assert_ne!(first["subgraphRequestId"], messages[1]["subgraphRequestId"]);
        assert_eq!(origin.last().all("source"), ["coprocessor"]);
    });
}

#[test]
fn no_headers_returned_leaves_the_two_that_are_set_at_send_time() {
    run(async {
        let origin = origin().await;
        let coprocessor = echo(json!({"headers": {}})).await;
        let mut yaml = config(
            &coprocessor.url,
            "subgraph",
            "request",
            r#""headers": true"#,
        );
        yaml.pop();
        yaml += r#", "headers": {"all": {"request": [{"insert": {"name": "source", "value": "config"}}]}}}"#;
        fetch(&worker(&yaml, &origin.url), &noted()).await;
        assert_eq!(
            coprocessor.last().json()["headers"]["source"],
            json!(["config"])
        );
        let seen = origin.last();
        let mut names: Vec<&str> = seen.headers.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "content-length", "content-type", "host"]);
    });
}

#[test]
fn a_break_at_a_subgraph_is_its_answer_and_nothing_is_fetched() {
    for (body, expected) in [
        (
            json!("stop"),
            json!({"errors": [{"message": "stop", "extensions": {"code": "ERROR"}}]}),
        ),
        (json!({"data": {"a": 7}}), json!({"data": {"a": 7}})),
    ] {
        run(async {
            let origin = origin().await;
            let coprocessor = echo(json!({"control": {"break": 403}, "body": body})).await;
            let yaml = config(&coprocessor.url, "subgraph", "request", REQUEST_ALL);
            let outcome = fetch(&worker(&yaml, &origin.url), &noted()).await;
            assert_eq!(
                serde_json::from_slice::<Value>(&outcome.body).unwrap(),
                expected
            );
            assert_eq!(outcome.status, Some(StatusCode::FORBIDDEN));
            assert!(origin.seen().is_empty());
        });
    }
}

#[test]
fn a_subgraph_response_can_be_rewritten() {
    run(async {
        let origin = origin().await;
        let coprocessor = echo(json!({"body": {"data": {"a": 2}}})).await;
        let switches =
            r#""headers": true, "body": true, "status_code": true, "service_name": true"#;
        let yaml = config(&coprocessor.url, "subgraph", "response", switches);
        let outcome = fetch(&worker(&yaml, &origin.url), &noted()).await;
        assert_eq!(outcome.body, r#"{"data":{"a":2}}"#);
        let message = coprocessor.last().json();
        assert_eq!(message["stage"], "SubgraphResponse");
        assert_eq!(message["statusCode"], 200);
        assert_eq!(message["body"], json!({"data": {"a": 1}}));
        assert_eq!(
            message["headers"]["content-type"],
            json!(["application/json"])
        );
        assert!(message.get("control").is_none());
    });
}

#[test]
fn a_stage_whose_condition_does_not_hold_is_not_called() {
    for (wanted, calls) in [("1", 1), ("2", 0)] {
        run(async {
            let coprocessor = echo(json!({})).await;
            let switches = format!(
                r#""headers": true, "condition": {{"eq": [{{"request_header": "x-b"}}, "{wanted}"]}}"#
            );
            let yaml = config(&coprocessor.url, "router", "request", &switches);
            let worker = worker(&yaml, "http://localhost:1");
            let mut request = request();
            request.headers.insert("x-b", "1".parse().unwrap());
            let step = service(&worker, "router")
                .request(&noted(), &mut request)
                .await;
            assert!(matches!(step, Step::Continue));
            assert_eq!(coprocessor.seen().len(), calls);
        });
    }
}

#[test]
fn a_stage_that_switches_nothing_on_does_not_exist() {
    for switches in ["", r#""headers": false"#] {
        let yaml = config("http://localhost:1", "router", "request", switches);
        assert!(worker(&yaml, "http://localhost:1").router.is_none());
    }
}

#[test]
fn stages_reach_their_own_url_a_unix_socket_and_http2() {
    run(async {
        let coprocessor = echo(json!({})).await;
        // The path of a socket has at most 107 bytes, but TMPDIR may be longer.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let unix = serve_unix(&folder.path().join("s"), |seen| Some(answer(seen.json())));
        for (url, stand, path) in [
            (format!("{}/own", coprocessor.url), &coprocessor, "/own"),
            (unix.url.clone(), &unix, "/"),
            (format!("{}?a=b&path=/p", unix.url), &unix, "/p"),
        ] {
            let switches = format!(r#""headers": true, "url": "{url}""#);
            let yaml = config("http://localhost:1", "router", "request", &switches);
            let worker = worker(&yaml, "http://localhost:1");
            let step = service(&worker, "router")
                .request(&noted(), &mut request())
                .await;
            assert!(matches!(step, Step::Continue), "{url}: {step:?}");
            assert_eq!(stand.last().path, path);
        }
        let yaml = config(&coprocessor.url, "router", "request", r#""headers": true"#).replace(
            r#""timeout""#,
            r#""client": {"experimental_http2": "http2only"}, "timeout""#,
        );
        let worker = worker(&yaml, "http://localhost:1");
        let step = service(&worker, "router")
            .request(&noted(), &mut request())
            .await;
        assert!(matches!(step, Step::Continue), "{step:?}");
        assert_eq!(coprocessor.last().version, http::Version::HTTP_2);
    });
}

/// Scripts wrap coprocessors. They run before them on requests and after them on responses. This also applies
/// if the coprocessor ends the request.
#[test]
fn a_script_sees_the_break_of_a_coprocessor() {
    run(async {
        let coprocessor = echo(json!({"control": {"break": 403}, "body": "no"})).await;
        let folder = tempfile::tempdir().unwrap();
        let script = r#"fn router_service(service) {
            service.map_request(|request| { request.headers["x-b"] = "script"; });
            service.map_response(|response| { response.headers["seen"] = `${response.status_code}`; });
        }"#;
        std::fs::write(folder.path().join("main.rhai"), script).unwrap();
        let mut yaml = config(&coprocessor.url, "router", "request", r#""headers": true"#);
        yaml.pop();
        yaml += &format!(
            r#", "rhai": {{"scripts": "{}"}}}}"#,
            folder.path().display()
        );
        let worker = worker(&yaml, "http://localhost:1");
        let step = service(&worker, "router")
            .request(&noted(), &mut request())
            .await;
        assert!(matches!(step, Step::Break(response) if response.headers["seen"] == "403"));
        assert_eq!(
            coprocessor.last().json()["headers"]["x-b"],
            json!(["script"])
        );
    });
}
