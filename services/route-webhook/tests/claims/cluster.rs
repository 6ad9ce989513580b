//! Tests `PUT /route` against a small Kubernetes API that records its requests.

mod patches;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use test_client::{Process, Response};

use crate::server::start;

/// A request that the API received.
#[derive(Clone, Debug)]
struct Seen {
    path: String,
    method: String,
    media: String,
    token: String,
    body: String,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    /// Existing objects by path.
    objects: BTreeMap<String, Value>,
    /// If set, the API responds to all requests with this status.
    refuses: Option<u16>,
    /// If true, another client labels each object right after it was read.
    is_raced: bool,
}

/// A fake API of ConfigMaps and IntegrationRoutes.
struct Api {
    address: String,
    state: Arc<Mutex<State>>,
    folder: TempDir,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                thread::spawn(move || converse(stream, &state));
            }
        });
        Self {
            address,
            state,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a kubeconfig for this API.
    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn write_kubeconfig(&self) {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        });
        fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }

    fn webhook(&self) -> Process {
        self.webhook_with(&["--route-namespaces", "default,shop"])
    }

    fn webhook_with(&self, flags: &[&str]) -> Process {
        let path = self.kubeconfig();
        let own = ["--kubeconfig", path.to_str().unwrap(), "--workers", "1"];
        start(&[&own, flags].concat())
    }

    /// The requests since the last call.
    fn seen(&self) -> Vec<Seen> {
        let seen = std::mem::take(&mut self.state.lock().unwrap().seen);
        assert!(
            seen.iter().all(|it| it.token == "bearer secret"),
            "{seen:?}"
        );
        seen
    }

    /// The requests since the last call, without reads.
    fn written(&self) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|it| it.method != "GET");
        seen
    }
}

fn converse(stream: TcpStream, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let lower = head.to_ascii_lowercase();
        let field = |name: &str| {
            let line = lower.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let mut body = vec![0; field("content-length:").parse().unwrap_or(0)];
        stream.read_exact(&mut body).unwrap();
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let seen = Seen {
            // An empty query has no meaning.
            path: path.trim_end_matches(['?', '&']).to_owned(),
            method: method.to_owned(),
            media: field("content-type:"),
            token: field("authorization:"),
            body: String::from_utf8(body).unwrap(),
        };
        let (status, answer) = state.lock().unwrap().answer(seen);
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if stream
            .get_mut()
            .write_all(format!("{head}{answer}").as_bytes())
            .is_err()
        {
            return;
        }
    }
}

impl State {
    fn answer(&mut self, seen: Seen) -> (u16, Value) {
        let status = |code: u16, reason: &str| {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                                "status": "Failure", "reason": reason, "code": code});
            (code, status)
        };
        self.seen.push(seen.clone());
        if let Some(code) = self.refuses {
            return status(code, "Forbidden");
        }
        let path = seen.path.as_str();
        if seen.method == "GET" {
            let known = self.objects.get(path).cloned();
            if self.is_raced && known.is_some() {
                self.objects.get_mut(path).unwrap()["metadata"]["resourceVersion"] = "raced".into();
            }
            return known.map_or_else(|| status(404, "NotFound"), |object| (200, object));
        }
        let mut object: Value = serde_json::from_str(&seen.body).unwrap();
        let name = object["metadata"]["name"].as_str().map(str::to_owned);
        if seen.method == "POST" {
            let own = format!("{path}/{}", name.unwrap());
            if self.objects.contains_key(&own) {
                return status(409, "AlreadyExists");
            }
            object["metadata"]["resourceVersion"] = "1".into();
            self.objects.insert(own, object.clone());
            return (201, object);
        }
        let Some(known) = self.objects.get(path).cloned() else {
            return status(404, "NotFound");
        };
        if object["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"] {
            return status(409, "Conflict");
        }
        let stored = self.objects.entry(path.to_owned()).or_default();
        if seen.method == "PATCH" {
            merge(stored, &object);
        } else {
            *stored = object;
        }
        (200, stored.clone())
    }
}

/// Merges a patch into an object by RFC 7396.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *object = patch.clone();
        return;
    };
    for (name, value) in members {
        if value.is_null() {
            object.as_object_mut().map(|it| it.remove(name));
        } else {
            merge(&mut object[name], value);
        }
    }
}

fn put(server: &Process, body: &Value) -> Response {
    send(server, &[], &body.to_string())
}

/// Sends a PUT like a program on this machine, with these additional headers.
fn send(server: &Process, headers: &[(&str, &str)], body: &str) -> Response {
    let mut head = format!(
        "PUT /route HTTP/1.1\r\nHost: localhost:7080\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut connection = server.connect();
    connection.write_text(&format!("{head}\r\n{body}"));
    connection.read(false)
}

#[test]
fn routes_are_created_and_the_next_time_updated() {
    let api = Api::start();
    api.write_kubeconfig();
    let server = api.webhook();
    let order = json!({"routes": [
        {"name": "orders", "namespace": "shop", "xml": "<beans id=\"ä\"/>"},
        {"name": "a.b-1", "xml": "<x/>"},
    ]});
    let response = put(&server, &order);
    assert_eq!(response.status, 201, "{response:?}");
    assert_eq!(
        response.body,
        r#"[{"name":"orders-cm","status":"created"},{"name":"orders","status":"created"},{"name":"a.b-1-cm","status":"created"},{"name":"a.b-1","status":"created"}]"#
    );
    let json = "application/json";
    let map = |name: &str, xml: &str| {
        let labels = json!({"app.kubernetes.io/created-by": "keip"});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"integrationRoute.xml": xml},
               "metadata": {"labels": labels, "name": format!("{name}-cm")}})
    };
    let spec = |name: &str| json!({"routeConfigMap": format!("{name}-cm")});
    let route = |name: &str| {
        let labels = json!({"app.kubernetes.io/created-by": "keip"});
        json!({"apiVersion": "keip.codice.org/v1alpha2", "kind": "IntegrationRoute",
               "metadata": {"labels": labels, "name": name}, "spec": spec(name)})
    };
    let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    let routes = |namespace: &str| {
        format!("/apis/keip.codice.org/v1alpha2/namespaces/{namespace}/integrationroutes")
    };
    // Routes are written concurrently, in any order.
    let mut seen = api.written();
    seen.sort_by(|a, b| a.path.cmp(&b.path));
    check(
        &seen,
        &[
            ("POST", maps("default"), json, map("a.b-1", "<x/>")),
            (
                "POST",
                maps("shop"),
                json,
                map("orders", "<beans id=\"ä\"/>"),
            ),
            ("POST", routes("default"), json, route("a.b-1")),
            ("POST", routes("shop"), json, route("orders")),
        ],
    );
    let order = json!({"routes": [{"name": "orders", "namespace": "shop", "xml": "<y/>"}]});
    let response = put(&server, &order);
    assert_eq!(
        (response.status, &*response.body),
        (
            201,
            r#"[{"name":"orders-cm","status":"updated"},{"name":"orders","status":"updated"}]"#
        )
    );
    let merge = "application/merge-patch+json";
    // With the version that was read, so that the cluster refuses to change a newer object.
    let version = json!({"resourceVersion": "1"});
    let new_map = json!({"data": {"integrationRoute.xml": "<y/>"}, "metadata": version});
    let patch = json!({"spec": spec("orders"), "metadata": version});
    let (own_map, own_route) = (maps("shop") + "/orders-cm", routes("shop") + "/orders");
    check(
        &api.written(),
        &[
            ("PATCH", own_map, merge, new_map),
            ("PATCH", own_route, merge, patch),
        ],
    );
}

/// Checks that exactly these requests were sent, in this order.
fn check(seen: &[Seen], expected: &[(&str, String, &str, Value)]) {
    assert_eq!(seen.len(), expected.len(), "{seen:#?}");
    for (seen, (method, path, media, expected)) in seen.iter().zip(expected) {
        assert_eq!((&*seen.method, &seen.path), (*method, path));
        assert_eq!(seen.media, *media);
        let body: Value = serde_json::from_str(&seen.body).unwrap();
        assert_eq!(&body, expected);
    }
}

#[test]
fn a_cluster_that_refuses_or_is_not_there_is_not_remembered() {
    let api = Api::start();
    let server = api.webhook();
    let order = json!({"routes": [{"name": "a", "xml": "<x/>"}]});
    let failed = (500, "Internal server error".to_owned());
    let answer = || {
        let response = put(&server, &order);
        (response.status, response.body)
    };
    assert_eq!(answer(), failed, "there is no kubeconfig yet");
    api.write_kubeconfig();
    api.state.lock().unwrap().refuses = Some(403);
    assert_eq!(answer(), failed);
    api.state.lock().unwrap().refuses = None;
    assert_eq!(answer().0, 201);
}

/// Orders with one mistake each, its kind, and its location.
const WRONG: [(&str, &str, &str); 13] = [
    ("{}", "missing", r#"["routes"]"#),
    (r#"{"routes":[]}"#, "too_short", r#"["routes"]"#),
    (r#"{"routes":{}}"#, "list_type", r#"["routes"]"#),
    ("[]", "dict_type", "[]"),
    (r#"{"routes":["a"]}"#, "model_type", r#"["routes",0]"#),
    (r#"{"routes":[{"xml":"x"}]}"#, "missing", NAME),
    (r#"{"routes":[{"name":"a"}]}"#, "missing", XML),
    (r#"{"routes":[{"name":1,"xml":"x"}]}"#, "string_type", NAME),
    (r#"{"routes":[{"name":"","xml":"x"}]}"#, "value_error", NAME),
    (
        r#"{"routes":[{"name":"a","xml":""}]}"#,
        "string_too_short",
        XML,
    ),
    (
        r#"{"routes":[{"name":"A","xml":"x"}]}"#,
        "value_error",
        NAME,
    ),
    (
        r#"{"routes":[{"name":"a.","xml":"x"}]}"#,
        "value_error",
        NAME,
    ),
    (
        r#"{"routes":[{"name":"a\n","xml":"x"}]}"#,
        "value_error",
        NAME,
    ),
];
const NAME: &str = r#"["routes",0,"name"]"#;
const NAMESPACE: &str = r#"["routes",0,"namespace"]"#;
const XML: &str = r#"["routes",0,"xml"]"#;
const PATTERN: &str = "string_pattern_mismatch";

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn order(name: &str, namespace: &str, xml: &str) -> Value {
    json!({"routes": [{"name": name, "namespace": namespace, "xml": xml}]})
}

#[test]
fn what_is_wrong_with_an_order_is_said_and_nothing_is_sent() {
    let api = Api::start();
    api.write_kubeconfig();
    let server = api.webhook();
    let long = "a".repeat(254);
    let big = "x".repeat(1_048_577);
    let too_long = "string_too_long";
    let mut orders = vec![
        (order(&long, "n", "x"), too_long, NAME),
        (order("a", "n.m", "x"), PATTERN, NAMESPACE),
        (order("a", &long[..64], "x"), too_long, NAMESPACE),
        (order("a", "n", &big), too_long, XML),
    ];
    orders.extend(WRONG.map(|(order, kind, place)| (read(order), kind, place)));
    for (order, kind, place) in orders {
        let response = put(&server, &order);
        assert_eq!(response.status, 422, "{kind} at {place}");
        let report = read(&response.body);
        assert_eq!(report["status"], "error");
        assert_eq!(report["message"], "Validation failed");
        let errors = report["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{report}");
        assert_eq!(
            (&errors[0]["type"], &errors[0]["loc"]),
            (&json!(kind), &read(place))
        );
        assert!(errors[0]["msg"].is_string() && errors[0].get("input").is_some());
    }
    let response = send(&server, &[], "{");
    assert_eq!(response.status, 400);
    assert!(response.body.starts_with("Failed to parse request body: "));
    assert!(api.state.lock().unwrap().seen.is_empty());
    let twice = json!({"routes": [{"name": "a", "xml": "x"}, {"name": "a", "xml": "y"}]});
    let report = read(&put(&server, &twice).body);
    assert_eq!(report["errors"][0]["loc"], json!(["routes", 1, "name"]));
    assert!(api.state.lock().unwrap().seen.is_empty());
    let server = api.webhook_with(&["--route-namespaces", "*"]);
    let longest = order(&long[..253], &long[..63], &big[1..]);
    assert_eq!(put(&server, &longest).status, 201);
}

#[test]
fn what_another_has_created_is_not_replaced() {
    let api = Api::start();
    api.write_kubeconfig();
    let server = api.webhook();
    let maps = "/api/v1/namespaces/shop/configmaps";
    let routes = "/apis/keip.codice.org/v1alpha2/namespaces/shop/integrationroutes";
    let body = order("orders", "shop", "<x/>");
    let both =
        json!({"routes": [body["routes"][0], {"name": "free", "namespace": "shop", "xml": "x"}]});
    let labels = json!({"app.kubernetes.io/created-by": "helm"});
    for (path, labels, named) in [
        (
            format!("{maps}/orders-cm"),
            Value::Null,
            "ConfigMap `shop/orders-cm`",
        ),
        (
            format!("{maps}/orders-cm"),
            labels,
            "ConfigMap `shop/orders-cm`",
        ),
        (
            format!("{routes}/orders"),
            Value::Null,
            "IntegrationRoute `shop/orders`",
        ),
    ] {
        let object = json!({"metadata": {"name": "x", "labels": labels, "resourceVersion": "7"}});
        api.state
            .lock()
            .unwrap()
            .objects
            .insert(path.clone(), object);
        let response = put(&server, &both);
        assert_eq!(response.status, 409, "{response:?}");
        let expected = format!("not replaced, because this service did not create it: {named};");
        assert!(response.body.starts_with(&expected), "{}", response.body);
        assert_eq!(
            api.written().len(),
            0,
            "nothing is changed, the free one neither"
        );
        api.state.lock().unwrap().objects.remove(&path);
    }
    assert_eq!(put(&server, &both).status, 201);
    api.state.lock().unwrap().is_raced = true;
    let response = put(&server, &body);
    assert_eq!(response.status, 409);
    let expected = "ConfigMap `shop/orders-cm` was changed by another in the meantime";
    assert!(response.body.starts_with(expected), "{}", response.body);
    assert_eq!(server.client().metric("webhook_routes_denied_total"), 4);
}

#[test]
fn only_named_namespaces_are_written_to() {
    let api = Api::start();
    api.write_kubeconfig();
    let ask = |server: &Process, namespace: &str| {
        let response = put(server, &order("a", namespace, "x"));
        (response.status, response.body)
    };
    let server = api.webhook_with(&[]);
    let (status, text) = ask(&server, "kube-system");
    assert_eq!(status, 403);
    assert!(
        text.starts_with("the namespace `kube-system` is not one"),
        "{text}"
    );
    assert!(api.seen().is_empty());
    assert_eq!(ask(&server, "default").0, 201);
    let server = api.webhook_with(&["--route-namespaces", "shop, b"]);
    assert_eq!((ask(&server, "default").0, ask(&server, "b").0), (403, 201));
}

#[test]
fn without_the_token_nobody_else_puts_routes() {
    let api = Api::start();
    api.write_kubeconfig();
    let body = order("a", "default", "x").to_string();
    let ask = |server: &Process, headers: &[(&str, &str)]| {
        let response = send(server, headers, &body);
        let challenge = response.header("www-authenticate").map(str::to_owned);
        (response.status, challenge)
    };
    let challenged = (401, Some("Bearer".to_owned()));
    // On all interfaces and without a token, every client is refused.
    let open = api.webhook_with(&["--host", "0.0.0.0"]);
    assert_eq!(ask(&open, &[]), (403, None));
    let status = open.client().get("/status").status;
    assert_eq!(status, 200, "what changes nothing is served");
    let token = api.folder.path().join("token");
    fs::write(&token, "a-token-of-the-tests\n").unwrap();
    let file = [
        "--host",
        "0.0.0.0",
        "--route-token-file",
        token.to_str().unwrap(),
    ];
    let server = api.webhook_with(&file);
    assert_eq!(ask(&server, &[]), challenged);
    let wrong = [("authorization", "Bearer a-token-of-the-testz")];
    assert_eq!(ask(&server, &wrong), challenged);
    assert!(api.seen().is_empty());
    let right = [("authorization", "Bearer a-token-of-the-tests")];
    assert_eq!(ask(&server, &right).0, 201);
    // A web page points its name to this machine. A browser would send that name.
    let loopback = api.webhook_with(&[]);
    let rebound = "PUT /route HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\
                   Content-Length: 2\r\n\r\n{}";
    let answer = loopback.raw(rebound.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}
