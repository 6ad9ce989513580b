//! Manifests of a cluster: the keys of a lab within a variant.
//!
//! The content of the files is not read here. `weigh` reads and checks them before it creates any object.

use yaml_with_places::{At, Finding};

use crate::experiment::{Manifests, WorkloadChange};
use crate::fields::Table;
use crate::filling::Filling;
use crate::formats::ServiceName;
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::wire::{ManifestsFile, WorkloadFile};

/// The largest number of pods of one workload. A larger number is a mistake.
const REPLICAS_MAX: u32 = 64;

/// The value that leaves out no object, so that a setting can select it.
const NONE: &str = "none";

/// The message and the help for a text that needs an address.
const ADDRESS: NoAddress = NoAddress {
    mistake: "manifests cannot contain this address",
    help: "objects in manifests reach each other by the names of their Services. Add the other system to the files",
};

/// Returns the manifests of a variant. `None` if a key is wrong, which is reported.
pub(crate) fn of(
    system: &str,
    file: &At<ManifestsFile>,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Manifests> {
    let filling = Filling::new(system, scope, &ADDRESS);
    let place = file.place;
    let file = &file.value;
    let mut files = Vec::new();
    for one in &file.files.0 {
        let text = filling.text(one, reading);
        if let Some(path) = text.filter(|path| !path.trim().is_empty()) {
            files.push(reading.resolve(path.trim(), one.place));
        }
    }
    let service = filling.required(file.service.as_ref(), reading);
    let port = file.port.as_ref();
    let port = port.and_then(|it| filling.number(it, 1..=u32::from(u16::MAX), "a port", reading));
    let workload = filling.required(file.workload.as_ref(), reading);
    let without = filling.names(&file.without.0, NONE, reading);
    let without = without.into_iter().map(|(_, name)| name).collect();
    let changes = changes(&filling, &file.changes, reading);
    if files.is_empty() && !file.files.0.is_empty() {
        reading.findings.add(
            Finding::new(place, "`manifests` without a file")
                .help("name the files under `files`. An empty setting names no file"),
        );
        return None;
    }
    let (_, service) = service?;
    (!files.is_empty()).then_some(Manifests {
        files,
        service,
        port: port.and_then(|port| u16::try_from(port).ok()),
        workload: workload.map(|(_, name)| name),
        without,
        changes,
    })
}

fn changes(
    filling: &Filling<'_>,
    written: &Table<ServiceName, WorkloadFile>,
    reading: &mut Reading<'_>,
) -> Vec<WorkloadChange> {
    let mut changes = Vec::new();
    for (name, file) in &written.0 {
        let ServiceName(workload) = &name.value;
        let container = filling.required(file.container.as_ref(), reading);
        let image = filling.required(file.image.as_ref(), reading);
        let replicas = file.replicas.as_ref();
        changes.push(WorkloadChange {
            workload: workload.clone(),
            container: container.map(|(_, name)| name),
            env: filling.variables(&file.env, reading),
            // An empty setting is the file's own image.
            image: image.map(|(_, image)| image),
            replicas: replicas
                .and_then(|it| filling.number(it, 1..=REPLICAS_MAX, "a number of pods", reading)),
        });
    }
    changes
}
