//! Servers in Go that answer calls, and loads on them.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Address, Answer, Job, Measurement, Protocol, Request, Target, Trust, Version, exchange,
};
use model::{Load, Stop};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Calls of each case.
pub(crate) const CALLS: u64 = 8;

/// A server, until it is dropped.
pub(crate) struct GoServer {
    process: Child,
    address: SocketAddr,
}

impl Drop for GoServer {
    fn drop(&mut self) {
        // It may have ended, and the test shows that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl GoServer {
    /// Builds the folder `tests/NAME`, once for all tests, and starts the program. `None` after a line NOT RUN, if it
    /// cannot be built.
    #[track_caller]
    pub(crate) fn start(name: &str, arguments: &[&Path]) -> Option<GoServer> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let program = match BUILT.get_or_init(|| build(name)) {
            Ok(program) => program,
            Err(reason) => {
                judged::not_run(reason);
                return None;
            }
        };
        judged::ran();
        let mut process = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line.rsplit(' ').next().unwrap().trim().parse().unwrap();
        Some(GoServer { process, address })
    }

    /// The server over this version of HTTP. HTTP/3 has TLS with a certificate of the server itself.
    pub(crate) fn target(&self, version: Version) -> Target {
        Target {
            address: Address::Tcp(self.address),
            host: self.address.to_string(),
            protocol: Protocol {
                version,
                tls: version.is_http3().then_some(Trust::SkipVerification),
                ..Protocol::default()
            },
        }
    }
}

fn build(name: &str) -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-server"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    judged::build_go(&folder, &program, "test server")?;
    Ok(program)
}

/// A load of several calls.
pub(crate) fn job(target: &Target, requests: Vec<Request>) -> Job {
    let load = Load::Closed {
        connections: 2,
        stop: Stop {
            requests: Some(CALLS),
            duration: None,
        },
    };
    Job::new(target.clone(), requests, load)
}

/// Sends a request several times.
pub(crate) fn measure(target: &Target, request: Request) -> Measurement {
    let job = job(target, vec![request]);
    load::run(&job, &load::Live::new(), &AtomicBool::new(false)).unwrap()
}

pub(crate) fn reason(measurement: &Measurement) -> &str {
    let sample = measurement.failures.first();
    sample.map_or("", |sample| sample.reason.as_str())
}

#[track_caller]
pub(crate) fn passes(target: &Target, request: Request) -> (Measurement, Answer) {
    let answer = exchange(target, &request, PATIENCE).unwrap();
    load::check(&request.expect, &answer).unwrap();
    let measurement = measure(target, request);
    let passed = measurement.outcomes.passed;
    assert_eq!(passed, CALLS, "{}", reason(&measurement));
    (measurement, answer)
}
