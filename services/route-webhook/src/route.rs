//! An IntegrationRoute with the data for its Deployment. Unknown members are ignored. Members that are passed
//! on unchecked keep their original JSON.

use std::borrow::Cow;

use crate::json::Key;
use crate::key;
use crate::request::{BodyNode, Refusal};

/// Prefix of labels that belong to the controller.
const OWN_LABELS: &str = "app.kubernetes.io/";

/// The data of a route in a request: from its metadata and its `spec`.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The number of pods as unchecked JSON.
    pub(crate) replicas: &'a str,
    /// Name of the ConfigMap with the route's XML.
    pub(crate) config_map: Cow<'a, str>,
    pub(crate) image: Option<&'a str>,
    /// JSON of the annotations, unless they are empty.
    pub(crate) annotations: Option<&'a str>,
    /// The user's labels, with their values as JSON.
    pub(crate) labels: Vec<(Cow<'a, str>, &'a str)>,
    pub(crate) sources: Sources<'a>,
    pub(crate) claims: Vec<Mounted<'a>>,
    pub(crate) config_maps: Vec<Mounted<'a>>,
    pub(crate) truststore: Option<Store<'a>>,
    pub(crate) keystore: Option<Keystore<'a>>,
    /// The JSON of each environment variable.
    pub(crate) env: Vec<&'a str>,
    /// JSON of the list, unless it is empty.
    pub(crate) env_from: Option<&'a str>,
    /// JSON of the resources, unless they are empty.
    pub(crate) resources: Option<&'a str>,
}

/// The sources of a route's properties and secrets.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    /// JSON of the list, unless it is empty.
    pub(crate) properties: Option<&'a str>,
    /// The original JSON of the list, even if it is empty, because the responses of 2023 repeat it.
    pub(crate) properties_sent: Option<&'a str>,
    pub(crate) secrets: Vec<Cow<'a, str>>,
    /// The route's namespace. Present if there are sources.
    pub(crate) namespace: Option<Cow<'a, str>>,
}

impl Sources<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.is_none() && self.secrets.is_empty()
    }
}

/// A claim or ConfigMap that the route mounts at a path.
#[derive(Debug)]
pub(crate) struct Mounted<'a> {
    pub(crate) name: Cow<'a, str>,
    /// The mount path as JSON.
    pub(crate) path: &'a str,
}

/// The format of a certificate store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Jks,
    Pkcs12,
}

impl StoreKind {
    /// The name of the format in a route.
    pub(crate) fn key(self) -> Key {
        match self {
            StoreKind::Jks => key!("jks"),
            StoreKind::Pkcs12 => key!("pkcs12"),
        }
    }

    /// The name of the format in Java.
    pub(crate) fn java(self) -> &'static str {
        match self {
            StoreKind::Jks => "JKS",
            StoreKind::Pkcs12 => "PKCS12",
        }
    }
}

/// A certificate store: one file of a ConfigMap or Secret.
#[derive(Debug)]
pub(crate) struct Store<'a> {
    pub(crate) kind: StoreKind,
    /// Name of the ConfigMap or Secret.
    pub(crate) name: Cow<'a, str>,
    /// The entry in it, which is also the name of the file.
    pub(crate) key: Cow<'a, str>,
}

/// The server certificate of a route.
#[derive(Debug)]
pub(crate) struct Keystore<'a> {
    pub(crate) store: Store<'a>,
    pub(crate) alias: Cow<'a, str>,
    /// Name of the Secret with the password.
    pub(crate) password: Cow<'a, str>,
}

/// The members that a route is read from, not checked yet.
pub(crate) struct Parent<'a, 'p> {
    pub(crate) metadata: BodyNode<'a, 'p>,
    pub(crate) spec: Spec<'a, 'p>,
}

/// The used members of `spec`.
pub(crate) struct Spec<'a, 'p> {
    pub(crate) replicas: BodyNode<'a, 'p>,
    whole: BodyNode<'a, 'p>,
    route_config_map: Member<'a, 'p>,
    image: Member<'a, 'p>,
    annotations: Member<'a, 'p>,
    labels: Member<'a, 'p>,
    properties: Member<'a, 'p>,
    secrets: Member<'a, 'p>,
    claims: Member<'a, 'p>,
    config_maps: Member<'a, 'p>,
    tls: Member<'a, 'p>,
    env: Member<'a, 'p>,
    env_from: Member<'a, 'p>,
    resources: Member<'a, 'p>,
}

type Member<'a, 'p> = Option<BodyNode<'a, 'p>>;

impl<'a, 'p> Spec<'a, 'p> {
    /// Finds all members in one pass.
    ///
    /// # Errors
    ///
    /// Fails if `spec` is not an object, or has no `replicas`.
    pub(crate) fn of(spec: &'p BodyNode<'a, '_>) -> Result<Self, Refusal> {
        let names = [
            "replicas",
            "routeConfigMap",
            "image",
            "annotations",
            "labels",
            "propSources",
            "secretSources",
            "persistentVolumeClaims",
            "configMaps",
            "tls",
            "env",
            "envFrom",
            "resources",
        ];
        let [
            replicas,
            route_config_map,
            image,
            annotations,
            labels,
            properties,
            secrets,
            claims,
            config_maps,
            tls,
            env,
            env_from,
            resources,
        ] = spec.members(names)?;
        Ok(Self {
            replicas: replicas.ok_or_else(|| spec.missing("replicas"))?,
            whole: *spec,
            route_config_map,
            image,
            annotations,
            labels,
            properties,
            secrets,
            claims,
            config_maps,
            tls,
            env,
            env_from,
            resources,
        })
    }
}

impl<'a> Route<'a> {
    /// A route in today's format.
    pub(crate) fn of(name: Cow<'a, str>, parent: &Parent<'a, '_>) -> Result<Self, Refusal> {
        let spec = &parent.spec;
        let mut route = Self::of_seed(name, parent)?;
        route.image = spec.image.map(|image| image.passed_on()).transpose()?;
        route
            // Labels of the controller would duplicate the keys of its own labels.
            .labels
            .retain(|(label, _)| !label.starts_with(OWN_LABELS));
        route.config_maps = mounted(spec.config_maps, "name")?;
        if let Some(tls) = spec.tls.and_then(BodyNode::unless_null) {
            let [truststore, keystore] = tls.members(["truststore", "keystore"])?;
            let truststore = truststore.and_then(BodyNode::unless_null);
            route.truststore = truststore.map(truststore_of).transpose()?;
            let keystore = keystore.and_then(BodyNode::unless_null);
            route.keystore = keystore.map(keystore_of).transpose()?;
        }
        if let Some(env) = spec.env {
            let items = env.items()?;
            let items = items.iter().map(BodyNode::passed_on);
            route.env = items.collect::<Result<_, _>>()?;
        }
        let env_from = spec.env_from.and_then(BodyNode::unless_empty);
        route.env_from = env_from
            .map(BodyNode::list)
            .transpose()?
            .map(|it| it.passed_on())
            .transpose()?;
        let resources = spec.resources.and_then(BodyNode::unless_empty);
        route.resources = resources
            .map(BodyNode::object)
            .transpose()?
            .map(|it| it.passed_on())
            .transpose()?;
        Ok(route)
    }

    /// A route in the format of November 2023, when all later members had no meaning.
    pub(crate) fn of_seed(name: Cow<'a, str>, parent: &Parent<'a, '_>) -> Result<Self, Refusal> {
        let spec = &parent.spec;
        let missing = || spec.whole.missing("routeConfigMap");
        let config_map = spec.route_config_map.ok_or_else(missing)?;
        let annotations = spec.annotations.and_then(BodyNode::unless_empty);
        Ok(Self {
            name,
            replicas: spec.replicas.passed_on()?,
            config_map: config_map.text()?,
            image: None,
            annotations: annotations
                .map(BodyNode::object)
                .transpose()?
                .map(|it| it.passed_on())
                .transpose()?,
            labels: spec
                .labels
                // Entries are written again in their original order.
                .map(|labels| labels.entries())
                .transpose()?
                .unwrap_or_default(),
            sources: sources(parent)?,
            claims: mounted(spec.claims, "claimName")?,
            config_maps: Vec::new(),
            truststore: None,
            keystore: None,
            env: Vec::new(),
            env_from: None,
            resources: None,
        })
    }
}

fn sources<'a>(parent: &Parent<'a, '_>) -> Result<Sources<'a>, Refusal> {
    let sent = parent.spec.properties;
    let properties = sent.and_then(BodyNode::unless_empty);
    let properties = properties.map(BodyNode::list).transpose()?;
    let mut names = Vec::new();
    if let Some(secrets) = parent.spec.secrets {
        for secret in secrets.items()? {
            names.push(secret_name(secret)?);
        }
    }
    let mut sources = Sources {
        properties: properties.map(|it| it.passed_on()).transpose()?,
        properties_sent: sent.map(|it| it.passed_on()).transpose()?,
        secrets: names,
        namespace: None,
    };
    // The namespace is read only if it is used: a route without sources need not have one.
    if !sources.is_empty() {
        let [namespace] = parent.metadata.required(["namespace"])?;
        sources.namespace = Some(namespace.text()?);
    }
    Ok(sources)
}

/// The name of a secret: a text in v1alpha1, an object with a name in v1alpha2.
fn secret_name<'a>(secret: BodyNode<'a, '_>) -> Result<Cow<'a, str>, Refusal> {
    // The first byte of JSON shows its type, without parsing the value.
    match secret.json().bytes().next() {
        Some(b'"') => secret.text(),
        Some(b'{') => {
            let [name] = secret.required(["name"])?;
            name.text()
        }
        _ => Err(secret.neither("a text or an object with a `name`")),
    }
}

fn mounted<'a>(list: Option<BodyNode<'a, '_>>, name: &str) -> Result<Vec<Mounted<'a>>, Refusal> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let one = |item: BodyNode<'a, '_>| {
        let [name, path] = item.required([name, "mountPath"])?;
        Ok(Mounted {
            name: name.text()?,
            path: path.passed_on()?,
        })
    };
    list.items()?.into_iter().map(one).collect()
}

/// The format of a store: `jks` if it is present, otherwise `pkcs12`.
pub(crate) fn store_kind<'a, 's>(
    node: &'s BodyNode<'a, '_>,
) -> Result<(StoreKind, BodyNode<'a, 's>), Refusal> {
    let [jks, pkcs12] = node.members(["jks", "pkcs12"])?;
    match (jks, pkcs12) {
        // If both are present, `jks` takes precedence, as in the contract.
        (Some(jks), _) => Ok((StoreKind::Jks, jks)),
        (None, Some(pkcs12)) => Ok((StoreKind::Pkcs12, pkcs12)),
        (None, None) => Err(node.missing("pkcs12")),
    }
}

fn truststore_of<'a>(node: BodyNode<'a, '_>) -> Result<Store<'a>, Refusal> {
    let (kind, store) = store_kind(&node)?;
    let [name, key] = store.required(["configMapName", "key"])?;
    Ok(Store {
        kind,
        name: name.text()?,
        key: file_key(key)?,
    })
}

/// A key of a ConfigMap or Secret, by the rule of Kubernetes.
///
/// It becomes part of a path and, for a trust store, of Java's options. A blank in it would allow the sender
/// to add options.
fn file_key<'a>(node: BodyNode<'a, '_>) -> Result<Cow<'a, str>, Refusal> {
    let key = node.text()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = key == "." || key.starts_with("..");
    if (1..=253).contains(&key.len()) && key.bytes().all(is_plain) && !is_path {
        return Ok(key);
    }
    let expected = "a key of 1 to 253 letters, digits, `-`, `_` and `.`, not `.` and not from `..`";
    Err(node.unfit(expected, "another text"))
}

fn keystore_of<'a>(node: BodyNode<'a, '_>) -> Result<Keystore<'a>, Refusal> {
    let (kind, store) = store_kind(&node)?;
    let names = ["secretName", "key", "passwordSecretRef"];
    let [name, key, password] = store.required(names)?;
    let alias = match kind {
        // Java's alias for certificates in PKCS#12.
        StoreKind::Pkcs12 => Cow::Borrowed("1"),
        // An empty alias is valid, as in the original. The default applies only if the alias is missing.
        StoreKind::Jks => match store.member("alias")?.and_then(BodyNode::unless_null) {
            Some(alias) => alias.text()?,
            None => Cow::Borrowed("certificate"),
        },
    };
    Ok(Keystore {
        store: Store {
            kind,
            name: name.text()?,
            key: file_key(key)?,
        },
        alias,
        password: password.text()?,
    })
}
