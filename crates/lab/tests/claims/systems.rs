//! Claims about systems: settings, templates, and the order of starting.

use std::fmt::Write as _;

use insta::assert_snapshot;
use lab::{Setup, Text, Variant};

use crate::{check, lab};

/// Returns the systems of a variant as text.
fn stack(variant: &Variant) -> String {
    variant.systems().iter().map(show).collect()
}

fn show(setup: &Setup) -> String {
    let words = |texts: &[Text]| {
        let words: Vec<String> = texts.iter().map(|text| format!("[{text}]")).collect();
        words.join(" ")
    };
    let mut shown = format!("{} in {}\n", setup.system, setup.folder.display());
    for build in &setup.build {
        writeln!(shown, "  build {}", words(build)).unwrap();
    }
    writeln!(shown, "  run {}", words(setup.command())).unwrap();
    for (name, value) in &setup.env {
        writeln!(shown, "  env {name}={value}").unwrap();
    }
    if !setup.after.is_empty() {
        writeln!(shown, "  after {}", setup.after.join(", ")).unwrap();
    }
    let settings = setup
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let settings: Vec<String> = settings.collect();
    writeln!(shown, "  with {}", settings.join(" ")).unwrap();
    shown
}

#[test]
fn a_variant_changes_settings_of_systems_and_of_the_lab() {
    let lab = lab(&[
        (
            "target: server",
            "target: server\nsettings: {size: 10, label: 'size {{size}} of {{name}}'}",
        ),
        (
            "run: serve {{stack}} --listen {{addr}}",
            "run: serve {{stack}} {{size}} --port {{port}} '{{label}}'\n    build: [\"make {{stack}}\", make 'a b']\n    env: {URL: '{{url}}/x', N: 5}",
        ),
        ("server.stack: b}", "server.stack: 'b b', size: 1.10}"),
    ]);
    assert_snapshot!(stack(&lab.baseline), @"
    server in labs
      build [make] [a]
      build [make] [a b]
      run [serve] [a] [10] [--port] [{{server.port}}] [size 10 of a]
      env URL={{server.url}}/x
      env N=5
      with label=size 10 of a size=10 stack=a
    ");
    assert_snapshot!(stack(&lab.variants[0]), @"
    server in labs
      build [make] [b b]
      build [make] [a b]
      run [serve] [b b] [1.10] [--port] [{{server.port}}] [size 1.10 of b]
      env URL={{server.url}}/x
      env N=5
      with label=size 1.10 of b size=1.10 stack=b b
    ");
}

#[test]
fn for_makes_one_variant_of_each_item() {
    let lab = lab(&[(
        "  - {name: b, with: {server.stack: b}}",
        "  - {for: [1, 10, x y], with: {server.stack: 's-{{name}}'}}",
    )]);
    let shown: Vec<String> = lab
        .variants
        .iter()
        .map(|variant| {
            format!(
                "{}: {:?} {}",
                variant.name,
                variant.with,
                variant.systems()[0].command()[1]
            )
        })
        .collect();
    assert_snapshot!(shown.join("\n"), @r#"
    1: {"server.stack": "s-1"} s-1
    10: {"server.stack": "s-10"} s-10
    x y: {"server.stack": "s-x y"} s-x y
    "#);
}

#[test]
fn systems_start_after_those_they_need_and_others_not_at_all() {
    let lab = lab(&[(
        "    run: serve {{stack}} --listen {{addr}}",
        "    run: serve {{stack}} --listen {{addr}} --origin {{origin.url}} {{cache.size}}
    after: metrics
  origin: {run: 'origin {{port}}', env: {DB: '{{database.addr}}'}}
  database: {run: 'db {{addr}}'}
  metrics: {run: 'metrics {{addr}}', after: [database]}
  cache: {run: 'cache {{addr}}', settings: {size: 5}}",
    )]);
    assert_snapshot!(stack(&lab.baseline), @"
    database in labs
      run [db] [{{database.addr}}]
      with 
    metrics in labs
      run [metrics] [{{metrics.addr}}]
      after database
      with 
    origin in labs
      run [origin] [{{origin.port}}]
      env DB={{database.addr}}
      after database
      with 
    server in labs
      run [serve] [a] [--listen] [{{server.addr}}] [--origin] [{{origin.url}}] [5]
      after metrics, origin
      with stack=a
    ");
}

#[test]
fn a_variant_may_need_more_systems_than_another() {
    let lab = lab(&[
        ("settings: {stack: a}", "settings: {stack: a, origin: none}"),
        (
            "run: serve {{stack}} --listen {{addr}}",
            "run: serve {{addr}} {{origin}}\n  origin: {run: 'origin {{addr}}'}",
        ),
        ("server.stack: b", "server.origin: '{{origin.url}}'"),
    ]);
    let names = |variant: &Variant| {
        let names: Vec<String> = variant
            .systems()
            .iter()
            .map(|setup| setup.system.clone())
            .collect();
        names.join(" ")
    };
    assert_eq!(names(&lab.baseline), "server");
    assert_eq!(names(&lab.variants[0]), "origin server");
    assert_eq!(lab.variants[0].with["server.origin"], "{{origin.url}}");
}

#[test]
fn systems_that_wait_for_each_other_are_shown() {
    assert_snapshot!(check(&[(
        "    run: serve {{stack}} --listen {{addr}}",
        "    run: serve {{stack}} --listen {{addr}} --origin {{origin.url}}
  origin:
    run: origin {{addr}}
    after: server",
    )]), @"
    error: these systems wait for each other
      --> labs/x.yaml:7:3
       |
     7 |   server:
       |   ^^^^^^
    ...
    10 |   origin:
       |   ------
       |
       = help: server waits for origin waits for server
    ");
}

#[test]
fn settings_that_need_each_other_are_shown() {
    assert_snapshot!(check(&[("settings: {stack: a}", "settings: {stack: 'a{{other}}', other: '{{stack}}'}")]), @"
    error: these settings refer to each other in a circle
     --> labs/x.yaml:8:25
      |
    8 |     settings: {stack: 'a{{other}}', other: '{{stack}}'}
      |                         ^^^^^^^^^
      |
      = help: `server.other` needs `server.stack` needs `server.other`
    ");
}

#[test]
fn an_unknown_system_is_reported_wherever_it_is_named() {
    assert_snapshot!(check(&[
        ("target: server", "target: sever"),
        ("settings: {stack: a}", "settings: {stack: a}\n    after: origin"),
        ("{server.stack: b}", "{servr.stack: b}"),
        ("--listen {{addr}}", "--listen {{addr}} {{gateway.url}}"),
    ]), @"
    error: there is no system `sever`
     --> labs/x.yaml:5:9
      |
    5 | target: sever
      |         ^^^^^
      |
      = help: did you mean `server`?

    error: there is no system `origin`
     --> labs/x.yaml:9:12
      |
    9 |     after: origin
      |            ^^^^^^
      |
      = help: the systems are server

    error: there is no system `gateway`
      --> labs/x.yaml:10:44
       |
    10 |     run: serve {{stack}} --listen {{addr}} {{gateway.url}}
       |                                            ^^^^^^^^^^^^^^^
       |
       = help: the systems are server

    error: there is no system `servr`
      --> labs/x.yaml:13:22
       |
    13 |   - {name: b, with: {servr.stack: b}}
       |                      ^^^^^^^^^^^
       |
       = help: did you mean `server`?
    ");
}

#[test]
fn an_unknown_setting_is_reported_with_the_known_ones() {
    assert_snapshot!(check(&[("{server.stack: b}", "{server.stak: b, server.build: x, stack: b, size: 5}")]), @"
    error: `server` has no setting `stak`
      --> labs/x.yaml:12:22
       |
    12 |   - {name: b, with: {server.stak: b, server.build: x, stack: b, size: 5}}
       |                      ^^^^^^^^^^^
       |
       = help: did you mean `stack`?

    error: `server` has no setting `build`
      --> labs/x.yaml:12:38
       |
    12 |   - {name: b, with: {server.stak: b, server.build: x, stack: b, size: 5}}
       |                                      ^^^^^^^^^^^^
       |
       = help: `server` has the settings stack. Declare a setting with its usual value under `settings`

    error: the lab has no setting `stack`
      --> labs/x.yaml:12:55
       |
    12 |   - {name: b, with: {server.stak: b, server.build: x, stack: b, size: 5}}
       |                                                       ^^^^^
       |
       = help: did you mean `server.stack`?

    error: the lab has no setting `size`
      --> labs/x.yaml:12:65
       |
    12 |   - {name: b, with: {server.stak: b, server.build: x, stack: b, size: 5}}
       |                                                                 ^^^^
       |
       = help: the lab has no settings. Declare it with its usual value under `settings`
    ");
}

#[test]
fn an_unknown_template_is_reported_with_the_known_ones() {
    assert_snapshot!(check(&[("serve {{stack}} --listen {{addr}}", "serve {{ stak }} --listen {{addr}} {{config}} {{server.x}}")]), @"
    error: `{{stak}}` is not defined here
     --> labs/x.yaml:9:16
      |
    9 |     run: serve {{ stak }} --listen {{addr}} {{config}} {{server.x}}
      |                ^^^^^^^^^^
      |
      = help: did you mean `stack`?

    error: `{{config}}` is not defined here
     --> labs/x.yaml:9:45
      |
    9 |     run: serve {{ stak }} --listen {{addr}} {{config}} {{server.x}}
      |                                             ^^^^^^^^^^
      |
      = help: the names here are stack, instance, weigh, name, addr, port, url, socket

    error: `{{server.x}}` is not defined here
     --> labs/x.yaml:9:56
      |
    9 |     run: serve {{ stak }} --listen {{addr}} {{config}} {{server.x}}
      |                                                        ^^^^^^^^^^^^
      |
      = help: the names here are stack, addr, port, url, socket
    ");
}

#[test]
fn a_lab_wide_setting_has_no_address_of_its_own() {
    assert_snapshot!(check(&[("target: server", "target: server\nsettings: {a: '{{url}}'}"), ("{{stack}}", "{{stack}} {{a}}")]), @"
    error: `{{url}}` is not defined here
     --> labs/x.yaml:6:16
      |
    6 | settings: {a: '{{url}}'}
      |                ^^^^^^^
      |
      = help: the names here are a, name
    ");
}

#[test]
fn settings_cannot_take_the_words_of_templates() {
    assert_snapshot!(check(&[("stack: a}", "stack: a, port: 80}"), ("target: server", "target: server\nsettings: {name: x, a.b: 1}")]), @"
    error: a setting cannot be named `name`
     --> labs/x.yaml:6:12
      |
    6 | settings: {name: x, a.b: 1}
      |            ^^^^
      |
      = help: `{{name}}` has a fixed meaning. Choose another name

    error: `a.b` is not a name
     --> labs/x.yaml:6:21
      |
    6 | settings: {name: x, a.b: 1}
      |                     ^^^
      |
      = help: a name is a letter followed by letters, digits, `-` and `_`

    error: a setting cannot be named `port`
     --> labs/x.yaml:9:26
      |
    9 |     settings: {stack: a, port: 80}
      |                          ^^^^
      |
      = help: `{{port}}` has a fixed meaning. Choose another name
    ");
}

#[test]
fn a_system_that_is_not_told_its_port_is_refused() {
    assert_snapshot!(check(&[("--listen {{addr}}", "--listen 127.0.0.1:8080")]), @"
    error: `server` has no listen address
     --> labs/x.yaml:9:10
      |
    9 |     run: serve {{stack}} --listen 127.0.0.1:8080
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `weigh` assigns the port, so that all variants can run at once. Write `serve {{stack}} --listen {{addr}}`
    ");
}

#[test]
fn builds_and_versions_run_without_addresses() {
    assert_snapshot!(check(&[("stack: a}", "stack: a}\n    build: make {{url}}\n    version: curl {{server.addr}}")]), @"
    error: this command needs an address that is not known yet
     --> labs/x.yaml:9:12
      |
    9 |     build: make {{url}}
      |            ^^^^^^^^^^^^
      |
      = help: addresses are known only while systems run. Use them in `run` or `env`

    error: this command needs an address that is not known yet
      --> labs/x.yaml:10:14
       |
    10 |     version: curl {{server.addr}}
       |              ^^^^^^^^^^^^^^^^^^^^
       |
       = help: addresses are known only while systems run. Use them in `run` or `env`
    ");
}

#[test]
fn a_system_needs_a_command() {
    assert_snapshot!(check(&[("    run: serve {{stack}} --listen {{addr}}\n", "")]), @"
    error: the system `server` has no `run`
     --> labs/x.yaml:7:3
      |
    7 |   server:
      |   ^^^^^^
      |
      = help: give the command that runs it, the `image` of its container, the `compose` file of its services, its `manifests`, or the `url` at which it already runs
    ");
}

/// The example lab with a server that already runs.
fn elsewhere(keys: &str) -> [(&str, &str); 1] {
    [("    run: serve {{stack}} --listen {{addr}}\n", keys)]
}

#[test]
fn a_system_may_run_already() {
    let lab = lab(&elsewhere(
        "    url: https://{{stack}}.example.com:8443/\n    attach: {pid: 47}\n",
    ));
    let [setup] = lab.baseline.systems() else {
        panic!("one system");
    };
    let url = setup.elsewhere().expect("it runs already");
    assert_eq!((url.host.as_str(), url.port), ("a.example.com", 8443));
    assert_eq!(url.attach, Some(lab::Attach::Pid(47)));
    assert!(setup.is_encrypted && setup.command().is_empty());
    // Each variant has its own address.
    let other = lab.variants[0].systems()[0].elsewhere().expect("it, too");
    assert_ne!(other.host, url.host);
}

#[test]
fn what_runs_already_is_not_started_in_any_way() {
    assert_snapshot!(check(&elsewhere("    url: http://a\n    pin: 1\n")), @"
    error: `pin` cannot be used with `url`
      --> labs/x.yaml:10:5
       |
     9 |     url: http://a
       |     --- this key means that it already runs
    10 |     pin: 1
       |     ^^^
       |
       = help: `weigh` does not build, start or limit a system that already runs. Remove one of the two
    ");
    assert_snapshot!(check(&elsewhere("    url: http://a\n    run: serve {{addr}}\n")), @"
    error: `run` cannot be used with `url`
      --> labs/x.yaml:10:5
       |
     9 |     url: http://a
       |     --- this key means that it already runs
    10 |     run: serve {{addr}}
       |     ^^^
       |
       = help: `weigh` does not build, start or limit a system that already runs. Remove one of the two
    ");
    assert_snapshot!(check(&[("    run: serve", "    attach: {pid: 1}\n    run: serve")]), @"
    error: `attach` without `url`
     --> labs/x.yaml:9:5
      |
    9 |     attach: {pid: 1}
      |     ^^^^^^
      |
      = help: `weigh` always watches the systems that it starts. Remove this key
    ");
}

#[test]
fn a_url_of_a_system_is_a_host_and_a_port() {
    assert_snapshot!(check(&elsewhere("    url: http://a/graphql\n")), @"
    error: `http://a/graphql` is not the URL of a system: write `/graphql` in the `path` of requests
     --> labs/x.yaml:9:10
      |
    9 |     url: http://a/graphql
      |          ^^^^^^^^^^^^^^^^
      |
      = help: write a URL such as http://127.0.0.1:8080 or https://api.example.com
    ");
    assert_snapshot!(check(&elsewhere("    url: \"{{stack}}://a\"\n")), @r#"
    error: `a://a` is not the URL of a system: it begins with a setting
     --> labs/x.yaml:9:10
      |
    9 |     url: "{{stack}}://a"
      |          ^^^^^^^^^^^^^^^
      |
      = help: write a URL such as http://127.0.0.1:8080 or https://api.example.com

    error: `b://a` is not the URL of a system: it begins with a setting
     --> labs/x.yaml:9:10
      |
    9 |     url: "{{stack}}://a"
      |          ^^^^^^^^^^^^^^^
      |
      = help: write a URL such as http://127.0.0.1:8080 or https://api.example.com
    "#);
    assert_snapshot!(check(&elsewhere("    url: http://{{addr}}\n")), @"
    error: this text needs an address that `weigh` assigns
     --> labs/x.yaml:9:10
      |
    9 |     url: http://{{addr}}
      |          ^^^^^^^^^^^^^^^
      |
      = help: a system that already runs has its own address. Write that address, or use a setting
    ");
}

#[test]
fn one_thing_is_attached_to() {
    let attached = |attach: &str| {
        check(&elsewhere(&format!(
            "    url: http://a\n    attach: {attach}\n"
        )))
    };
    assert_snapshot!(attached("{pid: 1, cgroup: /sys/fs/cgroup/a}"), @"
    error: `attach` needs exactly one of `pid`, `cgroup`, `container`, `metrics` and `pods`
      --> labs/x.yaml:10:13
       |
    10 |     attach: {pid: 1, cgroup: /sys/fs/cgroup/a}
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write one of them, such as `attach: {pid: 4711}`
    ");
    assert_snapshot!(attached("{pid: nginx}"), @"
    error: `nginx` is not a process id
      --> labs/x.yaml:10:19
       |
    10 |     attach: {pid: nginx}
       |                   ^^^^^
       |
       = help: write a whole number above 0, as shown by `ps`
    ");
    assert_snapshot!(attached("{cgroup: a.service}"), @"
    error: `a.service` is not the folder of a control group
      --> labs/x.yaml:10:22
       |
    10 |     attach: {cgroup: a.service}
       |                      ^^^^^^^^^
       |
       = help: write the absolute path, such as /sys/fs/cgroup/system.slice/nginx.service
    ");
    assert_snapshot!(attached("{metrics: localhost}"), @"
    error: `localhost` is not a URL
      --> labs/x.yaml:10:23
       |
    10 |     attach: {metrics: localhost}
       |                       ^^^^^^^^^
       |
       = help: write a URL such as http://127.0.0.1:9090/metrics
    ");
}

#[test]
fn a_status_needs_a_path() {
    assert_snapshot!(check(&[("stack: a}", "stack: a}\n    ready: {status: 200}")]), @"
    error: `status` without `path`
     --> labs/x.yaml:9:21
      |
    9 |     ready: {status: 200}
      |                     ^^^
      |
      = help: give the path that must answer
    ");
}

#[test]
fn a_wrong_setting_is_reported_once_and_not_where_it_is_used() {
    assert_snapshot!(check(&[("settings: {stack: a}", "settings: {stack: [a]}")]), @"
    error: expected text or a number or a mapping of keys to values, found a list
     --> labs/x.yaml:8:23
      |
    8 |     settings: {stack: [a]}
      |                       ^^^
    ");
}

#[test]
fn a_variant_may_have_a_target_of_its_own_and_starts_what_that_needs() {
    let systems = "systems:\n  proxy:\n    run: proxy {{addr}} {{server.url}}\n";
    let lab = lab(&[
        ("systems:\n", systems),
        ("name: b, with: {server.stack: b}", "name: b, target: proxy"),
    ]);
    let names = |variant: &Variant| -> Vec<String> {
        let stack = variant.systems().iter();
        stack.map(|setup| setup.system.clone()).collect()
    };
    assert_eq!(names(&lab.baseline), ["server"]);
    assert_eq!(names(&lab.variants[0]), ["server", "proxy"]);
    assert_snapshot!(check(&[
        ("systems:\n", systems),
        ("name: a", "name: a, target: proxi"),
        ("name: b, with: {server.stack: b}", "name: b, target: serve"),
    ]), @"
    error: there is no system `proxi`
      --> labs/x.yaml:12:29
       |
    12 | baseline: {name: a, target: proxi}
       |                             ^^^^^
       |
       = help: did you mean `proxy`?

    error: there is no system `serve`
      --> labs/x.yaml:14:23
       |
    14 |   - {name: b, target: serve}
       |                       ^^^^^
       |
       = help: did you mean `server`?
    ");
}

#[test]
fn limits_may_differ_from_variant_to_variant() {
    let lab = crate::lab(&[
        (
            "stack: a}",
            "stack: a, cpus: 0.25, memory: none}\n    limits: {cpus: \"{{cpus}}\", memory: \"{{memory}}\"}",
        ),
        (
            "{server.stack: b}",
            "{server.cpus: none, server.memory: 64MiB}",
        ),
    ]);
    let limits = |variant: &Variant| {
        let setup = &variant.systems()[0];
        (setup.limits.cpus, setup.limits.memory)
    };
    assert_eq!(limits(&lab.baseline), (Some(0.25), None));
    assert_eq!(limits(&lab.variants[0]), (None, Some(64 << 20)));
}

#[test]
fn a_limit_that_is_none_after_all_is_shown_where_it_is_used() {
    assert_snapshot!(check(&[
        (
            "stack: a}",
            "stack: a, cpus: few}\n    limits: {cpus: \"{{cpus}}\", memory: \"{{addr}}\"}",
        ),
    ]), @r#"
    error: expected a number of cores, found `few`
     --> labs/x.yaml:9:20
      |
    9 |     limits: {cpus: "{{cpus}}", memory: "{{addr}}"}
      |                    ^^^^^^^^^^
      |
      = help: write for example `0.25`

    error: a limit cannot hold an address
     --> labs/x.yaml:9:40
      |
    9 |     limits: {cpus: "{{cpus}}", memory: "{{addr}}"}
      |                                        ^^^^^^^^^^
      |
      = help: use a setting with a limit or `none` as its value
    "#);
}
