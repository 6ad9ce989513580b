use super::*;
use crate::workload::SERVES;

const FILE: &str = "
apiVersion: v1
kind: Service
metadata: {name: gateway}
spec: {selector: {app: gateway}, ports: [{port: 80, targetPort: graphql}]}
---
apiVersion: v1
kind: Service
metadata: {name: planets}
spec: {selector: {app: planets}, ports: [{port: 4001}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gateway}
data: {a: 'http://planets:4001'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, labels: {own: kept}}
spec:
  replicas: 2
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway}}
    spec:
      serviceAccountName: gateway
      terminationGracePeriodSeconds: 35
      containers:
        - name: gateway
          image: gateway:1
          env:
            - {name: A, value: old}
            - {name: B, valueFrom: {secretKeyRef: {name: theirs, key: k}}}
          envFrom: [{configMapRef: {name: gateway}}]
          ports: [{name: graphql, containerPort: 4000}]
      volumes:
        - {name: v, configMap: {name: gateway, defaultMode: 0444}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: planets}
spec:
  serviceName: planets
  selector: {matchLabels: {app: planets}}
  template:
    metadata: {labels: {app: planets}}
    spec: {containers: [{name: planets, image: 'planets:1'}]}
";

fn wish() -> Wish {
    Wish {
        service: "gateway".to_owned(),
        ..Wish::default()
    }
}

fn read(text: &str, wish: &Wish) -> Result<Manifests, Refused> {
    Manifests::read(
        &[("a.yaml".to_owned(), text.to_owned())],
        Some("space"),
        wish,
    )
}

const COPY: Copy<'_> = Copy {
    serves: "wb-x-v0-gateway",
    stem: "wb-x-v0-r1-0",
    part: "x-gateway",
    domain: "corp.internal",
};

fn started(manifests: &Manifests) -> Vec<(Resource, Value)> {
    let addresses = [("planets".to_owned(), [10, 0, 0, 7].into())];
    manifests.of_a_start(COPY, "space", &addresses)
}

#[test]
fn what_names_each_other_in_the_files_finds_its_own_copy() {
    let manifests = read(FILE, &wish()).expect("allowed");
    assert_eq!((manifests.port(), manifests.target_port()), (80, 4000));
    assert_eq!(manifests.pods(), 3);
    let services = manifests.services(COPY);
    let names: Vec<&str> = services.iter().map(|(_, it)| name_of(it)).collect();
    assert_eq!(names, ["wb-x-v0-gateway", "wb-x-v0-gateway-1"]);
    let made = started(&manifests);
    let kinds: Vec<Resource> = made.iter().map(|it| it.0).collect();
    assert_eq!(
        kinds,
        [
            Resource::ConfigMaps,
            Resource::Deployments,
            Resource::StatefulSets
        ]
    );
    let map = name_of(&made[0].1);
    let pods = &made[1].1["spec"]["template"];
    let spec = &pods["spec"];
    assert_eq!(spec["volumes"][0]["configMap"]["name"], map);
    // Like kubectl, which reads it as octal.
    assert_eq!(spec["volumes"][0]["configMap"]["defaultMode"], 0o444);
    assert_eq!(
        spec["containers"][0]["envFrom"][0]["configMapRef"]["name"],
        map
    );
    // An object that the files do not contain belongs to the namespace.
    let theirs = &spec["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"]["name"];
    assert_eq!(theirs, "theirs");
    assert_eq!(made[2].1["spec"]["serviceName"], "wb-x-v0-gateway-1");
    // A configuration names a host, which must resolve to this copy's address only.
    let alias = &spec["hostAliases"][0];
    assert_eq!(alias["ip"], "10.0.0.7");
    assert_eq!(
        alias["hostnames"],
        json!([
            "planets",
            "planets.space",
            "planets.space.svc",
            "planets.space.svc.corp.internal"
        ])
    );
}

#[test]
fn pods_of_a_copy_have_the_variables_of_its_services() {
    let file = FILE
        .replace("          envFrom: [{configMapRef: {name: gateway}}]\n", "")
        .replace("value: old", "value: 'http://$(PLANETS_SERVICE_HOST)'");
    let env = |file: &str| {
        let manifests = read(file, &wish()).expect("allowed");
        let made = started(&manifests);
        made[1].1["spec"]["template"]["spec"]["containers"][0]["env"].clone()
    };
    let names = |env: &Value| -> Vec<String> {
        let all = env.as_array().into_iter().flatten();
        all.map(name_of_variable).collect()
    };
    // The variables of a container come later, so that they can name these.
    let all = env(&file);
    let host = json!({"name": "PLANETS_SERVICE_HOST", "value": "10.0.0.7"});
    assert_eq!(all[0], host);
    assert_eq!(
        all[1],
        json!({"name": "PLANETS_SERVICE_PORT", "value": "4001"})
    );
    assert_eq!(names(&all)[2..], ["A", "B"]);
    // A container keeps its own value. Objects with variables could have another, and a pod can refuse them.
    let own = env(&file.replace("name: A", "name: PLANETS_SERVICE_HOST"));
    assert_eq!(
        names(&own),
        ["PLANETS_SERVICE_PORT", "PLANETS_SERVICE_HOST", "B"]
    );
    assert_eq!(names(&env(FILE)), ["A", "B"]);
    let without = "      enableServiceLinks: false\n      containers:\n        - name: gateway";
    let without = file.replace("      containers:\n        - name: gateway", without);
    assert_eq!(names(&env(&without)), ["A", "B"]);
}

fn name_of_variable(variable: &Value) -> String {
    variable["name"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn pods_of_a_copy_are_found_by_its_services_alone_and_have_no_rights() {
    let manifests = read(FILE, &wish()).expect("allowed");
    for (_, service) in manifests.services(COPY) {
        assert_eq!(service["spec"]["selector"][SERVES], COPY.serves);
    }
    for (_, workload) in &started(&manifests)[1..] {
        let pods = &workload["spec"]["template"];
        assert_eq!(pods["metadata"]["labels"][SERVES], COPY.serves);
        assert_eq!(
            workload["spec"]["selector"]["matchLabels"][SERVES],
            COPY.serves
        );
        assert_eq!(pods["spec"]["automountServiceAccountToken"], false);
        assert!(pods["spec"]["serviceAccountName"].is_null());
        assert_eq!(pods["spec"]["terminationGracePeriodSeconds"], 1);
    }
}

#[test]
fn a_lab_changes_image_variables_and_number_and_says_whose_time_counts() {
    let change = Change {
        workload: "gateway".to_owned(),
        container: None,
        env: vec![
            ("A".to_owned(), "$(new)".to_owned()),
            ("C".to_owned(), "c".to_owned()),
        ],
        image: Some("gateway:2".to_owned()),
        replicas: Some(5),
    };
    let wish = Wish {
        workload: Some("gateway".to_owned()),
        changes: vec![change],
        ..wish()
    };
    let manifests = read(FILE, &wish).expect("allowed");
    assert_eq!(manifests.pods(), 6);
    let made = started(&manifests);
    let container = &made[1].1["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "gateway:2");
    assert_eq!(
        container["env"][0],
        json!({"name": "A", "value": "$$(new)"})
    );
    assert_eq!(container["env"][2]["name"], "C");
    let counted =
        |index: usize| made[index].1["spec"]["template"]["metadata"]["labels"][COUNTED].clone();
    assert_eq!((counted(1), counted(2)), (json!("yes"), Value::Null));
    // The receiver of the load is a different question.
    let other = Wish {
        workload: Some("planets".to_owned()),
        ..wish.clone()
    };
    let made = started(&read(FILE, &other).expect("allowed"));
    let labels = |index: usize| &made[index].1["spec"]["template"]["metadata"]["labels"];
    assert!(labels(1)[COUNTED].is_null() && labels(1)[LOADED] == "yes");
    assert!(labels(2)[COUNTED] == "yes" && labels(2)[LOADED].is_null());
}

#[test]
fn names_have_room_for_what_a_cluster_puts_behind_them() {
    let long = FILE.replace("name: planets}", &format!("name: {}}}", "p".repeat(60)));
    let manifests = read(&long, &wish()).expect("allowed");
    let copy = Copy {
        serves: "s",
        stem: &"s".repeat(44),
        ..COPY
    };
    for (_, object) in manifests.of_a_start(copy, "space", &[]) {
        assert!(
            name_of(&object).len() <= NAME_MOST_HERE,
            "{}",
            name_of(&object)
        );
    }
}

const NAME_MOST_HERE: usize = 52;

#[test]
fn what_gives_rights_or_is_not_known_is_refused_or_left_out_by_name() {
    for (version, kind) in [
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("v1", "Namespace"),
        ("v1", "PersistentVolumeClaim"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        ),
        // The right kind in a wrong group.
        ("example.com/v1", "Deployment"),
    ] {
        let other =
            format!("{FILE}---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n");
        let refused = read(&other, &wish()).err();
        assert!(matches!(refused, Some(Refused::Kind { .. })), "{kind}");
        for without in [kind.to_owned(), format!("{kind}/a")] {
            let wish = Wish {
                without: vec![without.clone()],
                ..wish()
            };
            let is_deployment = without == "Deployment";
            // Without its Deployments the Service leads to no pod.
            assert_eq!(read(&other, &wish).is_ok(), !is_deployment, "{without}");
        }
    }
}

/// Text of the manifests, its replacement, and a word of the expected refusal.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "terminationGracePeriodSeconds: 35",
        "hostNetwork: true",
        "hostNetwork",
    ),
    (
        "terminationGracePeriodSeconds: 35",
        "hostPID: true",
        "hostPID",
    ),
    (
        "image: gateway:1",
        "securityContext: {privileged: true}",
        "privileged",
    ),
    (
        "containerPort: 4000}",
        "containerPort: 4000, hostPort: 80}",
        "hostPort",
    ),
    (
        "configMap: {name: gateway, defaultMode: 0444}",
        "hostPath: {path: /}",
        "hostPath",
    ),
    (
        "configMap: {name: gateway, defaultMode: 0444}",
        "persistentVolumeClaim: {claimName: x}",
        "persistentVolumeClaim",
    ),
    (
        "configMap: {name: gateway, defaultMode: 0444}",
        "projected: {sources: [{serviceAccountToken: {path: t}}]}",
        "serviceAccountToken",
    ),
    (
        "serviceName: planets",
        "volumeClaimTemplates: [{}]",
        "volumeClaimTemplates",
    ),
    ("labels: {own: kept}", "finalizers: [a]", "finalizers"),
    (
        "labels: {own: kept}",
        "ownerReferences: [a]",
        "ownerReferences",
    ),
    (
        "labels: {own: kept}",
        "namespace: kube-system",
        "kube-system",
    ),
    ("labels: {own: kept}", "labels: text", "metadata.labels"),
    (
        "{selector: {app: gateway}, ports",
        "{selector: {app: gateway}, type: NodePort, ports",
        "NodePort",
    ),
    (
        "{selector: {app: gateway}, ports: [{port: 80, targetPort: graphql}]",
        "{selector: {app: gateway}, clusterIP: None",
        "None",
    ),
    (
        "{selector: {app: gateway}, ports",
        "{selector: {app: gateway}, clusterIP: 10.0.0.1, ports",
        "clusterIP",
    ),
    (
        "{selector: {app: gateway}, ports",
        "{selector: {app: gateway}, externalIPs: [1.2.3.4], ports",
        "externalIPs",
    ),
    ("{selector: {app: planets}, ports", "{ports", "no selector"),
    (
        "[{name: planets, image: 'planets:1'}]",
        "[text]",
        "no containers",
    ),
];

#[test]
fn what_reaches_a_node_outlives_a_run_or_is_no_mapping_is_refused() {
    for &(was, becomes, said) in REFUSED {
        assert!(FILE.contains(was), "{was}");
        let refused = read(&FILE.replacen(was, becomes, 1), &wish()).err();
        let Some(Refused::Member { what, .. }) = &refused else {
            panic!("{becomes}: {refused:?}");
        };
        assert!(what.contains(said), "{becomes}: {what}");
    }
}

#[test]
fn what_a_lab_names_must_be_in_the_files() {
    let refused = |change: &dyn Fn(&mut Wish)| {
        let mut wish = wish();
        change(&mut wish);
        read(FILE, &wish).err()
    };
    let service = refused(&|it| it.service = "gatway".to_owned());
    assert_eq!(
        service.map(|it| it.to_string()).unwrap_or_default(),
        "the files have no Service `gatway` for the load. They contain: gateway, planets"
    );
    assert!(matches!(
        refused(&|it| it.port = Some(81)),
        Some(Refused::Port(..))
    ));
    let workload = refused(&|it| it.workload = Some("x".to_owned()));
    assert!(matches!(workload, Some(Refused::NoWorkload(..))));
    let behind = refused(&|it| it.without = vec!["Deployment/gateway".to_owned()]);
    assert!(matches!(behind, Some(Refused::NoPods(..))));
    let twice = read(&format!("{FILE}---\n{FILE}"), &wish()).err();
    let Some(Refused::Several(twice)) = twice else {
        panic!("{twice:?}");
    };
    assert!(twice.iter().all(|it| matches!(it, Refused::Twice(_))));
    assert_eq!(twice.len(), 5);
    let many = read(&FILE.replace("replicas: 2", "replicas: 65"), &wish()).err();
    assert!(matches!(many, Some(Refused::Pods(66))));
}

#[test]
fn a_name_is_no_path_and_nonsense_is_no_object() {
    for name in ["../../nodes/x", "a/b", "", "a%2fb", "a..b"] {
        let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: \"{name}\"}}\n");
        assert!(
            matches!(read(&text, &wish()), Err(Refused::NoObject(..))),
            "{name}"
        );
    }
    for text in ["[1]\n", "a: b\n", "{", "apiVersion: v1\nkind: [x]\n"] {
        assert!(
            matches!(read(text, &wish()), Err(Refused::NoObject(..))),
            "{text}"
        );
    }
    for text in ["", "---\n"] {
        assert!(
            matches!(read(text, &wish()), Err(Refused::NoService(..))),
            "{text}"
        );
    }
}

/// A database of two pods with a headless Service, its client, and objects of a mesh.
const MESH: &str = "
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: api}, imagePullSecrets: [{name: registry}]}
  - {apiVersion: v1, kind: Secret, metadata: {name: registry}}
  - {apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, ports: [{port: 80}]}}
  - {apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, clusterIPs: [None], selector: {app: db}, ports: [{port: 6379}]}}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 2
      serviceName: db
      selector: {matchLabels: {app: db}}
      template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db}]}}
  - apiVersion: v1
    kind: Pod
    metadata: {name: api, labels: {app: api}}
    spec: {serviceAccountName: api, containers: [{name: api}], affinity: {own: kept}}
---
{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: api}, spec: {mtls: {mode: STRICT}}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: api}
spec: {workloadSelector: {labels: {app: api}}, configPatches: []}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api}
spec:
  hosts: [api.space.svc.cluster.local, db]
  http: [{route: [{destination: {host: api}}]}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: api}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/space/sa/api, cluster.local/ns/space/sa/other]}}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api}
spec: {parentRefs: [{group: '', kind: Service, name: api}], rules: [{backendRefs: [{name: api, port: 80}, {name: theirs}]}]}
";

fn meshed() -> Manifests {
    let wish = Wish {
        service: "api".to_owned(),
        ..Wish::default()
    };
    read(MESH, &wish).unwrap_or_else(|refused| panic!("{refused}"))
}

/// The only object of a kind in a start of the mesh.
fn made(kind: &str) -> Value {
    let addresses = [("db-1.db".to_owned(), [10, 0, 0, 9].into())];
    let all = meshed().of_a_start(COPY, "space", &addresses);
    let mut found = all.into_iter().filter(|(_, it)| it["kind"] == kind);
    let (_, object) = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "{kind} twice");
    object
}

#[test]
fn a_headless_service_has_an_address_and_so_has_each_pod_of_its_set() {
    let services = meshed().services(COPY);
    let hosts: Vec<&str> = services.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["api", "db", "db-0.db", "db-1.db"]);
    for (host, service) in &services {
        assert!(service["spec"]["clusterIP"].is_null(), "{host}");
        assert!(service["spec"]["clusterIPs"].is_null(), "{host}");
        assert_eq!(service["spec"]["selector"][SERVES], COPY.serves);
    }
    let second = &services[3].1["spec"];
    assert_eq!(second["selector"]["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(second["selector"]["app"], "db");
    assert_eq!(second["ports"], json!([{"port": 6379}]));
    // A pod that asks for itself begins with its own host name.
    let pod = made("Pod");
    let own = format!("{}-1.db", name_of(&made("StatefulSet")));
    let aliases = pod["spec"]["hostAliases"].as_array().expect("aliases");
    let names: Vec<&Value> = aliases.iter().map(|it| &it["hostnames"][0]).collect();
    assert_eq!(names, [&json!("db-1.db"), &json!(own)]);
}

#[test]
fn an_account_of_the_files_is_the_identity_of_its_pods() {
    let account = made("ServiceAccount");
    assert_eq!(
        account["imagePullSecrets"][0]["name"],
        made("Secret")["metadata"]["name"]
    );
    let spec = &made("Pod")["spec"];
    assert_eq!(spec["serviceAccountName"], account["metadata"]["name"]);
    assert_eq!(spec["automountServiceAccountToken"], false);
    let policy = made("AuthorizationPolicy");
    let principals = &policy["spec"]["rules"][0]["from"][0]["source"]["principals"];
    let own = format!("cluster.local/ns/space/sa/{}", name_of(&account));
    assert_eq!(*principals, json!([own, "cluster.local/ns/space/sa/other"]));
}

#[test]
fn objects_of_a_mesh_affect_their_copy_alone_and_name_its_services() {
    let peers = made("PeerAuthentication");
    assert_eq!(
        peers["spec"]["selector"]["matchLabels"],
        json!({SERVES: COPY.serves})
    );
    let filter = made("EnvoyFilter");
    assert_eq!(filter["apiVersion"], "networking.istio.io/v1alpha3");
    assert_eq!(
        filter["spec"]["workloadSelector"]["labels"],
        json!({"app": "api", SERVES: COPY.serves})
    );
    assert_eq!(
        filter["spec"].as_object().map(serde_json::Map::len),
        Some(2)
    );
    let service = &made("VirtualService")["spec"];
    let own = COPY.serves;
    assert_eq!(
        service["hosts"],
        json!([format!("{own}.space.svc.cluster.local"), format!("{own}-3")])
    );
    assert_eq!(service["http"][0]["route"][0]["destination"]["host"], own);
    let route = &made("HTTPRoute")["spec"];
    assert_eq!(route["parentRefs"][0]["name"], own);
    let backends = &route["rules"][0]["backendRefs"];
    assert_eq!(
        *backends,
        json!([{"name": own, "port": 80}, {"name": "theirs"}])
    );
    assert_eq!(made("Pod")["spec"]["affinity"], json!({"own": "kept"}));
    let near = &made("StatefulSet")["spec"]["template"]["spec"]["affinity"]["podAffinity"];
    assert!(near.to_string().contains("x-gateway-db"), "{near}");
}

#[test]
fn all_refused_objects_are_named_at_once_with_one_remedy() {
    let text = "{apiVersion: v1, kind: Service, metadata: {name: s}, \
        spec: {type: NodePort, selector: {app: a}, ports: [{port: 80}]}}\n---\n\
        {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}\n---\n\
        {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}}\n---\n\
        {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: c}}\n";
    let said = read(text, &wish()).expect_err("refused").to_string();
    assert!(said.starts_with("not applied are `NetworkPolicy/a` of `networking.k8s.io/v1`, `PodDisruptionBudget/b` of `policy/v1`, `PodDisruptionBudget/c`"), "{said}");
    assert!(
        said.contains("`without: [NetworkPolicy, PodDisruptionBudget]`"),
        "{said}"
    );
    assert!(
        said.contains("\n`Service/s` has `type: NodePort`"),
        "{said}"
    );
    for (was, becomes, said) in [
        ("local, db]", "local, example.com]", "the host example.com"),
        (
            "local, db]",
            "local, api.other.svc]",
            "the host api.other.svc",
        ),
        (
            "spec: {mtls: {mode: STRICT}}",
            "spec: {targetRefs: [{kind: Gateway, name: waypoint}]}",
            "a reference to Gateway/waypoint",
        ),
        (
            "kind: Service, name: api}],",
            "name: edge}],",
            "a reference to Gateway/edge",
        ),
    ] {
        assert!(MESH.contains(was), "{was}");
        let refused = read(&MESH.replace(was, becomes), &wish()).expect_err("refused");
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let wide = MESH.replace(
        "hosts: [",
        "targetRef: {kind: Namespace, name: space}\n  hosts: [",
    );
    let refused = read(&wide, &wish()).expect_err("refused");
    assert!(
        refused.to_string().contains("targetRef of a Namespace"),
        "{refused}"
    );
}
