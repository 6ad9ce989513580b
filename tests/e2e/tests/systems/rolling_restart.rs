//! A rolling restart of two gateways behind HAProxy. Each is stopped and restarted under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::{PATIENCE, Server, gateway, planets, wait_until, weigh_command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A running program. Dropping it ends the process.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Program {
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Program(started.expect("it starts"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended by itself. In both cases it is gone after this.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// The addresses of a gateway. They stay the same after a restart.
struct Place {
    address: String,
    health: String,
}

impl Place {
    fn free() -> Place {
        Place {
            address: free_address(),
            health: free_address(),
        }
    }

    fn start(&self, folder: &Path) -> Program {
        let mut command = Command::new(gateway());
        command.args(["--listen", &self.address, "--health-listen", &self.health]);
        command.args([
            "--config",
            "router.yaml",
            "--supergraph",
            "supergraph.graphql",
        ]);
        Program::start(command.args(["--workers", "1"]).current_dir(folder))
    }
}

/// Starts HAProxy without retries, so that every request that it could not deliver is visible.
fn balancer(folder: &Path, address: &str, places: &[Place; 2]) -> Program {
    let servers: String = places
        .iter()
        .enumerate()
        .map(|(number, place)| {
            let port = place.health.rsplit(':').next().expect("it has a port");
            format!("  server gateway-{number} {} port {port}\n", place.address)
        })
        .collect();
    let text = format!(
        "global\n  no log\n\ndefaults\n  mode http\n  retries 0\n  timeout connect 5s\n  \
         timeout client 60s\n  timeout server 60s\n\n\
         frontend clients\n  bind {address}\n  stats enable\n  stats uri /stats\n  \
         default_backend gateways\n\n\
         backend gateways\n  option httpchk GET /health?ready\n  http-check expect status 200\n  \
         default-server check inter 100ms fall 2 rise 1\n{servers}"
    );
    fs::write(folder.join("haproxy.cfg"), text).expect("the file can be written");
    let mut command = Command::new("haproxy");
    Program::start(
        command
            .args(["-db", "-f", "haproxy.cfg"])
            .current_dir(folder),
    )
}

/// The response to a GET. Empty if no server listens.
fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    let Ok(mut stream) = TcpStream::connect(address) else {
        return answer;
    };
    let asked = write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    );
    // A part of a response before an error is discarded.
    match asked.and_then(|()| stream.read_to_string(&mut answer)) {
        Ok(_) => answer,
        Err(_) => String::new(),
    }
}

/// True if HAProxy sends requests to both gateways.
fn are_both_up(address: &str) -> bool {
    let answer = get(address, "/stats;csv");
    let lines = answer
        .lines()
        .filter(|line| line.starts_with("gateways,gateway-"));
    // Status is the 18th column.
    lines
        .filter(|line| line.split(',').nth(17) == Some("UP"))
        .count()
        == 2
}

/// A load that runs until it is interrupted.
const LOAD: [&str; 11] = [
    "--rate",
    "200/s",
    "-z",
    "10m",
    "-T",
    "application/json",
    "-d",
    r#"{"query":"{ locations { id overallRating } }"}"#,
    "--expect-graphql",
    "--format",
    "json",
];

/// The number of passed requests and the other outcomes, while both gateways were restarted.
fn restarted(drain_delay: &str) -> (u64, Value) {
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let origin = Server::of(&planets(), &[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let supergraph = fs::read_to_string(root.join("services/planets/supergraph.graphql"));
    let supergraph = supergraph.expect("the supergraph is there");
    let config = format!("supergraph: {{drain_delay: {drain_delay}}}\n");
    for (name, text) in [
        (
            "supergraph.graphql",
            supergraph.replace("127.0.0.1:4001", origin.address()),
        ),
        ("router.yaml", config),
    ] {
        fs::write(folder.path().join(name), text).expect("the file can be written");
    }
    let places = [Place::free(), Place::free()];
    let mut gateways = [0, 1].map(|number| places[number].start(folder.path()));
    let address = free_address();
    let _balancer = balancer(folder.path(), &address, &places);
    wait_until("both gateways are ready", PATIENCE, || {
        are_both_up(&address)
    });

    let load = weigh_command()
        .args(["load", &format!("http://{address}/")])
        .args(LOAD)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut load = Program(load.expect("weigh starts"));
    // Number of requests for locations that the origin has received.
    let asked = || {
        let answer = get(origin.address(), "/seen");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let seen: Value = serde_json::from_str(body).unwrap_or_default();
        seen["locations"]["requests"].as_u64().unwrap_or(0)
    };
    for (place, gateway) in places.iter().zip(&mut gateways) {
        let before = asked();
        wait_until("requests arrive", PATIENCE, || asked() > before + 50);
        gateway.signal(Signal::TERM);
        wait_until("it stops", PATIENCE, || {
            gateway.0.try_wait().is_ok_and(|ended| ended.is_some())
        });
        *gateway = place.start(folder.path());
        wait_until("it is used again", PATIENCE, || are_both_up(&address));
    }
    let before = asked();
    wait_until("requests arrive", PATIENCE, || asked() > before + 50);
    load.signal(Signal::INT);
    let mut answer = String::new();
    let output = load.0.stdout.as_mut().expect("it is piped");
    output.read_to_string(&mut answer).expect("it is text");
    let result: Value = serde_json::from_str(&answer).expect("JSON");
    let outcomes = result["summary"]["variants"][0]["outcomes"].clone();
    (outcomes["passed"].as_u64().unwrap_or(0), outcomes)
}

/// Number of requests with a wrong response or without a response.
fn lost(outcomes: &Value) -> u64 {
    let kinds = ["failed", "mismatched"].map(|kind| outcomes[kind].as_object());
    let counts = kinds
        .into_iter()
        .flatten()
        .flat_map(|counts| counts.values());
    counts.filter_map(Value::as_u64).sum()
}

#[test]
fn a_rolling_restart_behind_haproxy_loses_no_request() {
    if !judged::is_installed("haproxy") {
        return;
    }
    let (passed, outcomes) = restarted("2s");
    assert!(passed > 150, "{outcomes}");
    assert_eq!(lost(&outcomes), 0, "{outcomes}");
    // The result if the gateway did not wait for the balancer.
    let (_, outcomes) = restarted("0s");
    assert!(lost(&outcomes) > 0, "{outcomes}");
}
