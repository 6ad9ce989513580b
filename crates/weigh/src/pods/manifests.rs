//! Manifests of the user, as the variants of a lab want them.

use std::collections::BTreeMap;

use cluster::manifests::{Change, Manifests, Wish};
use lab::{Files, Lab};

/// The manifests of each variant, by its position, and of what all variants share.
pub(crate) type OfSystems = BTreeMap<(Option<usize>, String), Manifests>;

/// Reads the files of all variants. `namespace` is that of the run, where it is known yet.
///
/// # Errors
/// The first thing that is refused, as a sentence that names the variant.
pub(crate) fn read(
    lab: &Lab,
    files: &dyn Files,
    namespace: Option<&str>,
) -> Result<OfSystems, String> {
    let mut all = OfSystems::new();
    for (position, variant) in lab.all().enumerate() {
        for setup in variant.systems() {
            let Some(wanted) = setup.manifests() else {
                continue;
            };
            let whose = (!setup.is_shared).then_some(position);
            let wrong =
                |reason: String| format!("`{}` of `{}`: {reason}", setup.system, variant.name);
            let read = of_system(wanted, files, namespace).map_err(wrong)?;
            all.insert((whose, setup.system.clone()), read);
        }
    }
    Ok(all)
}

fn of_system(
    wanted: &lab::Manifests,
    files: &dyn Files,
    namespace: Option<&str>,
) -> Result<Manifests, String> {
    let mut texts = Vec::new();
    for path in &wanted.files {
        let name = path.display().to_string();
        let bytes = files
            .read(path)
            .map_err(|why| format!("cannot read `{name}`: {why}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8 text"))?;
        texts.push((name, text));
    }
    let changes = wanted.changes.iter().map(|change| Change {
        workload: change.workload.clone(),
        container: change.container.clone(),
        env: change.env.clone(),
        image: change.image.clone(),
        replicas: change.replicas,
    });
    let wish = Wish {
        service: wanted.service.clone(),
        port: wanted.port,
        workload: wanted.workload.clone(),
        without: wanted.without.clone(),
        changes: changes.collect(),
    };
    Manifests::read(&texts, namespace, &wish).map_err(|refused| refused.to_string())
}
