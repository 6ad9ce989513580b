//! Iterations of a scenario over TLS and HTTP/2: the same claims as without TLS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use load::{
    Capture, CaptureFrom, Data, Job, Measurement, Range, RowOrder, Step, Target, Version, walk,
};
use model::{Load, Stop};

use crate::general::{each, target};
use crate::modern::{Act, Got, Modern, Speech};
use crate::{closed, get, job, measure, open};

/// The paths of one run, by the number of the request.
type Heard = Arc<Mutex<BTreeMap<u64, String>>>;

/// Gives each user a token. `stranger` receives no token.
fn shop(heard: &Heard) -> impl Fn(Got) -> Act + Clone + Send + 'static {
    let heard = Arc::clone(heard);
    move |got: Got| {
        heard.lock().unwrap().insert(got.number, got.path.clone());
        match got.path.strip_prefix("/login/") {
            Some("stranger") => Act::answer(r#"{"token":null}"#),
            Some(user) => Act::Answer(Bytes::from(format!(r#"{{"token":"t-{user}"}}"#))),
            None => Act::answer("yours"),
        }
    }
}

/// Logs in as the user of the row, then sends the token twice, the second time after a rest.
fn shopping(target: &Target, users: &[&str], load: Load, rest: Duration) -> Job {
    let mut job = job(target, load);
    let list = get("/list/{{user}}/{{page}}/{{token}}");
    job.requests = vec![get("/login/{{user}}"), list.clone(), list];
    let token = Capture {
        name: "token".to_owned(),
        from: CaptureFrom::Json("/token".to_owned()),
        pattern: None,
    };
    let step = |name: &str, pause, captures| Step {
        name: name.to_owned(),
        pause,
        captures,
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
        for (_server, target) in each(shop(&heard)) {
            heard.lock().unwrap().clear();
            let mut job = shopping(&target, &["a", "c", "d"], load.clone(), Duration::ZERO);
            job.threads = 2;
            let measurement = measure(&job);
            assert_eq!(measurement.iterations.completed, 20);
            assert_eq!(completed(&measurement), [20, 20, 20]);
            assert_eq!(measurement.outcomes.passed, 60);
            let heard = heard.lock().unwrap();
            let lists: Vec<&String> = heard.values().filter(|it| it.contains("/list")).collect();
            assert_eq!(lists.len(), 40);
            for line in &lists {
                let user = &line["/list/".len()..][..1];
                assert!(line.ends_with(&format!("/t-{user}")), "{line}");
                assert_eq!(lists.iter().filter(|other| *other == line).count(), 2);
            }
        }
    }
}

#[test]
fn a_raw_value_arrives_unchanged_in_the_path() {
    for (path, arrived) in [
        ("{{raw:place}}", "/a%20b/c%2Fd"),
        ("/v1{{raw:place}}/e", "/v1/a%20b/c%2Fd/e"),
        ("/{{place}}", "/%2Fa%2520b%2Fc%252Fd"),
    ] {
        let heard = Heard::default();
        let at = Arc::clone(&heard);
        let act = move |got: Got| {
            at.lock().unwrap().insert(got.number, got.path.clone());
            Act::answer(r#"{"place":"/a%20b/c%2Fd"}"#)
        };
        for (_server, target) in each(act) {
            heard.lock().unwrap().clear();
            let mut job = shopping(&target, &["a"], closed(1, 1), Duration::ZERO);
            job.requests = vec![get("/first"), get(path)];
            job.steps.truncate(2);
            let place = &mut job.steps[0].captures[0];
            place.name = "place".to_owned();
            place.from = CaptureFrom::Json("/place".to_owned());
            assert_eq!(completed(&measure(&job)), [1, 1], "{target:?}");
            let heard = heard.lock().unwrap();
            assert_eq!(heard.values().last().unwrap(), arrived, "{target:?}");
        }
    }
}

#[test]
fn a_raw_value_that_a_path_cannot_contain_is_never_sent() {
    for place in ["/a b", "/a#b", "a"] {
        let heard = Heard::default();
        let at = Arc::clone(&heard);
        let act = move |got: Got| {
            at.lock().unwrap().insert(got.number, got.path.clone());
            Act::Answer(Bytes::from(format!(r#"{{"place":"{place}"}}"#)))
        };
        for (_server, target) in each(act) {
            heard.lock().unwrap().clear();
            let mut job = shopping(&target, &["a"], closed(1, 1), Duration::ZERO);
            job.requests = vec![get("/first"), get("{{raw:place}}")];
            job.steps.truncate(2);
            let own = &mut job.steps[0].captures[0];
            own.name = "place".to_owned();
            own.from = CaptureFrom::Json("/place".to_owned());
            let measurement = measure(&job);
            assert_eq!(completed(&measurement), [0, 0], "{target:?}");
            let reason = &measurement.failures[0].reason;
            assert!(reason.contains("`place`"), "{reason}");
            let heard = heard.lock().unwrap();
            assert!(heard.values().all(|path| path == "/first"), "{heard:?}");
        }
    }
}

#[test]
fn many_passes_share_the_streams_of_one_connection() {
    let heard = Heard::default();
    let speech = Speech {
        is_http2: true,
        ..Speech::default()
    };
    let server = Modern::start(speech, shop(&heard));
    let target = target(&server, Version::Http2 { streams: 8 }, false);
    let rest = Duration::from_millis(100);
    let mut job = shopping(
        &target,
        &["a"],
        open(200.0, Duration::from_millis(40)),
        rest,
    );
    job.load.limit_connections(1);
    let measurement = measure(&job);
    assert_eq!(completed(&measurement), [8, 8, 8]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_capture_that_finds_nothing_ends_its_pass_and_no_other() {
    for (_server, target) in each(shop(&Heard::default())) {
        let job = shopping(&target, &["a", "stranger"], closed(2, 10), Duration::ZERO);
        let measurement = measure(&job);
        assert_eq!(completed(&measurement), [5, 5, 5]);
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
}

#[test]
fn a_step_after_a_rest_is_due_when_the_rest_is_over() {
    let rest = Duration::from_millis(40);
    for load in [closed(2, 4), open(100.0, Duration::from_millis(40))] {
        for (_server, target) in each(shop(&Heard::default())) {
            let measurement = measure(&shopping(&target, &["a"], load.clone(), rest));
            assert_eq!(completed(&measurement), [4, 4, 4]);
            // The think time is no part of the latency, even on a slow machine.
            assert!(measurement.elapsed >= rest);
            let again = &measurement.steps[2];
            assert!(again.latency.min_ns().unwrap() < 40_000_000);
            assert!(again.latency.min_ns() >= again.service.min_ns());
        }
    }
}

#[test]
fn a_closed_loop_that_ends_by_time_begins_no_step_after_it() {
    for (_server, target) in each(shop(&Heard::default())) {
        let until = Load::Closed {
            connections: 3,
            stop: Stop {
                requests: None,
                duration: Some(Duration::from_millis(200)),
            },
        };
        let measurement = measure(&shopping(&target, &["a"], until, Duration::from_secs(3600)));
        assert_eq!(measurement.iterations.cut, 3);
        assert_eq!(completed(&measurement), [3, 3, 0]);
    }
}

#[test]
fn connections_that_close_are_opened_anew_within_a_pass() {
    for (server, target) in each(shop(&Heard::default())) {
        let mut job = shopping(&target, &["a"], closed(2, 6), Duration::from_millis(1));
        job.keep_alive = false;
        let measurement = measure(&job);
        assert_eq!(completed(&measurement), [6, 6, 6]);
        assert_eq!(server.connections(), 18);
    }
}

#[test]
fn slots_without_a_free_connection_are_missed_iterations() {
    for (_server, target) in each(|_| Act::Never) {
        let load = open(100.0, Duration::from_millis(50));
        let mut job = shopping(&target, &["a"], load, Duration::ZERO);
        job.load.limit_connections(1);
        job.timeout = Duration::from_millis(100);
        let measurement = measure(&job);
        let missed = measurement.outcomes.missed;
        assert!(missed > 0);
        assert_eq!(measurement.steps[0].outcomes.missed, missed);
        assert_eq!(measurement.iterations.broken, 5);
        assert_eq!(measurement.steps[1].skipped, 5);
    }
}

#[test]
fn a_walk_takes_one_pass_and_stops_at_what_is_wrong() {
    let heard = Heard::default();
    for (_server, target) in each(shop(&heard)) {
        heard.lock().unwrap().clear();
        let rest = Duration::from_secs(9);
        let job = shopping(&target, &["a", "stranger"], closed(1, 1), rest);
        let answers = walk(&job, 0).unwrap();
        assert_eq!(answers[1].body, b"yours");
        let error = walk(&job, 1).unwrap_err().to_string();
        assert!(error.contains("to capture as `token`"), "{error}");
        assert_eq!(heard.lock().unwrap().len(), 4);
    }
}
