//! The environment of a route: Spring's settings, Java's options, and the user's own variables.

use crate::json::{Style, Writer};
use crate::route::{Route, Sources, Store, StoreKind};

/// Where a route with a certificate listens.
pub(super) const TLS_PORT: u32 = 8443;

/// The variable that Spring reads its settings from.
pub(super) const SPRING: &str = "SPRING_APPLICATION_JSON";

/// The variables of the container, the user's own last.
pub(super) fn variables(route: &Route<'_>, answer: &mut Writer) {
    variable(SPRING, &spring(route), answer);
    if let Some(store) = &route.truststore {
        variable("JDK_JAVA_OPTIONS", &java_options(store), answer);
    }
    if let Some(keystore) = &route.keystore {
        answer.object(|answer| {
            answer.member("name", "SERVER_SSL_KEYSTOREPASSWORD");
            answer.key("valueFrom").object(|answer| {
                answer.key("secretKeyRef").object(|answer| {
                    answer.member("name", &keystore.password);
                    answer.member("key", "password");
                });
            });
        });
    }
    variable("SERVICE_NAME", &route.name, answer);
    for own in &route.env {
        answer.json(own);
    }
}

pub(super) fn variable(name: &str, value: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.member("name", name);
        answer.member("value", value);
    });
}

fn java_options(store: &Store<'_>) -> String {
    let password = match store.kind {
        StoreKind::Jks => "changeit",
        StoreKind::Pkcs12 => "",
    };
    format!(
        "-Djavax.net.ssl.trustStore=/etc/cabundle/{} -Djavax.net.ssl.trustStorePassword={password} \
         -Djavax.net.ssl.trustStoreType={}",
        store.key,
        store.kind.java()
    )
}

/// Spring's settings as JSON.
fn spring(route: &Route<'_>) -> String {
    let mut writer = Writer::new(Style::Spaced, 512);
    writer.object(|writer| {
        writer.key("spring").object(|writer| {
            application(&route.name, writer);
            if !route.sources.is_empty() {
                import(writer);
                cloud(&route.sources, writer, |properties, writer| {
                    if let Some(properties) = properties {
                        writer.key("sources").json(properties);
                    }
                });
            }
        });
        if let Some(keystore) = &route.keystore {
            writer.key("server").object(|writer| {
                writer.key("ssl").object(|writer| {
                    writer.member("key-alias", &keystore.alias);
                    let parts = ["/etc/keystore/", &*keystore.store.key];
                    writer.key("key-store").joined(&parts);
                    writer.member("key-store-type", keystore.store.kind.java());
                });
                writer.key("port").number(TLS_PORT);
            });
        }
        writer.key("management").object(management);
    });
    writer.finish()
}

pub(super) fn application(name: &str, writer: &mut Writer) {
    writer
        .key("application")
        .object(|writer| writer.member("name", name));
}

pub(super) fn import(writer: &mut Writer) {
    writer.member("config.import", "kubernetes:");
}

/// Where Spring finds properties and secrets; `write_sources` names those of properties.
pub(super) fn cloud(
    sources: &Sources<'_>,
    writer: &mut Writer,
    write_sources: impl FnOnce(Option<&str>, &mut Writer),
) {
    writer.key("cloud").object(|writer| {
        writer.key("kubernetes").object(|writer| {
            writer.key("config").object(|writer| {
                writer.key("fail-fast").truth(true);
                if let Some(namespace) = &sources.namespace {
                    writer.member("namespace", namespace);
                }
                write_sources(sources.properties, writer);
            });
            writer
                .key("secrets")
                .object(|writer| writer.member("paths", "/etc/secrets"));
        });
    });
}

fn management(writer: &mut Writer) {
    writer.key("endpoint").object(|writer| {
        for endpoint in ["health", "prometheus"] {
            writer
                .key(endpoint)
                .object(|writer| writer.key("enabled").truth(true));
        }
    });
    writer.key("endpoints").object(|writer| {
        writer.key("web").object(|writer| {
            writer
                .key("exposure")
                .object(|writer| writer.member("include", "health,prometheus"));
        });
    });
}
