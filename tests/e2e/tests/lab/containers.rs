//! Systems that are containers, in a real engine if one is available.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use e2e::{PATIENCE, Run, World, wait_until, weigh, weigh_command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::pr::Repository;

/// The engine of this machine, used without `weigh`.
struct Engine {
    socket: String,
}

impl Engine {
    /// Connects to the engine, and records for the calling test if there is one.
    #[track_caller]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place in these claims that reads the environment"
    )]
    fn find() -> Option<Engine> {
        let named = std::env::var("DOCKER_HOST").ok();
        let named = named
            .as_deref()
            .and_then(|host| host.strip_prefix("unix://"));
        let socket = named.unwrap_or("/var/run/docker.sock").to_owned();
        let engine = Engine { socket };
        if engine.ask("/version").is_some() {
            judged::ran();
            return Some(engine);
        }
        judged::absent(format_args!(
            "no container engine answers at {}; `cargo xtask engine up` starts one",
            engine.socket
        ));
        None
    }

    fn ask(&self, path: &str) -> Option<Value> {
        let mut socket = UnixStream::connect(&self.socket).ok()?;
        // In HTTP/1.0 the response ends with the connection.
        write!(socket, "GET {path} HTTP/1.0\r\nHost: engine\r\n\r\n").ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// Names of all containers, networks and volumes with a run label that starts with `run`.
    fn left_of(&self, run: &str) -> Vec<String> {
        let containers = self.ask("/containers/json?all=true").expect("an answer");
        let networks = self.ask("/networks").expect("an answer");
        let volumes = self.ask("/volumes").expect("an answer");
        let lists = [&containers, &networks, &volumes["Volumes"]];
        let all = lists.into_iter().filter_map(Value::as_array).flatten();
        let is_left = |one: &&Value| {
            let label = one["Labels"]["weighbridge.run"].as_str();
            label.is_some_and(|label| label.starts_with(run))
        };
        let left = all.filter(is_left);
        left.map(|one| one["Name"].as_str().unwrap_or("a container").to_owned())
            .collect()
    }

    fn is_empty_of(&self, weigh: u32) -> bool {
        self.left_of(&format!("weighbridge-{weigh}-")).is_empty()
    }
}

/// An image without a program. It runs `weigh` of this build, with the libraries of this machine, so that
/// process and container are the same program.
const IMAGE: &str =
    "FROM scratch\nCOPY marker /\nHEALTHCHECK --interval=200ms CMD [\"/usr/bin/true\"]\n";

/// The keys that make a system a container of this image.
fn container(keys: &str) -> String {
    let mut volumes = vec![format!("{}:/weigh:ro", weigh().display())];
    for folder in ["/usr", "/lib", "/lib64"]
        .into_iter()
        .filter(|it| Path::new(it).exists())
    {
        volumes.push(format!("{folder}:{folder}:ro"));
    }
    let volumes: String = volumes.iter().map(|it| format!("      - {it}\n")).collect();
    format!("    image: weighbridge-e2e\n    build: {{context: .}}\n    volumes:\n{volumes}{keys}")
}

const HOST: &str = "    command: /weigh null-server --listen {{addr}}\n";
const BRIDGE: &str = "    command: /weigh null-server --listen {{addr}}\n    port: 8080\n";

/// A lab with a process as its baseline, and a variant for each further system.
fn world(systems: &[(&str, &str)]) -> World {
    world_of(
        "load: {connections: 2, duration: 200ms}\nrounds: 6\nwarmup: 20ms\n",
        systems,
    )
}

fn world_of(load: &str, systems: &[(&str, &str)]) -> World {
    let declared: String = systems
        .iter()
        .map(|(name, keys)| format!("  {name}:\n{}", container(keys)))
        .collect();
    let variants: String = systems
        .iter()
        .map(|(name, _)| format!("  - {{name: {name}, target: {name}}}\n"))
        .collect();
    let weigh = weigh();
    let text = format!(
        "question: What does a container cost?\n{load}target: process\nsystems:\n  process:\n    run: {} null-server --listen {{{{addr}}}}\n{declared}baseline: {{name: process}}\nvariants:\n{variants}",
        weigh.display()
    );
    World::of_lab(&text)
        .file("Dockerfile", IMAGE)
        .file(".dockerignore", "*\n!marker\n")
        .file("marker", "")
}

/// The systems of a variant in a recording, by name.
fn systems_of(recording: &Value, variant: &str) -> BTreeMap<String, Value> {
    let variants = recording["variants"].as_array().expect("variants");
    let found = variants.iter().find(|one| one["name"] == variant);
    let systems = found.expect("the variant")["systems"]
        .as_array()
        .expect("systems");
    let named = |system: &Value| {
        (
            system["name"].as_str().unwrap_or_default().to_owned(),
            system.clone(),
        )
    };
    systems.iter().map(named).collect()
}

#[test]
fn containers_are_weighed_beside_a_process_in_both_networks() {
    let Some(engine) = Engine::find() else { return };
    let limits = "    limits: {cpus: 0.5, memory: 256MiB}\n    ready: {path: /seen}\n";
    let (host, bridge) = (format!("{HOST}{limits}"), format!("{BRIDGE}{limits}"));
    let world = world(&[("host", &host), ("bridge", &bridge)]);
    let weigh = world.start();
    let pid = weigh.id();
    let run = world.finish(weigh).ran();
    let recording = run.recording();
    for variant in ["host", "bridge"] {
        let system = systems_of(&recording, variant)[variant].clone();
        assert!(
            system["version"]
                .as_str()
                .is_some_and(|it| it.starts_with("sha256:")),
            "{system}"
        );
        assert_eq!(system["image"], "weighbridge-e2e");
        assert_eq!(system["limits_enforced"]["cpus"], 0.5, "{system}");
        assert_eq!(
            system["limits_enforced"]["memory_bytes"],
            256 << 20,
            "{system}"
        );
        let rounds = e2e::rounds_of(&recording, variant);
        assert_eq!(rounds.len(), 6);
        for round in rounds {
            let used = &round["systems"][0];
            assert!(used["cpu_us"].as_u64() > Some(0), "{used}");
            assert!(used["memory_peak_bytes"].as_u64() > Some(100_000), "{used}");
            assert!(
                used["source"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("cgroup")),
                "{used}"
            );
        }
    }
    assert!(engine.is_empty_of(pid));
}

#[test]
fn containers_at_the_same_port_within_are_not_in_the_way_of_each_other() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let load = "load: {rate: 50/s, duration: 300ms}\nrounds: 6\nwarmup: 20ms\n";
    let run = world_of(load, &[("one", BRIDGE), ("other", BRIDGE)])
        .run()
        .ran();
    // A machine that is too busy for all of them at once may fail for another reason.
    assert!(!run.text().contains("fixed address"), "{}", run.text());
}

#[test]
fn a_container_on_a_bridge_answers_over_http_3() {
    let Some(engine) = Engine::find() else { return };
    let keys = BRIDGE.replace("null-server", "null-server --http3");
    let run = World::of_lab(&format!(
        "question: Does UDP reach a container?\n\
         load: {{connections: 2, count: 40, http3: on, insecure: on}}\nrounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    scheme: https\n{}\
         baseline: {{name: a}}\nvariants: [{{name: b}}]\n",
        container(&keys)
    ))
    .file("Dockerfile", IMAGE)
    .file(".dockerignore", "*\n!marker\n")
    .file("marker", "");
    let weigh = run.start();
    let pid = weigh.id();
    let recording = run.finish(weigh).ran().recording();
    for variant in ["a", "b"] {
        let rounds = e2e::rounds_of(&recording, variant);
        assert_eq!(rounds[0]["outcomes"]["passed"], 40, "{recording:#}");
    }
    assert!(engine.is_empty_of(pid));
}

#[test]
fn a_container_reads_configuration_files_of_its_start() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let files =
        "    files:\n      bin/start: {text: 'exec /weigh null-server --listen {{addr}}'}\n";
    let run = "    command: /usr/bin/sh {{file.bin/start}}\n";
    let (host, bridge) = (
        format!("{files}{run}"),
        format!("{files}{run}    port: 8080\n"),
    );
    let world = world(&[("host", &host), ("bridge", &bridge)]);
    let recording = world.run().ran().recording();
    for variant in ["host", "bridge"] {
        let system = systems_of(&recording, variant)[variant].clone();
        let command = &system["command"][1];
        assert_eq!(command, "/weighbridge/bin/start", "{system}");
        assert!(system["files"]["bin/start"].is_string(), "{system}");
    }
}

#[test]
fn a_container_that_ends_is_a_row_with_its_exit_code_and_last_words() {
    let Some(engine) = Engine::find() else { return };
    let world = world(&[
        (
            "wrong",
            "    command: /weigh null-server --listen {{addr}} --no-such-flag\n",
        ),
        (
            "hungry",
            "    command: /usr/bin/tail /dev/zero\n    port: 1\n    limits: {memory: 16MiB}\n",
        ),
        ("absent", "    command: /no/such/program\n    port: 1\n"),
    ]);
    let weigh = world.start();
    let pid = weigh.id();
    world
        .finish(weigh)
        .exits_with(5)
        .row("wrong", &["exit code 2", "--no-such-flag"])
        .row(
            "hungry",
            &["exit code 137", "because it reached its memory limit"],
        )
        .row("absent", &["/no/such/program"]);
    assert!(engine.is_empty_of(pid));
}

#[test]
fn a_container_is_ready_when_its_health_check_says_so() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let healthy = format!("{BRIDGE}    ready: {{state: healthy, within: 30s}}\n");
    let run = world(&[("healthy", &healthy)]).run_with(&["--quick"]).ran();
    run.number_for("healthy");
}

#[test]
fn containers_reach_each_other_in_their_network() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    // Only the other container responds on its readiness path. The caller must reach that container by the
    // address that it received.
    let keys = format!("{BRIDGE}    env: {{OTHER: \"{{{{other.addr}}}}\"}}\n");
    let other = container(BRIDGE);
    let world = world(&[("caller", &format!("{keys}  other:\n{other}"))]);
    let run = world.run().ran();
    let system = systems_of(&run.recording(), "caller")["caller"].clone();
    let told = system["env"]["OTHER"].as_str().expect("an address");
    // Not the address on this machine's loopback, because a container would reach itself there.
    assert!(
        told.ends_with(":8080") && !told.starts_with("127."),
        "{told}"
    );
}

#[test]
fn a_container_that_runs_already_is_attached_to() {
    let Some(engine) = Engine::find() else { return };
    let up = world(&[("bridge", BRIDGE)]);
    let mut command = up.command("up");
    let mut weigh = command
        .args(["--variant", "bridge"])
        .spawn()
        .expect("weigh starts");
    let mut found = None;
    wait_until("the container runs", PATIENCE, || {
        let all = engine.ask("/containers/json").expect("an answer");
        let mut all = all.as_array().expect("a list").iter();
        let run = format!("weighbridge-{}-", weigh.id());
        found = all
            .find(|one| {
                one["Labels"]["weighbridge.run"]
                    .as_str()
                    .is_some_and(|it| it.starts_with(&run))
            })
            .and_then(|one| {
                Some((
                    one["Id"].as_str()?.to_owned(),
                    one["Ports"][0]["PublicPort"].as_u64()?,
                ))
            });
        found.is_some()
    });
    let (id, port) = found.expect("it was found");
    // The container is listed before it listens, and `weigh up` waits until it listens.
    wait_until("it answers", PATIENCE, || {
        let mut socket =
            TcpStream::connect(format!("127.0.0.1:{port}")).expect("the proxy accepts");
        let asked = socket.write_all(b"GET / HTTP/1.0\r\n\r\n");
        asked.is_ok() && socket.read(&mut [0]).is_ok_and(|read| read > 0)
    });
    let text = format!(
        "question: What does it cost?\nload: {{connections: 2, duration: 200ms}}\nrounds: 6\nwarmup: 20ms\ntarget: there\nsystems:\n  there:\n    url: http://127.0.0.1:{port}\n    attach: {{container: {id}}}\nbaseline: {{name: a}}\nvariants: [{{name: b}}]\n"
    );
    let run = World::of_lab(&text).run().ran();
    for round in e2e::rounds_of(&run.recording(), "a") {
        assert!(round["systems"][0]["cpu_us"].as_u64() > Some(0), "{round}");
    }
    let pid = Pid::from_child(&weigh);
    kill_process(pid, Signal::INT).expect("weigh is alive");
    weigh.wait().expect("weigh has ended");
    assert!(engine.is_empty_of(weigh.id()));
}

#[test]
fn killing_weigh_at_any_moment_leaves_no_container_network_or_volume() {
    let Some(engine) = Engine::find() else { return };
    let keys = format!("{BRIDGE}    limits: {{memory: 256MiB}}\n")
        .replace("    port", "    user: \"0\"\n    port");
    let world = world_of(
        "load: {rate: 20/s, duration: 300ms}\nrounds: 100\nwarmup: 20ms\n",
        &[("bridge", &keys), ("host", HOST)],
    );
    let mut had_something = 0;
    // Times from before the image exists to the middle of rounds. They are irregular, so that the end hits
    // different actions of `weigh`.
    for moment in 0..20_u64 {
        let mut weigh = world.start();
        // A fixed time, because no event marks it. An early wake-up does no harm.
        thread::park_timeout(Duration::from_millis(150 + (moment * 7919) % 3500));
        let run = format!("weighbridge-{}-", weigh.id());
        had_something += u32::from(!engine.left_of(&run).is_empty());
        kill_process(Pid::from_child(&weigh), Signal::KILL).expect("weigh is alive");
        weigh.wait().expect("weigh is dead");
        wait_until("everything of the run is gone", PATIENCE, || {
            engine.is_empty_of(weigh.id())
        });
        // No object appears after that. An early wake-up does no harm.
        thread::park_timeout(Duration::from_millis(300));
        assert!(engine.is_empty_of(weigh.id()));
    }
    assert!(
        had_something >= 5,
        "the moments were before anything was there"
    );
}

#[test]
fn without_an_engine_a_container_is_a_row_that_says_where_was_looked() {
    let nowhere = PathBuf::from("/nowhere/docker.sock");
    let world = world(&[("host", HOST)]);
    let mut command = world.command("lab");
    command.env("DOCKER_HOST", format!("unix://{}", nowhere.display()));
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("weigh starts");
    let run = world.finish(child);
    run.exits_with(5)
        .row("host", &["/nowhere/docker.sock", "DOCKER_HOST"]);
    let elsewhere = world
        .command("check")
        .env("DOCKER_HOST", "tcp://127.0.0.1:1")
        .output();
    let talk = elsewhere.expect("weigh starts");
    let talk =
        String::from_utf8_lossy(&talk.stdout).into_owned() + &String::from_utf8_lossy(&talk.stderr);
    assert!(talk.contains("unix:///path"), "{talk}");
}

#[test]
fn what_a_container_said_is_in_the_recording() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let said = "    command: /weigh -v null-server --listen {{addr}}\n";
    let run = world(&[("host", said)]).run().ran();
    let mut logs = Vec::new();
    find_logs(&run.recording_folder(), &mut logs);
    let texts: Vec<String> = logs
        .iter()
        .map(|log| fs::read_to_string(log).expect("a log"))
        .collect();
    assert!(texts.iter().any(|text| !text.is_empty()), "{logs:?}");
}

#[test]
fn images_of_two_revisions_are_compared_although_both_have_one_name() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let repository = Repository::new();
    let command =
        "/usr/bin/sh -c 'exec /weigh null-server --listen 0.0.0.0:8080 --delay $(cat /delay)'";
    let keys = container(&format!("    command: {command}\n    port: 8080\n"));
    let lab = format!(
        "question: What does a change of the image cost?\nload: {{rate: 50/s, duration: 300ms}}\n\
         warmup: 50ms\nrounds: 6\ntarget: server\ngates: [typical overhead < 1ms]\n\
         systems:\n  server:\n{keys}baseline: {{name: server}}\n"
    );
    let lab = lab.replace("{context: .}", "{context: ../image}");
    repository.write("labs/api.yaml", &lab);
    repository.write("image/Dockerfile", "FROM scratch\nCOPY delay /\n");
    repository.write("image/delay", "100us");
    repository.commit("an image");
    repository.write("image/delay", "4ms");
    repository.commit("a slower image");
    let mut weigh = weigh_command();
    weigh.current_dir(repository.folder());
    weigh.env("XDG_STATE_HOME", repository.path("state"));
    weigh.args(["pr", "api", "--base", "HEAD~1"]);
    // Broken, or undecided on a machine that other programs use.
    let run = Run::of(weigh.output().expect("weigh starts")).exits_with(4);
    run.shows("`typical overhead < 1ms` on `head`: ");
    // The image built from one revision must not run for the other.
    let recording = repository.recording();
    let ran = |variant: &str| {
        let systems = systems_of(&recording, variant);
        let version = systems["server"]["version"].as_str();
        version.expect("a digest").to_owned()
    };
    assert!(ran("base").contains("sha256:"), "{}", ran("base"));
    assert_ne!(ran("base"), ran("head"));
}

#[test]
fn the_lab_of_the_page_runs_as_printed() {
    let Some(_engine) = Engine::find() else {
        return;
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/containers.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, lab) = page.split_once("```yaml\n").expect("a lab");
    let (lab, _) = lab.split_once("```").expect("its end");
    let world = World::of_lab(lab);
    fs::create_dir(world.path().join("image")).expect("a folder");
    let world = world.file("image/Dockerfile", "FROM scratch\nCOPY Dockerfile /\n");
    fs::copy(weigh(), world.path().join("weigh")).expect("it can be copied");
    let mut command = world.command("lab");
    command.args(["--rounds", "6"]);
    // The folder of a program that the user installed.
    command.env("PATH", format!("{}:/usr/bin:/bin", world.path().display()));
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("weigh starts");
    drop(world.finish(child).ran());
}

fn find_logs(folder: &Path, logs: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            find_logs(&entry.path(), logs);
        } else if entry.file_name() == "host.log" {
            logs.push(entry.path());
        }
    }
}
