//! Claims about systems from manifests of a cluster.

use std::path::PathBuf;

use insta::assert_snapshot;
use lab::{Lab, Manifests};

use crate::{check, lab};

/// The example lab with manifests as its server.
fn made(keys: &str) -> [(&str, &str); 2] {
    [
        (
            "    settings: {stack: a}\n    run: serve {{stack}} --listen {{addr}}\n",
            keys,
        ),
        (
            ", with: {server.stack: b}",
            ", with: {server.file: new.yaml, server.image: 'api:2', server.leave-out: none}",
        ),
    ]
}

const FILES: &str = "    settings: {file: ../k8s/api.yaml, image: '', leave-out: 'HorizontalPodAutoscaler, Deployment/cache'}
    manifests:
      files: ['{{file}}', common.yaml]
      service: api
      port: 80
      workload: api
      without: '{{leave-out}}'
      changes:
        api: {container: api, image: '{{image}}', env: {NAME: '{{name}}'}, replicas: 2}
";

fn manifests(lab: &Lab, index: usize) -> Manifests {
    let variant = lab.all().nth(index).unwrap();
    let [setup] = variant.systems() else {
        panic!("one system");
    };
    setup.manifests().expect("manifests").clone()
}

#[test]
fn a_variant_has_other_files_or_a_patch() {
    let lab = lab(&made(FILES));
    let first = manifests(&lab, 0);
    assert_eq!(
        first.files,
        ["k8s/api.yaml", "labs/common.yaml"].map(PathBuf::from)
    );
    assert_eq!(
        (
            first.service.as_str(),
            first.port,
            first.workload.as_deref()
        ),
        ("api", Some(80), Some("api"))
    );
    assert_eq!(
        first.without,
        ["HorizontalPodAutoscaler", "Deployment/cache"]
    );
    let change = &first.changes[0];
    assert_eq!((change.image.as_deref(), change.replicas), (None, Some(2)));
    assert_eq!(change.env, [("NAME".to_owned(), "a".to_owned())]);
    let second = manifests(&lab, 1);
    assert_eq!(second.files[0], PathBuf::from("labs/new.yaml"));
    assert!(second.without.is_empty());
    assert_eq!(second.changes[0].image.as_deref(), Some("api:2"));
}

#[test]
fn a_system_of_manifests_has_no_other_origin_and_no_keys_of_processes() {
    let also = format!("    image: 'a:1'\n    limits: {{cpus: 1}}\n{FILES}");
    assert_snapshot!(check(&made(&also)), @r#"
    error: `image` cannot be used with `manifests`
      --> labs/x.yaml:8:5
       |
     8 |     image: 'a:1'
       |     ^^^^^
    ...
    11 |     manifests:
       |     --------- this key takes its objects from manifests
       |
       = help: a system has one source. Remove one of the two

    error: `limits` cannot be used with `manifests`
      --> labs/x.yaml:9:5
       |
     9 |     limits: {cpus: 1}
       |     ^^^^^^
    10 |     settings: {file: ../k8s/api.yaml, image: '', leave-out: 'HorizontalPodAutoscaler, Deployment/cache'}
    11 |     manifests:
       |     --------- this key takes its objects from manifests
       |
       = help: write limits in the manifests, as `resources`
    "#);
}

#[test]
fn what_is_missing_or_no_number_is_said() {
    let wrong = FILES
        .replace("      service: api\n", "")
        .replace("port: 80", "port: 0");
    assert_snapshot!(check(&made(&wrong)), @r#"
    error: the key `service` is missing
     --> labs/x.yaml:9:5
      |
    9 |     manifests:
      |     ^^^^^^^^^
      |
      = help: `service`: The Service of the files that receives the load

    error: `0` is not a port
      --> labs/x.yaml:11:13
       |
    11 |       port: 0
       |             ^
       |
       = help: write a whole number from 1 to 65535, or a setting with such a value
    "#);
}
