//! The claims about the Helm chart of a service, and about the manifests that are made from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A chart of deploy/charts.
pub struct Chart<'a> {
    /// The folder of the chart.
    pub name: &'a str,
    /// The name of the release, which all objects have.
    pub release: &'a str,
    /// The namespace of the release.
    pub namespace: &'a str,
    /// The package with the test of the chart.
    pub package: &'a str,
    /// Files below deploy, with the templates that they are made from. No templates mean all.
    pub files: &'a [(&'a str, &'a [&'a str])],
    /// Settings that switch every optional part on.
    pub all_on: &'a [&'a str],
    /// The text of `--help`.
    pub help: &'a str,
    /// The status of a GET on this path of the running service.
    pub status_of: &'a dyn Fn(&str) -> u16,
}

impl Chart<'_> {
    /// Checks all claims.
    ///
    /// # Panics
    /// Panics at the first claim that does not hold.
    pub fn check(&self) {
        if Command::new("helm").arg("version").output().is_ok() {
            self.check_templates();
        } else {
            judged::absent(
                "helm is not installed, so the manifests are not compared with the chart",
            );
        }
        let files = self.files.iter();
        let all: Vec<Value> = files.flat_map(|(file, _)| documents(&read(file))).collect();
        self.check_objects(&all);
    }

    fn check_templates(&self) {
        for (file, templates) in self.files {
            let show = templates.iter().flat_map(|it| ["--show-only", it]);
            let text = self
                .render(&show.collect::<Vec<_>>())
                .expect("a valid chart");
            let lines = text.lines().filter(|line| !line.starts_with("# Source: "));
            let text: String = lines.flat_map(|line| [line, "\n"]).collect();
            let head = format!(
                "# Made from deploy/charts/{}. Renew it: UPDATE_MANIFESTS=1 cargo test -p {} chart\n",
                self.name, self.package
            );
            let text = head + &text;
            if is_update() {
                fs::write(deploy().join(file), &text).expect("a writable file");
            }
            assert!(
                read(file) == text,
                "deploy/{file} differs from its chart; renew it"
            );
        }
        let all_on: Vec<&str> = self.all_on.iter().flat_map(|it| ["--set", *it]).collect();
        self.check_objects(&documents(&self.render(&all_on).expect("a valid chart")));
        for unknown in ["nonsense=1", "image.nonsense=1", "resources.cpu=1"] {
            let told = self.render(&["--set", unknown]).expect_err(unknown);
            assert!(told.contains("additional properties"), "{told}");
        }
        let told = self.render(&["--set", "env.TLS_KEY=a"]);
        let told = told.expect_err("the chart sets it");
        assert!(told.contains("leave it out"), "{told}");
        let mut lint = Command::new("helm");
        let output = lint.arg("lint").arg(self.folder()).output().expect("helm");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && !said.contains("[WARNING]"),
            "{said}"
        );
    }

    fn folder(&self) -> PathBuf {
        deploy().join("charts").join(self.name)
    }

    /// The manifests of the chart with further words for helm.
    fn render(&self, words: &[&str]) -> Result<String, String> {
        let mut helm = Command::new("helm");
        helm.args(["template", self.release])
            .arg(self.folder())
            .args(["--namespace", self.namespace])
            .args(words);
        let output = helm.output().expect("helm");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8(output.stdout).expect("text"))
    }

    fn check_objects(&self, objects: &[Value]) {
        for object in objects {
            check_type(object);
        }
        let name = self.release;
        let of = |kind: &str| {
            let found = objects
                .iter()
                .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
            found.unwrap_or_else(|| panic!("{name} has no {kind}"))
        };
        let deployment = of("Deployment");
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let spec = |kind: &str| &of(kind)["spec"];
        assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
        assert_eq!(&spec("Service")["selector"], labels);
        assert_eq!(
            &spec("PodDisruptionBudget")["selector"]["matchLabels"],
            labels
        );
        assert_eq!(&spec("NetworkPolicy")["podSelector"]["matchLabels"], labels);
        assert_eq!(of("ServiceAccount")["automountServiceAccountToken"], false);
        let pod = &deployment["spec"]["template"]["spec"];
        let spread = &pod["topologySpreadConstraints"][0];
        assert_eq!(&spread["labelSelector"]["matchLabels"], labels);
        check_rights(pod);
        let container = &pod["containers"][0];
        let resources = &container["resources"];
        for part in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
            assert!(resources.pointer(part).is_some(), "{part}");
        }
        self.check_probes(container);
        self.check_settings(container);
    }

    /// Every probe asks for a path that the service serves.
    fn check_probes(&self, container: &Value) {
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let probe = &container[probe];
            if let Some(path) = probe["httpGet"]["path"].as_str() {
                assert_eq!((self.status_of)(path), 200, "{path}");
            } else {
                assert!(probe["tcpSocket"]["port"].is_string(), "{probe}");
            }
        }
    }

    /// The program reads every variable, and knows every flag.
    fn check_settings(&self, container: &Value) {
        // Long lines of the help are broken at spaces.
        let help = self.help.split_whitespace().collect::<Vec<_>>().join(" ");
        let list = |key: &str| container[key].as_array().cloned().unwrap_or_default();
        for variable in list("env") {
            let name = variable["name"].as_str().expect("a name");
            let is_read = ["=", "]"].iter().any(|end| {
                let shown = format!("[env: {name}{end}");
                help.contains(&shown)
            });
            assert!(is_read, "the program does not read {name}");
        }
        for word in list("args") {
            let word = word.as_str().expect("a text");
            let flag = word.split('=').next().unwrap_or_default();
            assert!(help.contains(flag), "the program has no flag {flag}");
        }
    }
}

/// No pod has rights that it does not need.
fn check_rights(pod: &Value) {
    let security = &pod["securityContext"];
    assert_eq!(security["runAsNonRoot"], true);
    assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    assert!(security["runAsUser"].as_u64() > Some(0));
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["readOnlyRootFilesystem"], true);
    assert_eq!(container["capabilities"], json!({"drop": ["ALL"]}));
}

fn check_type(object: &Value) {
    let kind = object["kind"].as_str().expect("a kind");
    let read = match kind {
        "ClusterRole" => as_type::<ClusterRole>(object).map(drop),
        "ClusterRoleBinding" => as_type::<ClusterRoleBinding>(object).map(drop),
        "Deployment" => as_type::<Deployment>(object).map(drop),
        "HorizontalPodAutoscaler" => as_type::<HorizontalPodAutoscaler>(object).map(drop),
        "NetworkPolicy" => as_type::<NetworkPolicy>(object).map(drop),
        "PodDisruptionBudget" => as_type::<PodDisruptionBudget>(object).map(drop),
        "Service" => as_type::<Service>(object).map(drop),
        "ServiceAccount" => as_type::<ServiceAccount>(object).map(drop),
        "StatefulSet" => as_type::<StatefulSet>(object).map(drop),
        // Objects of metacontroller. Their types are not Kubernetes' own.
        "CompositeController" | "DecoratorController" => Ok(()),
        other => Err(format!("no type for {other}")),
    };
    read.unwrap_or_else(|why| panic!("{kind}: {why}"));
}

/// Reads an object as a type of Kubernetes.
///
/// # Errors
/// Fails if the type lacks one of the object's members.
pub fn as_type<T: DeserializeOwned + Serialize>(object: &Value) -> Result<T, String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&typed).map_err(|error| error.to_string())?;
    let (given, known) = (without_nothing(object), without_nothing(&again));
    if given == known {
        return Ok(typed);
    }
    Err(format!("of {given} only this is known: {known}"))
}

/// Removes empty members and null members. They have no meaning, and types leave them out.
fn without_nothing(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), without_nothing(value)));
            let is_something = |value: &Value| {
                !value.is_null()
                    && value != &Value::Object(Map::new())
                    && value != &Value::Array(Vec::new())
            };
            Value::Object(members.filter(|(_, value)| is_something(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nothing).collect()),
        // Types may convert between whole numbers and floats.
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        other => other.clone(),
    }
}

fn documents(text: &str) -> Vec<Value> {
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
    documents.unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(file: &str) -> String {
    let path = deploy().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a person asks by it for new manifests"
)]
fn is_update() -> bool {
    std::env::var_os("UPDATE_MANIFESTS").is_some()
}
