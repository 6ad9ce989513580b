//! The copies of objects of a mesh: they affect only the pods of their copy, and name its Services.

use serde_json::{Value, json};

use super::{Copy, Manifests, Object, Refused};
use crate::call::Resource;
use crate::connection::name_of;
use crate::mesh::MeshKind;
use crate::workload::SERVES;

/// Members with references to objects, and the kind that a reference has by default.
const REFERENCES: [(&str, &str); 7] = [
    ("backendRef", "Service"),
    ("backendRefs", "Service"),
    ("parentRefs", "Gateway"),
    ("targetRef", ""),
    ("targetRefs", ""),
    ("identityRefs", ""),
    ("requiredAuthenticationRefs", ""),
];

/// Members with host names.
const HOSTS: [&str; 2] = ["host", "hosts"];

/// Refuses objects that affect more than the pods of their copy.
pub(super) fn check(object: &Object) -> Result<(), Refused> {
    let spec = &object.value["spec"];
    let targets = spec["targetRefs"].as_array().into_iter().flatten();
    let mut targets = targets.chain([&spec["targetRef"]]);
    if targets.any(|target| target["kind"] == "Namespace") {
        return Err(object.wrong(
            "targetRef of a Namespace",
            "it would affect all variants. Name a Server or a route",
        ));
    }
    if let Resource::Mesh(MeshKind {
        selector: Some(selector),
        ..
    }) = object.resource
    {
        // Each part of the path is extended, so it must be a mapping.
        let mut path = String::new();
        for part in selector.split('/').skip(1) {
            path = format!("{path}/{part}");
            let found = object.value.pointer(&path);
            if found.is_some_and(|found| !found.is_object() && !found.is_null()) {
                return Err(object.wrong(&path[1..].replace('/', "."), "expected a mapping"));
            }
        }
    }
    Ok(())
}

/// Refuses an object that reaches more than the files: a rule for the hosts of other Services, or for an object
/// that all variants share, such as a gateway.
pub(super) fn check_reach(
    object: &Object,
    objects: &[Object],
    namespace: Option<&str>,
) -> Result<(), Refused> {
    let Resource::Mesh(kind) = object.resource else {
        return Ok(());
    };
    let spec = &object.value["spec"];
    let hosts = spec["hosts"].as_array().into_iter().flatten();
    let hosts = hosts.chain([&spec["host"]]).filter_map(Value::as_str);
    // An object that selects pods applies to the hosts of these pods alone.
    for host in hosts.filter(|_| kind.selector.is_none()) {
        let (name, rest) = host
            .split_once('.')
            .map_or((host, None), |(name, rest)| (name, Some(rest)));
        let is_here =
            rest.is_none_or(|rest| namespace.is_none_or(|own| rest.split('.').next() == Some(own)));
        let is_own = |it: &Object| it.resource == Resource::Services && it.name() == name;
        if !is_here || !objects.iter().any(is_own) {
            return Err(object.wrong(
                &format!("the host {host}"),
                "it is no Service of the files, so all variants would share the rule. Name a Service of the files",
            ));
        }
    }
    let lists = [&spec["parentRefs"], &spec["targetRefs"]];
    let lists = lists.into_iter().filter_map(Value::as_array).flatten();
    for target in lists
        .chain([&spec["targetRef"]])
        .filter(|it| it.is_object())
    {
        let kind = target["kind"].as_str().unwrap_or("Gateway");
        let name = target["name"].as_str().unwrap_or_default();
        let is_own = |it: &Object| it.value["kind"] == kind && it.name() == name;
        if !objects.iter().any(is_own) {
            return Err(object.wrong(
                &format!("a reference to {kind}/{name}"),
                "it is not in the files, so all variants would share it. Name an object of the files",
            ));
        }
    }
    Ok(())
}

impl Manifests {
    /// Changes an object of a mesh to an object of this copy.
    pub(super) fn set_apart_in_mesh(&self, copy: Copy<'_>, namespace: &str, object: &mut Object) {
        let Resource::Mesh(kind) = object.resource else {
            return;
        };
        let spec = &mut object.value["spec"];
        self.rename_references(copy, namespace, "", spec);
        // A target takes the place of a selector.
        let has_target = spec["targetRef"].is_object() || spec["targetRefs"].is_array();
        if let Some(selector) = kind.selector.filter(|_| !has_target) {
            let mut place = &mut object.value;
            for part in selector.split('/').skip(1) {
                place = &mut place[part];
            }
            place[SERVES] = json!(copy.serves);
        }
    }

    /// Renames all objects of the files that a value names. `member` is the name of the value.
    fn rename_references(&self, copy: Copy<'_>, namespace: &str, member: &str, value: &mut Value) {
        match value {
            Value::Object(members) => {
                let default = REFERENCES.iter().find(|(name, _)| *name == member);
                for (name, inner) in members.iter_mut() {
                    self.rename_references(copy, namespace, name, inner);
                }
                if let Some((_, default)) = default {
                    let kind = members.get("kind").and_then(Value::as_str);
                    let kind = kind.unwrap_or(default).to_owned();
                    let own = self.numbered().find(|(_, it)| {
                        it.value["kind"] == *kind
                            && Some(name_of(&it.value))
                                == members.get("name").and_then(Value::as_str)
                    });
                    if let Some((number, own)) = own {
                        let name = self.name_in(copy, number, own);
                        members.insert("name".to_owned(), json!(name));
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.rename_references(copy, namespace, member, item);
                }
            }
            Value::String(text) => {
                let renamed = match HOSTS.contains(&member) {
                    true => self.host(copy, namespace, text),
                    false => self.identity(copy, text),
                };
                if let Some(renamed) = renamed {
                    *text = renamed;
                }
            }
            _ => {}
        }
    }

    /// The host name of a Service of this copy: `NAME`, `NAME.NAMESPACE` or a longer form.
    fn host(&self, copy: Copy<'_>, namespace: &str, text: &str) -> Option<String> {
        let (name, rest) = match text.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let is_ours = rest.is_none_or(|rest| rest.split('.').next() == Some(namespace));
        let own = self.own_name(copy, Resource::Services, &json!(name));
        let own = own.filter(|_| is_ours)?;
        Some(rest.map_or(own.clone(), |rest| format!("{own}.{rest}")))
    }

    /// The identity of a ServiceAccount of this copy: `…/sa/NAME` of Istio, or
    /// `NAME.NAMESPACE.serviceaccount.…` of Linkerd.
    fn identity(&self, copy: Copy<'_>, text: &str) -> Option<String> {
        let own = |name: &str| self.own_name(copy, Resource::ServiceAccounts, &json!(name));
        if let Some((before, name)) = text.rsplit_once("/sa/") {
            return Some(format!("{before}/sa/{}", own(name)?));
        }
        let (name, rest) = text.split_once('.')?;
        if !rest.contains(".serviceaccount.") {
            return None;
        }
        Some(format!("{}.{rest}", own(name)?))
    }
}
