//! The kinds of objects of service meshes that a variant can have.

/// A kind of object of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeshKind {
    /// The API group.
    pub group: &'static str,
    /// The kind, such as `VirtualService`.
    pub kind: &'static str,
    /// The name in paths and in RBAC.
    pub plural: &'static str,
    /// The member that selects pods, as a JSON pointer to a mapping of labels. Without a selection, the object
    /// would affect all pods of the namespace. `None` for objects that name Services or other objects.
    pub selector: Option<&'static str>,
}

const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    selector: Option<&'static str>,
) -> MeshKind {
    MeshKind {
        group,
        kind,
        plural,
        selector,
    }
}

const ISTIO: Option<&str> = Some("/spec/selector/matchLabels");
const WORKLOAD: Option<&str> = Some("/spec/workloadSelector/labels");

/// Every kind.
pub const KINDS: [MeshKind; 14] = [
    kind("gateway.networking.k8s.io", "GRPCRoute", "grpcroutes", None),
    kind("gateway.networking.k8s.io", "HTTPRoute", "httproutes", None),
    kind(
        "networking.istio.io",
        "DestinationRule",
        "destinationrules",
        None,
    ),
    kind(
        "networking.istio.io",
        "EnvoyFilter",
        "envoyfilters",
        WORKLOAD,
    ),
    kind("networking.istio.io", "Sidecar", "sidecars", WORKLOAD),
    kind(
        "networking.istio.io",
        "VirtualService",
        "virtualservices",
        None,
    ),
    kind(
        "policy.linkerd.io",
        "AuthorizationPolicy",
        "authorizationpolicies",
        None,
    ),
    kind("policy.linkerd.io", "HTTPRoute", "httproutes", None),
    kind(
        "policy.linkerd.io",
        "MeshTLSAuthentication",
        "meshtlsauthentications",
        None,
    ),
    kind(
        "policy.linkerd.io",
        "Server",
        "servers",
        Some("/spec/podSelector/matchLabels"),
    ),
    kind(
        "security.istio.io",
        "AuthorizationPolicy",
        "authorizationpolicies",
        ISTIO,
    ),
    kind(
        "security.istio.io",
        "PeerAuthentication",
        "peerauthentications",
        ISTIO,
    ),
    kind(
        "security.istio.io",
        "RequestAuthentication",
        "requestauthentications",
        ISTIO,
    ),
    kind("telemetry.istio.io", "Telemetry", "telemetries", ISTIO),
];

impl MeshKind {
    /// Returns the kind of an object with this API version, such as `networking.istio.io/v1`.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<MeshKind> {
        let (group, _) = api_version.split_once('/')?;
        let mut kinds = KINDS.into_iter();
        kinds.find(|known| known.group == group && known.kind == kind)
    }
}
