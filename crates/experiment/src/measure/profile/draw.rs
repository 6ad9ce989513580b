//! Flamegraphs of samples and of their differences.

use std::collections::BTreeMap;
use std::path::Path;

use recording::Profile;
use report::flame::{self, Scale};

use super::{FOLDER, Sampled};
use crate::exit::Failure;
use crate::record;

/// Writes folded stacks and flamegraphs, including flamegraphs of differences. The first entry of each system
/// belongs to the baseline.
pub(super) fn draw(sampled: &[Sampled], folder: &Path) -> Vec<Profile> {
    let mut baselines: BTreeMap<&str, &Sampled> = BTreeMap::new();
    let baseline_name = sampled.first().map(|one| one.profile.variant.clone());
    let mut profiles = Vec::new();
    for one in sampled {
        let mut profile = one.profile.clone();
        let (variant, system) = (&profile.variant, &profile.system);
        if profile.samples > 0 {
            let name = recording::file_name(&format!("{variant}-{system}"));
            let scale = Scale::new(&one.stacks, profile.cpu_us_per_request);
            let title = format!("{system} of {variant}");
            let mut files = vec![
                (
                    format!("{name}.svg"),
                    flame::svg(&title, &one.stacks, &scale),
                ),
                (format!("{name}.folded"), one.stacks.folded()),
            ];
            // The baseline is sampled first, so it exists when a variant is compared with it.
            if Some(variant) == baseline_name.as_ref() {
                baselines.insert(&one.profile.system, one);
            } else if let Some(baseline) = baselines.get(&**system) {
                let before = &baseline.profile;
                let before_scale = Scale::new(&baseline.stacks, before.cpu_us_per_request);
                let title = format!("{system} of {variant} against {}", before.variant);
                let drawn = flame::difference_svg(
                    &title,
                    &one.stacks,
                    &scale,
                    &baseline.stacks,
                    &before_scale,
                );
                files.push((format!("{name}-difference.svg"), drawn));
            }
            for (file, text) in files {
                match record::write(&folder.join(FOLDER), &file, &text) {
                    Ok(()) => profile.files.push(format!("{FOLDER}/{file}")),
                    // A flamegraph that cannot be written does not end the run, because all figures have been
                    // measured.
                    Err(unsaved) => profile.missing = Some(Failure::from(unsaved).message),
                }
            }
        }
        profiles.push(profile);
    }
    profiles
}
