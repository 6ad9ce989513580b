//! Claims about systems with several instances, and about their balancers.

use insta::assert_snapshot;
use lab::{Balance, Balances, Lab, Setup};

use crate::{check, lab};

const RUN: &str = "    run: serve {{stack}} --listen {{addr}}\n";

/// The example lab with more keys in its system.
fn with(keys: &str) -> Lab {
    lab(&[(RUN, &format!("{RUN}    {keys}\n"))])
}

fn mistake(keys: &str) -> String {
    check(&[(RUN, &format!("{RUN}    {keys}\n"))])
}

fn names(setups: &[Setup]) -> Vec<&str> {
    setups.iter().map(|setup| setup.system.as_str()).collect()
}

#[test]
fn a_system_with_replicas_has_a_balancer_behind_it_in_the_stack() {
    let lab = with("replicas: 4");
    let stack = lab.baseline.systems();
    assert_eq!(names(stack), ["server", "server-balancer"]);
    assert_eq!((stack[0].replicas, &stack[0].balances), (Some(4), &None));
    let balances = Balances {
        system: "server".to_owned(),
        balance: Balance::LeastConn,
    };
    assert_eq!(stack[1].balances, Some(balances));
    assert_eq!(stack[1].needs, ["haproxy"]);
    assert_eq!(stack[1].ready, stack[0].ready);
    let lab = with("replicas: 2\n    balance: roundrobin");
    let stack = lab.baseline.systems();
    let balance = stack[1].balances.as_ref().map(|it| it.balance);
    assert_eq!(balance, Some(Balance::RoundRobin));
}

#[test]
fn a_setting_decides_for_each_variant() {
    let lab = lab(&[
        (
            RUN,
            &format!("{RUN}    replicas: '{{{{many}}}}'\n    balance: '{{{{way}}}}'\n"),
        ),
        (
            "settings: {stack: a}",
            "settings: {stack: a, many: 1, way: none}",
        ),
        (
            "with: {server.stack: b}",
            "with: {server.many: 3, server.way: leastconn}",
        ),
    ]);
    let baseline = lab.baseline.systems();
    assert_eq!(names(baseline), ["server"]);
    assert_eq!(baseline[0].replicas, None);
    let variant = lab.variants[0].systems();
    assert_eq!(names(variant), ["server", "server-balancer"]);
    assert_eq!(variant[0].replicas, Some(3));
}

#[test]
fn what_needs_the_system_starts_after_its_balancer() {
    let lab = lab(&[
        ("target: server", "target: gateway"),
        (
            RUN,
            &format!(
                "{RUN}    replicas: 2\n  gateway: {{run: 'g {{{{addr}}}} {{{{server.url}}}}'}}\n"
            ),
        ),
    ]);
    let stack = lab.baseline.systems();
    assert_eq!(names(stack), ["server", "server-balancer", "gateway"]);
}

#[test]
fn an_instance_knows_its_number_and_a_build_does_not() {
    let lab = with("replicas: 2\n    env: {NAME: 'server-{{instance}}'}");
    let stack = lab.baseline.systems();
    assert_eq!(stack[0].env[0].1.to_string(), "server-{{instance}}");
    assert_snapshot!(mistake("build: make {{instance}}"), @"
    error: this command runs once for all instances, so it cannot use `{{instance}}`
      --> labs/x.yaml:10:12
       |
    10 |     build: make {{instance}}
       |            ^^^^^^^^^^^^^^^^^
       |
       = help: `{{instance}}` is known only while systems run. Use it in `run` or `env`
    ");
}

#[test]
fn what_cannot_be_a_number_of_instances_is_refused() {
    for wrong in ["0", "65", "-1", "1.5", "many", "''", "{{stack}}"] {
        let text = mistake(&format!("replicas: \"{}\"", wrong.trim_matches('\'')));
        assert!(
            text.contains("is not a number of instances") && text.contains("from 1 to 64"),
            "{wrong}: {text}"
        );
    }
}

#[test]
fn a_balancer_is_one_that_there_is() {
    assert_snapshot!(mistake("replicas: 2\n    balance: random"), @"
    error: expected `leastconn`, `roundrobin` or `none`, found `random`
      --> labs/x.yaml:11:14
       |
    11 |     balance: random
       |              ^^^^^^
       |
       = help: write `none` only for one instance
    ");
    for (keys, words) in [
        ("balance: leastconn", "`balance` without `replicas`"),
        (
            "replicas: 2\n    balance: none",
            "2 instances need a balancer",
        ),
        (
            "replicas: 2\n    scheme: https",
            "`replicas` cannot be used with `scheme: https`",
        ),
    ] {
        let text = mistake(keys);
        assert!(text.contains(words), "{keys}: {text}");
    }
}

#[test]
fn an_instance_that_is_not_told_its_port_is_refused() {
    let text = check(&[(
        RUN,
        "    run: serve {{stack}} --port 8080\n    replicas: 4\n",
    )]);
    assert!(text.contains("`server` has no listen address"), "{text}");
}

#[test]
fn names_that_instances_will_have_are_taken() {
    for name in ["server-balancer", "server-2"] {
        let text = check(&[(
            RUN,
            &format!("{RUN}    replicas: 2\n  {name}: {{run: 'x {{{{addr}}}}'}}\n"),
        )]);
        let words = format!("`replicas` of `server` already uses the name `{name}`");
        assert!(text.contains(&words), "{text}");
    }
    // The value is not a number, so it belongs to no instance.
    let fine = check(&[(
        RUN,
        &format!("{RUN}    replicas: 2\n  server-x2: {{run: 'x {{{{addr}}}}'}}\n"),
    )]);
    assert_eq!(fine, "no mistake");
}
