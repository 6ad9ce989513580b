//! The volumes of a project. Each project has its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{DocumentInputs, Remarks, is_external, label};

/// A named volume that a service has mounted.
struct Mount {
    volume: String,
    is_read_only: bool,
}

/// Returns the named volumes that services use. `of_services` contains the `volumes` of each service.
pub(super) fn used(
    resolved: &Value,
    of_services: &[&Value],
    inputs: DocumentInputs<'_>,
    remarks: &mut Remarks,
) -> Value {
    // For each volume, true if all its mounts are read-only.
    let mut used: BTreeMap<String, bool> = BTreeMap::new();
    for mount in of_services.iter().flat_map(|it| mounts(it)) {
        let is_read_only = used.entry(mount.volume).or_insert(true);
        *is_read_only &= mount.is_read_only;
    }
    let mut volumes = Map::new();
    for (name, is_read_only) in used {
        let given = &resolved["volumes"][&name];
        if is_external(given) {
            if is_read_only {
                volumes.insert(name, given.clone());
            } else {
                remarks.refuse(format!(
                    "the volume `{name}` is external, so variants would write into one another's data. Mount it read-only, or remove `external`, so that each variant begins with an empty volume"
                ));
            }
            continue;
        }
        let mut volume = given.as_object().cloned().unwrap_or_default();
        // A fixed name would be the same for all projects.
        volume.remove("name");
        if let Some(device) = given["driver_opts"]["device"].as_str()
            && !is_read_only
        {
            remarks.refuse(format!(
                "the volume `{name}` is `{device}` for every variant, so variants would write into one another's data. Mount it read-only, or remove its `driver_opts`"
            ));
        }
        label(&mut volume, inputs.labels);
        volumes.insert(name, Value::Object(volume));
    }
    Value::Object(volumes)
}

/// The named volumes in the `volumes` of a service. Folders of the host are left out.
fn mounts(volumes: &Value) -> Vec<Mount> {
    let items = volumes.as_array().into_iter().flatten();
    let mount = |item: &Value| match item {
        Value::String(short) => {
            let mut parts = short.split(':');
            let source = parts.next()?;
            // A single word is a path in the container, for a volume without a name.
            let _target = parts.next()?;
            let is_path = source.starts_with(['/', '.', '~']);
            let mut options = parts.next().unwrap_or_default().split(',');
            (!is_path).then(|| Mount {
                volume: source.to_owned(),
                is_read_only: options.any(|option| option == "ro"),
            })
        }
        long => (long["type"] == "volume")
            .then(|| long["source"].as_str())
            .flatten()
            .map(|source| Mount {
                volume: source.to_owned(),
                is_read_only: long["read_only"] == true,
            }),
    };
    items.filter_map(mount).collect()
}

/// The paths of the host that a service can write to, as written.
pub(super) fn writable_paths(volumes: &Value) -> Vec<String> {
    let items = volumes.as_array().into_iter().flatten();
    let folder = |item: &Value| match item {
        Value::String(short) => {
            let mut parts = short.split(':');
            let source = parts.next()?;
            parts.next()?;
            let mut options = parts.next().unwrap_or_default().split(',');
            let is_written = source.starts_with(['/', '.', '~']) && !options.any(|it| it == "ro");
            is_written.then(|| source.to_owned())
        }
        long => {
            let is_written = long["type"] == "bind" && long["read_only"] != true;
            is_written
                .then(|| long["source"].as_str())
                .flatten()
                .map(str::to_owned)
        }
    };
    items.filter_map(folder).collect()
}
