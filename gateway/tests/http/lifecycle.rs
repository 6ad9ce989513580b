//! Tests start, reload and stop.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::client::{Connection, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;

#[test]
fn mistakes_in_the_configuration_are_told_with_their_lines() {
    let (status, log) = Setup::new("supergraph:\n  introspecton: true\n  path: x\n").fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("router.yaml:2:3"), "{log}");
    assert!(log.contains("did you mean `introspection`?"), "{log}");
    assert!(log.contains("router.yaml:3:9"), "{log}");
}

#[test]
fn a_script_that_does_not_compile_is_told_at_the_start() {
    let (status, log) = Setup::new("rhai: {scripts: .}")
        .file("main.rhai", "fn supergraph_service(service) {")
        .fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("main.rhai"), "{log}");
}

#[test]
fn a_supergraph_that_is_none_is_told_at_the_start() {
    let (status, log) = Setup::new("").file("supergraph.graphql", "type {").fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("supergraph.graphql"), "{log}");
}

#[test]
fn check_reads_a_configuration_and_serves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.yaml");
    let check = |text: &str| {
        fs::write(&path, text).unwrap();
        Command::new(env!("CARGO_BIN_EXE_gateway"))
            .args(["check", path.to_str().unwrap()])
            .output()
            .unwrap()
    };
    let good = check("homepage: {graph_ref: a@b}\n");
    let told = String::from_utf8(good.stdout).unwrap();
    assert!(good.status.success());
    assert!(
        told.contains(
            "accepted without effect:\n  line 1: homepage.graph_ref: the homepage has no links"
        ),
        "{told}"
    );
    let refused = check("cors: {}\npreview_file_uploads: {enabled: true}\n");
    let told = String::from_utf8(refused.stdout).unwrap();
    assert!(
        told.contains("works:\n  line 1: cors\nrefused:\n  line 2: preview_file_uploads: "),
        "{told}"
    );
    assert_eq!(refused.status.code(), Some(2));
    let bad = check("homepages: {}\n");
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        String::from_utf8(bad.stderr)
            .unwrap()
            .contains("did you mean `homepage`?")
    );
}

#[test]
fn variables_of_the_environment_are_filled_in() {
    let planets = Stub::planets();
    let config = "override_subgraph_url: {locations: '${env.URL}/l'}\nsupergraph: {introspection: '${env.FLAG:-true}'}\n";
    let gateway = Setup::new(config)
        .variable("P_URL", &planets.url)
        .variable("APOLLO_ROUTER_CONFIG_ENV_PREFIX", "P")
        .start();
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let schema = post(r#"{"query":"{ __schema { queryType { name } } }"}"#);
    assert_eq!(gateway.send(&schema).status, 200);
}

#[test]
fn a_changed_configuration_is_used_and_a_bad_one_is_not() {
    let planets = Stub::planets();
    let mut gateway = Setup::new(&planets.config("")).flag("--hot-reload").start();
    let send = |gateway: &Gateway| {
        assert_eq!(gateway.send(&post(NAMES)).status, 200);
        let seen = planets.seen();
        seen.last().unwrap().header("source").map(str::to_owned)
    };
    assert_eq!(send(&gateway), None);
    let rule = "headers: {all: {request: [{insert: {name: source, value: new}}]}}";
    fs::write(gateway.path("router.yaml"), planets.config(rule)).unwrap();
    gateway.wait_for("reloaded: files changed");
    // The reload command and the connection take the same path to the worker, one after the other.
    assert_eq!(send(&gateway).as_deref(), Some("new"));
    fs::write(gateway.path("router.yaml"), "headers: {al: 1}").unwrap();
    let line = gateway.wait_for("not reloaded");
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("unknown key `al`")
    );
    assert_eq!(send(&gateway).as_deref(), Some("new"));
}

#[test]
fn a_changed_script_is_used() {
    let planets = Stub::planets();
    let script = |value: &str| {
        format!(
            "fn subgraph_service(service, subgraph) {{ service.map_request(|request| {{ request.subgraph.headers[\"source\"] = \"{value}\"; }}); }}"
        )
    };
    let mut gateway = Setup::new(&planets.config("rhai: {scripts: rhai}"))
        .file("rhai/main.rhai", &script("one"))
        .start();
    gateway.send(&post(NAMES));
    fs::write(gateway.path("rhai/main.rhai"), script("two")).unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    gateway.send(&post(NAMES));
    let sources: Vec<String> = planets
        .seen()
        .iter()
        .map(|seen| seen.header("source").unwrap().to_owned())
        .collect();
    assert_eq!(sources, ["one", "two"]);
}

#[test]
fn a_changed_supergraph_is_used_and_a_bad_one_is_not() {
    let planets = Stub::planets();
    let mut gateway = Setup::new(&planets.config("")).flag("--hot-reload").start();
    let renamed = post(r#"{"query":"{ places { id } }"}"#);
    assert_eq!(gateway.send(&renamed).status, 400);
    let path = gateway.path("supergraph.graphql");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, "type {").unwrap();
    let line = gateway.wait_for("not reloaded");
    let message = line["message"].as_str().unwrap();
    assert!(message.contains("supergraph.graphql"), "{message}");
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    fs::write(&path, before.replace(" locations: [", " places: [")).unwrap();
    gateway.wait_for("reloaded: files changed");
    assert_eq!(gateway.send(&renamed).status, 200);
    assert_eq!(gateway.send(&post(NAMES)).status, 400);
}

#[test]
fn requests_under_way_are_answered_before_it_stops() {
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let (arrive, arrivals) = std::sync::mpsc::channel::<()>();
    let (gate, arrive) = (std::sync::Mutex::new(gate), std::sync::Mutex::new(arrive));
    let subgraph = Stub::start(move |_| {
        arrive.lock().unwrap().send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        crate::stub::json(r#"{"data":{"locations":[]}}"#)
    });
    let mut gateway = Gateway::start(&subgraph.config(""));
    let mut idle = gateway.connect();
    assert_eq!(idle.send(&crate::client::get("/nowhere")).status, 404);
    let mut connection = gateway.connect();
    connection.begin(&post(NAMES));
    arrivals.recv().unwrap();
    gateway.signal(Signal::TERM);
    gateway.wait_for("stopping");
    assert!(idle.is_closed());
    release.send(()).unwrap();
    assert_eq!(
        connection.read(false).text(),
        r#"{"data":{"locations":[]}}"#
    );
    let (status, log) = gateway.wait();
    assert!(status.success());
    assert!(log.contains("stopped"), "{log}");
}

#[test]
fn while_it_drains_it_is_not_ready_and_serves_old_and_new_connections() {
    let planets = Stub::planets();
    // Longer than any test, so the second signal ends it.
    let config = planets.config("supergraph: {drain_delay: 1h}");
    let mut gateway = Gateway::start(&config);
    let mut kept = gateway.connect();
    let answer = kept.send(&post(NAMES));
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    gateway.signal(Signal::TERM);
    gateway.wait_for("draining");
    assert_eq!(gateway.ask_health("/health?ready").status, 503);
    assert_eq!(gateway.ask_health("/health").status, 200);
    for connection in [&mut kept, &mut gateway.connect()] {
        let answer = connection.send(&post(NAMES));
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("close"))
        );
        assert!(connection.is_closed());
    }
    gateway.signal(Signal::TERM);
    let (status, _) = gateway.wait();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn it_stops_by_itself_when_it_has_drained() {
    let planets = Stub::planets();
    let mut gateway = Gateway::start(&planets.config("supergraph: {drain_delay: 50ms}"));
    gateway.signal(Signal::TERM);
    gateway.wait_for("draining");
    assert!(gateway.wait().0.success());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (arrive, arrivals) = std::sync::mpsc::channel::<()>();
    let arrive = std::sync::Mutex::new(arrive);
    let subgraph = Stub::start(move |_| {
        arrive.lock().unwrap().send(()).unwrap();
        crate::stub::Answer::Hang
    });
    let mut gateway = Gateway::start(&subgraph.config(""));
    let mut connection = gateway.connect();
    connection.begin(&post(NAMES));
    arrivals.recv().unwrap();
    gateway.signal(Signal::INT);
    gateway.wait_for("stopping");
    gateway.signal(Signal::INT);
    let (status, _) = gateway.wait();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn it_listens_on_unix_sockets() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    // The path of a socket has at most 107 bytes, but TMPDIR can be longer.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("graphql.sock");
    let mut process = Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["--supergraph", "../services/planets/supergraph.graphql"])
        .args(["--health-listen", "127.0.0.1:0"])
        .arg("--listen")
        .arg(&socket)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 9];
    process
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut line)
        .unwrap();
    let mut stream = UnixStream::connect(&socket).unwrap();
    let body = r#"{"query":"{__typename}"}"#;
    let length = body.len();
    write!(stream, "POST / HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(
        text.ends_with(r#"{"data":{"__typename":"Query"}}"#),
        "{text}"
    );
}

#[test]
fn health_and_metrics_have_an_address_of_their_own() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let health = gateway.ask_health("/health");
    assert_eq!((health.status, health.text()), (200, r#"{"status":"UP"}"#));
    assert_eq!(health.header("content-type"), None);
    assert!(
        gateway
            .ask_health("/metrics")
            .text()
            .contains("process_resident_memory_bytes")
    );
    assert_eq!(gateway.ask_health("/").status, 404);
    let mut connection = Connection::open(&gateway.address);
    assert_eq!(connection.send(&crate::client::get("/health")).status, 404);
}

/// Deployments write an optional value as an empty variable.
#[test]
fn an_empty_variable_counts_as_unset() {
    let planets = Stub::planets();
    let config = planets.config(
        "headers: {all: {request: [{insert: {name: source, value: '${env.EMPTY:-default}'}}]}}",
    );
    let mut setup = Setup::new(&config).variable("EMPTY", "");
    for name in [
        "APOLLO_ROUTER_LOG",
        "APOLLO_ROUTER_DEV",
        "APOLLO_ROUTER_HOT_RELOAD",
        "APOLLO_ROUTER_LISTEN_ADDRESS",
        "APOLLO_ROUTER_CONFIG_ENV_PREFIX",
    ] {
        setup = setup.variable(name, "");
    }
    let gateway = setup.start();
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    assert_eq!(planets.seen()[0].header("source"), Some("default"));
    let (status, log) = Setup::new("supergraph: {path: '${env.EMPTY}'}")
        .variable("EMPTY", "")
        .fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("the environment has no `EMPTY`"), "{log}");
    let secret = "remote_schemas: [{name: a, url: 'http://127.0.0.1:9'}]\nsession_variables: {admin_secret: ''}";
    let (status, log) = Setup::merged(secret).fail();
    assert_eq!(status.code(), Some(2));
    assert!(log.contains("the admin secret is empty"), "{log}");
}
