//! The action of this repository, `action.yml`. Its steps are run as a runner of GitHub would run them, with
//! an API server in the test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use yaml_with_places::{Document, Findings, read};

use crate::pr::Repository;
use e2e::weigh;

const TOKEN: &str = "a-token-of-the-job";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn action() -> Value {
    let text = fs::read_to_string(root().join("action.yml")).expect("the action");
    let mut findings = Findings::default();
    let document = read(0, &text, "an action is one document", &mut findings);
    assert_eq!(findings.count(), 0, "it is YAML");
    let Document::Tree(tree) = document else {
        panic!("it is not empty");
    };
    tree.json()
}

/// The program that checks files against published schemas, installed into the target folder of this project.
fn schema_checker() -> PathBuf {
    let requirements = root().join("tests/e2e/schemas-requirements.txt");
    let wanted = fs::read(&requirements).expect("what to install");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schema-checker");
    let installed = place.join("installed.txt");
    let program = place.join("bin/check-jsonschema");
    if fs::read(&installed).is_ok_and(|text| text == wanted) {
        return program;
    }
    let finish = |command: &mut Command| {
        let output = command.output().expect("Python starts");
        assert!(output.status.success(), "{command:?}: {output:?}");
    };
    finish(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&place),
    );
    let flags = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
    ];
    finish(
        Command::new(place.join("bin/pip"))
            .args(flags)
            .arg(&requirements),
    );
    fs::write(installed, wanted).expect("it can be written");
    program
}

/// Checks a file against one of the schemas that the schema checker contains.
fn fits(schema: &str, file: &Path) -> Result<(), String> {
    let mut command = Command::new(schema_checker());
    command.args(["--builtin-schema", schema]).arg(file);
    let output = command.output().expect("it starts");
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => panic!("{output:?}"),
    }
}

#[test]
fn what_ci_reads_fits_the_published_schemas() {
    let (action, template) = (root().join("action.yml"), root().join("ci/gitlab.yml"));
    fits("vendor.github-actions", &action).unwrap();
    fits("vendor.gitlab-ci", &template).unwrap();
    // The schemas reject an invalid file.
    let folder = TempDir::new().expect("a temporary folder");
    let broken = folder.path().join("action.yml");
    let text = fs::read_to_string(&action).expect("the action");
    assert!(text.contains("using: composite"), "{text}");
    fs::write(&broken, text.replace("using: composite", "using: compost")).expect("written");
    let mistake = fits("vendor.github-actions", &broken).unwrap_err();
    assert!(mistake.contains("runs"), "{mistake}");
}

/// The part of GitHub's API that the action uses: the comments of one pull request.
struct Api {
    address: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    comments: Vec<Value>,
    /// Method and path of each request.
    requests: Vec<String>,
    /// Headers of the last request.
    headers: BTreeMap<String, String>,
}

impl Api {
    fn start() -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (own, base) = (Arc::clone(&seen), format!("http://{address}"));
        // The thread ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.expect("a connection"), &base, &own);
            }
        });
        Api { address, seen }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("no test panicked while holding it")
    }
}

fn answer(mut stream: &TcpStream, base: &str, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut words = line.split(' ');
    let (method, target) = (
        words.next().expect("a method"),
        words.next().expect("a path"),
    );
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |it| it.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    let mut seen = seen.lock().expect("no test panicked while holding it");
    seen.requests.push(format!("{method} {target}"));
    seen.headers = headers;
    let comments = "/repos/o/r/issues/7/comments";
    let (status, answer) = match (method, target.split('?').next().expect("a path")) {
        ("GET", path) if path == comments => (200, Value::Array(seen.comments.clone())),
        ("POST", path) if path == comments => {
            let number = seen.comments.len();
            let mut comment: Value = serde_json::from_slice(&body).expect("JSON");
            comment["url"] = json!(format!("{base}/repos/o/r/issues/comments/{number}"));
            comment["user"] = json!({"login": "github-actions[bot]"});
            seen.comments.push(comment.clone());
            (201, comment)
        }
        ("PATCH", path) => {
            let number: usize = path
                .rsplit('/')
                .next()
                .expect("a number")
                .parse()
                .expect("a number");
            let new: Value = serde_json::from_slice(&body).expect("JSON");
            seen.comments[number]["body"] = new["body"].clone();
            (200, new)
        }
        _ => (404, Value::Null),
    };
    let text = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} -\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream
        .write_all((head + &text).as_bytes())
        .expect("it reads");
}

/// State of a runner while it executes a job.
struct Runner<'a> {
    repository: &'a Repository,
    api: &'a Api,
    inputs: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
    temporary: TempDir,
}

impl<'a> Runner<'a> {
    fn new(repository: &'a Repository, api: &'a Api, given: &[(&str, &str)]) -> Runner<'a> {
        let declared = action()["inputs"].clone();
        let declared = declared.as_object().expect("inputs");
        let mut inputs: BTreeMap<String, String> = declared
            .iter()
            .map(|(name, input)| {
                (
                    name.clone(),
                    input["default"].as_str().unwrap_or("").to_owned(),
                )
            })
            .collect();
        for (name, value) in given {
            assert!(inputs.contains_key(*name), "`{name}` is an input");
            inputs.insert((*name).to_owned(), (*value).to_owned());
        }
        Runner {
            repository,
            api,
            inputs,
            outputs: BTreeMap::new(),
            temporary: TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder"),
        }
    }

    /// Executes all steps, as `always()` would. Returns the exit code of the last step.
    fn run(&mut self) -> Option<i32> {
        let mut last = None;
        for step in action()["runs"]["steps"].as_array().expect("steps") {
            let is_wanted = step["if"]
                .as_str()
                .is_none_or(|condition| self.holds(condition));
            if let (true, Some(script)) = (is_wanted, step["run"].as_str()) {
                last = self.step(step, script);
            }
        }
        last
    }

    fn step(&mut self, step: &Value, script: &str) -> Option<i32> {
        assert_eq!(step["shell"], "bash", "a composite action names its shell");
        let output = self.temporary.path().join("output");
        fs::write(&output, "").expect("it can be written");
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.repository.folder())
            .env("GITHUB_ACTION_PATH", root())
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_API_URL", format!("http://{}", self.api.address))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("RUNNER_TEMP", self.temporary.path())
            .env("XDG_STATE_HOME", self.repository.path("state"))
            .env_remove("GITHUB_STEP_SUMMARY")
            .env_remove("GITHUB_BASE_REF");
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, self.filled(value.as_str().expect("text")));
        }
        let ended = command.output().expect("bash starts");
        let id = step["id"].as_str().unwrap_or("-");
        for line in fs::read_to_string(&output).expect("the outputs").lines() {
            let (name, value) = line.split_once('=').expect("NAME=VALUE");
            self.outputs
                .insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        ended.status.code()
    }

    /// Replaces each `${{ … }}` in a text by its value.
    fn filled(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once("${{") else {
            return text.to_owned();
        };
        let (expression, after) = rest.split_once("}}").expect("it ends");
        format!("{before}{}{}", self.value(expression), self.filled(after))
    }

    fn value(&self, expression: &str) -> String {
        let expression = expression.trim();
        match expression {
            "github.token" => TOKEN.to_owned(),
            "github.event.pull_request.number" => "7".to_owned(),
            "!cancelled()" => "true".to_owned(),
            _ => match expression.strip_prefix("inputs.") {
                Some(name) => self.filled(&self.inputs[name]),
                None => self.outputs.get(expression).cloned().unwrap_or_default(),
            },
        }
    }

    /// Evaluates a condition of the action: terms that must all be true.
    fn holds(&self, condition: &str) -> bool {
        let inner = condition
            .trim()
            .trim_start_matches("${{")
            .trim_end_matches("}}");
        inner.split("&&").all(|term| match term.split_once("==") {
            Some((left, right)) => self.value(left) == right.trim().trim_matches('\''),
            None => !self.value(term).is_empty(),
        })
    }
}

#[test]
fn one_comment_is_posted_and_then_updated_and_the_job_fails_by_its_gate() {
    let repository = Repository::new();
    repository.write("delay", "1500us");
    repository.commit("slower");
    let api = Api::start();
    // A comment of another user, who could edit it later.
    let stranger = json!({
        "url": "http://127.0.0.1:1/", "user": {"login": "somebody"}, "body": "<!-- weighbridge: api -->",
    });
    api.seen().comments.push(stranger.clone());
    let program = weigh().display().to_string();
    let given = [
        ("lab", "api"),
        ("base", "HEAD~1"),
        ("weigh", program.as_str()),
    ];
    let mut runner = Runner::new(&repository, &api, &given);
    assert_eq!(runner.run(), Some(4), "{:?}", runner.outputs);
    assert_eq!(runner.outputs["steps.weigh.outputs.exit-code"], "4");
    let recordings = PathBuf::from(&runner.outputs["steps.weigh.outputs.recordings"]);
    assert_eq!(fs::read_dir(&recordings).expect("recordings").count(), 1);
    {
        let seen = api.seen();
        assert_eq!(
            seen.requests,
            [
                "GET /repos/o/r/issues/7/comments?per_page=100&page=1",
                "POST /repos/o/r/issues/7/comments",
            ]
        );
        assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
        let body = seen.comments[1]["body"].as_str().expect("a body");
        assert!(
            body.starts_with("<!-- weighbridge: api -->\n\u{274c} **Failed")
                && body.contains("**api**: `head` costs"),
            "{body}"
        );
    }
    repository.write("delay", "100us");
    repository.commit("mended");
    let mut given = given.to_vec();
    given.push((
        "gates",
        "typical overhead < 500us\n\nmemory overhead < 50MiB",
    ));
    let mut runner = Runner::new(&repository, &api, &given);
    assert_eq!(runner.run(), Some(0), "{:?}", runner.outputs);
    let seen = api.seen();
    assert_eq!(seen.requests[3], "PATCH /repos/o/r/issues/comments/1");
    assert_eq!(seen.comments.len(), 2);
    assert_eq!(
        seen.comments[0], stranger,
        "comments of others are left alone"
    );
    let body = seen.comments[1]["body"].as_str().expect("a body");
    assert!(body.contains("memory overhead"), "{body}");
}

#[test]
fn every_value_of_the_action_reaches_its_scripts_by_the_environment() {
    // In a script, `${{ … }}` would run text from a stranger.
    for step in action()["runs"]["steps"].as_array().expect("steps") {
        let script = step["run"].as_str().unwrap_or("");
        assert!(!script.contains("${{"), "{script}");
    }
}
