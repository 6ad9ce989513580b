//! Scripts may decide who gets an answer. So no request passes a script that cannot run.

use std::fs;
use std::process::{Command, Output};

use rustix::process::Signal;

use crate::client::{Request, post};
use crate::gateway::Setup;
use crate::stub::Stub;

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;

/// Demands a header, whose name is a constant of the script.
const DEMANDS_KEY: &str = r#"
const WANTED = "x-api-key";
fn supergraph_service(service) {
  service.map_request(|request| {
    if !(WANTED in request.headers) { throw #{ status: 401, message: "no key" }; }
  });
}
"#;

/// Scripts that cannot guard a request, and a part of the error.
const BROKEN: [(&str, &str); 5] = [
    (
        "fn supergraph_service(service) { throw \"never\"; }",
        "never",
    ),
    (
        "import \"nope\" as nope; fn supergraph_service(service) {}",
        "nope",
    ),
    (
        "fn supergraph_service(service) { service.map_request(Fn(\"chek\")); }",
        "`chek`",
    ),
    (
        "fn subgraph_service(service) { service.map_request(|request| {}); }",
        "expected 2, found 1",
    ),
    ("let key = env::get(\"NOT_THERE\");", "NOT_THERE"),
];

fn setup(planets: &Stub, script: &str) -> Setup {
    Setup::new(&planets.config("rhai: {scripts: rhai}")).file("rhai/main.rhai", script)
}

fn check(script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let rhai = folder.path().join("rhai");
    fs::create_dir(&rhai).unwrap();
    fs::write(rhai.join("main.rhai"), script).unwrap();
    fs::write(folder.path().join("router.yaml"), "rhai: {scripts: rhai}\n").unwrap();
    Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["check", "router.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[test]
fn a_constant_of_a_script_guards_every_request() {
    let planets = Stub::planets();
    let gateway = setup(&planets, DEMANDS_KEY).start();
    let refused = gateway.send(&post(NAMES));
    assert_eq!(refused.status, 401, "{}", refused.text());
    assert!(planets.seen().is_empty());
    let headers = [("content-type", "application/json"), ("x-api-key", "1")];
    let with_key = Request {
        headers: &headers,
        ..post(NAMES)
    };
    let served = gateway.send(&with_key);
    assert_eq!(served.status, 200, "{}", served.text());
}

#[test]
fn a_script_that_cannot_run_stops_the_start() {
    let planets = Stub::planets();
    for (script, part) in BROKEN {
        let (status, log) = setup(&planets, script).fail();
        assert_eq!(status.code(), Some(2), "{script}: {log}");
        assert!(log.contains(part) && log.contains("main.rhai"), "{log}");
    }
}

#[test]
fn a_script_that_cannot_run_does_not_replace_the_one_that_serves() {
    let planets = Stub::planets();
    let mut gateway = setup(&planets, DEMANDS_KEY).start();
    for (script, _) in BROKEN {
        fs::write(gateway.path("rhai/main.rhai"), script).unwrap();
        gateway.signal(Signal::HUP);
        gateway.wait_for("not reloaded");
        assert_eq!(gateway.send(&post(NAMES)).status, 401, "{script}");
    }
    assert!(planets.seen().is_empty());
}

#[test]
fn check_finds_a_script_that_cannot_run() {
    let good = check(DEMANDS_KEY);
    let told = String::from_utf8_lossy(&good.stdout).into_owned();
    assert!(
        good.status.success() && told.contains("nothing wrong found"),
        "{told}"
    );
    for (script, part) in BROKEN
        .iter()
        .chain(&[("fn router_service(service) { let x = ; }", "line 1")])
    {
        let bad = check(script);
        let told = String::from_utf8_lossy(&bad.stderr).into_owned();
        assert_eq!(bad.status.code(), Some(2), "{script}: {told}");
        assert!(told.contains(part), "{script}: {told}");
        let listed = String::from_utf8_lossy(&bad.stdout).into_owned();
        assert!(!listed.contains("nothing wrong found"), "{listed}");
    }
}

#[test]
fn check_looks_for_every_file_that_the_configuration_names() {
    let folder = tempfile::tempdir().unwrap();
    for (config, part) in [
        ("rhai: {scripts: nowhere}", "nowhere/main.rhai"),
        (
            "persisted_queries: {enabled: true, local_manifests: [list.json]}",
            "list.json",
        ),
        (
            "authentication: {router: {jwt: {jwks: [{url: 'file:///nowhere/keys.json'}]}}}",
            "/nowhere/keys.json",
        ),
        (
            "tls: {supergraph: {certificate: not-a-certificate, certificate_chain: x, key: y}}",
            "tls.supergraph",
        ),
        (
            "tls: {subgraph: {subgraphs: {stock: {certificate_authorities: not-a-certificate}}}}",
            "tls.subgraph.subgraphs.stock",
        ),
    ] {
        fs::write(folder.path().join("router.yaml"), config).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_gateway"))
            .args(["check", "router.yaml"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{config}: {told}");
        assert!(told.contains(part), "{config}: {told}");
    }
}

/// With a supergraph, the check also calls the function for subgraphs.
#[test]
fn check_with_a_supergraph_registers_callbacks_for_its_subgraphs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("rhai")).unwrap();
    let script = "fn subgraph_service(service, name) { throw `not ${name}`; }";
    fs::write(path("rhai/main.rhai"), script).unwrap();
    fs::write(path("router.yaml"), "rhai: {scripts: rhai}\n").unwrap();
    fs::write(path("supergraph.graphql"), crate::gateway::SUPERGRAPH).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(["check", "router.yaml", "--supergraph", "supergraph.graphql"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("not locations"), "{told}");
}
