//! An API server in this process. It stores objects, removes the objects of a removed owner, and can be set to
//! be away. Tests play the controllers and kubelets of the cluster: they change the stored objects.

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use cluster::{ApiConnection, ClusterContext};
use serde_json::{Value, json};

/// A node without a kubelet.
pub(crate) const SILENT: &str = "silent";

/// The state of the server.
#[derive(Default)]
pub(crate) struct State {
    /// Objects by path.
    pub(crate) objects: BTreeMap<String, Value>,
    made: u64,
    /// Number of further responses that are 503.
    pub(crate) away: u32,
    /// Number of further connections that are closed after the action without a response.
    pub(crate) lost: u32,
    /// The status and message for each creation at a path.
    pub(crate) refused: BTreeMap<String, (u16, String)>,
    /// The status and message for each list at a path.
    pub(crate) hidden: BTreeMap<String, (u16, String)>,
    /// Verb and path of each request.
    pub(crate) asked: Vec<(String, String)>,
}

pub(crate) struct Api {
    pub(crate) state: Arc<Mutex<State>>,
    kubeconfig: tempfile::TempDir,
}

impl Api {
    pub(crate) fn start() -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        let kubeconfig = tempfile::tempdir().expect("a folder");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake", "namespace": "space"}}],
        });
        std::fs::write(kubeconfig.path().join("config"), text.to_string()).expect("a file");
        Api { state, kubeconfig }
    }

    pub(crate) fn connection(&self, is_stopped: bool) -> ApiConnection {
        let file = self.kubeconfig.path().join("config");
        ApiConnection::of_file(&file, &ClusterContext::default(), move || is_stopped)
            .expect("a kubeconfig")
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic"));
    }

    pub(crate) fn left(&self) -> Vec<String> {
        self.state
            .lock()
            .expect("no panic")
            .objects
            .keys()
            .cloned()
            .collect()
    }
}

/// Serves one connection, request by request.
fn serve(stream: TcpStream, shared: &Mutex<State>) {
    let mut to = stream.try_clone().expect("a second handle");
    let mut from = BufReader::new(stream);
    while let Some((method, path, body)) = request(&mut from) {
        let (status, answer, is_lost) =
            answer(&mut shared.lock().expect("no panic"), &method, &path, &body);
        if is_lost {
            return;
        }
        // A log is text, and other answers are JSON.
        let answer = match answer {
            Value::String(text) => text,
            json => json.to_string(),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if to
            .write_all(head.as_bytes())
            .and_then(|()| to.write_all(answer.as_bytes()))
            .is_err()
        {
            return;
        }
    }
}

fn request(from: &mut impl std::io::BufRead) -> Option<(String, String, Value)> {
    let mut first = String::new();
    from.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some((
        method,
        path,
        serde_json::from_slice(&body).unwrap_or_default(),
    ))
}

fn failure(code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "message": format!("code {code}")})
}

fn said(refusal: &(u16, String)) -> (u16, Value) {
    let (code, message) = refusal;
    let said = json!({"kind": "Status", "status": "Failure", "code": code, "message": message});
    (*code, said)
}

fn answer(state: &mut State, method: &str, path: &str, body: &Value) -> (u16, Value, bool) {
    if state.away > 0 {
        state.away -= 1;
        return (503, failure(503), false);
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    state.asked.push((method.to_owned(), path.to_owned()));
    let is_lost = state.lost > 0;
    state.lost = state.lost.saturating_sub(1);
    let (status, answer) = done(state, method, path, query, body);
    (status, answer, is_lost)
}

fn done(state: &mut State, method: &str, path: &str, query: &str, body: &Value) -> (u16, Value) {
    match method {
        "POST" => created(state, path, query, body),
        "PATCH" => match state.objects.get_mut(path) {
            Some(object) => {
                object["spec"]["activeDeadlineSeconds"] =
                    body["spec"]["activeDeadlineSeconds"].clone();
                (200, object.clone())
            }
            None => (404, failure(404)),
        },
        "DELETE" => match state.objects.remove(path) {
            Some(object) => {
                collect(state, &object);
                (200, json!({"kind": "Status", "status": "Success"}))
            }
            None => (404, failure(404)),
        },
        _ if path.ends_with("/log") => log_of(state, path, query),
        _ if state.objects.contains_key(path) => (200, state.objects[path].clone()),
        _ if path.contains("/nodes/") => (404, failure(404)),
        _ if state.hidden.contains_key(path) => said(&state.hidden[path]),
        _ => {
            let wanted = query.strip_prefix("labelSelector=").unwrap_or_default();
            let wanted = wanted.replace("%2F", "/").replace("%3D", "=");
            let has = |object: &&Value| {
                wanted
                    .split(',')
                    .filter_map(|it| it.split_once('='))
                    .all(|(name, value)| object["metadata"]["labels"][name] == value)
            };
            let about = query
                .strip_prefix("fieldSelector=involvedObject.kind%3D")
                .and_then(|it| it.split_once("%2CinvolvedObject.name%3D"));
            let has = |object: &&Value| {
                let of = &object["involvedObject"];
                has(object)
                    && about.is_none_or(|(kind, name)| of["kind"] == kind && of["name"] == name)
            };
            let below = format!("{path}/");
            let inside = state
                .objects
                .iter()
                .filter(|(at, _)| at.starts_with(&below));
            let items: Vec<&Value> = inside.map(|(_, object)| object).filter(has).collect();
            (200, json!({"kind": "List", "items": items}))
        }
    }
}

fn created(state: &mut State, path: &str, query: &str, body: &Value) -> (u16, Value) {
    if let Some(refusal) = state.refused.get(path) {
        return said(refusal);
    }
    if query == "dryRun=All" {
        return (201, body.clone());
    }
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{path}/{name}");
    if state.objects.contains_key(&path) {
        return (409, failure(409));
    }
    state.made += 1;
    let mut object = body.clone();
    object["metadata"]["uid"] = json!(format!("uid-{}", state.made));
    if path.contains("/services/") {
        object["spec"]["clusterIP"] = json!(format!("10.96.0.{}", state.made));
    }
    state.objects.insert(path, object.clone());
    (201, object)
}

fn log_of(state: &State, path: &str, query: &str) -> (u16, Value) {
    let asked: BTreeMap<&str, &str> = query
        .split('&')
        .filter_map(|it| it.split_once('='))
        .collect();
    let path = match asked.get("container") {
        Some(container) => format!("{path}?{container}"),
        None => path.to_owned(),
    };
    let log = state.objects.get(&path).and_then(Value::as_str);
    let Some(log) = log else {
        return (400, failure(400));
    };
    let most = asked
        .get("tailLines")
        .map(|it| it.parse().expect("a number"));
    let most: usize = most.unwrap_or(usize::MAX);
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(most)..];
    (200, json!(last.join("\n")))
}

/// Removes the objects of an owner, as a cluster does.
fn collect(state: &mut State, owner: &Value) {
    let uid = owner["metadata"]["uid"].clone();
    if uid.is_null() {
        return;
    }
    let owned: Vec<String> = state
        .objects
        .iter()
        .filter(|(_, object)| object["metadata"]["ownerReferences"][0]["uid"] == uid)
        .map(|(path, _)| path.clone())
        .collect();
    for path in owned {
        // Only a kubelet ends a pod.
        if let Some(pod) = state.objects.get_mut(&path)
            && pod["spec"]["nodeName"] == SILENT
        {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            continue;
        }
        if let Some(object) = state.objects.remove(&path) {
            collect(state, &object);
        }
    }
}
