//! The load for the profile of the gateway: its requests, configurations and expected responses.
//!
//! A profile of wrong responses would be a profile of the wrong code. So each response is checked, and the
//! counters of the origin prove that the extension of a configuration did its work.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::attack::exchange::{Connection, NEIGHBOR, post_as};
use crate::bench::say;
use crate::clock::now;
use crate::gateway_bench::get;
use crate::process::Process;
use crate::repository::root;

/// The configurations of the gateway, in turn. The compiler treats code that no configuration uses as rarely
/// used. It places such code apart and inlines it less.
const CONFIGURATIONS: [Configuration; 3] = [
    Configuration {
        name: "rule",
        file: "static-subgraph/config.yaml",
        source: Some("config"),
    },
    Configuration {
        name: "script",
        file: "static-subgraph/rhai.yaml",
        source: Some("rhai"),
    },
    Configuration {
        name: "traces",
        file: "beyond/telemetry/traces.yaml",
        source: None,
    },
];

/// The folder with the configurations and the files that they name.
const LABS: &str = "labs/router-extensibility";

const CONNECTIONS: usize = 4;

/// Timeout of one response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time limit for ending and writing the counts.
const END: Duration = Duration::from_secs(30);

/// A configuration of the gateway.
struct Configuration {
    name: &'static str,
    file: &'static str,
    /// The value of the header `source` that the origin must receive. `None` if the header must be absent.
    source: Option<&'static str>,
}

/// The settings of the load.
pub(super) struct Training<'a> {
    pub(super) planets: &'a Path,
    /// Number of requests with each configuration.
    pub(super) requests: u64,
    pub(super) stop: &'a AtomicBool,
}

impl Training<'_> {
    /// Runs the load on a gateway that counts. Returns the paths of its counts, one per configuration.
    pub(super) fn counted(&self, gateway: &Path, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let counted = CONFIGURATIONS.iter().map(|configuration| {
            let profile = folder.join(format!("{}.profraw", configuration.name));
            self.with(configuration, gateway, Some(&profile))?;
            let size = fs::metadata(&profile).map_or(0, |file| file.len());
            ensure!(size > 0, "the gateway wrote no {}", profile.display());
            Ok(profile)
        });
        counted.collect()
    }

    /// Runs the load on a gateway that does not count.
    pub(super) fn answers_right(&self, gateway: &Path) -> anyhow::Result<()> {
        let mut each = CONFIGURATIONS.iter();
        each.try_for_each(|configuration| self.with(configuration, gateway, None))
    }

    fn with(
        &self,
        configuration: &Configuration,
        gateway: &Path,
        profile: Option<&Path>,
    ) -> anyhow::Result<()> {
        let name = configuration.name;
        let asked = self.asked(configuration, gateway, profile);
        let answered = asked.with_context(|| format!("the gateway with {}", configuration.file))?;
        say(&format!(
            "{name}: {answered} requests, each answered as expected"
        ));
        Ok(())
    }

    fn asked(
        &self,
        configuration: &Configuration,
        gateway: &Path,
        profile: Option<&Path>,
    ) -> anyhow::Result<u64> {
        let mut planets = Command::new(self.planets);
        planets.args(["--listen", "127.0.0.1:0", "--count-headers", "source"]);
        let (_origin, origin) = Process::listening(planets.stderr(Stdio::null()))?;
        let mut command = command(configuration, gateway, &origin);
        match profile {
            Some(profile) => command.env("LLVM_PROFILE_FILE", profile),
            None => command.env_remove("LLVM_PROFILE_FILE"),
        };
        let (process, address) = Process::listening(&mut command)?;
        let address = address.parse().context("the gateway's address")?;
        let data = self.load(address)?;
        process.stop(END).context("its end")?;
        let seen = get(&origin, "/seen")?;
        had_effect(&seen, configuration.source, data)?;
        Ok(self.requests)
    }

    /// Sends all requests. Returns the number of responses with data. The first wrong response ends the load.
    fn load(&self, address: SocketAddr) -> anyhow::Result<u64> {
        let questions = Questions::read()?;
        let mut first = None;
        for question in &questions.first {
            question.ask(address, &mut first)?;
        }
        let (next, data) = (AtomicU64::new(0), AtomicU64::new(0));
        data.store(questions.data_first(), Ordering::Relaxed);
        let failed = Mutex::new(None);
        let is_over = AtomicBool::new(false);
        let work = || {
            let mut kept = None;
            while !is_over.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.requests {
                    return;
                }
                let question = questions.at(number);
                match question.ask(address, &mut kept) {
                    Ok(()) => data.fetch_add(question.expected.data(), Ordering::Relaxed),
                    Err(error) => {
                        is_over.store(true, Ordering::Relaxed);
                        *failed.lock().unwrap_or_else(|it| it.into_inner()) = Some(error);
                        return;
                    }
                };
            }
        };
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(work);
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(|it| it.into_inner()) {
            return Err(error);
        }
        if self.stop.load(Ordering::Relaxed) {
            bail!("stopped; what was started has been ended");
        }
        Ok(data.into_inner())
    }
}

fn command(configuration: &Configuration, gateway: &Path, origin: &str) -> Command {
    let mut command = Command::new(gateway);
    command
        .args(["--config", configuration.file, "--supergraph"])
        .arg(root().join("services/planets/supergraph.graphql"))
        .current_dir(root().join(LABS))
        .env("LISTEN", "127.0.0.1:0")
        .env("PLANETS", format!("http://{origin}"))
        .env("COLLECTOR", format!("http://{origin}"))
        .env("SHARE", "0.01")
        // Only a failed start is worth a line in the log.
        .args(["--log", "warn"]);
    command
}

/// Checks that both subgraphs received the header with each of their requests, and one request for each
/// response with data.
fn had_effect(seen: &Value, source: Option<&str>, data: u64) -> anyhow::Result<()> {
    for subgraph in ["locations", "reviews"] {
        let header = &seen[subgraph]["headers"]["source"];
        let found = match source {
            Some(value) => header["values"][value].as_u64(),
            None => header["absent"].as_u64(),
        };
        let requests = seen[subgraph]["requests"].as_u64();
        ensure!(
            requests == Some(data) && found == requests,
            "{data} answers need as many requests to {subgraph} with the header `source` as configured, \
             which saw {}",
            seen[subgraph]
        );
    }
    Ok(())
}

/// The expected response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// All data, and no errors.
    Data,
    /// An error with this code, with this status.
    Refused(u16, &'static str),
}

impl Expected {
    /// Number of responses with data that it adds: 0 or 1.
    fn data(self) -> u64 {
        u64::from(self == Expected::Data)
    }

    /// The reason why a response differs from this one. `None` if it matches.
    fn contradiction(self, status: u16, body: &[u8]) -> Option<String> {
        let answer = serde_json::from_slice::<Value>(body).unwrap_or_default();
        let is_right = match self {
            Expected::Data => {
                let data = answer["data"].as_object();
                let is_whole = data.is_some_and(|it| it.values().all(|field| !field.is_null()));
                status == 200 && is_whole && answer.get("errors").is_none()
            }
            Expected::Refused(expected, code) => {
                status == expected && answer["errors"][0]["extensions"]["code"] == code
            }
        };
        let begin = String::from_utf8_lossy(&body[..body.len().min(300)]);
        (!is_right).then(|| format!("{self:?} was expected, and the answer is {status}: {begin}"))
    }
}

/// A request and its expected response.
struct Question {
    request: Vec<u8>,
    expected: Expected,
}

impl Question {
    fn json(body: &Value, expected: Expected) -> Self {
        Self::typed("application/json", body, expected)
    }

    fn typed(content_type: &str, body: &Value, expected: Expected) -> Self {
        Self {
            request: post_as(content_type, "/", "gateway", &body.to_string()),
            expected,
        }
    }

    /// Sends it on a kept connection, or on a new one.
    fn ask(&self, address: SocketAddr, kept: &mut Option<Connection>) -> anyhow::Result<()> {
        let until = now() + PATIENCE;
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::open(NEIGHBOR, address, until).context("no connection")?,
        };
        let answer = connection.exchange(&self.request, until);
        let answer =
            answer.with_context(|| format!("no answer where {:?} was expected", self.expected))?;
        let wrong = self
            .expected
            .contradiction(answer.status, connection.body());
        if let Some(wrong) = wrong {
            bail!("{wrong}");
        }
        *kept = answer.is_kept.then_some(connection);
        Ok(())
    }
}

/// Number of requests in a round. Each rare request appears once in a round.
const ROUND: u64 = 50;

/// The requests of the load.
struct Questions {
    /// Sent once, before all other requests.
    first: Vec<Question>,
    /// Sent in turn, most of the time.
    often: Vec<Question>,
    /// Each is sent once in a round.
    rarely: Vec<Question>,
}

impl Questions {
    fn read() -> anyhow::Result<Self> {
        let query = |name: &str| -> anyhow::Result<Value> {
            let file = root().join("services/planets/queries").join(name);
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            Ok(serde_json::from_str(&text)?)
        };
        Ok(Self::of(
            &query("getLocationById.json")?,
            &query("getAllLocations.json")?,
        ))
    }

    fn of(one: &Value, all: &Value) -> Self {
        let by_hash = json!({
            "operationName": one["operationName"],
            "variables": one["variables"],
            "extensions": persisted(one["query"].as_str().unwrap_or_default()),
        });
        let mut registering = by_hash.clone();
        registering["query"] = one["query"].clone();
        let not_known = json!({"extensions": persisted("a query that nobody has sent")});
        let refused =
            |body: &Value, status, code| Question::json(body, Expected::Refused(status, code));
        Self {
            first: vec![Question::json(&registering, Expected::Data)],
            often: vec![
                Question::json(one, Expected::Data),
                Question::json(all, Expected::Data),
                Question::json(one, Expected::Data),
                Question::json(&by_hash, Expected::Data),
            ],
            // Clients that accept `application/json` get 200 if an operation is not valid.
            rarely: vec![
                refused(&json!({"query": "{ locations { "}), 200, "PARSING_ERROR"),
                refused(
                    &json!({"query": "{ locations { nothing } }"}),
                    200,
                    "GRAPHQL_VALIDATION_FAILED",
                ),
                refused(&not_known, 200, "PERSISTED_QUERY_NOT_FOUND"),
                Question::typed("text/plain", one, Expected::Refused(400, "CSRF_ERROR")),
            ],
        }
    }

    /// Number of responses with data among the first requests.
    fn data_first(&self) -> u64 {
        self.first.iter().map(|it| it.expected.data()).sum()
    }

    fn at(&self, number: u64) -> &Question {
        let place = |number: u64| usize::try_from(number).unwrap_or_default();
        match self.rarely.get(place(number % ROUND)) {
            Some(question) => question,
            None => &self.often[place(number) % self.often.len()],
        }
    }
}

/// The extension that names a query by its hash.
fn persisted(query: &str) -> Value {
    let hash = HEXLOWER.encode(&Sha256::digest(query));
    json!({"persistedQuery": {"version": 1, "sha256Hash": hash}})
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_the_expected_answer_is_right() {
        let wrong = |expected: Expected, status, body: &str| {
            expected.contradiction(status, body.as_bytes()).is_some()
        };
        assert!(!wrong(Expected::Data, 200, r#"{"data":{"a":{"b":null}}}"#));
        for (status, body) in [
            (500, r#"{"data":{"a":1}}"#),
            (200, r#"{"data":{"a":1},"errors":[]}"#),
            (200, r#"{"data":{"a":null}}"#),
            (200, r#"{"data":null}"#),
            (200, r#"{"data":{"a":1}"#),
            (200, ""),
        ] {
            assert!(wrong(Expected::Data, status, body), "{status} {body}");
        }
        let refused = Expected::Refused(400, "PARSING_ERROR");
        let body = r#"{"errors":[{"extensions":{"code":"PARSING_ERROR"}}]}"#;
        assert!(!wrong(refused, 400, body));
        assert!(wrong(refused, 200, body));
        assert!(wrong(refused, 400, &body.replace("PARSING", "CSRF")));
        assert_eq!(
            refused.contradiction(503, b"busy").unwrap(),
            "Refused(400, \"PARSING_ERROR\") was expected, and the answer is 503: busy"
        );
    }

    #[test]
    fn most_requests_are_answered_with_data_and_each_kind_is_asked() {
        let questions = Questions::read().unwrap();
        let round: Vec<&Question> = (0..ROUND).map(|it| questions.at(it)).collect();
        let data = round.iter().filter(|it| it.expected == Expected::Data);
        assert_eq!(data.count(), 46);
        let all = questions.often.iter().chain(&questions.rarely);
        for question in all {
            assert!(round.iter().any(|it| it.request == question.request));
        }
        // The hash belongs to the query that was sent before.
        let text = |question: &Question| String::from_utf8(question.request.clone()).unwrap();
        let hash = persisted("{__typename}")["persistedQuery"]["sha256Hash"].clone();
        assert_eq!(
            hash,
            "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"
        );
        let hash = |text: String| text.split_once("sha256Hash").unwrap().1[3..67].to_owned();
        assert_eq!(
            hash(text(&questions.first[0])),
            hash(text(&questions.often[3]))
        );
    }

    #[test]
    fn the_origin_tells_whether_a_configuration_did_its_work() {
        let seen = |requests: u64, values: Value, absent: u64| {
            let one = json!({"requests": requests, "headers": {"source": {"values": values, "absent": absent}}});
            json!({"locations": one, "reviews": one})
        };
        let rhai = seen(7, json!({"rhai": 7}), 0);
        had_effect(&rhai, Some("rhai"), 7).unwrap();
        had_effect(&seen(7, json!({}), 7), None, 7).unwrap();
        assert!(had_effect(&rhai, Some("config"), 7).is_err());
        assert!(had_effect(&rhai, Some("rhai"), 8).is_err());
        assert!(had_effect(&seen(7, json!({"rhai": 6}), 1), Some("rhai"), 7).is_err());
        assert!(had_effect(&rhai, None, 7).is_err());
        assert!(had_effect(&json!({}), Some("rhai"), 0).is_err());
    }

    #[test]
    fn a_gateway_has_free_ports_and_the_files_of_the_labs() {
        for configuration in &CONFIGURATIONS {
            let file = root().join(LABS).join(configuration.file);
            let text = fs::read_to_string(&file).unwrap();
            let command = command(configuration, Path::new("gateway"), "127.0.0.1:9");
            let given: Vec<&str> = command
                .get_envs()
                .filter_map(|(name, _)| name.to_str())
                .collect();
            for wanted in text.split("${env.").skip(1) {
                let name = wanted.split_once('}').unwrap().0;
                assert!(given.contains(&name), "{} needs {name}", file.display());
            }
        }
    }

    #[test]
    fn the_first_wrong_answer_ends_the_load() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let answer = b"HTTP/1.1 503 no\r\nContent-Length: 4\r\n\r\nbusy";
            stream.write_all(answer).unwrap();
        });
        let training = Training {
            planets: Path::new("planets"),
            requests: 500,
            stop: &AtomicBool::new(false),
        };
        let error = training.load(address).unwrap_err();
        server.join().unwrap();
        assert_eq!(
            error.to_string(),
            "Data was expected, and the answer is 503: busy"
        );
    }
}
