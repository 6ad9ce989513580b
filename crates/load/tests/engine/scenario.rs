//! Iterations of a scenario: order, captured values, think time, and the end of an iteration.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Capture, CaptureFrom, Data, Job, Measurement, Range, Request, RowOrder, Step, walk};
use model::{Load, Stop};

use crate::server::{Client, Server};
use crate::{closed, get, job, measure, open};

/// The requests of one run, as method and path with the body.
type Heard = Arc<Mutex<Vec<String>>>;

/// Returns a server with logins. Each user receives a token, which every other request must contain.
fn shop(heard: &Heard) -> Server {
    let heard = Arc::clone(heard);
    Server::tcp(move |mut client: Client| {
        while let Some((_, request)) = client.request() {
            let line = request.lines().next().unwrap_or_default().to_owned();
            let token = request
                .lines()
                .find_map(|line| line.strip_prefix("X-Token: "));
            heard
                .lock()
                .unwrap()
                .push(format!("{line} {}", token.unwrap_or("-")));
            let user = line.strip_prefix("GET /login?user=");
            if let Some(user) = user.and_then(|rest| rest.split(' ').next()) {
                let body = match user {
                    "stranger" => r#"{"token":null}"#.to_owned(),
                    user => format!(r#"{{"token":"t-{user}"}}"#),
                };
                client.answer(&body);
            } else if token.is_some() {
                client.answer("yours");
            } else {
                client.send("HTTP/1.1 401 Unauthorized\nContent-Length: 0\n\n");
            }
        }
    })
}

/// A value of a JSON response under this name.
pub(crate) fn captured(name: &str, pointer: &str) -> Capture {
    Capture {
        name: name.to_owned(),
        from: CaptureFrom::Json(pointer.to_owned()),
        pattern: None,
    }
}

pub(crate) fn step(name: &str, pause: Duration, captures: Vec<Capture>) -> Step {
    Step {
        name: name.to_owned(),
        pause,
        captures,
    }
}

/// Logs in as the user of the row, then sends the token twice, the second time after think time.
fn shopping(server: &Server, users: &[&str], load: Load, rest: Duration) -> Job {
    let mut job = job(&server.target, load);
    let list = Request {
        headers: vec![("X-Token".to_owned(), "{{token}}".to_owned())],
        ..get("/list?page={{page}}&user={{user}}")
    };
    job.requests = vec![get("/login?user={{user}}"), list.clone(), list];
    let token = Capture {
        name: "token".to_owned(),
        from: CaptureFrom::Json("/token".to_owned()),
        pattern: None,
    };
    job.steps = vec![
        step("log in", Duration::ZERO, vec![token]),
        step("list", Duration::ZERO, Vec::new()),
        step("list again", rest, Vec::new()),
    ];
    job.data = Some(Data {
        columns: vec!["user".to_owned()],
        rows: users.iter().map(|&user| vec![user.to_owned()]).collect(),
        ranges: vec![Range {
            name: "page".to_owned(),
            from: 1,
            to: 1_000_000,
        }],
        order: RowOrder::Rotation,
        seed: 1,
    });
    job
}

fn completed(measurement: &Measurement) -> Vec<u64> {
    let steps = measurement.steps.iter();
    steps.map(|step| step.outcomes.passed).collect()
}

#[test]
fn a_pass_carries_its_own_row_number_and_captured_value_through_all_steps() {
    for load in [closed(3, 20), open(400.0, Duration::from_millis(50))] {
        let heard = Heard::default();
        let server = shop(&heard);
        let mut job = shopping(&server, &["a b", "c", "d"], load, Duration::ZERO);
        job.threads = 2;
        let measurement = measure(&job);
        assert_eq!(measurement.iterations.completed, 20);
        assert_eq!(completed(&measurement), [20, 20, 20]);
        assert_eq!(measurement.outcomes.passed, 60);
        let heard = heard.lock().unwrap();
        let lists: Vec<&String> = heard.iter().filter(|it| it.contains("/list")).collect();
        assert_eq!(lists.len(), 40);
        for line in &lists {
            // The user of the row is the user of the token, and both lists of an iteration are one page.
            let user = line
                .split("user=")
                .nth(1)
                .and_then(|it| it.split(' ').next());
            assert!(line.ends_with(&format!(" t-{}", user.unwrap())), "{line}");
            assert_eq!(lists.iter().filter(|other| *other == line).count(), 2);
        }
    }
}

#[test]
fn a_capture_that_finds_nothing_ends_its_pass_and_no_other() {
    let server = shop(&Heard::default());
    let job = shopping(&server, &["a", "stranger"], closed(2, 10), Duration::ZERO);
    let measurement = measure(&job);
    assert_eq!(completed(&measurement), [5, 5, 5]);
    assert_eq!(measurement.outcomes.mismatched.body, 5);
    assert_eq!(measurement.steps[0].outcomes.mismatched.body, 5);
    let skipped: Vec<u64> = measurement.steps.iter().map(|step| step.skipped).collect();
    assert_eq!(skipped, [0, 5, 5]);
    let iterations = measurement.iterations;
    assert_eq!(
        (iterations.completed, iterations.broken, iterations.cut),
        (5, 5, 0)
    );
    let reason = &measurement.failures[0].reason;
    assert!(reason.contains("to capture as `token`"), "{reason}");
}

#[test]
fn a_step_after_a_rest_is_due_when_the_rest_is_over() {
    let rest = Duration::from_millis(40);
    for load in [closed(2, 4), open(100.0, Duration::from_millis(40))] {
        let server = shop(&Heard::default());
        let measurement = measure(&shopping(&server, &["a"], load, rest));
        assert_eq!(completed(&measurement), [4, 4, 4]);
        // The think time is no part of the latency, even on a slow machine.
        assert!(measurement.elapsed >= rest);
        let again = &measurement.steps[2];
        assert!(again.latency.min_ns().unwrap() < 40_000_000);
        assert!(again.latency.min_ns() >= again.service.min_ns());
    }
}

#[test]
fn passes_that_rest_hold_their_connections_and_other_passes_go_on() {
    let server = shop(&Heard::default());
    let rest = Duration::from_millis(100);
    let mut job = shopping(
        &server,
        &["a"],
        open(200.0, Duration::from_millis(100)),
        rest,
    );
    job.load.limit_connections(64);
    let measurement = measure(&job);
    assert_eq!(completed(&measurement), [20, 20, 20]);
    assert!(server.connections() > 1, "{}", server.connections());
}

#[test]
fn a_closed_loop_that_ends_by_time_begins_no_step_after_it() {
    let server = shop(&Heard::default());
    let until = Load::Closed {
        connections: 3,
        stop: Stop {
            requests: None,
            duration: Some(Duration::from_millis(50)),
        },
    };
    let measurement = measure(&shopping(&server, &["a"], until, Duration::from_secs(3600)));
    assert_eq!(measurement.iterations.cut, 3);
    assert_eq!(completed(&measurement), [3, 3, 0]);
}

#[test]
fn connections_that_close_are_opened_anew_within_a_pass() {
    let server = shop(&Heard::default());
    let mut job = shopping(&server, &["a"], closed(2, 6), Duration::from_millis(1));
    job.keep_alive = false;
    let measurement = measure(&job);
    assert_eq!(completed(&measurement), [6, 6, 6]);
    assert_eq!(server.connections(), 18);
}

#[test]
fn slots_without_a_free_connection_are_missed_iterations() {
    // It responds to the first request only.
    let server = Server::tcp(|mut client: Client| while client.request().is_some() {});
    let load = open(100.0, Duration::from_millis(50));
    let mut job = shopping(&server, &["a"], load, Duration::ZERO);
    job.load.limit_connections(1);
    job.timeout = Duration::from_millis(100);
    let measurement = measure(&job);
    let missed = measurement.outcomes.missed;
    assert!(missed > 0);
    assert_eq!(measurement.steps[0].outcomes.missed, missed);
    assert_eq!(measurement.iterations.broken, 5);
    assert_eq!(measurement.steps[1].skipped, 5);
}

#[test]
fn a_walk_takes_one_pass_and_stops_at_what_is_wrong() {
    let heard = Heard::default();
    let server = shop(&heard);
    let job = shopping(
        &server,
        &["a", "stranger"],
        closed(1, 1),
        Duration::from_secs(9),
    );
    let answers = walk(&job, 0).unwrap();
    assert_eq!(answers[1].body, b"yours");
    let error = walk(&job, 1).unwrap_err().to_string();
    assert!(error.contains("to capture as `token`"), "{error}");
    assert_eq!(heard.lock().unwrap().len(), 4);
}

#[test]
fn names_that_are_not_known_yet_are_refused() {
    let server = shop(&Heard::default());
    let mut job = shopping(&server, &["a"], closed(1, 1), Duration::ZERO);
    job.requests[0].path = "/{{token}}".to_owned();
    insta::assert_snapshot!(
        walk(&job, 0).unwrap_err(),
        @"request 1 (`GET /{{token}}`): no column `token`. The data has `user`, `page`, and `{{index}}` and `{{random:1..1000}}` always exist. A captured value is known only to later steps"
    );
    job.requests[0].path = "/".to_owned();
    job.steps[0].captures[0].pattern = Some("(".to_owned());
    assert!(walk(&job, 0).is_err());
    job.steps.pop();
    insta::assert_snapshot!(
        walk(&job, 0).unwrap_err(),
        @"expected a step for each of 3 requests, found 2"
    );
}

/// Returns a server whose first answer has a `Location`, and which keeps the lines of all requests.
fn forwarding(location: &'static str, heard: &Heard) -> Server {
    let heard = Arc::clone(heard);
    Server::tcp(move |mut client: Client| {
        while let Some((_, request)) = client.request() {
            let line = request.lines().next().unwrap_or_default().to_owned();
            let is_first = line.contains("/first");
            heard.lock().unwrap().push(line);
            match is_first {
                true => client.send(&format!(
                    "HTTP/1.1 200 OK\nLocation: {location}\nContent-Length: 0\n\n"
                )),
                false => client.answer("here"),
            }
        }
    })
}

/// Follows the `Location` of the first answer with this path.
fn following(server: &Server, path: &str) -> Job {
    let mut job = job(&server.target, closed(1, 1));
    job.requests = vec![get("/first"), get(path)];
    let location = Capture {
        name: "location".to_owned(),
        from: CaptureFrom::Header("Location".to_owned()),
        pattern: None,
    };
    job.steps = vec![
        step("first", Duration::ZERO, vec![location]),
        step("next", Duration::ZERO, Vec::new()),
    ];
    job
}

#[test]
fn a_raw_value_arrives_unchanged_in_the_path() {
    for (location, path, arrived) in [
        ("/a%20b?x=1", "{{raw:location}}", "GET /a%20b?x=1 HTTP/1.1"),
        (
            "/a%20b?x=1",
            "{{raw:location}}&y=2",
            "GET /a%20b?x=1&y=2 HTTP/1.1",
        ),
        (
            "b/%2F?c",
            "/v1/{{raw:location}}",
            "GET /v1/b/%2F?c HTTP/1.1",
        ),
        (
            "/a%20b?x=1",
            "/{{location}}",
            "GET /%2Fa%2520b%3Fx%3D1 HTTP/1.1",
        ),
    ] {
        let heard = Heard::default();
        let server = forwarding(location, &heard);
        let measurement = measure(&following(&server, path));
        assert_eq!(completed(&measurement), [1, 1], "{path}");
        assert_eq!(heard.lock().unwrap()[1], arrived, "{path}");
    }
}

#[test]
fn a_raw_value_that_a_path_cannot_contain_fails_by_name_and_is_never_sent() {
    for (location, path, words) in [
        (
            "/a HTTP/1.1",
            "{{raw:location}}",
            "found `/a HTTP/1.1`, and a path cannot contain ' '",
        ),
        ("/a\tb", "/x{{raw:location}}", "cannot contain '\\t'"),
        ("/a#b", "{{raw:location}}", "cannot contain '#'"),
        ("/\u{fc}", "{{raw:location}}", "cannot contain"),
        ("a/b", "{{raw:location}}", "a path begins with `/`"),
    ] {
        let heard = Heard::default();
        let server = forwarding(location, &heard);
        let measurement = measure(&following(&server, path));
        assert_eq!(completed(&measurement), [0, 0], "{location}");
        let reason = &measurement.failures[0].reason;
        assert!(reason.contains("the header `Location`"), "{reason}");
        assert!(reason.contains("`location`"), "{reason}");
        assert!(reason.contains(words), "{reason}");
        assert_eq!(heard.lock().unwrap().len(), 1, "{location}");
    }
}
