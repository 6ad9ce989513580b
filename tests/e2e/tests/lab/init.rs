//! `weigh init`: the labs that it writes are valid and run.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::{Run, Server, weigh, weigh_command};
use tempfile::TempDir;

use crate::null_servers;

/// The working directory of a user.
struct Here(TempDir);

impl Here {
    fn new() -> Here {
        Here(TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn weigh(&self, words: &[&str]) -> Run {
        let mut command = weigh_command();
        let output = command.current_dir(self.path()).args(words).output();
        Run::of(output.expect("weigh starts"))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).expect("it was written")
    }

    /// Writes a lab with these flags, and runs the next command that the output suggests, with one round.
    fn writes_a_lab_that_runs(&self, flags: &[&str], rows: [&str; 2]) -> String {
        let written = self.weigh(&[&["init"], flags].concat()).exits_with(0);
        let answer = written.answer();
        let mut lines = answer.lines();
        let lab = lines.find_map(|line| line.strip_prefix("Wrote "));
        let lab = lab.expect("the answer names the lab");
        written.shows(&format!("weigh lab {lab}"));
        let check = self.weigh(&["check", lab]).exits_with(0);
        for row in rows {
            check.shows(&format!("`{row}`: proven"));
        }
        let run = self.weigh(&["lab", lab, "--rounds", "1"]).ran();
        run.shows("1 round");
        self.read(lab)
    }
}

#[test]
fn a_command_becomes_a_lab_that_runs_where_it_was_typed() {
    let here = Here::new();
    // The path is relative to the working directory, and not to the lab's folder.
    std::os::unix::fs::symlink(weigh(), here.path().join("my-server")).expect("a link");
    let command = "./my-server null-server --listen {{addr}}";
    let lab = here.writes_a_lab_that_runs(&["--command", command], ["as it is", "the same again"]);
    assert!(lab.contains("folder: \"../..\""), "{lab}");
}

#[test]
fn two_commands_and_two_urls_are_compared_with_each_other() {
    let here = Here::new();
    let command = null_servers::command();
    let later = format!("{command} --delay 1ms");
    here.writes_a_lab_that_runs(
        &["--command", &command, "--command", &later, "-o", "two"],
        ["first", "second"],
    );
    let servers = [
        Server::of(&weigh(), &["null-server"]),
        Server::of(&weigh(), &["null-server"]),
    ];
    let [first, second] = [0, 1].map(|index| servers[index].address());
    let urls = [first, second].map(|address| format!("http://{address}/"));
    here.writes_a_lab_that_runs(
        &["--url", &urls[0], "--url", &urls[1], "--out", "urls"],
        [first, second],
    );
}

#[test]
fn a_proxy_is_weighed_with_what_it_stands_before() {
    let here = Here::new();
    let configuration = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
                         frontend clients\n  bind \"${LISTEN}\"\n  default_backend server\n\
                         backend server\n  server server \"${SERVER}\"\n";
    fs::write(here.path().join("proxy.cfg"), configuration).expect("a file");
    let proxy = "env LISTEN={{addr}} SERVER={{server.addr}} haproxy -f proxy.cfg";
    let command = null_servers::command();
    here.writes_a_lab_that_runs(
        &["--command", &command, "--proxy", proxy],
        ["without", "with proxy"],
    );
}

#[test]
fn a_proxy_with_a_name_gets_a_configuration_that_runs() {
    let here = Here::new();
    let command = null_servers::command();
    let on_path = |program: &str| {
        let found = Command::new("which").arg(program).output();
        found.expect("`which` starts").status.success()
    };
    for (name, program) in [
        ("nginx", "nginx"),
        ("haproxy", "haproxy"),
        ("envoy", "envoy"),
        ("caddy", "caddy"),
        ("traefik", "traefik"),
        ("varnish", "varnishd"),
        ("httpd", "apache2"),
    ] {
        // `./setup test` installs these three. Others are tried where a person has them.
        if !on_path(program) && !["nginx", "haproxy", "httpd"].contains(&name) {
            continue;
        }
        let flags = ["--command", &command, "--proxy", name, "--out", name];
        here.writes_a_lab_that_runs(&flags, ["without", &format!("with {name}")]);
    }
}

#[test]
fn a_command_of_a_shell_is_answered_with_the_text_to_write() {
    let here = Here::new();
    for (command, hint) in [
        (
            "PORT=8080 node server.js",
            "env PORT={{port}} node server.js",
        ),
        ("cd api && node server.js --port {{port}}", "`folder: api`"),
        (
            "node server.js --port 8080",
            "node server.js --port {{port}}",
        ),
    ] {
        let run = here.weigh(&["init", "--command", command]).exits_with(2);
        run.says(hint);
    }
}

/// An archive of requests to one server, one of them with a body and credentials.
const ARCHIVE: &str = r#"{"log": {"entries": [
  {"request": {"method": "GET", "url": "http://shop.example/items?page=2", "headers": [
     {"name": "Accept", "value": "application/json"}, {"name": "Cookie", "value": "sid=topsecret"}]},
   "response": {"status": 200}},
  {"request": {"method": "POST", "url": "http://shop.example/items", "headers": [],
     "postData": {"mimeType": "application/json", "text": "{\"name\": \"Tea\"}"}},
   "response": {"status": 201}},
  {"request": {"method": "GET", "url": "wss://shop.example/live", "headers": []}}
]}}"#;

/// A description of one operation that can be sent, and of one that cannot.
const DESCRIPTION: &str = "\
openapi: 3.1.0
servers: [{url: https://shop.example/v1}]
paths:
  /items/{id}:
    parameters: [{name: id, in: path, required: true, example: 7}]
    get: {}
    delete: {}
";

#[test]
fn requests_come_from_what_a_browser_recorded_and_from_a_description() {
    let here = Here::new();
    let command = null_servers::command();
    fs::write(here.path().join("shop.har"), ARCHIVE).expect("a file");
    let rows = ["as it is", "the same again"];
    let flags = ["--command", &command, "--har", "shop.har", "-o", "har"];
    let lab = here.writes_a_lab_that_runs(&flags, rows);
    assert!(lab.contains("\"GET /items?page=2\""), "{lab}");
    assert!(lab.contains("may be secret: Cookie."), "{lab}");
    assert!(lab.contains("entry 3: its URL is neither"), "{lab}");
    assert!(!lab.contains("topsecret"), "{lab}");
    assert_eq!(here.read("har/requests/2.json"), "{\"name\": \"Tea\"}");
    fs::write(here.path().join("openapi.yaml"), DESCRIPTION).expect("a file");
    let flags = [
        "--command",
        &command,
        "--openapi",
        "openapi.yaml",
        "-o",
        "described",
    ];
    let lab = here.writes_a_lab_that_runs(&flags, rows);
    assert!(lab.contains("path: \"/v1/items/7\""), "{lab}");
    assert!(
        lab.contains("# - line 7: DELETE /items/{id}: the next request"),
        "{lab}"
    );
}

/// A request that uses a header of the answer before it, and requests that no lab can send.
const SESSION: &str = "\
# @name first
GET http://shop.example/items

###
POST http://shop.example/orders
Content-Type: application/json

{\"size\": {{first.response.headers.content-length}}}

###
GET http://shop.example/{{unknown}}

###
GET http://shop.example/{{$timestamp}}

###
DELETE http://shop.example/items/1
";

#[test]
fn values_of_answers_become_a_scenario_and_a_small_part_of_a_file_needs_consent() {
    let here = Here::new();
    let command = null_servers::command();
    fs::write(here.path().join("session.http"), SESSION).expect("a file");
    let flags = ["init", "--command", &command, "--http", "session.http"];
    let refused = here.weigh(&flags).exits_with(2);
    refused.says("took 2 of 5. Nothing was written. Add `--partial`");
    assert!(!here.path().join("labs").exists());
    let written = here
        .weigh(&[&flags[..], &["--partial"]].concat())
        .exits_with(0);
    written.shows("Took 2 of 5 requests of session.http, left out 3:");
    written.shows("line 11: GET http://shop.example/{{unknown}}: `unknown` has no value");
    let check = here.weigh(&["check", "labs/first/first.yaml"]);
    check.exits_with(0).shows("`the same again`: proven");
}

/// A script for k6 with a threshold, and a request that is computed at run time.
const SCRIPT: &str = "\
import http from 'k6/http';
export const options = { thresholds: { http_req_duration: ['p(95)<5000'], http_req_failed: ['rate<0.01'] } };
const order = open('./order.json');
export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/items`);
  http.post(`${__ENV.BASE_URL}/orders`, order, { headers: { 'Content-Type': 'application/json' } });
  http.get(`${__ENV.BASE_URL}/orders/${answer.html().find('#id').text()}`);
}
";

#[test]
fn a_script_of_k6_becomes_requests_and_gates() {
    let here = Here::new();
    let command = null_servers::command();
    fs::create_dir(here.path().join("k6")).expect("a folder");
    fs::write(here.path().join("k6/shop.js"), SCRIPT).expect("a file");
    fs::write(here.path().join("k6/order.json"), "{\"item\": 7}").expect("a file");
    let flags = [
        "init",
        "--command",
        &command,
        "--k6",
        "k6/shop.js",
        "-o",
        "shop",
    ];
    here.weigh(&flags).exits_with(0);
    here.weigh(&["check", "shop/shop.yaml"]).exits_with(0);
    // One round gives no interval, so the gate on a percentile stays undecided: exit code 4.
    let run = here.weigh(&["lab", "shop/shop.yaml", "--rounds", "1"]);
    run.exits_with(4).shows("p95 value < 5000ms");
    let lab = here.read("shop/shop.yaml");
    assert!(lab.contains("path: \"/items\""), "{lab}");
    assert!(lab.contains("- \"p95 value < 5000ms\""), "{lab}");
    assert!(lab.contains("known only when it runs"), "{lab}");
    assert_eq!(here.read("shop/requests/2.json"), "{\"item\": 7}");
}

#[test]
fn nothing_is_replaced_and_nothing_is_written_that_could_not_run() {
    let here = Here::new();
    let command = null_servers::command();
    let init = |flags: &[&str]| here.weigh(&[&["init"], flags].concat());
    init(&["--command", &command]).exits_with(0);
    let before = here.read("labs/first/first.yaml");
    let again = init(&["--command", "other {{addr}}"]).exits_with(2);
    again.says("found that `labs/first/first.yaml` exists");
    assert_eq!(here.read("labs/first/first.yaml"), before);
    let file = init(&["--command", &command, "--out", "labs/slow.yaml"]).exits_with(2);
    file.says("Write `--out labs/slow`");
    assert!(!here.path().join("labs/slow.yaml").exists());
    let refused = |flags: &[&str], words: &str| {
        init(&[flags, &["--out", "refused"]].concat())
            .exits_with(2)
            .says(words);
        assert!(!here.path().join("refused").exists(), "{flags:?}");
    };
    refused(&[], "--command <COMMAND>");
    refused(
        &["--command", "serve --port 8080"],
        "Write `serve --port {{port}}`",
    );
    refused(
        &["--url", "http://127.0.0.1:1/"],
        "expected a second `--url`",
    );
    fs::write(here.path().join("empty.har"), r#"{"log": {"entries": []}}"#).expect("a file");
    refused(
        &["--command", &command, "--har", "empty.har"],
        "expected a request in `empty.har`",
    );
    refused(
        &["--command", &command, "--openapi", "no-such-file"],
        "`no-such-file` cannot be read",
    );
    refused(
        &["--command", "a {{addr}}", "--proxy", "b {{addr}}"],
        "as {{server.addr}}",
    );
    refused(
        &[
            "--command",
            "a {{addr}}",
            "--command",
            "b {{addr}}",
            "--command",
            "c {{addr}}",
        ],
        "expected at most two servers",
    );
}

#[test]
fn a_lab_of_the_gallery_is_copied_once_with_its_scripts() {
    use std::os::unix::fs::PermissionsExt as _;

    let here = Here::new();
    let run = here.weigh(&["init", "--from", "jwt"]).exits_with(0);
    let answer = run.answer();
    for words in [
        "Wrote labs/jwt/jwt.yaml and ",
        "the command of `service`",
        "weigh check labs/jwt/jwt.yaml",
    ] {
        assert!(answer.contains(words), "{words}\n{answer}");
    }
    assert!(here.read("labs/jwt/jwt.yaml").contains("local_jwks"));
    let script = here.path().join("labs/jwt/installed.sh");
    let mode = fs::metadata(script)
        .expect("the script")
        .permissions()
        .mode();
    assert_eq!(mode & 0o100, 0o100, "{mode:o}");
    // A change of the user stays.
    fs::write(here.path().join("labs/jwt/jwt.yaml"), "mine").expect("a file");
    let again = here.weigh(&["init", "--from", "jwt"]).exits_with(2);
    assert!(
        again.talk().contains("`labs/jwt/jwt.yaml` exists"),
        "{}",
        again.talk()
    );
    assert_eq!(here.read("labs/jwt/jwt.yaml"), "mine");
    let unknown = here.weigh(&["init", "--from", "list"]).exits_with(2);
    assert!(
        unknown.talk().contains("The labs are access-logs, "),
        "{}",
        unknown.talk()
    );
}
