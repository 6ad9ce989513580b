//! The measured service of a compose file: the services behind it, and the load without it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use experiment::compose::{Resolved, Tool};
use experiment::exit::{Exit, Failure};
use serde_json::Value;
use yaml_with_places::did_you_mean;

use super::tree::Tree;

/// A compose file with and without one service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComposeDraft {
    /// Path of the compose file in the lab.
    pub(super) file: PathBuf,
    /// The service that the baseline leaves out.
    pub(super) service: String,
    /// The service that receives the load if `service` is left out.
    pub(super) behind: String,
    /// True if the load goes through `service`. Otherwise it goes to `behind` in both variants.
    pub(super) is_before: bool,
    /// The profiles with more services to run.
    pub(super) profiles: Vec<String>,
}

/// The values of the flags.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) file: &'a Path,
    pub(super) service: &'a str,
    /// Value of the flag `--behind`.
    pub(super) behind: Option<&'a str>,
    /// Values of the flag `--profile`.
    pub(super) profiles: &'a [String],
    /// The current folder, relative to the lab.
    pub(super) way_back: &'a Path,
}

/// Reads the file with compose, and finds the service behind the measured one.
///
/// # Errors
///
/// The missing or unknown value, with the flag that sets it.
pub(super) fn draft(wanted: Wanted<'_>) -> Result<ComposeDraft, Failure> {
    let tool = Tool::find().map_err(|invalid| Failure {
        exit: Exit::NotReady,
        message: invalid.reason,
    })?;
    let resolved = Resolved::read(&tool, wanted.file, wanted.profiles, &[])
        .map_err(|invalid| Failure::bad_input(invalid.reason))?;
    let file = match wanted.file.is_absolute() {
        true => wanted.file.to_owned(),
        false => wanted.way_back.join(wanted.file),
    };
    let services = resolved.services(wanted.profiles);
    let (behind, is_before) = inactive(&services, &wanted)
        .and_then(|()| behind(&services, &wanted))
        .and_then(|found| of_the_machine(&services).map(|()| found))
        .map_err(Failure::bad_input)?;
    Ok(ComposeDraft {
        file,
        service: wanted.service.to_owned(),
        behind,
        is_before,
        profiles: wanted.profiles.to_vec(),
    })
}

/// Refuses a service of a profile that is not chosen, with the flag that chooses it.
fn inactive(services: &[(String, Value)], wanted: &Wanted<'_>) -> Result<(), String> {
    if services.iter().any(|(name, _)| name == wanted.service) {
        return Ok(());
    }
    // The resolved file may lack such services, but the file itself has them.
    let text = fs::read_to_string(wanted.file).unwrap_or_default();
    let root = Tree::read("compose.yaml", &text, false).map(|tree| tree.root);
    let own = root
        .ok()
        .and_then(|root| root.get("services")?.get(wanted.service).cloned());
    let profiles = own
        .as_ref()
        .and_then(|own| own.get("profiles")?.get(0)?.as_str());
    match profiles {
        None => Ok(()),
        Some(profile) => Err(format!(
            "the service `{}` of `{}` runs only with the profile `{profile}`. Add `--profile {profile}`",
            wanted.service,
            wanted.file.display()
        )),
    }
}

/// Refuses services on the network of the machine, which two variants cannot share.
fn of_the_machine(services: &[(String, Value)]) -> Result<(), String> {
    let is_there = |service: &Value| service.get("network_mode") == Some(&Value::from("host"));
    match services.iter().find(|(_, service)| is_there(service)) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "the service `{name}` has `network_mode: host`, but two variants cannot share the ports of the machine. Remove it"
        )),
    }
}

/// The service behind the measured one, and true if the load goes through the measured one.
fn behind(services: &[(String, Value)], wanted: &Wanted<'_>) -> Result<(String, bool), String> {
    let names = || services.iter().map(|(name, _)| name.as_str());
    let known = |name: &str| match names().any(|known| known == name) {
        true => Ok(()),
        false => Err(format!(
            "there is no service `{name}` in `{}`: {}",
            wanted.file.display(),
            did_you_mean(name, names()).unwrap_or_else(|| format!(
                "the services are {}",
                names().collect::<Vec<_>>().join(", ")
            ))
        )),
    };
    known(wanted.service)?;
    if let Some(behind) = wanted.behind {
        known(behind)?;
        if behind == wanted.service {
            return Err(format!(
                "expected in `--behind` another service than `{behind}`, because the variant omits that service. The services are {}",
                names().collect::<Vec<_>>().join(", ")
            ));
        }
        return Ok((behind.to_owned(), true));
    }
    let own = services.iter().find(|(name, _)| name == wanted.service);
    let others = || services.iter().filter(|(name, _)| name != wanted.service);
    let of = |names: BTreeSet<&str>| -> Vec<&(String, Value)> {
        others()
            .filter(|(name, _)| names.contains(name.as_str()))
            .collect()
    };
    let needed = own.map_or_else(BTreeSet::new, |(_, service)| keys(&service["depends_on"]));
    let needing = others().filter(|(_, it)| keys(&it["depends_on"]).contains(wanted.service));
    let is_published = own.is_some_and(|(_, service)| has_port(service, "ports"));
    if needed.is_empty() && !is_published && needing.clone().count() > 0 {
        // A service that only other services use, such as a store. The load does not go through it.
        let published: Vec<&(String, Value)> =
            others().filter(|(_, it)| has_port(it, "ports")).collect();
        let found = only(&published).or_else(|| only(&needing.collect::<Vec<_>>()));
        return found
            .map(|name| (name, false))
            .ok_or_else(|| unknown(wanted, &names));
    }
    let needed = of(needed);
    let with_port = |list: &[&(String, Value)]| -> Option<String> {
        let list = list.iter().copied();
        let listening = list.filter(|(_, it)| has_port(it, "ports") || has_port(it, "expose"));
        only(&listening.collect::<Vec<_>>())
    };
    let all: Vec<&(String, Value)> = others().collect();
    let found = only(&needed)
        .or_else(|| with_port(&needed))
        .or_else(|| with_port(&all));
    let found = found.or_else(|| only(&all));
    found
        .map(|name| (name, true))
        .ok_or_else(|| unknown(wanted, &names))
}

fn unknown<'a, I: Iterator<Item = &'a str>>(wanted: &Wanted<'_>, names: &dyn Fn() -> I) -> String {
    let others = names().filter(|name| *name != wanted.service);
    let others: Vec<&str> = others.collect();
    match others.is_empty() {
        true => format!(
            "`{}` is the only service of `{}`, so no service would remain without it",
            wanted.service,
            wanted.file.display()
        ),
        false => format!(
            "the service behind `{}` is not clear from `{}`. Name the service that receives the load in its place: `--behind` {}",
            wanted.service,
            wanted.file.display(),
            others.join(" or ")
        ),
    }
}

fn only(list: &[&(String, Value)]) -> Option<String> {
    match list {
        [(name, _)] => Some(name.clone()),
        _ => None,
    }
}

fn has_port(service: &Value, key: &str) -> bool {
    service[key]
        .as_array()
        .is_some_and(|ports| !ports.is_empty())
}

/// The names in a list, or the keys of a mapping.
fn keys(given: &Value) -> BTreeSet<&str> {
    match given {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Object(members) => members.keys().map(String::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(
        services: Value,
        service: &str,
        named: Option<&str>,
    ) -> Result<(String, bool), String> {
        let services: Vec<(String, Value)> = services
            .as_object()
            .expect("services")
            .iter()
            .map(|(name, it)| (name.clone(), it.clone()))
            .collect();
        let wanted = Wanted {
            file: Path::new("compose.yaml"),
            service,
            behind: named,
            profiles: &[],
            way_back: Path::new(".."),
        };
        behind(&services, &wanted)
    }

    fn stack() -> Value {
        json!({
            "nginx": {"ports": ["80:80"], "depends_on": {"api": {}}},
            "api": {"expose": ["8080"], "depends_on": ["redis"]},
            "redis": {},
        })
    }

    #[test]
    fn what_a_sidecar_waits_for_stands_behind_it() {
        assert_eq!(found(stack(), "nginx", None), Ok(("api".to_owned(), true)));
        let mut several = stack();
        several["nginx"]["depends_on"] = json!(["api", "redis"]);
        assert_eq!(found(several, "nginx", None), Ok(("api".to_owned(), true)));
        let mut silent = stack();
        silent["nginx"]["depends_on"] = Value::Null;
        assert_eq!(found(silent, "nginx", None), Ok(("api".to_owned(), true)));
    }

    #[test]
    fn the_load_goes_past_what_others_wait_for() {
        assert_eq!(
            found(stack(), "redis", None),
            Ok(("nginx".to_owned(), false))
        );
        let named = found(stack(), "redis", Some("api"));
        assert_eq!(named, Ok(("api".to_owned(), true)), "the user knows better");
    }

    #[test]
    fn what_is_not_clear_is_asked_for() {
        let two = json!({"a": {}, "b": {"expose": [1]}, "c": {"expose": [2]}});
        let said = found(two, "a", None).unwrap_err();
        assert!(said.contains("`--behind` b or c"), "{said}");
        let said = found(json!({"a": {}}), "a", None).unwrap_err();
        assert!(said.contains("the only service"), "{said}");
        let said = found(stack(), "ngnix", None).unwrap_err();
        assert!(said.contains("did you mean `nginx`?"), "{said}");
        let said = found(stack(), "nginx", Some("nginx")).unwrap_err();
        assert!(said.contains("another service"), "{said}");
    }

    #[test]
    fn a_service_of_a_profile_and_one_of_the_machine_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("compose.yaml");
        fs::write(&file, include_str!("fixtures/compose/compose.yaml")).expect("a file");
        let wanted = |service| Wanted {
            file: &file,
            service,
            behind: None,
            profiles: &[],
            way_back: Path::new(".."),
        };
        let said = inactive(&[], &wanted("tracing")).unwrap_err();
        assert!(
            said.contains("with the profile `debug`. Add `--profile debug`"),
            "{said}"
        );
        assert_eq!(inactive(&[], &wanted("other")), Ok(()));
        let services = |text: &str| -> Vec<(String, Value)> {
            let root = Tree::read("compose.yaml", text, false).expect("YAML").root;
            let services = root["services"].as_object().expect("services").clone();
            services.into_iter().collect()
        };
        let usual = services(include_str!("fixtures/compose/compose.yaml"));
        assert_eq!(of_the_machine(&usual), Ok(()));
        let host = services(include_str!("fixtures/compose/host.yaml"));
        let said = of_the_machine(&host).unwrap_err();
        assert!(said.contains("`web` has `network_mode: host`"), "{said}");
    }
}
