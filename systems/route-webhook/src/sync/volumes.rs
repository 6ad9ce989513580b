//! What is mounted into a route, in the order of the contract.

use crate::json::Writer;
use crate::route::{Route, Store};

/// The volume of the route itself.
pub(super) const CONFIG: &str = "integration-route-config";

/// The volumes of a pod.
pub(super) fn sources(route: &Route<'_>, answer: &mut Writer) {
    named(&[CONFIG], "configMap", ("name", &route.config_map), answer);
    for secret in &route.sources.secrets {
        let volume = &["secret-", secret];
        named(volume, "secret", ("secretName", secret), answer);
    }
    for claim in &route.claims {
        let volume = &["pvc-", &claim.name];
        let source = ("claimName", &*claim.name);
        named(volume, "persistentVolumeClaim", source, answer);
    }
    for map in &route.config_maps {
        named(
            &["cm-", &map.name],
            "configMap",
            ("name", &map.name),
            answer,
        );
    }
    if let Some(store) = &route.truststore {
        one_file("truststore", "configMap", ("name", store), answer);
    }
    if let Some(keystore) = &route.keystore {
        let source = ("secretName", &keystore.store);
        one_file("keystore", "secret", source, answer);
    }
}

/// Where the volumes of a pod appear in its container.
pub(super) fn mounts(route: &Route<'_>, answer: &mut Writer) {
    mount(&[CONFIG], false, answer, |answer| {
        answer.word("/var/spring/xml");
    });
    for secret in &route.sources.secrets {
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
        mount(&["truststore"], true, answer, |answer| {
            answer.word("/etc/cabundle");
        });
    }
    if route.keystore.is_some() {
        mount(&["keystore"], true, answer, |answer| {
            answer.word("/etc/keystore");
        });
    }
}

/// A volume that shows all of something.
pub(super) fn named(
    volume: &[&str],
    kind: &'static str,
    (key, name): (&'static str, &str),
    answer: &mut Writer,
) {
    answer.object(|answer| {
        answer.key("name").joined(volume);
        answer.key(kind).object(|answer| answer.member(key, name));
    });
}

/// A volume that shows one entry of something.
fn one_file(
    volume: &'static str,
    kind: &'static str,
    (key, store): (&'static str, &Store<'_>),
    answer: &mut Writer,
) {
    answer.object(|answer| {
        answer.fixed("name", volume);
        answer.key(kind).object(|answer| {
            answer.member(key, &store.name);
            answer.key("items").list(|answer| {
                answer.object(|answer| {
                    answer.member("key", &store.key);
                    answer.member("path", &store.key);
                });
            });
        });
    });
}

/// A mount; `path` writes where.
pub(super) fn mount(
    volume: &[&str],
    is_read_only: bool,
    answer: &mut Writer,
    path: impl FnOnce(&mut Writer),
) {
    answer.object(|answer| {
        answer.key("name").joined(volume);
        if is_read_only {
            answer.key("readOnly").truth(true);
        }
        path(answer.key("mountPath"));
    });
}
