//! Services of a compose file: the keys of a lab within a variant.
//!
//! The content of the compose file is not read here. `weigh` reads it before any start, and then checks that
//! each service exists.

use yaml_with_places::{At, Finding};

use crate::experiment::{Compose, ServiceChange};
use crate::fields::Table;
use crate::filling::Filling;
use crate::formats::{Format, ServiceName, Verbatim};
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::template::Template;
use crate::wire::{ComposeFile, ServiceFile};

/// The largest number of containers of one service. A larger number is a mistake.
const REPLICAS_MAX: u32 = 64;

/// The value that leaves out no service, so that a setting can select it.
const NONE: &str = "none";

/// Returns the compose project of a variant. `None` if a key is wrong, which is reported.
pub(crate) fn of(
    system: &str,
    file: &ComposeFile,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Compose> {
    let filling = Filling::new(system, scope, &ADDRESS);
    let path = filling.required(file.file.as_ref(), reading);
    let service = filling.required(file.service.as_ref(), reading);
    let port = match &file.port {
        Some(port) => filling.number(port, 1..=u32::from(u16::MAX), "a port", reading),
        None => None,
    };
    let profiles = filling.list(&file.profiles.0, reading);
    let env = filling.variables(&file.env, reading);
    let without = without(&filling, &file.without.0, reading);
    let services = services(&filling, &file.services, &without, reading);
    // All parts first, so that the mistakes of each are reported in one run.
    let (file_at, path) = path?;
    let (service_at, service) = service?;
    if without.contains(&service) {
        reading.findings.add(
            Finding::new(
                service_at,
                format!("`{service}` receives the load, but `without` removes it"),
            )
            .help("name the service that receives the load instead. Variants can choose it with a setting: `service: \"{{load}}\"`"),
        );
        return None;
    }
    Some(Compose {
        file: reading.resolve(&path, file_at),
        service,
        port: port.and_then(|port| u16::try_from(port).ok()),
        profiles,
        env,
        without,
        services,
    })
}

/// The message and the help for a text that needs an address.
const ADDRESS: NoAddress = NoAddress {
    mistake: "containers cannot reach this address",
    help: "services reach each other by name in their own network. Make the other system a service of the compose file",
};

/// Returns the services to leave out. One setting may name several, as `a, b`.
fn without(
    filling: &Filling<'_>,
    written: &[At<Verbatim<Template>>],
    reading: &mut Reading<'_>,
) -> Vec<String> {
    let mut without = Vec::new();
    for (place, name) in filling.names(written, NONE, reading) {
        match ServiceName::read(&name) {
            Ok(_) => without.push(name),
            Err(wrong) => {
                let finding = Finding::new(place, wrong.message).help_if(wrong.help);
                reading.findings.add(finding);
            }
        }
    }
    without
}

fn services(
    filling: &Filling<'_>,
    written: &Table<ServiceName, ServiceFile>,
    without: &[String],
    reading: &mut Reading<'_>,
) -> Vec<ServiceChange> {
    let mut changes = Vec::new();
    for (name, file) in &written.0 {
        let ServiceName(service) = &name.value;
        let env = filling.variables(&file.env, reading);
        let image = filling.required(file.image.as_ref(), reading);
        let replicas = file.replicas.as_ref();
        let replicas = replicas
            .and_then(|it| filling.number(it, 1..=REPLICAS_MAX, "a number of containers", reading));
        // A variant may leave out a service that other variants change.
        if !without.contains(service) {
            changes.push(ServiceChange {
                service: service.clone(),
                env,
                // An empty setting is the file's own image.
                image: image.map(|(_, image)| image),
                replicas,
            });
        }
    }
    changes
}
