//! The container and port that receive a project's load.

use std::collections::BTreeSet;

use serde_json::Value;

use super::service::Service;
use super::{DocumentInputs, Entrance, Remarks, as_text};

/// The port of the loaded service. `None` if it is unknown. The file is then refused.
pub(super) fn entrance(
    services: &[Service],
    inputs: DocumentInputs<'_>,
    remarks: &mut Remarks,
) -> Option<Entrance> {
    let compose = inputs.compose;
    let find = |name: &str| services.iter().find(|it| it.planned.name == name);
    let loaded = find(&compose.service)?;
    let name = &loaded.planned.name;
    if loaded.planned.replicas > 1 {
        remarks.refuse(format!(
            "`{name}` receives the load and has {} containers, but the load goes to one address. Load a balancer before them",
            loaded.planned.replicas
        ));
    }
    // A service that uses another service's network is reached at that service's address. Compose refuses a
    // circle of such services. This loop must only end.
    let (mut last, mut seen) = (loaded, BTreeSet::new());
    while let Some(next) = last.network_of().and_then(find) {
        if !seen.insert(&next.planned.name) {
            break;
        }
        last = next;
    }
    if last.given["network_mode"] == "none" {
        remarks.refuse(format!(
            "`{name}` receives the load, but has `network_mode: none`"
        ));
    }
    let known = match compose.port {
        Some(port) => [port].into(),
        None => ports(loaded, last, inputs),
    };
    let mut known = known.into_iter();
    match (known.next(), known.next()) {
        (Some(port), None) => Some(Entrance {
            service: last.planned.name.clone(),
            port,
        }),
        (None, _) => {
            remarks.refuse(format!(
                "`{name}` receives the load, but the file has no port for it. Write the port inside its container next to `service` in the lab, for example `port: 80`"
            ));
            None
        }
        (Some(first), Some(second)) => {
            remarks.refuse(format!(
                "`{name}` receives the load and has several ports, for example {first} and {second}. Write one, such as `port: {first}`, next to `service` in the lab"
            ));
            None
        }
    }
}

/// The published ports, otherwise the exposed ports, of the file or the image.
fn ports(loaded: &Service, owner: &Service, inputs: DocumentInputs<'_>) -> BTreeSet<u16> {
    let of = |key: &str| -> BTreeSet<u16> {
        let services = [loaded, owner].into_iter();
        let items =
            services.flat_map(|service| service.given[key].as_array().into_iter().flatten());
        items.filter_map(target).collect()
    };
    let of_image = || (inputs.image_ports)(loaded.image()).into_iter().collect();
    let in_file = ["ports", "expose"].into_iter().map(of);
    let mut known = in_file.filter(|ports| !ports.is_empty());
    known.next().unwrap_or_else(of_image)
}

/// The TCP port within the container: `8080:80`, `127.0.0.1:8080:80/tcp`, `{target: 80}`.
fn target(item: &Value) -> Option<u16> {
    let text = match item {
        Value::Object(long) => {
            if long.get("protocol").is_some_and(|it| it == "udp") {
                return None;
            }
            as_text(long.get("target")?)?
        }
        short => as_text(short)?,
    };
    let (ports, protocol) = text.split_once('/').unwrap_or((&text, "tcp"));
    let target = ports.rsplit(':').next()?;
    // A range has several ports, so it does not identify one.
    target
        .parse()
        .ok()
        .filter(|port| *port > 0 && protocol == "tcp")
}
