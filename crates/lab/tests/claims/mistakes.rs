//! Mistakes of shape: keys, types, names, files.

use insta::assert_snapshot;

use crate::{Folder, changed, check};

#[test]
fn a_file_with_five_different_mistakes_reports_five_each_with_its_line() {
    let text = "\
question: What does b cost?
include: shared.yaml
load:
  rate: -5/s
  duration: 1s
  conections: 3
target: server
systems:
  server: {run: 'serve --listen {{addr}} {{stak}}'}
baseline: {name: a}
variants:
  - name: b
  - name: c
  - name: b
rounds: many
";
    let mistakes = Folder::with_lab(text).parse().unwrap_err();
    let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [2, 4, 6, 14, 15]);
    assert_snapshot!(mistakes, @"
    error: cannot read `labs/shared.yaml`: no such file
     --> labs/x.yaml:2:10
      |
    2 | include: shared.yaml
      |          ^^^^^^^^^^^
      |
      = help: paths are relative to the including file

    error: `-5/s` is not a rate: it is negative
     --> labs/x.yaml:4:9
      |
    4 |   rate: -5/s
      |         ^^^^
      |
      = help: write `5/s`

    error: unknown key `conections`
     --> labs/x.yaml:6:3
      |
    6 |   conections: 3
      |   ^^^^^^^^^^
      |
      = help: did you mean `connections`?

    error: two variants are named `b`
      --> labs/x.yaml:14:11
       |
    12 |   - name: b
       |           - first here
    13 |   - name: c
    14 |   - name: b
       |           ^ and again here
       |
       = help: names become rows of the report. Give each variant its own name

    error: expected a whole number, found the text `many`
      --> labs/x.yaml:15:9
       |
    15 | rounds: many
       |         ^^^^
    ");
}

#[test]
fn an_unknown_key_suggests_the_nearest_one() {
    assert_snapshot!(check(&[("target: server", "targt: server")]), @"
    error: unknown key `targt`
     --> labs/x.yaml:5:1
      |
    5 | targt: server
      | ^^^^^
      |
      = help: did you mean `target`?
    ");
}

#[test]
fn a_mistyped_key_is_not_missed_as_well() {
    assert_snapshot!(check(&[("connections: 10", "conections: 10"), ("duration", "durration")]), @"
    error: unknown key `conections`
     --> labs/x.yaml:3:3
      |
    3 |   conections: 10
      |   ^^^^^^^^^^
      |
      = help: did you mean `connections`?

    error: unknown key `durration`
     --> labs/x.yaml:4:3
      |
    4 |   durration: 1s
      |   ^^^^^^^^^
      |
      = help: did you mean `duration`?
    ");
}

#[test]
fn an_unknown_key_far_from_all_lists_them() {
    assert_snapshot!(check(&[("stack: a}", "stack: a}\n    limits: {ram: 1GiB}")]), @"
    error: unknown key `ram`
     --> labs/x.yaml:9:14
      |
    9 |     limits: {ram: 1GiB}
      |              ^^^
      |
      = help: the keys here are cpus, memory
    ");
}

#[test]
fn a_key_of_another_house_is_unknown_until_it_works() {
    assert_snapshot!(check(&[("stack: a}", "stack: a}\n    scale: 2")]), @"
    error: unknown key `scale`
     --> labs/x.yaml:9:5
      |
    9 |     scale: 2
      |     ^^^^^
      |
      = help: the keys here are after, attach, balance, build, command, compose, env, files, folder, image, limits, manifests, needs, network, pin, port, pull, ready, replicas, run, scheme, settings, shared, url, user, version, volumes
    ");
}

#[test]
fn a_missing_key_says_what_it_is_for() {
    assert_snapshot!(check(&[("question: What does b cost?\n", ""), ("baseline: {name: a}\n", "")]), @"
    error: the key `question` is missing
     --> labs/x.yaml:1:1
      |
    1 | load:
      | ^^^^
      |
      = help: `question`: The question that the lab answers

    error: the key `baseline` is missing
     --> labs/x.yaml:1:1
      |
    1 | load:
      | ^^^^
      |
      = help: `baseline`: The setup that the variants are compared with
    ");
}

#[test]
fn a_value_of_a_wrong_type_says_which_is_right() {
    assert_snapshot!(check(&[
        ("connections: 10", "connections: ten"),
        ("run: serve {{stack}} --listen {{addr}}", "run: [serve, '{{addr}}']"),
        ("baseline: {name: a}", "baseline: a\nrounds: 1.5\nseed:"),
    ]), @"
    error: expected a whole number, found the text `ten`
     --> labs/x.yaml:3:16
      |
    3 |   connections: ten
      |                ^^^

    error: expected text, found a list
     --> labs/x.yaml:9:10
      |
    9 |     run: [serve, '{{addr}}']
      |          ^^^^^^^^^^^^^^^^^^^

    error: expected a mapping of keys to values, found the text `a`
      --> labs/x.yaml:10:11
       |
    10 | baseline: a
       |           ^

    error: expected a whole number, found the number `1.5`
      --> labs/x.yaml:11:9
       |
    11 | rounds: 1.5
       |         ^^^

    error: expected a whole number, found nothing
      --> labs/x.yaml:12:5
       |
    12 | seed:
       |     ^
    ");
}

#[test]
fn numbers_out_of_range_say_the_limit() {
    assert_snapshot!(check(&[
        ("connections: 10", "connections: 0"),
        ("target: server", "target: server\nrounds: 0\nexpect: {status: 99}"),
        ("stack: a}", "stack: a}\n    limits: {cpus: 0, memory: 0B}\n    pin: [0, 5000]"),
    ]), @"
    error: expected at least 1, found `0`
     --> labs/x.yaml:3:16
      |
    3 |   connections: 0
      |                ^

    error: expected at least 1, found `0`
     --> labs/x.yaml:6:9
      |
    6 | rounds: 0
      |         ^

    error: `99` is not a status
     --> labs/x.yaml:7:18
      |
    7 | expect: {status: 99}
      |                  ^^
      |
      = help: write a number from 100 to 599, a class such as `2xx`, or a list of them: `[200, 429]`

    error: expected at least 0.01, found `0`
      --> labs/x.yaml:11:20
       |
    11 |     limits: {cpus: 0, memory: 0B}
       |                    ^
       |
       = help: write for example `0.25`

    error: `0B` is not a size: it must be above 0
      --> labs/x.yaml:11:31
       |
    11 |     limits: {cpus: 0, memory: 0B}
       |                               ^^
       |
       = help: write for example `128MiB`

    error: there is no core 5000
      --> labs/x.yaml:12:14
       |
    12 |     pin: [0, 5000]
       |              ^^^^
       |
       = help: cores are numbered from 0
    ");
}

#[test]
fn few_rounds_are_no_mistake() {
    assert_snapshot!(check(&[("target: server", "target: server\nrounds: 1")]), @"no mistake");
}

#[test]
fn a_value_of_a_wrong_form_says_how_to_write_it() {
    assert_snapshot!(check(&[
        ("duration: 1s", "duration: 5\n  timeout: 1 sec"),
        ("target: server", "target: server\nwarmup: soon"),
        ("stack: a}", "stack: a}\n    limits: {memory: 128M}"),
    ]), @"
    error: `5` is not a length of time: the unit is missing
     --> labs/x.yaml:4:13
      |
    4 |   duration: 5
      |             ^
      |
      = help: write `5s` or `5ms`

    error: `1 sec` is not a length of time: `sec` is not a unit of time
     --> labs/x.yaml:5:12
      |
    5 |   timeout: 1 sec
      |            ^^^^^
      |
      = help: the units are ns, us, ms, s, m and h

    error: `soon` is not a length of time: expected a number and a unit
     --> labs/x.yaml:7:9
      |
    7 | warmup: soon
      |         ^^^^
      |
      = help: write for example `500ms`, `5s` or `2m`

    error: `128M` is not a size: `M` is not a unit of size
      --> labs/x.yaml:11:22
       |
    11 |     limits: {memory: 128M}
       |                      ^^^^
       |
       = help: the units are B, KB, MB, GB, KiB, MiB and GiB
    ");
}

#[test]
fn a_choice_lists_what_can_be_chosen() {
    assert_snapshot!(check(&[
        ("duration: 1s", "duration: 1s\n  keep-alive: yes"),
        ("target: server", "target: server\nexpect: {graphql: no-error, same-as: b}"),
    ]), @"
    error: expected `on` or `off`, found `yes`
     --> labs/x.yaml:5:15
      |
    5 |   keep-alive: yes
      |               ^^^

    error: expected `no-errors`, found `no-error`
     --> labs/x.yaml:7:19
      |
    7 | expect: {graphql: no-error, same-as: b}
      |                   ^^^^^^^^
      |
      = help: did you mean `no-errors`?

    error: expected `baseline`, found `b`
     --> labs/x.yaml:7:38
      |
    7 | expect: {graphql: no-error, same-as: b}
      |                                      ^
    ");
}

#[test]
fn text_that_looks_like_a_number_is_told_to_get_quotes() {
    assert_snapshot!(check(&[("stack: a}", "stack: a}\n    folder: 5")]), @r#"
    error: expected text, found the number `5`
     --> labs/x.yaml:9:13
      |
    9 |     folder: 5
      |             ^
      |
      = help: write "5", in quotes
    "#);
}

#[test]
fn a_key_given_twice_is_found_in_a_lab_too() {
    assert_snapshot!(check(&[("target: server", "target: server\ntarget: origin")]), @"
    error: the key `target` is here twice
     --> labs/x.yaml:6:1
      |
    5 | target: server
      | ------ first here
    6 | target: origin
      | ^^^^^^ and again here
      |
      = help: keep one of the two
    ");
}

#[test]
fn broken_yaml_is_reported_with_its_line() {
    assert_snapshot!(check(&[("baseline: {name: a}", "baseline: {name: a")]), @"
    error: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
      --> labs/x.yaml:11:9
       |
    11 | variants:
       |         ^
    ");
}

#[test]
fn a_lab_that_is_no_mapping_is_refused() {
    assert_snapshot!(Folder::with_lab("- question\n").mistakes(), @"
    error: expected a mapping of keys to values, found a list
     --> labs/x.yaml:1:1
      |
    1 | - question
      | ^
    ");
    assert_snapshot!(Folder::with_lab("question\n").mistakes(), @"
    error: expected a mapping of keys to values, found the text `question`
     --> labs/x.yaml:1:1
      |
    1 | question
      | ^^^^^^^^
    ");
    assert_snapshot!(Folder::with_lab("").mistakes(), @"
    error: the file is empty
    --> labs/x.yaml
     = help: a lab begins with `question:`. See docs/labs.md
    ");
}

#[test]
fn a_lab_that_cannot_be_read_says_why() {
    assert_snapshot!(Folder::default().mistakes(), @"
    error: cannot read `labs/x.yaml`: no such file
    --> labs/x.yaml
    ");
    assert_snapshot!(Folder::with_lab(b"question: \xff").mistakes(), @"
    error: `labs/x.yaml` is not UTF-8 text: see byte 10
    --> labs/x.yaml
    ");
}

#[test]
fn variants_with_the_same_name_point_at_both() {
    assert_snapshot!(check(&[("variants:\n", "variants:\n  - for: [c, b]\n")]), @"
    error: two variants are named `b`
      --> labs/x.yaml:13:12
       |
    12 |   - for: [c, b]
       |              - first here
    13 |   - {name: b, with: {server.stack: b}}
       |            ^ and again here
       |
       = help: names become rows of the report. Give each variant its own name
    ");
}

#[test]
fn a_variant_named_as_the_baseline_points_at_both() {
    assert_snapshot!(check(&[("{name: b,", "{name: a,")]), @"
    error: the variant `a` has the same name as the baseline
      --> labs/x.yaml:12:12
       |
    10 | baseline: {name: a}
       |                  - the baseline
    11 | variants:
    12 |   - {name: a, with: {server.stack: b}}
       |            ^
       |
       = help: names become rows of the report. Give each variant its own name
    ");
}

#[test]
fn variants_need_a_name_or_a_list_of_them() {
    assert_snapshot!(check(&[("{name: b, with: {server.stack: b}}", "{with: {server.stack: b}}\n  - {name: c, for: [d]}\n  - {for: []}")]), @"
    error: the variant has no name
      --> labs/x.yaml:12:5
       |
    12 |   - {with: {server.stack: b}}
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: give it a `name`, or `for` with a list of names

    error: `name` and a list in `for` exclude each other
      --> labs/x.yaml:13:12
       |
    13 |   - {name: c, for: [d]}
       |            ^
       |
       = help: each item of a list is the name of a variant. With factors, as in `for: {size: [1, 10]}`, a name may contain `{{size}}`

    error: the variant has no name
      --> labs/x.yaml:14:5
       |
    14 |   - {for: []}
       |     ^^^^^^^^^
       |
       = help: give it a `name`, or `for` with a list of names

    error: the list is empty
      --> labs/x.yaml:14:11
       |
    14 |   - {for: []}
       |           ^^
       |
       = help: give at least one
    ");
}

#[test]
fn a_lab_without_variants_compares_nothing() {
    assert_snapshot!(check(&[("variants:\n  - {name: b, with: {server.stack: b}}", "variants: []")]), @"
    error: the list is empty
      --> labs/x.yaml:11:11
       |
    11 | variants: []
       |           ^^
       |
       = help: give at least one
    ");
}

#[test]
fn a_missing_include_shows_the_path_tried() {
    assert_snapshot!(check(&[("target: server", "target: server\ninclude: [../none.yaml]")]), @"
    error: cannot read `none.yaml`: no such file
     --> labs/x.yaml:6:11
      |
    6 | include: [../none.yaml]
      |           ^^^^^^^^^^^^
      |
      = help: paths are relative to the including file
    ");
}

#[test]
fn what_a_missing_include_may_hold_is_not_missed_as_well() {
    let text = "\
question: q
include: none.yaml
load: {headers: {X-A: 1}}
systems: {server: {pin: 0}, origin: {run: 'origin {{listen}} {{server.x}}'}}
baseline: {name: a}
variants: [{name: b, with: {server.stack: b, cache.size: 5}}]
";
    assert_snapshot!(Folder::with_lab(text).mistakes(), @"
    error: cannot read `labs/none.yaml`: no such file
     --> labs/x.yaml:2:10
      |
    2 | include: none.yaml
      |          ^^^^^^^^^
      |
      = help: paths are relative to the including file
    ");
}

#[test]
fn includes_in_a_circle_are_shown_as_one() {
    let folder = Folder::with_lab(changed(&[(
        "target: server",
        "target: server\ninclude: a.yaml",
    )]))
    .file("labs/a.yaml", "include: b.yaml\n")
    .file("labs/b.yaml", "include: ../labs/a.yaml\n");
    assert_snapshot!(folder.mistakes(), @"
    error: this include forms a circle
     --> labs/b.yaml:1:10
      |
    1 | include: ../labs/a.yaml
      |          ^^^^^^^^^^^^^^
      |
      = help: `labs/a.yaml` includes `labs/b.yaml` includes `labs/a.yaml`. Remove one of these includes
    ");
    let own = Folder::with_lab(changed(&[(
        "target: server",
        "target: server\ninclude: x.yaml",
    )]));
    assert_snapshot!(own.mistakes(), @"
    error: this include forms a circle
     --> labs/x.yaml:6:10
      |
    6 | include: x.yaml
      |          ^^^^^^
      |
      = help: `labs/x.yaml` includes `labs/x.yaml`. Remove one of these includes
    ");
}

#[test]
fn mistakes_in_an_included_file_are_shown_there() {
    let folder = Folder::with_lab(changed(&[(
        "target: server",
        "target: server\ninclude: [a.yaml, b.yaml, c.yaml]",
    )]))
    .file("labs/a.yaml", "- systems\n")
    .file(
        "labs/b.yaml",
        "settings: {a: 1}\nquestion: Why?\nload: {connections: many}\n",
    )
    .file("labs/c.yaml", "load: [\n");
    assert_snapshot!(folder.mistakes(), @"
    error: expected a mapping of keys to values, found a list
     --> labs/a.yaml:1:1
      |
    1 | - systems
      | ^

    error: an included file cannot have `question`
     --> labs/b.yaml:2:1
      |
    2 | question: Why?
      | ^^^^^^^^
      |
      = help: move it to the lab. Included files contain only keys that several labs can share

    error: expected a whole number, found the text `many`
     --> labs/b.yaml:3:21
      |
    3 | load: {connections: many}
      |                     ^^^^

    error: this is not YAML: unclosed bracket '['
     --> labs/c.yaml:1:7
      |
    1 | load: [
      |       ^
    ");
}

#[test]
fn one_wrong_file_included_twice_is_reported_once() {
    let folder = Folder::with_lab(changed(&[(
        "target: server",
        "target: server\ninclude: [a.yaml, b.yaml]",
    )]))
    .file("labs/a.yaml", "include: c.yaml\n")
    .file("labs/b.yaml", "include: c.yaml\n")
    .file("labs/c.yaml", "rounds: 0\n");
    assert_eq!(folder.parse().unwrap_err().len(), 1);
}

#[test]
fn colors_are_added_and_nothing_else() {
    let mistakes = Folder::with_lab(changed(&[("target: server", "targt: server")]))
        .parse()
        .unwrap_err();
    let colored = mistakes.render(true);
    assert!(colored.contains("\u{1b}["));
    let mut plain = String::new();
    for (index, part) in colored.split("\u{1b}[").enumerate() {
        plain += if index == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        };
    }
    assert_eq!(plain, mistakes.render(false));
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let shown = check(&[("target: server", "\"t\\e[31m\": server")]);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_wish_that_is_none_and_a_time_that_limits_nothing_are_mistakes() {
    let target = "target: server";
    assert_snapshot!(check(&[(target, "target: server\nuntil: p98 ±2%")]), @"
    error: `p98` is not a figure. The figures are requests/s, min, mean, typical, slow-quarter, stdev, p50, p75, p90, p95, p99, p99.9, max, throughput, cpu, memory, switches, involuntary-switches, waited-for-cpu, generator-cpu, failures, first-byte, first-byte-mean, first-byte-p50, first-byte-p99, body-bytes, body-mb/s, first-event, first-event-mean, first-event-p50, first-event-p99, event-time, event-gap, event-gap-p50, event-gap-p99, event-gap-p99.9, events, delivery, delivery-p50, delivery-p99, round-trip, round-trip-p50, round-trip-p99
     --> labs/x.yaml:6:8
      |
    6 | until: p98 ±2%
      |        ^^^^^^^
      |
      = help: write a figure and half of the width of its interval, for example `p99 ±2%` or `p99 ±0.1ms`, or `gates`
    ");
    assert_snapshot!(check(&[(target, "target: server\nmax-time: 5m")]), @"
    error: `max-time` without `until`
     --> labs/x.yaml:6:1
      |
    6 | max-time: 5m
      | ^^^^^^^^
      |
      = help: add `until`, such as `until: p99 ±2%`, or remove this key
    ");
}
