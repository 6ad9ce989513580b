//! Manifests of the user, with the changes of a lab's variants.

use std::collections::BTreeMap;

use cluster::manifests::{Change, Manifests, Wish};
use lab::{Files, Lab};

use crate::digest::sha256;

/// The manifests of each variant's systems, by its position. `None` is for shared systems.
pub type OfSystems = BTreeMap<(Option<usize>, String), Read>;

/// The manifests of a system.
pub struct Read {
    pub manifests: Manifests,
    /// The SHA-256 of the files.
    pub digest: String,
}

/// Reads the files of all variants. `namespace` is the namespace of the run, if it is already known.
///
/// # Errors
/// All refused parts, each with the first variant that has it.
pub fn read(lab: &Lab, files: &dyn Files, namespace: Option<&str>) -> Result<OfSystems, String> {
    let mut all = OfSystems::new();
    let mut refused: Vec<(&str, String)> = Vec::new();
    let mut lines = Vec::new();
    for (position, variant) in lab.all().enumerate() {
        for setup in variant.systems() {
            let Some(wanted) = setup.manifests() else {
                continue;
            };
            let whose = (!setup.is_shared).then_some(position);
            match of_system(wanted, files, namespace) {
                Ok(read) => {
                    all.insert((whose, setup.system.clone()), read);
                }
                // Variants often have the same files.
                Err(reason) if refused.contains(&(&setup.system, reason.clone())) => {}
                Err(reason) => {
                    lines.push(format!(
                        "`{}` of `{}`: {reason}",
                        setup.system, variant.name
                    ));
                    refused.push((&setup.system, reason));
                }
            }
        }
    }
    match lines.is_empty() {
        true => Ok(all),
        false => Err(lines.join("\n")),
    }
}

fn of_system(
    wanted: &lab::Manifests,
    files: &dyn Files,
    namespace: Option<&str>,
) -> Result<Read, String> {
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
    let all: String = texts.iter().map(|(_, text)| text.as_str()).collect();
    Ok(Read {
        manifests: Manifests::read(&texts, namespace, &wish).map_err(|it| it.to_string())?,
        digest: sha256(all.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::files::Unwritten;
    use crate::systems::Addresses;

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s}\ntarget: api\nsystems:\n  \
        api: {settings: {image: 'api:1'}, manifests: {files: api.yaml, service: api, \
        changes: {api: {image: '{{image}}'}}}}\n\
        baseline: {name: a}\nvariants: [{name: b, with: {api.image: 'api:2'}}]\nexpect: {status: 200}\n";
    const FILE: &str = "{apiVersion: v1, kind: Service, metadata: {name: api}, \
        spec: {selector: {app: api}, ports: [{port: 80}]}}\n---\n\
        {apiVersion: v1, kind: Pod, metadata: {name: api, labels: {app: api}}, \
        spec: {containers: [{name: api}]}}\n";

    fn of(file: &str) -> (Lab, Unwritten) {
        let files = Unwritten(vec![
            (PathBuf::from("lab.yaml"), LAB.as_bytes().to_vec()),
            (PathBuf::from("api.yaml"), file.as_bytes().to_vec()),
        ]);
        let lab = lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
        (lab, files)
    }

    #[test]
    fn each_variant_has_manifests_of_its_own_and_one_digest_of_the_same_files() {
        let (lab, files) = of(FILE);
        let read = read(&lab, &files, Some("space")).unwrap_or_else(|why| panic!("{why}"));
        let keys: Vec<_> = read.keys().map(|(variant, _)| *variant).collect();
        assert_eq!(keys, [Some(0), Some(1)]);
        let all: Vec<&Read> = read.values().collect();
        assert_ne!(all[0].manifests, all[1].manifests, "the image differs");
        assert_eq!(all[0].digest, all[1].digest);
    }

    #[test]
    fn what_is_refused_names_system_and_variant() {
        let (lab, files) = of(&FILE.replace("kind: Pod", "kind: Job"));
        let refused = read(&lab, &files, None).err().unwrap_or_default();
        assert!(
            refused.starts_with("`api` of `a`: `Job/api` of `v1` is not applied"),
            "{refused}"
        );
    }

    #[test]
    fn a_reason_that_all_variants_share_is_given_once() {
        let other = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}}";
        let (lab, files) = of(&format!(
            "{}---\n{other}\n",
            FILE.replace("kind: Pod", "kind: Job")
        ));
        let refused = read(&lab, &files, None).err().unwrap_or_default();
        for object in [
            "`Job/api` of `v1`",
            "`PodDisruptionBudget/x` of `policy/v1`",
        ] {
            assert_eq!(refused.matches(object).count(), 1, "{refused}");
        }
        assert!(
            refused.contains("`without: [Job, PodDisruptionBudget]`"),
            "{refused}"
        );
    }

    #[test]
    fn manifests_are_refused_where_there_is_no_cluster() {
        let (lab, _) = of(FILE);
        let refused = Addresses::unasked(&lab).err();
        let said = refused.map(|failure| failure.message).unwrap_or_default();
        assert!(said.contains("`api` has manifests"), "{said}");
    }
}
