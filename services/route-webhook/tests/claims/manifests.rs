//! Tests that the manifests are valid objects of Kubernetes and metacontroller and follow the contract.

use std::fs;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::ordered::Ordered;
use crate::yaml::{document, documents, folder};
use test_client::chart::as_type;

#[test]
fn every_object_is_one_of_kubernetes() {
    let mut kinds = Vec::new();
    for file in [
        "namespace.yaml",
        "crd.yaml",
        "rbac.yaml",
        "deployment.yaml",
        "service.yaml",
        "availability.yaml",
        "nodeport/service.yaml",
        "routes/account.yaml",
    ] {
        for object in documents(file) {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let read = match kind.as_str() {
                "Namespace" => as_type::<Namespace>(&object).map(drop),
                "CustomResourceDefinition" => {
                    as_type::<CustomResourceDefinition>(&object).map(drop)
                }
                "ServiceAccount" => as_type::<ServiceAccount>(&object).map(drop),
                "NetworkPolicy" => as_type::<NetworkPolicy>(&object).map(drop),
                "PodDisruptionBudget" => as_type::<PodDisruptionBudget>(&object).map(drop),
                "Role" => as_type::<Role>(&object).map(drop),
                "RoleBinding" => as_type::<RoleBinding>(&object).map(drop),
                "Deployment" => as_type::<Deployment>(&object).map(drop),
                "Service" => as_type::<Service>(&object).map(drop),
                other => Err(format!("no type for {other}")),
            };
            read.unwrap_or_else(|why| panic!("{file}: {kind}: {why}"));
            kinds.push(kind);
        }
    }
    assert_eq!(kinds.len(), 11, "{kinds:?}");
    let wrong = json!({"apiVersion": "v1", "kind": "Service", "spec": {"port": 80}});
    assert!(as_type::<Service>(&wrong).is_err());
}

#[test]
fn kustomizations_name_files_that_exist() {
    for (file, resources) in [
        ("kustomization.yaml", 7),
        ("nodeport/kustomization.yaml", 1),
        ("routes/kustomization.yaml", 1),
    ] {
        let kustomization = document(file, "Kustomization");
        let here = folder().join(file);
        let here = here.parent().unwrap();
        let named = kustomization["resources"].as_array().unwrap();
        let patches = kustomization["patches"].as_array().into_iter().flatten();
        let patches = patches.map(|patch| &patch["path"]);
        assert_eq!(named.len(), resources);
        for name in named.iter().chain(patches) {
            let path = here.join(name.as_str().unwrap());
            assert!(path.exists(), "{}", path.display());
        }
    }
    let patched = document("nodeport/service.yaml", "Service");
    let service = document("service.yaml", "Service");
    assert_eq!(patched["metadata"], service["metadata"]);
    assert_eq!(patched["spec"], json!({"type": "NodePort"}));
}

#[test]
fn the_deployment_has_the_seeds_memory_and_the_service_finds_it() {
    let deployment = document("deployment.yaml", "Deployment");
    let template = &deployment["spec"]["template"];
    let container = &template["spec"]["containers"][0];
    assert_eq!(
        container["resources"],
        json!({"requests": {"memory": "64Mi", "cpu": "100m"},
               "limits": {"memory": "128Mi"}})
    );
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(container["ports"][0]["containerPort"], 7080);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/status");
    assert_eq!(template["spec"]["securityContext"]["runAsUser"], 999);
    let service = document("service.yaml", "Service");
    assert_eq!(service["spec"]["selector"], template["metadata"]["labels"]);
    let (port, target) = (&service["spec"]["ports"][0], &container["ports"][0]["name"]);
    assert_eq!((&port["port"], &port["targetPort"]), (&json!(80), target));
    let image = fs::read_to_string(folder().join("Dockerfile")).unwrap();
    assert!(image.contains("USER 999:999") && image.contains("--package route-webhook"));
}

#[test]
fn controllers_call_the_paths_that_the_service_serves() {
    let composite = document("controllers.yaml", "CompositeController");
    let spec = &composite["spec"];
    assert_eq!(
        composite["metadata"]["name"],
        "keip-integrationroute-controller"
    );
    assert_eq!(spec["generateSelector"], true);
    assert_eq!(
        spec["parentResource"],
        json!({"apiVersion": "keip.codice.org/v1alpha2", "resource": "integrationroutes",
               "revisionHistory": {"fieldPaths": ["spec.routeConfigMap"]}})
    );
    let children = spec["childResources"].as_array().unwrap();
    let children: Vec<_> = children
        .iter()
        .map(|child| {
            (
                &child["apiVersion"],
                &child["resource"],
                &child["updateStrategy"]["method"],
            )
        })
        .collect();
    let method = json!("RollingRecreate");
    assert_eq!(
        children,
        [
            (&json!("apps/v1"), &json!("deployments"), &method),
            (&json!("v1"), &json!("services"), &method)
        ]
    );
    let decorator = document("controllers.yaml", "DecoratorController");
    assert_eq!(decorator["metadata"]["name"], "keip-certmanager-controller");
    assert_eq!(
        decorator["spec"]["attachments"],
        json!([{"apiVersion": "cert-manager.io/v1", "resource": "certificates",
                "updateStrategy": {"method": "InPlace"}}])
    );
    for (controller, path) in [
        (&composite, "/webhook/sync"),
        (&decorator, "/webhook/addons/certmanager/sync"),
    ] {
        let url = format!("http://integrationroute-webhook.keip{path}");
        let hook = json!({"url": url, "timeout": "10s"});
        assert_eq!(
            controller["spec"]["hooks"],
            json!({"sync": {"webhook": hook}})
        );
    }
}

/// Adds the mistakes of a value by the schema of a CRD. Supports the keywords of our schemas.
fn mistakes(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    let is_of_type = match schema["type"]
        .as_str()
        .unwrap_or_else(|| panic!("{at}: no type"))
    {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        other => panic!("{at}: {other}"),
    };
    if !is_of_type {
        return found.push(format!("{at}: type"));
    }
    let required = |schema: &Value| {
        let names = schema["required"].as_array().cloned().unwrap_or_default();
        names
            .iter()
            .all(|name| value.get(name.as_str().unwrap()).is_some())
    };
    if !required(schema) {
        found.push(format!("{at}: required"));
    }
    if let Some(branches) = schema["oneOf"].as_array()
        && branches.iter().filter(|branch| required(branch)).count() != 1
    {
        found.push(format!("{at}: oneOf"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        found.push(format!("{at}: enum"));
    }
    let number = value.as_i64().unwrap_or_default();
    let is_below = schema["minimum"]
        .as_i64()
        .is_some_and(|least| number < least);
    if is_below || schema["maximum"].as_i64().is_some_and(|most| number > most) {
        found.push(format!("{at}: range"));
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let rule = schema["properties"].get(name);
        match rule.or(schema.get("additionalProperties")) {
            Some(rule) => mistakes(member, rule, &format!("{at}.{name}"), found),
            None => found.push(format!("{at}.{name}: unknown")),
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        mistakes(item, &schema["items"], &format!("{at}[{index}]"), found);
    }
}

/// The mistakes in the `spec` and `status` of a route.
fn mistakes_of(route: &Value, version: &str) -> Vec<String> {
    let crd = document("crd.yaml", "CustomResourceDefinition");
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|it| it["name"] == version).unwrap();
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut found = Vec::new();
    for part in ["spec", "status"] {
        if let Some(value) = route.get(part) {
            mistakes(value, &schema["properties"][part], part, &mut found);
        }
    }
    found
}

#[test]
fn the_crd_takes_routes_of_its_versions_and_refuses_others() {
    let body = include_str!("../../../../labs/webhook/requests/route.json");
    let body: Value = serde_json::from_str(body).unwrap();
    let route = &body["parent"];
    assert_eq!(mistakes_of(route, "v1alpha2"), [""; 0]);
    let answer = include_str!("../../../../labs/webhook/expected/today.json");
    let answer: Value = serde_json::from_str(answer).unwrap();
    let answered = json!({"status": answer["status"]});
    assert_eq!(mistakes_of(&answered, "v1alpha2"), [""; 0]);
    let old = json!({"spec": {"routeConfigMap": "a", "secretSources": ["b"]}});
    assert_eq!(mistakes_of(&old, "v1alpha1"), [""; 0]);
    assert_eq!(
        mistakes_of(&old, "v1alpha2"),
        ["spec.secretSources[0]: type"]
    );
    for (spec, wrong) in [
        (json!({}), "spec: required"),
        (
            json!({"routeConfigMap": "a", "replicas": 0}),
            "spec.replicas: range",
        ),
        (
            json!({"routeConfigMap": "a", "replicas": 21}),
            "spec.replicas: range",
        ),
        (
            json!({"routeConfigMap": "a", "propSources": [{}]}),
            "spec.propSources[0]: oneOf",
        ),
        (
            json!({"routeConfigMap": "a", "env": [{"name": "A"}]}),
            "spec.env[0]: required",
        ),
        (
            json!({"routeConfigMap": "a", "tls": {"truststore": {"jks": {"key": "k"}}}}),
            "spec.tls.truststore.jks: required",
        ),
    ] {
        assert_eq!(mistakes_of(&json!({"spec": spec}), "v1alpha2"), [wrong]);
    }
}

#[test]
fn the_crd_says_what_the_contract_says() {
    let text = fs::read_to_string(folder().join("crd.yaml")).unwrap();
    assert!(!text.is_empty());
    let crd = document("crd.yaml", "CustomResourceDefinition");
    let spec = &crd["spec"];
    assert_eq!(spec["names"]["shortNames"], json!(["ir"]));
    assert_eq!(spec["names"]["categories"], json!(["keip", "all"]));
    assert_eq!(spec["scope"], "Namespaced");
    assert_eq!(spec["conversion"], json!({"strategy": "None"}));
    let versions = spec["versions"].as_array().unwrap();
    let use_of = |index: usize| {
        let version = &versions[index];
        (&version["name"], &version["served"], &version["storage"])
    };
    assert_eq!(use_of(0), (&json!("v1alpha2"), &json!(true), &json!(true)));
    assert_eq!(
        use_of(1),
        (&json!("v1alpha1"), &json!(false), &json!(false))
    );
    assert_eq!(versions[1]["deprecated"], true);
    for version in versions {
        let scale = &version["subresources"]["scale"];
        assert_eq!(scale["statusReplicasPath"], ".status.runningReplicas");
        assert_eq!(
            version["additionalPrinterColumns"]
                .as_array()
                .unwrap()
                .len(),
            4
        );
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let has_image = spec["properties"].get("image").is_some();
        assert_eq!(has_image, version["name"] == "v1alpha2");
        assert_eq!(spec["properties"]["replicas"]["default"], 1);
    }
}

#[test]
fn texts_of_conditions_are_those_of_the_crd() {
    let answer = Ordered::read(include_str!("../../../../labs/webhook/expected/today.json"));
    let ready = answer
        .at("/status/conditions/1/status")
        .and_then(Ordered::text);
    assert_eq!(ready, Some("False"));
}
