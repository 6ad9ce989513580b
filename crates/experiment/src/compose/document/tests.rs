use std::collections::BTreeMap;

use insta::assert_snapshot;
use lab::{Compose, ServiceChange};
use serde_json::{Value, json};

use super::{DocumentInputs, Written, read, written};

/// The output of compose's `config` for an API behind nginx, with Redis.
const STACK: &str = r#"
services:
  api:
    build: {context: /stack/api}
    cpus: 0.5
    depends_on: {redis: {condition: service_healthy}}
    environment: {REDIS: "redis:6379", PRICE: $$5}
    expose: ["8080"]
    mem_limit: 64m
    restart: always
  nginx:
    container_name: front
    depends_on: {api: {condition: service_started}}
    deploy: {replicas: 1, resources: {limits: {cpus: 0.25, memory: 32M}}}
    image: nginx:1
    ports: [{published: 8080, target: 80}]
    volumes: ["/stack/nginx.conf:/etc/nginx/nginx.conf:rw"]
  redis:
    image: redis:7
    volumes: ["data:/data:rw"]
  tools:
    image: busybox
    profiles: [debug]
version: '3.9'
volumes:
  data: {name: shop_data}
"#;

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("run".to_owned(), "7".to_owned())])
}

fn of(text: &str, compose: &Compose) -> Result<Written, Vec<String>> {
    let resolved = read(text).expect("YAML");
    let inputs = DocumentInputs {
        compose,
        labels: &labels(),
        is_folder: &|path| !path.contains(".conf"),
        image_ports: &|image| {
            if image == "exposes" {
                vec![9000]
            } else {
                Vec::new()
            }
        },
    };
    written(&resolved, inputs)
}

fn loaded(service: &str) -> Compose {
    Compose {
        service: service.to_owned(),
        ..Compose::default()
    }
}

fn without(service: &str, left_out: &[&str]) -> Compose {
    Compose {
        without: left_out.iter().map(|one| (*one).to_owned()).collect(),
        ..loaded(service)
    }
}

/// The service `a` of a file with these keys. It listens on port 80.
fn service(keys: &str) -> Result<Written, Vec<String>> {
    let text = format!("services:\n  a: {{image: a, expose: [80], {keys}}}\n  b: {{image: b}}\n");
    of(&text, &loaded("a"))
}

fn refused(keys: &str) -> String {
    service(keys).expect_err("it is refused").join("\n")
}

fn shown(file: &Value) -> String {
    serde_json::to_string_pretty(file).expect("it is JSON")
}

#[test]
fn a_project_has_nothing_that_another_could_have_too() {
    let written = of(STACK, &loaded("nginx")).expect("it can be started");
    assert_snapshot!(shown(&written.file), @r#"
    {
      "networks": {
        "default": {
          "labels": {
            "run": "7"
          }
        }
      },
      "services": {
        "api": {
          "cpus": 0.5,
          "depends_on": {
            "redis": {
              "condition": "service_healthy"
            }
          },
          "environment": {
            "PRICE": "$$5",
            "REDIS": "redis:6379"
          },
          "expose": [
            "8080"
          ],
          "image": "weighbridge/api:bd32e2ac4731",
          "labels": {
            "run": "7"
          },
          "mem_limit": "67108864"
        },
        "nginx": {
          "cpus": 0.25,
          "depends_on": {
            "api": {
              "condition": "service_started"
            }
          },
          "image": "nginx:1",
          "labels": {
            "run": "7"
          },
          "mem_limit": "33554432",
          "ports": [
            "127.0.0.1::80"
          ],
          "volumes": [
            "/stack/nginx.conf:/etc/nginx/nginx.conf:rw"
          ]
        },
        "redis": {
          "image": "redis:7",
          "labels": {
            "run": "7"
          },
          "volumes": [
            "data:/data:rw"
          ]
        }
      },
      "version": "3.9",
      "volumes": {
        "data": {
          "labels": {
            "run": "7"
          }
        }
      }
    }
    "#);
}

#[test]
fn what_is_changed_is_noted_and_limits_are_known_before_the_start() {
    let written = of(STACK, &loaded("nginx")).expect("it can be started");
    assert_snapshot!(written.notes.join("\n"), @"
    `api`: its `restart` is omitted
    `nginx`: its `container_name` is omitted
    ");
    assert_eq!(
        (written.entrance.service.as_str(), written.entrance.port),
        ("nginx", 80)
    );
    let limits: Vec<(&str, Option<f64>, Option<u64>)> = written
        .services
        .iter()
        .map(|it| (it.name.as_str(), it.cpus, it.memory))
        .collect();
    let mib = 1 << 20;
    assert_eq!(
        limits,
        [
            ("api", Some(0.5), Some(64 * mib)),
            ("nginx", Some(0.25), Some(32 * mib)),
            ("redis", None, None)
        ]
    );
}

#[test]
fn what_is_built_keeps_the_name_of_its_image_from_project_to_project() {
    let build = |service: &str| {
        of(STACK, &loaded(service))
            .expect("it can be started")
            .build
    };
    let first = build("nginx").expect("the API is built");
    assert_eq!(Some(&first), build("api").as_ref());
    let image = first["services"]["api"]["image"].as_str().expect("a name");
    assert!(image.starts_with("weighbridge/api:"), "{image}");
    let other = STACK.replace("/stack/api", "/elsewhere");
    let other = of(&other, &loaded("api")).expect("it can be started").build;
    assert_ne!(other.expect("built")["services"]["api"]["image"], image);
    // With this name, the image of the second revision would replace the image of the first.
    let named = STACK.replace("  api:\n", "  api:\n    image: shop/api\n");
    let named = of(&named, &loaded("api")).expect("it can be started").build;
    assert_eq!(named, Some(first));
}

#[test]
fn a_service_that_is_left_out_is_not_waited_for() {
    let written = of(STACK, &without("api", &["redis", "nginx"])).expect("it can be started");
    let services = &written.file["services"];
    assert_eq!(services["api"]["depends_on"], json!({}));
    assert_eq!(services.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(services["api"]["ports"], json!(["127.0.0.1::8080"]));
    // The user is responsible for the service's settings about Redis.
    assert_eq!(services["api"]["environment"]["REDIS"], "redis:6379");
    assert_eq!(written.file["volumes"], json!({}));
}

#[test]
fn references_to_a_service_that_is_left_out_are_taken_away_or_refused() {
    let leaving = |keys: &str| {
        let text =
            format!("services:\n  a: {{image: a, expose: [80], {keys}}}\n  b: {{image: b}}\n");
        of(&text, &without("a", &["b"]))
    };
    let list = leaving("depends_on: [b], links: ['b:other', c]").expect("it can be started");
    assert_eq!(list.file["services"]["a"]["depends_on"], json!([]));
    assert_eq!(list.file["services"]["a"]["links"], json!(["c"]));
    for keys in [
        "network_mode: service:b",
        "pid: service:b",
        "volumes_from: ['b:ro']",
    ] {
        let said = leaving(keys).expect_err(keys).join("\n");
        assert!(said.contains("cannot run without"), "{said}");
    }
}

#[test]
fn a_lab_changes_environment_image_and_number_of_containers() {
    let compose = Compose {
        services: vec![
            ServiceChange {
                service: "api".to_owned(),
                env: vec![("REDIS".to_owned(), "a$b".to_owned())],
                image: Some("api:next".to_owned()),
                replicas: None,
            },
            ServiceChange {
                service: "redis".to_owned(),
                replicas: Some(3),
                ..ServiceChange::default()
            },
        ],
        profiles: vec!["debug".to_owned()],
        ..loaded("nginx")
    };
    let written = of(STACK, &compose).expect("it can be started");
    let api = &written.file["services"]["api"];
    // Compose interpolates the file once more, and reads `$$` as `$`.
    assert_eq!(api["environment"], json!({"REDIS": "a$$b", "PRICE": "$$5"}));
    assert_eq!(api["image"], "api:next");
    assert_eq!(written.build, None);
    let replicas: Vec<u32> = written.services.iter().map(|it| it.replicas).collect();
    assert_eq!(
        replicas,
        [1, 1, 3, 1],
        "with `tools`, whose profile was chosen"
    );
}

#[test]
fn names_that_the_file_does_not_have_are_refused_together() {
    let compose = Compose {
        services: vec![ServiceChange {
            service: "rediss".to_owned(),
            ..ServiceChange::default()
        }],
        ..without("ngnix", &["tools"])
    };
    assert_snapshot!(of(STACK, &compose).expect_err("unknown names").join("\n"), @"
    there is no service `ngnix`: did you mean `nginx`?
    there is no service `tools`: it has api, nginx, redis
    there is no service `rediss`: did you mean `redis`?
    ");
}

#[test]
fn what_reaches_out_of_a_project_is_refused_with_the_reason() {
    let several = refused(
        "network_mode: host, pid: 'container:x', external_links: [y], volumes: ['/data:/d']",
    );
    assert_snapshot!(several, @"
    `a` has `network_mode: host`, but two variants cannot share the ports of the machine. Remove it
    `a` has `pid: container:x`, a container outside of this project. Name a service of the file, `service:NAME`
    `a` has `external_links` to containers outside of this project. Make them services of the file
    `a` can write to the folder `/data`, which all variants would share. Mount it read-only (`:ro`), or use a volume
    ");
    for (keys, words) in [
        (
            "networks: {default: {ipv4_address: 10.0.0.2}}",
            "has a fixed address",
        ),
        ("ipc: 'container:x'", "outside of this project"),
        ("volumes_from: ['container:x']", "outside of this project"),
        (
            "volumes: [{type: bind, source: /data, target: /d}]",
            "can write to the folder `/data`",
        ),
        ("network_mode: none", "has `network_mode: none`"),
        ("scale: 2", "has 2 containers"),
    ] {
        let said = refused(keys);
        assert!(said.contains(words), "{keys}: {said}");
    }
}

#[test]
fn what_a_service_may_do_to_the_machine_is_its_users_decision() {
    let keys = "privileged: true, pid: host, cap_add: [ALL], devices: ['/dev/fuse:/dev/fuse'], \
                volumes: ['/data:/d:ro', '/a.conf:/b.conf', '/var/run/x.conf:/x', cache], user: root";
    let written = service(keys).expect("it can be started");
    let started = &written.file["services"]["a"];
    for key in ["privileged", "pid", "cap_add", "devices", "volumes", "user"] {
        assert!(!started[key].is_null(), "{key}: {started}");
    }
}

#[test]
fn external_networks_and_volumes_would_join_variants() {
    let with = |top: &str, mount: &str| {
        let text = format!(
            "services:\n  a: {{image: a, expose: [80], networks: [n], volumes: ['v:/v:{mount}']}}\n{top}"
        );
        of(&text, &loaded("a"))
            .map(|written| written.file)
            .map_err(|why| why.join("\n"))
    };
    assert_snapshot!(with("networks: {n: {external: true}}\nvolumes: {v: {external: {name: x}}}", "rw").expect_err("refused"), @"
    the volume `v` is external, so variants would write into one another's data. Mount it read-only, or remove `external`, so that each variant begins with an empty volume
    the network `n` is external, so services of two variants would have the same name in it. Remove `external`, so that each variant has its own network
    ");
    // All variants may share read-only data.
    let file = with("volumes: {v: {external: true, name: seed}}", "ro").expect("it can be started");
    assert_eq!(
        file["volumes"]["v"],
        json!({"external": true, "name": "seed"})
    );
    let file = with(
        "networks: {n: {name: own, ipam: {config: [{subnet: 10.0.0.0/24}]}}}",
        "rw",
    );
    let file = file.expect("it can be started");
    assert_eq!(file["networks"]["n"], json!({"labels": {"run": "7"}}));
    let bound = with(
        "volumes: {v: {driver_opts: {type: none, o: bind, device: /srv}}}",
        "rw",
    );
    assert!(
        bound
            .expect_err("refused")
            .contains("is `/srv` for every variant")
    );
}

#[test]
fn a_sidecar_in_the_network_of_another_is_reached_there() {
    let text = "services:\n  app: {image: a, ports: ['8080:80']}\n  proxy: {image: p, network_mode: 'service:app'}\n";
    let compose = Compose {
        port: Some(15001),
        ..loaded("proxy")
    };
    let written = of(text, &compose).expect("it can be started");
    assert_eq!(
        (written.entrance.service.as_str(), written.entrance.port),
        ("app", 15001)
    );
    assert_eq!(
        written.file["services"]["app"]["ports"],
        json!(["127.0.0.1::15001"])
    );
    assert_eq!(written.file["services"]["proxy"].get("ports"), None);
    // Compose refuses a circle. This function must only return.
    let circle = text.replace("image: a,", "image: a, network_mode: 'service:proxy',");
    let _whatever = of(&circle, &compose);
}

#[test]
fn the_port_is_the_published_one_then_the_exposed_one_and_else_asked_for() {
    let port = |keys: &str| {
        let image = if keys.contains("image") {
            ""
        } else {
            "image: a, "
        };
        let text = format!("services: {{a: {{{image}{keys}}}}}");
        match of(&text, &loaded("a")) {
            Ok(written) => written.entrance.port.to_string(),
            Err(why) => why.join("\n"),
        }
    };
    for (keys, found) in [
        (
            "ports: ['127.0.0.1:8080:80/tcp', '53:53/udp'], expose: [9000]",
            "80",
        ),
        ("ports: [{target: 81, published: '80'}]", "81"),
        ("ports: [82]", "82"),
        ("expose: ['83']", "83"),
        ("ports: ['127.0.0.1::84']", "84"),
    ] {
        assert_eq!(port(keys), found, "{keys}");
    }
    // The ports of the image are used last.
    assert_eq!(port("expose: [83], image: exposes"), "83");
    assert_eq!(port("image: exposes"), "9000");
    assert!(port("image: a").contains("has no port for it"));
    assert!(port("ports: ['80:80', '443:443']").contains("for example 80 and 443"));
    assert!(port("ports: ['8000-8010:8000-8010']").contains("has no port for it"));
}

#[test]
fn text_that_looks_like_a_number_stays_text() {
    let read = read("a: 1e3\nb: 1.10\nc: 80\nd: 'x'\ne: true\nf: \"80\"\n").expect("YAML");
    let wanted = json!({"a": "1e3", "b": "1.10", "c": 80, "d": "x", "e": true, "f": "80"});
    assert_eq!(read, wanted);
    for text in ["", "a: [", "- 1"] {
        let services = super::read(text).map(|read| read["services"].clone());
        assert!(services.is_err() || services == Ok(Value::Null), "{text}");
    }
}

#[test]
fn sizes_are_read_as_docker_reads_them() {
    use super::quantities::bytes;
    for (text, size) in [
        ("64m", Some(64 << 20)),
        ("64MB", Some(64 << 20)),
        ("1.5g", Some(3 << 29)),
        ("512", Some(512)),
        ("1 kib", Some(1024)),
        ("-1", None),
        ("many", None),
        ("1x", None),
    ] {
        assert_eq!(bytes(&text.into()), size, "{text}");
    }
    assert_eq!(bytes(&json!(67_108_864)), Some(64 << 20));
}
