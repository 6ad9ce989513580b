//! Claims about systems that are services of a compose file.

use std::path::Path;

use insta::assert_snapshot;
use lab::{Compose, Lab};

use crate::{check, lab};

/// The example lab with a service of a compose file as its server.
fn composed(keys: &str) -> [(&str, &str); 2] {
    [
        (
            "    settings: {stack: a}\n    run: serve {{stack}} --listen {{addr}}\n",
            keys,
        ),
        (
            ", with: {server.stack: b}",
            ", with: {server.load: nginx, server.leave-out: none}",
        ),
    ]
}

const SIDECAR: &str = "    settings: {load: api, leave-out: nginx}
    compose:
      file: ../stack/compose.yaml
      service: '{{load}}'
      without: '{{leave-out}}'
      services:
        nginx: {env: {UPSTREAM: 'api:80'}, replicas: 2}
        api: {image: 'api:{{name}}'}
";

fn project(lab: &Lab, index: usize) -> Compose {
    let variant = lab.all().nth(index).unwrap();
    let [setup] = variant.systems() else {
        panic!("one system");
    };
    setup.compose().expect("services").clone()
}

#[test]
fn a_variant_says_which_services_run_and_which_gets_the_load() {
    let lab = lab(&composed(SIDECAR));
    let without = project(&lab, 0);
    assert_eq!(without.file, Path::new("stack/compose.yaml"));
    assert_eq!(
        (without.service.as_str(), without.without.as_slice()),
        ("api", &["nginx".to_owned()][..])
    );
    // A change in a service that is left out is not applied.
    let changed: Vec<&str> = without
        .services
        .iter()
        .map(|it| it.service.as_str())
        .collect();
    assert_eq!(changed, ["api"]);
    assert_eq!(without.services[0].image.as_deref(), Some("api:a"));
    let with = project(&lab, 1);
    assert_eq!((with.service.as_str(), with.without.len()), ("nginx", 0));
    let nginx = &with.services[0];
    assert_eq!(nginx.env, [("UPSTREAM".to_owned(), "api:80".to_owned())]);
    assert_eq!(nginx.replicas, Some(2));
}

#[test]
fn one_setting_may_leave_out_several() {
    let several = SIDECAR.replace("leave-out: nginx", "leave-out: 'nginx, redis,'");
    assert_eq!(
        project(&lab(&composed(&several)), 0).without,
        ["nginx", "redis"]
    );
}

#[test]
fn what_gets_the_load_is_not_left_out() {
    assert_snapshot!(check(&composed(&SIDECAR.replace("load: api", "load: nginx"))), @r#"
    error: `nginx` receives the load, but `without` removes it
      --> labs/x.yaml:11:16
       |
    11 |       service: '{{load}}'
       |                ^^^^^^^^^^
       |
       = help: name the service that receives the load instead. Variants can choose it with a setting: `service: "{{load}}"`
    "#);
}

#[test]
fn services_have_no_keys_of_processes() {
    let beside = |keys: &str| check(&composed(&format!("{SIDECAR}{keys}")));
    assert_snapshot!(beside("    env: {A: 1}\n"), @"
    error: `env` cannot be used with `compose`
      --> labs/x.yaml:16:5
       |
     9 |     compose:
       |     ------- this key takes its services from a compose file
    ...
    16 |     env: {A: 1}
       |     ^^^
       |
       = help: write `compose.env` for the `${…}` of the file. For the environment of a service write `compose.services.NAME.env`
    ");
    for (keys, words) in [
        (
            "    run: serve {{addr}}\n",
            "`run` cannot be used with `compose`",
        ),
        ("    url: http://a\n", "`url` cannot be used with `compose`"),
        ("    folder: .\n", "`folder` cannot be used with `compose`"),
        (
            "    build: make\n",
            "the `build` keys of the compose file define",
        ),
        (
            "    limits: {cpus: 1}\n",
            "write the limits of its services in the compose file",
        ),
        ("    pin: 1\n", "write `cpuset`"),
        ("    version: serve -V\n", "digests"),
        (
            "    replicas: 2\n",
            "write `compose.services.NAME.replicas`",
        ),
        ("    balance: none\n", "is a service of the compose file"),
    ] {
        let said = beside(keys);
        assert!(said.contains(words), "{keys}: {said}");
    }
}

#[test]
fn wrong_values_are_named_with_their_place() {
    let with = |from: &str, to: &str| check(&composed(&SIDECAR.replace(from, to)));
    assert_snapshot!(with("replicas: 2", "replicas: 0"), @"
    error: `0` is not a number of containers
      --> labs/x.yaml:14:54
       |
    14 |         nginx: {env: {UPSTREAM: 'api:80'}, replicas: 0}
       |                                                      ^
       |
       = help: write a whole number from 1 to 64, or a setting with such a value
    ");
    assert_snapshot!(with("'api:80'", "'{{addr}}'"), @"
    error: containers cannot reach this address
      --> labs/x.yaml:14:33
       |
    14 |         nginx: {env: {UPSTREAM: '{{addr}}'}, replicas: 2}
       |                                 ^^^^^^^^^^
       |
       = help: services reach each other by name in their own network. Make the other system a service of the compose file
    ");
    assert_snapshot!(with("leave-out: nginx", "leave-out: 'nginx redis'"), @"
    error: `nginx redis` is not the name of a service
      --> labs/x.yaml:12:16
       |
    12 |       without: '{{leave-out}}'
       |                ^^^^^^^^^^^^^^^
       |
       = help: use letters, digits, `.`, `_` and `-`
    ");
    assert_snapshot!(with("      file: ../stack/compose.yaml\n", ""), @"
    error: the key `file` is missing
     --> labs/x.yaml:9:5
      |
    9 |     compose:
      |     ^^^^^^^
      |
      = help: `file`: The compose file, relative to the file that contains this key
    ");
    for (from, to, words) in [
        (
            "      services:\n",
            "      port: 99999\n      services:\n",
            "`99999` is not a port",
        ),
        (
            "      services:\n",
            "      port: http\n      services:\n",
            "`http` is not a port",
        ),
        (
            "      services:\n",
            "      profile: a\n      services:\n",
            "did you mean `profiles`?",
        ),
        ("nginx: {env", "'a b': {env", "is not the name of a service"),
        ("replicas: 2", "scale: 2", "unknown key `scale`"),
    ] {
        let said = with(from, to);
        assert!(said.contains(words), "{to}: {said}");
    }
}
