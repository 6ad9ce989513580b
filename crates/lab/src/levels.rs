//! The variants of a proof, if its `of` names values of settings and factors.

use yaml_with_places::{At, Finding};

use crate::fields::TextOr;
use crate::formats::{SettingPath, Verbatim};
use crate::reading::Reading;
use crate::systems::{Systems, list};
use crate::template::TARGET;
use crate::variants::Draft;
use crate::wire::{OfValues, ProofFile};

/// True if a variant has one of the values of each key. `target` is the system that receives its load.
pub(crate) fn has_all(
    values: &OfValues,
    variant: &Draft<'_>,
    systems: &Systems<'_>,
    target: Option<&str>,
) -> bool {
    let has = |(path, levels): &(At<SettingPath>, _)| {
        let own = value(&path.value, variant, systems, target);
        own.is_some_and(|own| is_among(&own, levels))
    };
    values.0.iter().all(has)
}

fn is_among(
    own: &str,
    levels: &yaml_with_places::OneOrMany<At<Verbatim<crate::template::Template>>>,
) -> bool {
    let mut levels = levels.0.iter();
    levels.any(|level| level.value.0.to_string().trim() == own.trim())
}

/// Returns the value of a factor or setting within a variant, as it is written. `None` for an unknown name.
fn value(
    path: &SettingPath,
    variant: &Draft<'_>,
    systems: &Systems<'_>,
    target: Option<&str>,
) -> Option<String> {
    // In templates, factors hide settings of the same name, too.
    let factor = match path.system {
        None => variant.factor(&path.setting).map(str::to_owned),
        Some(_) => None,
    };
    let own = || {
        let mut with = variant.with.iter();
        let found = with.find(|(known, _)| known.value == *path)?;
        Some(found.1.value.to_string())
    };
    let usual = || systems.usual_value(path).map(ToString::to_string);
    let is_target = path.system.is_none() && path.setting == TARGET;
    let loaded = || target.filter(|_| is_target).map(str::to_owned);
    factor.or_else(own).or_else(usual).or_else(loaded)
}

/// Reports a proof that is required of no variant, because it would never be checked.
pub(crate) fn check(
    of_lab: &[At<ProofFile>],
    variants: &[Draft<'_>],
    systems: &Systems<'_>,
    target: Option<&str>,
    reading: &mut Reading<'_>,
) {
    // A part that could not be read may have the variant or the setting.
    if reading.has_gaps {
        return;
    }
    let own = variants.iter().flat_map(|variant| variant.proof);
    for proof in of_lab.iter().chain(own) {
        let Some(At {
            place,
            value: TextOr::Mapping(values),
        }) = &proof.value.of
        else {
            continue;
        };
        let target_of = |variant: &Draft<'_>| {
            let own = variant.target.as_ref().map(|target| target.value.clone());
            own.or_else(|| target.map(str::to_owned))
        };
        let value_in = |path: &SettingPath, variant: &Draft<'_>| {
            value(path, variant, systems, target_of(variant).as_deref())
        };
        let unknown = values.0.iter().map(|(path, _)| path).filter(|path| {
            variants
                .iter()
                .all(|it| value_in(&path.value, it).is_none())
        });
        let unknown: Vec<&At<SettingPath>> = unknown.collect();
        if !unknown.is_empty() {
            systems.check_paths(unknown.into_iter(), reading);
            continue;
        }
        let holds =
            |variant: &Draft<'_>| has_all(values, variant, systems, target_of(variant).as_deref());
        if variants.iter().any(holds) {
            continue;
        }
        let unused = values.0.iter().find(|(path, levels)| {
            let mut own = variants.iter().filter_map(|it| value_in(&path.value, it));
            !own.any(|own| is_among(&own, levels))
        });
        let finding = match unused {
            Some((path, levels)) => {
                let mut known: Vec<String> = variants
                    .iter()
                    .filter_map(|it| value_in(&path.value, it))
                    .collect();
                known.sort();
                known.dedup();
                let at = levels.0.first().map_or(path.place, |level| level.place);
                Finding::new(at, format!("no variant has this value of `{}`", path.value))
                    .help(list("the variants have", known.iter().map(String::as_str)))
            }
            None => Finding::new(*place, "no variant has all these values together")
                .help("name values that a variant has, or remove the proof"),
        };
        reading.findings.add(finding);
    }
}
