//! Runs the quick start of the README, on free ports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_client::Process;

use crate::client::{Connection, Request, get, post};
use crate::gateway::Setup;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The program `planets` next to the gateway's program. It is built if it is missing.
fn planets_program() -> PathBuf {
    let ours = Path::new(env!("CARGO_BIN_EXE_gateway"));
    let program = ours.with_file_name("planets");
    if !program.exists() {
        let target = ours.ancestors().nth(2).unwrap();
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "planets", "--target-dir"])
            .arg(target)
            .current_dir(root())
            .status()
            .unwrap();
        assert!(status.success());
    }
    program
}

/// The origin on a free port. Dropping it ends the process.
fn start_planets(flags: &[&str]) -> Process {
    let mut command = Command::new(planets_program());
    command.args(flags).args(["--listen", "127.0.0.1:0"]);
    Process::start(&mut command)
}

/// The lines of the first shell block of `docs/gateway/start.md`.
fn commands() -> Vec<String> {
    let readme = fs::read_to_string(root().join("docs/gateway/start.md"));
    let readme = readme.unwrap();
    let (_, block) = readme.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

/// The body after `-d`, read from its file or as written in quotes.
fn body_of(command: &str) -> Option<String> {
    let (_, body) = command.split_once(" -d ")?;
    Some(match body.strip_prefix('@') {
        Some(path) => fs::read_to_string(root().join(path)).unwrap(),
        None => body.trim_matches('\'').to_owned(),
    })
}

/// Each `curl` of the README's section about merged schemas, with the beginning of its response.
fn merged_commands() -> Vec<(String, String)> {
    let readme = fs::read_to_string(root().join("docs/gateway/merged-schemas.md"));
    let readme = readme.unwrap();
    let (_, section) = readme.split_once("## Remote schemas, actions").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines: Vec<&str> = block.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let answer = pair[1].strip_prefix("# ")?.trim_end_matches('…');
        Some((pair[0].to_owned(), answer.to_owned()))
    });
    pairs.collect()
}

#[test]
fn the_commands_about_merged_schemas_do_what_they_show() {
    let example = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        fs::read_to_string(folder.join(name)).unwrap()
    };
    let products = crate::stub::Stub::start(|seen| {
        assert_eq!(seen.target, "/api/rest/product?limit=1");
        crate::stub::json(r#"{"product":[{"id":"1","name":"A"}]}"#)
    });
    let internal = Setup::merged(&example("internal.yaml"))
        .variable("PRODUCTS_URL", &products.url)
        .start();
    let url = format!("http://{}/v1/graphql", internal.address);
    let closed = format!("http://{}/", crate::remote_schemas::quiet_address());
    let root = Setup::merged(&example("root.yaml"))
        .variable("PRODUCT_URL", &url)
        .variable("LINE_ITEM_URL", &closed)
        .start();
    let commands = merged_commands();
    assert_eq!(commands.len(), 4);
    for (command, expected) in commands {
        let (_, target) = command.split_once("localhost:").unwrap();
        let (port, path) = target.split_once('/').unwrap();
        let path = format!("/{}", path.split(' ').next().unwrap());
        let address = match port {
            "8085" => &internal.address,
            "8081" => &root.address,
            "9081" => &root.health,
            other => panic!("the test starts nothing on {other}"),
        };
        let body = body_of(&command);
        let request = match &body {
            Some(body) => Request {
                target: &path,
                ..post(body)
            },
            None => get(&path),
        };
        let response = Connection::open(address).send(&request);
        assert!(
            response.text().starts_with(&expected),
            "{command}: {}",
            response.text()
        );
    }
}

#[test]
fn the_quick_start_of_the_readme_does_what_it_shows() {
    let lines = commands();
    let answers = lines.iter().filter(|line| line.starts_with('#')).count();
    assert_eq!((lines.len() - answers, answers), (9, 3));
    let run = |package: &str| {
        let line = lines.iter().find(|line| line.contains(package)).unwrap();
        let (_, flags) = line.split_once(" -- ").unwrap();
        flags.trim_end_matches(" &")
    };
    let planets = start_planets(&run("-p planets").split(' ').collect::<Vec<_>>());
    assert_eq!(
        run("-p gateway"),
        "--supergraph services/planets/supergraph.graphql --config router.yaml"
    );
    let start = lines.iter().position(|line| line.contains("<<'END'"));
    let end = lines.iter().position(|line| line == "END").unwrap();
    let config = lines[start.unwrap() + 1..end].join("\n");
    let supergraph = root().join("services/planets/supergraph.graphql");
    let supergraph = fs::read_to_string(supergraph).unwrap();
    let supergraph = supergraph.replace("127.0.0.1:4001", &planets.address);
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", &supergraph)
        .start();
    for pair in lines.windows(2) {
        let [command, answer] = pair else { continue };
        let Some(expected) = answer.strip_prefix("# ") else {
            continue;
        };
        let response = match body_of(command) {
            Some(body) => gateway.send(&Request {
                method: "POST",
                target: "/",
                headers: &[("content-type", "application/json")],
                body: body.as_bytes(),
            }),
            None => Connection::open(&planets.address).send(&get("/seen")),
        };
        let text = response.text();
        let start = expected.split('…').next().unwrap();
        assert!(text.starts_with(start), "{command}\n{text}");
        assert!(!text.contains("\"errors\""), "{text}");
    }
}

#[test]
fn both_operations_of_the_lab_are_answered_whole() {
    let planets = start_planets(&["--workers", "1"]);
    let supergraph = root().join("services/planets/supergraph.graphql");
    let supergraph = fs::read_to_string(supergraph).unwrap();
    let supergraph = supergraph.replace("127.0.0.1:4001", &planets.address);
    let gateway = Setup::new("")
        .file("supergraph.graphql", &supergraph)
        .start();
    for (name, member, fields) in [
        (
            "getAllLocations",
            "/data/locations/0",
            vec!["description", "id", "overallRating", "reviewsForLocation"],
        ),
        (
            "getLocationById",
            "/data/location",
            vec!["description", "id", "name", "overallRating", "photo"],
        ),
    ] {
        let body = root().join(format!("services/planets/queries/{name}.json"));
        let body = fs::read_to_string(body).unwrap();
        let response = gateway.send(&crate::client::post(&body));
        assert_eq!(response.status, 200);
        let json = response.json();
        assert!(json.get("errors").is_none(), "{json}");
        let place = json.pointer(member).unwrap();
        let found: Vec<&String> = place.as_object().unwrap().keys().collect();
        assert_eq!(found, fields, "{name}");
        assert!(place.as_object().unwrap().values().all(|it| !it.is_null()));
    }
}
