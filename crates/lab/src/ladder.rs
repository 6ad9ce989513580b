//! The variants that build on each other, if the lab names them.

use yaml_with_places::{Finding, did_you_mean};

use crate::experiment::Variant;
use crate::formats::{Title, Verbatim};
use crate::reading::Reading;
use crate::systems::list;
use crate::wire::LabFile;

/// Returns the names of the ladder. Wrong names are reported.
pub(crate) fn check(
    file: &LabFile,
    variants: &[Variant],
    reading: &mut Reading<'_>,
) -> Vec<String> {
    let Some(ladder) = &file.ladder else {
        return Vec::new();
    };
    let mut names: Vec<String> = Vec::new();
    for name in &ladder.value {
        let Verbatim(Title(word)) = &name.value;
        let known = variants.iter().map(|variant| variant.name.as_str());
        if names.contains(word) {
            reading.findings.add(
                Finding::new(name.place, format!("`{word}` is in the ladder twice"))
                    .help("each step leads to another variant. Remove one of the two"),
            );
        } else if !known.clone().any(|known| known == word) && !reading.has_gaps {
            let help = did_you_mean(word, known.clone())
                .unwrap_or_else(|| list("the variants are", known));
            reading
                .findings
                .add(Finding::new(name.place, format!("there is no variant `{word}`")).help(help));
        }
        names.push(word.clone());
    }
    names
}
