//! Properties of the responses to random requests.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use route_webhook::certificate::certificates;
use route_webhook::request::Refusal;
use route_webhook::sync::{ResponseFormat, Rules, sync};
use serde_json::{Value, json};

use test_client::chart::as_type;

fn rules(format: ResponseFormat) -> Rules {
    Rules {
        format,
        image: "keip-integration".to_owned(),
    }
}

fn today(body: &Value, now: &str) -> Result<Value, Refusal> {
    let answer = sync(
        body.to_string().as_bytes(),
        &rules(ResponseFormat::Today),
        || now.to_owned(),
    );
    answer.map(|text| serde_json::from_str(&text).unwrap())
}

/// A valid Kubernetes name.
fn name() -> impl Strategy<Value = String> {
    "[a-z]([-a-z0-9]{0,12}[a-z0-9])?"
}

fn map() -> impl Strategy<Value = Value> {
    btree_map("[a-z./]{1,12}", "\\PC{0,12}", 0..4).prop_map(|map| json!(map))
}

fn list(item: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Vec<Value>>> {
    option::of(vec(item, 0..4))
}

fn tls() -> impl Strategy<Value = Value> {
    let kind = || prop_oneof![Just("jks"), Just("pkcs12")];
    let truststore = (kind(), name(), name())
        .prop_map(|(kind, map, key)| json!({ kind: {"configMapName": map, "key": key} }));
    let keystore = (kind(), name(), name(), name(), option::of(name())).prop_map(
        |(kind, secret, key, password, alias)| {
            let mut store =
                json!({"secretName": secret, "key": key, "passwordSecretRef": password});
            if let (Some(alias), "jks") = (alias, kind) {
                store["alias"] = alias.into();
            }
            json!({ kind: store })
        },
    );
    (option::of(truststore), option::of(keystore)).prop_map(|(truststore, keystore)| {
        let stores = [("truststore", truststore), ("keystore", keystore)];
        let stores = stores.into_iter();
        let given = stores.filter_map(|(name, store)| Some((name.to_owned(), store?)));
        Value::Object(given.collect())
    })
}

/// The `spec` of a route that the CRD accepts.
fn spec() -> impl Strategy<Value = Value> {
    let mounted = |key: &'static str| {
        (name(), "/[a-z/]{1,12}")
            .prop_map(move |(name, path)| json!({key: name, "mountPath": path}))
    };
    let env = ("[A-Z_]{1,9}", "\\PC{0,20}")
        .prop_map(|(name, value)| json!({"name": name, "value": value}));
    let secret = prop_oneof![
        name().prop_map(Value::from),
        name().prop_map(|name| json!({ "name": name }))
    ];
    let properties = prop_oneof![
        name().prop_map(|name| json!({ "name": name })),
        map().prop_map(|labels| json!({ "labels": labels }))
    ];
    let from = (
        prop_oneof![Just("configMapRef"), Just("secretRef")],
        name(),
        any::<bool>(),
    )
        .prop_map(|(kind, name, optional)| json!({ kind: {"name": name, "optional": optional} }));
    let resources = Just(json!({"limits": {"cpu": "1"}, "requests": {"memory": "64Mi"}}));
    let many = (
        list(mounted("claimName")),
        list(mounted("name")),
        list(env),
        list(secret),
        list(properties),
        list(from),
    );
    let one = (
        name(),
        1..=20_u32,
        option::of(map()),
        option::of(map()),
        option::of(tls()),
        option::of(resources),
    );
    (one, many).prop_map(|(one, many)| {
        let (config_map, replicas, labels, annotations, tls, resources) = one;
        let (claims, maps, env, secrets, properties, from) = many;
        let mut spec = json!({"routeConfigMap": config_map, "replicas": replicas});
        let lists = [
            ("persistentVolumeClaims", claims),
            ("configMaps", maps),
            ("env", env),
            ("secretSources", secrets),
            ("propSources", properties),
            ("envFrom", from),
        ];
        let lists = lists.map(|(name, list)| (name, list.map(Value::from)));
        let objects = [
            ("labels", labels),
            ("annotations", annotations),
            ("tls", tls),
            ("resources", resources),
        ];
        for (name, value) in lists.into_iter().chain(objects) {
            if let Some(value) = value {
                spec[name] = value;
            }
        }
        spec
    })
}

/// A whole request about a route, with the observed state of its Deployment.
fn request() -> impl Strategy<Value = Value> {
    let observed = option::of((0..4_u32, 0..4_u32, any::<bool>()));
    (name(), spec(), 1..9_u32, observed).prop_map(|(name, spec, generation, observed)| {
        let metadata = json!({"name": name, "namespace": "shop", "generation": generation});
        let mut deployments = json!({});
        if let Some((replicas, ready, has_condition)) = observed {
            let mut status = json!({"replicas": replicas, "readyReplicas": ready});
            if has_condition {
                let progressing = json!({"type": "Progressing", "status": "True"});
                let available = json!({"type": "Available", "status": "True"});
                status["conditions"] = json!([progressing, available]);
            }
            deployments = json!({ name: {"status": status} });
        }
        json!({
            "parent": {"metadata": metadata, "spec": spec},
            "children": {"Deployment.apps/v1": deployments, "Service.v1": {}},
        })
    })
}

/// JSON of any shape that contains the relevant names.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        4 => prop::sample::select(vec![
            "parent", "children", "metadata", "spec", "status", "name", "generation", "replicas",
            "routeConfigMap", "Deployment.apps/v1", "labels", "env", "tls", "keystore", "jks",
            "secretSources", "object", "annotations", "namespace",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let members = vec((key.clone(), inner.clone()), 0..6);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_request_has_the_same_answer(request in request()) {
        prop_assert_eq!(today(&request, "t").unwrap(), today(&request, "t").unwrap());
    }

    #[test]
    fn a_status_that_is_fed_back_stays(request in request()) {
        let first = today(&request, "first").unwrap();
        let mut again = request;
        again["parent"]["status"] = first["status"].clone();
        let second = today(&again, "second").unwrap();
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_route_that_is_valid_becomes_objects_that_are(request in request()) {
        let answer = today(&request, "2026-01-02T03:04:05Z").unwrap();
        let children = answer["children"].as_array().unwrap();
        prop_assert_eq!(children.len(), 2);
        let deployment: Deployment = as_type(&children[0]).map_err(TestCaseError::fail)?;
        let service: Service = as_type(&children[1]).map_err(TestCaseError::fail)?;
        let spec = deployment.spec.unwrap();
        let labels = spec.template.metadata.unwrap().labels.unwrap();
        let own = spec.selector.match_labels.unwrap();
        let of_service = service.spec.unwrap().selector.unwrap();
        for (name, value) in own.into_iter().chain(of_service) {
            prop_assert_eq!(labels.get(&name), Some(&value));
        }
        let pod = spec.template.spec.unwrap();
        let volumes = pod.volumes.unwrap().into_iter();
        let volumes: Vec<_> = volumes.map(|volume| volume.name).collect();
        let mounts = pod.containers[0].volume_mounts.clone().unwrap();
        let mounts: Vec<_> = mounts.into_iter().map(|mount| mount.name).collect();
        prop_assert_eq!(volumes, mounts);
        let env = pod.containers[0].env.clone().unwrap();
        let spring = env[0].value.clone().unwrap();
        prop_assert!(spring.is_ascii());
        let spring: Value = serde_json::from_str(&spring).unwrap();
        let name = &request["parent"]["metadata"]["name"];
        prop_assert_eq!(&spring["spring"]["application"]["name"], name);
    }

    #[test]
    fn the_seeds_answer_is_a_deployment(request in request()) {
        let body = request.to_string();
        let answer = sync(body.as_bytes(), &rules(ResponseFormat::Seed), String::new).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        prop_assert_eq!(&answer["status"], &json!({}));
        let deployment: Result<Deployment, _> = as_type(&answer["children"][0]);
        prop_assert!(deployment.is_ok(), "{:?}", deployment);
    }

    #[test]
    fn any_json_is_answered_or_refused(
        body in any_json(),
        format in prop_oneof![Just(ResponseFormat::Today), Just(ResponseFormat::Seed)],
    ) {
        let text = body.to_string();
        let answers = [
            sync(text.as_bytes(), &rules(format), || "t".to_owned()),
            certificates(text.as_bytes()),
        ];
        for answer in answers {
            match answer {
                Ok(answer) => prop_assert!(serde_json::from_str::<Value>(&answer).is_ok()),
                Err(Refusal::NoJson(why)) => prop_assert!(false, "{}", why),
                Err(Refusal::Missing(_) | Refusal::Unfit { .. }) => {}
            }
        }
    }

    #[test]
    fn any_bytes_are_answered_or_refused(body in vec(any::<u8>(), 0..200)) {
        let is_json = serde_json::from_slice::<Value>(&body).is_ok();
        let answer = sync(&body, &rules(ResponseFormat::Today), String::new);
        prop_assert_eq!(matches!(answer, Err(Refusal::NoJson(_))), !is_json);
    }
}
