//! Systems that are services of a compose file, in a real engine if one is available.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use e2e::{PATIENCE, Run, World, rounds_of, wait_until, weigh, weigh_command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The output of a command. `None` if it fails.
fn said(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True if there are an engine and compose. Records it for the calling test.
#[track_caller]
fn has_compose() -> bool {
    let missing = if said(&["docker", "info"]).is_none() {
        "no Docker engine answers to `docker info`; `cargo xtask engine up` starts one"
    } else if said(&["docker", "compose", "version"])
        .or_else(|| said(&["docker-compose", "version"]))
        .is_none()
    {
        "neither `docker compose` nor `docker-compose` is installed"
    } else {
        judged::ran();
        return true;
    };
    judged::absent(missing);
    false
}

/// Containers, networks and volumes of runs with names that start with `run`.
fn left_of(run: &str) -> Vec<String> {
    let format = "{{.Label \"weighbridge.run\"}} {{.}}";
    let kinds: [&[&str]; 3] = [&["ps", "--all"], &["network", "ls"], &["volume", "ls"]];
    let list = |kind: &[&str]| {
        let words = [
            &["docker"],
            kind,
            &["--filter", "label=weighbridge.run", "--format", format],
        ];
        said(&words.concat()).expect("the engine answers")
    };
    let lists: Vec<String> = kinds.into_iter().map(list).collect();
    let lines = lists.iter().flat_map(|list| list.lines());
    let own = lines.filter(|line| line.starts_with(run));
    own.map(str::to_owned).collect()
}

/// A run of a lab, and the prefix of the names of its objects. Other tests have containers at the same time.
fn run_of(world: &World) -> (Run, String) {
    let weigh = world.start();
    let own = format!("weighbridge-{}-", weigh.id());
    (world.finish(weigh), own)
}

/// A stack of an API, a service in front of it, and a store that receives no requests. Each is `weigh` of
/// this build with the libraries of this machine, in an image that is built here. Names and ports are fixed,
/// as in many compose files.
fn stack() -> String {
    let mut volumes = vec![format!("{}:/weigh:ro", weigh().display())];
    let folders = ["/usr", "/lib", "/lib64"].into_iter();
    let folders = folders.filter(|folder| Path::new(folder).exists());
    volumes.extend(folders.map(|folder| format!("{folder}:{folder}:ro")));
    let volumes = volumes.join("', '");
    format!(
        "\
x-common: &common
  image: weighbridge-e2e-compose
  build: {{context: .}}
  restart: always
  volumes: ['{volumes}', 'data:/data']
services:
  front:
    <<: *common
    container_name: front
    command: [/weigh, null-server, --listen, '0.0.0.0:8080', --delay, '${{DELAY:-300us}}']
    ports: ['18080:8080']
    depends_on: {{api: {{condition: service_healthy}}}}
    deploy: {{resources: {{limits: {{cpus: '0.5', memory: 128M}}}}}}
  api:
    <<: *common
    command: [/weigh, null-server, --listen, '0.0.0.0:8080']
    expose: ['8080']
    depends_on: [store]
    healthcheck: {{test: [CMD, /usr/bin/true], interval: 200ms}}
    environment: {{PASSWORD: hunter2hunter2, PRICE: $$5}}
  store:
    <<: *common
    command: [/weigh, null-server, --listen, '0.0.0.0:8080']
    mem_limit: 96m
volumes: {{data: {{name: weighbridge-e2e-data}}}}
"
    )
}

const LOAD: &str = "load: {rate: 100/s, duration: 500ms}\nrounds: 6\nwarmup: 50ms\n";

/// A lab about that stack, without and with the service in front of the API.
fn world(load: &str, compose: &str) -> World {
    let text = format!(
        "question: What does it cost?\n{load}target: stack\nsystems:\n  stack:\n    \
         settings: {{load: front, leave-out: none, delay: 300us, command: null-server}}\n    compose:\n      \
         file: compose.yaml\n      service: \"{{{{load}}}}\"\n      without: \"{{{{leave-out}}}}\"\n{compose}\
         baseline: {{name: without, with: {{stack.load: api, stack.leave-out: front}}}}\n\
         variants: [{{name: with}}]\n"
    );
    World::of_lab(&text)
        .file("compose.yaml", &stack())
        .file("Dockerfile", "FROM scratch\nCOPY marker /data/\n")
        .file(".dockerignore", "*\n!marker\n")
        .file("marker", "")
}

/// The systems of a variant in a recording, by name.
fn systems_of(recording: &Value, variant: &str) -> BTreeMap<String, Value> {
    let variants = recording["variants"].as_array().expect("variants");
    let found = variants.iter().find(|one| one["name"] == variant);
    let systems = found.expect("the variant")["systems"].as_array();
    let systems = systems.expect("systems").iter();
    let name = |system: &Value| system["name"].as_str().unwrap_or_default().to_owned();
    systems
        .map(|system| (name(system), system.clone()))
        .collect()
}

#[test]
fn each_service_of_a_compose_file_has_its_cost_its_limits_and_its_log() {
    if !has_compose() {
        return;
    }
    let world = world(LOAD, "      services: {api: {env: {ADDED: \"a$b\"}}}\n");
    let (run, own) = run_of(&world);
    let run = run.ran();
    let recording = run.recording();
    let names =
        |variant: &str| -> Vec<String> { systems_of(&recording, variant).into_keys().collect() };
    assert_eq!(names("without"), ["stack/api", "stack/store"]);
    assert_eq!(names("with"), ["stack/api", "stack/front", "stack/store"]);
    let with = systems_of(&recording, "with");
    let limits = |name: &str| &with[name]["limits_enforced"];
    assert_eq!(limits("stack/front")["cpus"], 0.5);
    assert_eq!(limits("stack/front")["memory_bytes"], 128 << 20);
    assert_eq!(limits("stack/store")["memory_bytes"], 96 << 20);
    assert_eq!(with["stack/api"]["env"]["ADDED"], "a$b");
    let version = with["stack/front"]["version"].as_str().expect("a digest");
    // The built image has a name of its own, so it does not replace the image of that name in the file.
    let image = with["stack/front"]["image"].as_str().expect("an image");
    assert!(image.starts_with("weighbridge/front:"), "{image}");
    assert!(version.contains("sha256:"), "{version}");
    for round in rounds_of(&recording, "with") {
        let used = round["systems"].as_array().expect("systems");
        assert_eq!(used.len(), 3, "{round}");
        let front = used.iter().find(|it| it["name"] == "stack/front");
        assert!(front.expect("it")["cpu_us"].as_u64() > Some(0), "{round}");
    }
    // The logs contain the file that was started, without credentials and in the form that compose reads.
    let folder = run.recording_folder();
    let kept = find(&folder, "stack.compose.json").expect("the file that was started");
    let kept = fs::read_to_string(kept).expect("it can be read");
    assert!(!kept.contains("hunter2"), "{kept}");
    assert!(
        kept.contains("\"PRICE\": \"$$5\"") && kept.contains("a$$b"),
        "{kept}"
    );
    assert!(
        find(&folder, "stack-front.log").is_some(),
        "logs of each service"
    );
    assert_eq!(left_of(&own), [""; 0]);
}

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .find_map(|entry| {
            let path = entry.path();
            match path.is_dir() {
                true => find(&path, name),
                false => (entry.file_name() == name).then_some(path),
            }
        })
}

/// Makes the lab of a service of `text`, and returns it or the refusal. `other` is `base.yaml`.
fn lab_of(text: &str, service: &str, other: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("compose.yaml", text);
    write("base.yaml", other);
    let output = weigh_command()
        .args(["init", "--compose", "compose.yaml", service, "--out", "lab"])
        .current_dir(folder.path())
        .output();
    let output = output.expect("weigh starts");
    match output.status.success() {
        true => Ok(fs::read_to_string(folder.path().join("lab/lab.yaml")).expect("a lab")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn files_of_compose_are_read_or_refused_by_name() {
    let version = |words: &[&str]| said(&[words, &["version"]].concat());
    if version(&["docker", "compose"]).is_none() && version(&["docker-compose"]).is_none() {
        judged::absent("neither `docker compose` nor `docker-compose` is installed");
        return;
    }
    judged::ran();
    let base = "services:\n  base: {image: nginx, environment: [A=1]}\n";
    // The service comes from another file, and finds the other one by its link.
    let extended = "services:\n  web:\n    extends: {file: base.yaml, service: base}\n    \
        ports: ['80:80']\n    links: [api]\n  api: {image: x, ports: ['3000']}\n";
    let lab = lab_of(extended, "web", base).expect("a lab");
    for part in ["service: ", "web", "api"] {
        assert!(lab.contains(part), "{part}: {lab}");
    }
    let host = "services:\n  web: {image: nginx, network_mode: host}\n  \
        api: {image: x, ports: ['3000:3000']}\n";
    let refused = lab_of(host, "web", base).expect_err("a refusal");
    assert!(refused.contains("`network_mode: host`"), "{refused}");
    let alone = lab_of(base, "base", base).expect_err("a refusal");
    assert!(alone.contains("is the only service"), "{alone}");
    let included = "include: [base.yaml]\nservices:\n  web: {image: nginx, ports: ['80:80']}\n  \
        api: {image: x, expose: ['3000']}\n";
    // Compose reads this file from version 2.20 on.
    if let Err(refused) = lab_of(included, "web", base) {
        assert!(refused.contains("needs Compose 2.20"), "{refused}");
    }
}

#[test]
fn a_planted_cost_of_a_service_is_found() {
    if !has_compose() {
        return;
    }
    // The same service in both, so that the difference is only the planted delay.
    let text = format!(
        "question: What does a delay cost?\n{LOAD}target: stack\nsystems:\n  stack:\n    \
         settings: {{delay: 100us}}\n    compose:\n      file: compose.yaml\n      service: front\n      \
         env: {{DELAY: \"{{{{delay}}}}\"}}\n\
         baseline: {{name: plain}}\nvariants: [{{name: slow, with: {{stack.delay: 3ms}}}}]\n"
    );
    let world = World::of_lab(&text)
        .file("compose.yaml", &stack())
        .file("Dockerfile", "FROM scratch\nCOPY Dockerfile /data/\n");
    let Some(run) = world.believed() else { return };
    assert!(run.verdict_of("slow").contains("slower"), "{}", run.text());
}

#[test]
fn a_service_that_does_not_come_up_is_a_row_that_names_it() {
    if !has_compose() {
        return;
    }
    let broken = |from: &str, to: &str| {
        let stack = stack();
        assert!(stack.contains(from), "{from}");
        let world = world(LOAD, "    ready: {within: 3s}\n");
        run_of(&world.file("compose.yaml", &stack.replacen(from, to, 1)))
    };
    for (from, to, words) in [
        // A wrong flag of a service that no other service waits for.
        (
            "'${DELAY:-300us}'",
            "never",
            &["`stack/front` ended with exit code 2", "never"][..],
        ),
        (
            "/usr/bin/true",
            "/usr/bin/false",
            &["`stack/api` is unhealthy"],
        ),
        (
            "container_name: front",
            "network_mode: host",
            &["`network_mode: host`", "Remove it"],
        ),
        (
            "'data:/data'",
            "'/tmp:/data'",
            &["can write to the folder `/tmp`"],
        ),
        (
            "front:\n    <<",
            "frnt:\n    <<",
            &["there is no service `front`: did you mean `frnt`?"],
        ),
        ("services:", "services: [", &["compose.yaml"]),
    ] {
        let (run, own) = broken(from, to);
        let text = run.recording()["variants"].to_string();
        for word in words {
            assert!(text.contains(word), "{to}: nothing of {word:?}: {text}");
        }
        drop(run.exits_with(5));
        assert_eq!(left_of(&own), [""; 0]);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a kill comes at a moment that is no event, and nothing coming up is none either"
)]
fn pause(long: Duration) {
    thread::sleep(long);
}

#[test]
fn killing_weigh_at_twenty_moments_leaves_no_container_network_or_volume() {
    if !has_compose() {
        return;
    }
    let load = "load: {rate: 20/s, duration: 300ms}\nrounds: 100\nwarmup: 20ms\n";
    let world = world(load, "");
    // One run before, so that the image exists and the times below fall into starts.
    drop(world.run_with(&["--rounds", "1"]));
    let mut had_something = 0;
    for moment in 0..20_u64 {
        let mut weigh = world.start();
        // Irregular times, so that the end hits different actions of `weigh`.
        pause(Duration::from_millis(500 + (moment * 7919) % 9000));
        let run = format!("weighbridge-{}-", weigh.id());
        had_something += u32::from(!left_of(&run).is_empty());
        kill_process(Pid::from_child(&weigh), Signal::KILL).expect("weigh is alive");
        weigh.wait().expect("weigh is dead");
        wait_until("everything of the run is gone", PATIENCE, || {
            left_of(&run).is_empty()
        });
        // No object appears after that.
        pause(Duration::from_millis(500));
        assert_eq!(left_of(&run), [""; 0]);
    }
    assert!(
        had_something >= 5,
        "the moments were before anything was there"
    );
}

#[test]
fn without_compose_or_an_engine_there_is_a_row_that_says_what_to_do() {
    if !has_compose() {
        return;
    }
    let run = |variable: &str, value: &str| {
        let world = world(LOAD, "");
        let mut command = world.command("lab");
        command.env(variable, value);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let run = world.finish(child.expect("weigh starts"));
        let text = run.recording()["variants"].to_string();
        drop(run.exits_with(5));
        text
    };
    let text = run("PATH", "/nowhere");
    assert!(text.contains("Install Docker's compose plugin"), "{text}");
    let text = run("DOCKER_HOST", "unix:///nowhere/docker.sock");
    assert!(text.contains("/nowhere/docker.sock"), "{text}");
}

#[test]
fn init_writes_the_lab_of_a_sidecar_which_runs() {
    if !has_compose() {
        return;
    }
    let folder = tempfile::TempDir::with_prefix("weighbridge-e2e-").expect("a folder");
    fs::write(folder.path().join("compose.yaml"), stack()).expect("a file");
    fs::write(
        folder.path().join("Dockerfile"),
        "FROM scratch\nCOPY Dockerfile /data/\n",
    )
    .expect("a file");
    let weigh = |words: &[&str]| {
        let output = weigh_command()
            .current_dir(folder.path())
            .args(words)
            .output();
        e2e::Run::of(output.expect("weigh starts"))
    };
    let run = weigh(&["init", "--compose", "compose.yaml", "front"]).exits_with(0);
    run.shows("weigh lab labs/first/first.yaml");
    let check = weigh(&["check", "labs/first/first.yaml"]).exits_with(0);
    check.shows("`without front`: proven");
    check.shows("`with front`: proven");
    let store = weigh(&[
        "init",
        "--compose",
        "compose.yaml",
        "store",
        "-o",
        "labs/store",
    ]);
    drop(store.exits_with(0));
    let lab = fs::read_to_string(folder.path().join("labs/store/store.yaml")).expect("a lab");
    assert!(
        lab.contains("service: \"front\""),
        "the load goes past the store: {lab}"
    );
    weigh(&["init", "--compose", "compose.yaml", "frnt", "-o", "x"])
        .exits_with(2)
        .says("did you mean `front`?");
}

#[test]
fn the_lab_of_the_page_runs_as_printed() {
    if !has_compose() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compose.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, lab) = page.split_once("```yaml\nquestion").expect("a lab");
    let (lab, _) = lab.split_once("```").expect("its end");
    let world = World::of_lab(&format!("question{lab}"));
    // The compose file of the page has the services of this stack.
    let world = world
        .file(
            "compose.yaml",
            &stack().replace("front", "nginx").replace("store", "redis"),
        )
        .file("Dockerfile", "FROM scratch\nCOPY Dockerfile /data/\n");
    world
        .run_with(&["--rounds", "6"])
        .ran()
        .number_for("with nginx");
}
