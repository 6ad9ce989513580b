//! The environment of a route: Spring's settings, Java's options, and the user's own variables.

use crate::json::Writer;
use crate::key;
use crate::route::{Route, Sources, Store, StoreKind};

/// The variable with Spring's settings.
const SPRING: &str = "SPRING_APPLICATION_JSON";

/// Spring's endpoints for health and metrics.
const MANAGEMENT: &str = concat!(
    r#"\"management\": {\"endpoint\": {\"health\": {\"enabled\": true}, "#,
    r#"\"prometheus\": {\"enabled\": true}}, "#,
    r#"\"endpoints\": {\"web\": {\"exposure\": {\"include\": \"health,prometheus\"}}}}"#,
);

/// Writes the variables of the container, the user's own last.
pub(super) fn variables(route: &Route<'_>, answer: &mut Writer) {
    spring(answer, |answer| settings(route, answer));
    if let Some(store) = &route.truststore {
        variable("JDK_JAVA_OPTIONS", answer, |value| {
            java_options(store, value)
        });
    }
    if let Some(keystore) = &route.keystore {
        answer.object(|answer| {
            answer.fixed(key!("name"), "SERVER_SSL_KEYSTOREPASSWORD");
            answer.key(key!("valueFrom")).object(|answer| {
                answer.key(key!("secretKeyRef")).object(|answer| {
                    answer.member(key!("name"), &keystore.password);
                    answer.constant(r#""key":"password""#);
                });
            });
        });
    }
    variable("SERVICE_NAME", answer, |value| value.text(&route.name));
    // Last, so that a user's variable replaces ours: Kubernetes uses the last variable of a name.
    for own in &route.env {
        answer.json(own);
    }
}

/// Writes an environment variable. `write` writes its value.
fn variable(name: &'static str, answer: &mut Writer, write: impl FnOnce(&mut Writer)) {
    answer.object(|answer| {
        answer.fixed(key!("name"), name);
        write(answer.key(key!("value")));
    });
}

/// Writes the variable with Spring's settings. `fill` writes their members.
pub(super) fn spring(answer: &mut Writer, fill: impl FnOnce(&mut Writer)) {
    variable(SPRING, answer, |value| {
        // JSON within a JSON string, so its content is escaped once more.
        value.quoted(|settings| settings.object(fill));
    });
}

fn java_options(store: &Store<'_>, value: &mut Writer) {
    let password = match store.kind {
        // Java's own default password of JKS trust stores. PKCS#12 stores have no password.
        StoreKind::Jks => "changeit",
        StoreKind::Pkcs12 => "",
    };
    value.joined(&[
        "-Djavax.net.ssl.trustStore=/etc/cabundle/",
        &store.key,
        " -Djavax.net.ssl.trustStorePassword=",
        password,
        " -Djavax.net.ssl.trustStoreType=",
        store.kind.java(),
    ]);
}

fn settings(route: &Route<'_>, writer: &mut Writer) {
    writer.key(key!("spring")).object(|writer| {
        application(&route.name, writer);
        if !route.sources.is_empty() {
            import(writer);
            cloud(&route.sources, writer, |writer| {
                if let Some(properties) = route.sources.properties {
                    writer.key(key!("sources")).json(properties);
                }
            });
        }
    });
    if let Some(keystore) = &route.keystore {
        writer.key(key!("server")).object(|writer| {
            writer.key(key!("ssl")).object(|writer| {
                writer.member(key!("key-alias"), &keystore.alias);
                let parts = ["/etc/keystore/", &*keystore.store.key];
                writer.key(key!("key-store")).joined(&parts);
                writer.fixed(key!("key-store-type"), keystore.store.kind.java());
            });
            writer.constant(r#"\"port\": 8443"#);
        });
    }
    writer.constant(MANAGEMENT);
}

pub(super) fn application(name: &str, writer: &mut Writer) {
    writer
        .key(key!("application"))
        .object(|writer| writer.member(key!("name"), name));
}

pub(super) fn import(writer: &mut Writer) {
    writer.constant(r#"\"config.import\": \"kubernetes:\""#);
}

/// Writes the sources of properties and secrets for Spring. `write_sources` writes the property sources.
pub(super) fn cloud(
    sources: &Sources<'_>,
    writer: &mut Writer,
    write_sources: impl FnOnce(&mut Writer),
) {
    writer.key(key!("cloud")).object(|writer| {
        writer.key(key!("kubernetes")).object(|writer| {
            writer.key(key!("config")).object(|writer| {
                writer.constant(r#"\"fail-fast\": true"#);
                if let Some(namespace) = &sources.namespace {
                    writer.member(key!("namespace"), namespace);
                }
                write_sources(writer);
            });
            writer.constant(r#"\"secrets\": {\"paths\": \"/etc/secrets\"}"#);
        });
    });
}
