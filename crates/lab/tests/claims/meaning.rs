//! Claims about the meaning of a lab: names, defaults, includes.

use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use lab::{Probe, Ready};
use model::{Goal, Load};

use crate::{Folder, LAB, changed, check, lab};

#[test]
fn what_is_left_out_has_the_value_of_the_manual() {
    let lab = lab(&[]);
    assert_eq!(lab.warmup, Duration::from_secs(1));
    assert_eq!(lab.rounds, 10);
    assert_eq!(lab.seed, None);
    assert_eq!(lab.timeout, Duration::from_secs(5));
    assert!(lab.keep_alive);
    assert_eq!((lab.threads, lab.load.connections()), (1, 10));
    assert_eq!(lab.expect, lab::Expect::default());
    let setup = &lab.baseline.systems()[0];
    let listening = Ready {
        probe: Probe::Listening,
        within: Duration::from_secs(10),
    };
    assert_eq!(setup.ready, listening);
    assert_eq!(setup.folder, Path::new("labs"));
}

#[test]
fn what_is_said_is_kept() {
    let lab = lab(&[
        (
            "connections: 10",
            "rate: 10/s\n  connections-max: 7\n  threads: 2\n  keep-alive: off\n  timeout: 1s",
        ),
        (
            "target: server",
            "target: server\nrounds: 3\nwarmup: 0s\nseed: 18446744073709551615",
        ),
        (
            "stack: a}",
            "stack: a}
    ready: {path: /health, status: 204, within: 30s}
    limits: {cpus: 0.25, memory: 128MiB}
    pin: 1
    needs: [cargo, node]
    version: serve --version
    folder: ../..",
        ),
    ]);
    assert_eq!(
        (lab.threads, lab.load.connections(), lab.keep_alive),
        (2, 7, false)
    );
    assert_eq!(
        (lab.rounds, lab.warmup, lab.seed),
        (3, Duration::ZERO, Some(u64::MAX))
    );
    let setup = &lab.baseline.systems()[0];
    let probe = Probe::Answers {
        path: "/health".to_owned(),
        status: 204,
    };
    assert_eq!(
        setup.ready,
        Ready {
            probe,
            within: Duration::from_secs(30)
        }
    );
    assert_eq!(
        (setup.limits.cpus, setup.limits.memory),
        (Some(0.25), Some(134_217_728))
    );
    assert_eq!(setup.pin, Some(vec![1]));
    assert_eq!(setup.needs, ["cargo", "node"]);
    assert_eq!(setup.version.as_ref().unwrap()[1].to_string(), "--version");
    assert_eq!(setup.folder, Path::new(".."));
}

#[test]
fn a_lab_is_named_by_its_file_or_by_its_folder() {
    let name = |path: &str| {
        lab::parse(Path::new(path), &Folder::default().file(path, LAB))
            .unwrap()
            .name
    };
    assert_eq!(name("labs/graphql-server/fixed-rate.yaml"), "fixed-rate");
    assert_eq!(
        name("labs/graphql-server/graphql-server.yaml"),
        "graphql-server"
    );
    assert_eq!(name("labs/graphql-server/lab.yaml"), "graphql-server");
    assert_eq!(name("lab.yaml"), "lab");
}

#[test]
fn the_baseline_comes_first() {
    let lab = lab(&[]);
    let names: Vec<&str> = lab.all().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

/// Returns a lab with its systems and defaults in other files.
fn including() -> Folder {
    Folder::default()
        .file(
            "labs/x.yaml",
            "\
question: q
include: [shared/systems.yaml, shared/load.yaml]
load: {rate: 5/s, headers: {x-b: lab}}
systems: {server: {settings: {stack: lab}, limits: {cpus: 2}}}
baseline: {name: a}
variants: [{name: b, with: {server.stack: b}}]
",
        )
        .file(
            "labs/shared/systems.yaml",
            "\
target: server
include: ../more.yaml
systems:
  server:
    settings: {stack: systems, other: systems}
    run: serve {{stack}} {{other}} {{addr}}
    limits: {cpus: 1, memory: 1GiB}
expect: {status: 200}
",
        )
        .file(
            "labs/shared/load.yaml",
            "\
load: {connections: 10, duration: 5s, requests: '*.json', headers: {x-a: load, x-b: load}}
rounds: 7
expect: {graphql: no-errors}
",
        )
        .file(
            "labs/more.yaml",
            "settings: {size: 1}\nrounds: 5\nseed: 1\n",
        )
        .file("labs/shared/q.json", "{}")
        .file("labs/other.json", "{}")
}

#[test]
fn the_including_file_wins_key_by_key() {
    let lab = including().parse().unwrap();
    let setup = &lab.baseline.systems()[0];
    let run: Vec<String> = setup.command().iter().map(ToString::to_string).collect();
    assert_eq!(run.join(" "), "serve lab systems {{server.addr}}");
    assert_eq!(
        (setup.limits.cpus, setup.limits.memory),
        (Some(2.0), Some(1 << 30))
    );
    assert_eq!(lab.expect.answer.status, model::StatusRule::Exactly(200));
    assert!(lab.expect.answer.graphql);
    assert_eq!((lab.rounds, lab.seed), (7, Some(1)));
    assert_eq!(
        lab.requests[0].headers[..2],
        [
            ("x-a".to_owned(), "load".to_owned()),
            ("x-b".to_owned(), "lab".to_owned())
        ]
    );
}

#[test]
fn a_lab_that_says_rate_does_not_inherit_connections() {
    let lab = including().parse().unwrap();
    assert!(matches!(lab.load, Load::Open { .. }), "{:?}", lab.load);
}

#[test]
fn a_way_to_send_replaces_any_other_one_with_its_own_keys() {
    let ways = [
        "connections: 3, slice: 200ms, duration: 5s",
        "rate: 5/s, arrival: poisson, spin: 10, duration: 5s",
        "phases: [{rate: 5/s, duration: 2s}], realtime: off",
        "capacity: {from: 10/s, to: 100/s, p99-below: 10ms}, duration: 5s",
    ];
    for below in ways {
        for own in ways {
            let lab = Folder::default()
                .file(
                    "labs/x.yaml",
                    format!(
                        "question: q\ninclude: y.yaml\nload: {{{own}}}\ntarget: server\n\
                         systems: {{server: {{run: 'serve {{{{addr}}}}'}}}}\n\
                         baseline: {{name: a}}\nvariants: [{{name: b}}]\n"
                    ),
                )
                .file("labs/y.yaml", format!("load: {{path: /, {below}}}\n"));
            assert!(lab.parse().is_ok(), "{own} over {below}");
        }
    }
}

#[test]
fn paths_are_relative_to_the_file_they_are_written_in() {
    let lab = including().parse().unwrap();
    let names: Vec<&str> = lab
        .requests
        .iter()
        .map(|request| request.name.as_str())
        .collect();
    assert_eq!(names, ["q"]);
    assert_eq!(lab.baseline.systems()[0].folder, Path::new("labs/shared"));
}

#[test]
fn every_lab_file_is_kept_for_the_recording() {
    let lab = including().parse().unwrap();
    let paths: Vec<String> = lab
        .sources
        .iter()
        .map(|source| source.path.display().to_string())
        .collect();
    assert_snapshot!(paths.join("\n"), @"
    labs/x.yaml
    labs/shared/systems.yaml
    labs/more.yaml
    labs/shared/load.yaml
    ");
    assert!(lab.sources[0].text.starts_with("question: q"));
}

#[test]
fn the_labs_of_a_folder_are_its_files_with_a_question() {
    let folder = including()
        .file("labs/broken.yaml", "question: q\nload: [\n")
        .file("labs/notes.txt", "question: q\n");
    let labs = lab::find(Path::new("labs"), &folder).unwrap();
    let labs: Vec<String> = labs.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(labs, ["labs/broken.yaml", "labs/x.yaml"]);
    assert!(lab::find(Path::new("none"), &folder).is_err());
}

#[test]
fn settings_keep_the_text_they_were_written_with() {
    let lab = lab(&[
        ("stack: a}", "stack: 1.10}"),
        ("server.stack: b", "server.stack: 0x10"),
    ]);
    assert_eq!(lab.systems[0].settings["stack"], "1.10");
    assert_eq!(lab.variants[0].with["server.stack"], "0x10");
}

#[test]
fn the_baseline_may_be_compared_with_itself() {
    let text = changed(&[(", with: {server.stack: b}", "")]);
    assert!(Folder::with_lab(text).parse().is_ok());
}

#[test]
fn other_places_read_durations_and_rates_as_labs_do() {
    assert_eq!(lab::duration("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(lab::rate("90/m").map(model::Rate::per_second), Ok(1.5));
    assert_snapshot!(lab::duration("5").unwrap_err(), @"`5` is not a length of time: the unit is missing; write `5s` or `5ms`");
    assert_snapshot!(lab::rate("-5/s").unwrap_err(), @"`-5/s` is not a rate: it is negative; write `5/s`");
}

#[test]
fn rounds_go_on_until_an_interval_is_narrow_where_the_lab_says_so() {
    let fixed = lab(&[]);
    assert_eq!(
        (fixed.until, fixed.max_time),
        (None, Duration::from_secs(3600))
    );
    let going_on = lab(&[(
        "target: server",
        "target: server\nuntil: p99 +-2%\nmax-time: 20m",
    )]);
    let until = going_on.until.unwrap();
    assert_eq!(until, Goal::Width("p99 ±2%".parse().unwrap()));
    assert_eq!(going_on.max_time, Duration::from_secs(1200));
}

#[test]
fn a_load_after_a_start_has_defaults_and_can_be_said() {
    let settle = |written: &str| {
        let written = format!("target: server\n{written}");
        lab(&[("target: server", &written)]).settle
    };
    let expected = |connections, seconds| {
        Some(model::Settle {
            connections,
            within: Duration::from_secs(seconds),
        })
    };
    assert_eq!(settle(""), None);
    assert_eq!(settle("settle: {}"), expected(4, 10));
    assert_eq!(
        settle("settle: {connections: 16, within: 20s}"),
        expected(16, 20)
    );
    for (written, said) in [
        ("settle: {within: 0s}", "above 0"),
        ("settle: {connections: 0}", "at least 1"),
        ("settle: 5s", "mapping"),
    ] {
        let written = format!("target: server\n{written}");
        let found = crate::check(&[("target: server", &written)]);
        assert!(found.contains(said), "{said}\n{found}");
    }
}

#[test]
fn who_is_told_the_path_of_its_socket_listens_there() {
    let with = |env: &str| {
        let written = format!("stack: a}}\n    env: {{WHERE: '{env}'}}");
        let lab = lab(&[("stack: a}", &written)]);
        lab.baseline.systems()[0].clone()
    };
    assert!(!with("{{url}}").is_on_socket());
    let setup = with("SOCKET={{socket}}");
    assert!(setup.is_on_socket());
    let place = |_: &str| {
        Some(lab::Endpoint {
            address: ([127, 0, 0, 1], 4000).into(),
            socket: Some("/tmp/s".into()),
            authority: None,
            files: None,
        })
    };
    let (_, told) = &setup.env[0];
    assert_eq!(told.render(&place).as_deref(), Ok("SOCKET=/tmp/s"));
}

#[test]
fn gates_are_limits_of_variants_that_there_are() {
    let with = |gates: &str| ("question:".to_owned(), format!("gates: {gates}\nquestion:"));
    let (before, after) = with("[p99 overhead < 5%, b mean ratio < 2]");
    let lab = lab(&[(&before, &after)]);
    let texts: Vec<&str> = lab.gates.iter().map(|gate| gate.text.as_str()).collect();
    assert_eq!(texts, ["p99 overhead < 5%", "b mean ratio < 2"]);
    let (before, after) = with("c mean ratio < 2");
    let stranger = check(&[(&before, &after)]);
    assert!(
        stranger.contains("this gate names `c`, which is not a variant"),
        "{stranger}"
    );
    let (before, after) = with("mean < 2");
    let wrong = check(&[(&before, &after)]);
    assert!(
        wrong.contains("expected `overhead`, `ratio` or `value`"),
        "{wrong}"
    );
}
