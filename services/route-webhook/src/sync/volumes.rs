//! The volumes of a route and their mounts, in the order of the contract.

use crate::json::{Key, Writer};
use crate::key;
use crate::route::{Route, Store};

/// The volume of the route itself.
pub(super) const CONFIG: &str = "integration-route-config";

/// Mount path of the route itself.
pub(super) const CONFIG_MOUNT: &str =
    r#"{"name":"integration-route-config","mountPath":"/var/spring/xml"}"#;

/// Writes the volumes of a pod.
pub(super) fn sources(route: &Route<'_>, answer: &mut Writer) {
    named(
        &[CONFIG],
        key!("configMap"),
        key!("name"),
        &route.config_map,
        answer,
    );
    for secret in &route.sources.secrets {
        let volume = &["secret-", secret];
        named(volume, key!("secret"), key!("secretName"), secret, answer);
    }
    for claim in &route.claims {
        let volume = &["pvc-", &claim.name];
        let kind = key!("persistentVolumeClaim");
        named(volume, kind, key!("claimName"), &claim.name, answer);
    }
    for map in &route.config_maps {
        named(
            &["cm-", &map.name],
            key!("configMap"),
            key!("name"),
            &map.name,
            answer,
        );
    }
    if let Some(store) = &route.truststore {
        one_file("truststore", key!("configMap"), key!("name"), store, answer);
    }
    if let Some(keystore) = &route.keystore {
        let (kind, key) = (key!("secret"), key!("secretName"));
        one_file("keystore", kind, key, &keystore.store, answer);
    }
}

/// Writes the mounts of a pod's volumes in its container.
pub(super) fn mounts(route: &Route<'_>, answer: &mut Writer) {
    answer.constant(CONFIG_MOUNT);
    for secret in &route.sources.secrets {
        // Prefixes distinguish a secret, a claim and a map with the same name.
        mount(&["secret-", secret], true, answer, |answer| {
            answer.joined(&["/etc/secrets/", secret]);
        });
    }
    for claim in &route.claims {
        mount(&["pvc-", &claim.name], false, answer, |answer| {
            answer.json(claim.path);
        });
    }
    for map in &route.config_maps {
        mount(&["cm-", &map.name], false, answer, |answer| {
            answer.json(map.path);
        });
    }
    if route.truststore.is_some() {
        answer.constant(r#"{"name":"truststore","readOnly":true,"mountPath":"/etc/cabundle"}"#);
    }
    if route.keystore.is_some() {
        answer.constant(r#"{"name":"keystore","readOnly":true,"mountPath":"/etc/keystore"}"#);
    }
}

/// Writes a volume with all entries of its source.
pub(super) fn named(volume: &[&str], kind: Key, key: Key, name: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.key(key!("name")).joined(volume);
        answer.key(kind).object(|answer| answer.member(key, name));
    });
}

/// Writes a volume with one entry of its source.
fn one_file(volume: &'static str, kind: Key, key: Key, store: &Store<'_>, answer: &mut Writer) {
    answer.object(|answer| {
        answer.fixed(key!("name"), volume);
        answer.key(kind).object(|answer| {
            answer.member(key, &store.name);
            // Only this entry, because the source may contain entries that the route should not see.
            answer.key(key!("items")).list(|answer| {
                answer.object(|answer| {
                    answer.member(key!("key"), &store.key);
                    answer.member(key!("path"), &store.key);
                });
            });
        });
    });
}

/// Writes a mount. `path` writes its path.
pub(super) fn mount(
    volume: &[&str],
    is_read_only: bool,
    answer: &mut Writer,
    path: impl FnOnce(&mut Writer),
) {
    answer.object(|answer| {
        answer.key(key!("name")).joined(volume);
        if is_read_only {
            answer.key(key!("readOnly")).truth(true);
        }
        path(answer.key(key!("mountPath")));
    });
}
