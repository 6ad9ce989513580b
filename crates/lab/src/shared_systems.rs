//! Shared systems: one process serves all variants.

use yaml_with_places::{At, Finding, Findings};

use crate::experiment::{Setup, Variant};
use crate::formats::Name;
use crate::wire::SystemFile;

/// Reports systems that cannot be shared. One process can only be started in one way, before any variant
/// runs.
pub(crate) fn check(
    declared: &[(At<Name>, SystemFile)],
    target: Option<&str>,
    variants: &[Variant],
    findings: &mut Findings,
) {
    let is_shared = |system: &str| {
        let mut all = variants.iter().flat_map(Variant::systems);
        all.any(|setup| setup.system == system && setup.is_shared)
    };
    for (name, file) in declared {
        let Some(shared) = file.shared.as_ref().filter(|shared| shared.value) else {
            continue;
        };
        let system = name.value.0.as_str();
        let found: Vec<(&str, &Setup)> = variants
            .iter()
            .filter_map(|variant| {
                let mut setups = variant.systems().iter();
                let own = setups.find(|setup| setup.system == system)?;
                Some((variant.name.as_str(), own))
            })
            .collect();
        let is_target = target == Some(system)
            || variants.iter().any(|variant| {
                let last = variant.systems().last();
                last.is_some_and(|last| last.system == system)
            });
        let message = if is_target {
            Some(format!(
                "`{system}` receives the load, so it cannot be shared"
            ))
        } else if file.replicas.is_some() {
            Some(format!("`{system}` has `replicas`, so it cannot be shared"))
        } else {
            why_not(system, &found, is_shared)
        };
        if let Some(message) = message {
            findings.add(Finding::new(shared.place, message).help(
                "one process of a shared system serves all variants. Remove `shared`, or the difference",
            ));
        }
    }
}

/// Returns the reason that variants cannot share this system.
fn why_not(
    system: &str,
    found: &[(&str, &Setup)],
    is_shared: impl Fn(&str) -> bool,
) -> Option<String> {
    let (first_name, first) = found.first()?;
    let own = first.after.iter().find(|other| !is_shared(other));
    if let Some(other) = own {
        return Some(format!(
            "`{system}` is shared, but it needs `{other}`, which is not shared"
        ));
    }
    let (name, _) = found.iter().find(|(_, setup)| setup != first)?;
    Some(format!(
        "`{system}` is shared, but it differs between `{first_name}` and `{name}`"
    ))
}
