//! The baseline and the variants: unique names, and settings that exist.

use std::collections::BTreeMap;

use crate::fields::At;
use crate::formats::{SettingPath, Title, Verbatim};
use crate::include::Reading;
use crate::mistake::{Finding, Findings, Place};
use crate::template::Template;
use crate::wire::{LabFile, VariantFile, With};

/// A variant whose systems are not worked out yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// Values by setting, with `{{name}}` filled in.
    pub(crate) with: Vec<(At<SettingPath>, At<Template>)>,
}

impl Draft {
    /// What the recording keeps: the values as text.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        self.with
            .iter()
            .map(|(setting, value)| (setting.value.to_string(), value.value.to_string()))
            .collect()
    }
}

/// The baseline, if it has a name.
pub(crate) fn baseline(file: &LabFile) -> Option<Draft> {
    let baseline = file.baseline.as_ref()?;
    Some(draft(baseline.name.as_ref()?, &baseline.with))
}

/// Every variant, with one for each item of a `for`.
pub(crate) fn variants(file: &LabFile, reading: &mut Reading<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for variant in file.variants.iter().flatten() {
        let VariantFile { name, r#for, with } = &variant.value;
        match (name, r#for) {
            (Some(name), None) => drafts.push(draft(name, with)),
            (None, Some(names)) => drafts.extend(names.iter().map(|name| draft(name, with))),
            (Some(name), Some(_)) => reading.findings.add(
                Finding::new(name.place, "`name` and `for` exclude each other")
                    .help("with `for`, each item is the name of a variant"),
            ),
            (None, None) => reading.findings.add(
                Finding::new(variant.place, "the variant has no name")
                    .help("give it a `name`, or `for` with a list of names"),
            ),
        }
    }
    drafts
}

fn draft(name: &At<Verbatim<Title>>, with: &With) -> Draft {
    let Title(title) = &name.value.0;
    let value = |value: &At<Verbatim<Template>>| At {
        place: value.place,
        value: value.value.0.fill("name", title),
    };
    Draft {
        name: title.clone(),
        place: name.place,
        with: with
            .0
            .iter()
            .map(|(setting, text)| (setting.clone(), value(text)))
            .collect(),
    }
}

/// Reports names that are given twice.
pub(crate) fn check_names(baseline: Option<&Draft>, variants: &[Draft], findings: &mut Findings) {
    for (index, variant) in variants.iter().enumerate() {
        if let Some(baseline) = baseline.filter(|baseline| baseline.name == variant.name) {
            findings.add(
                Finding::new(
                    variant.place,
                    format!("the variant `{}` is named as the baseline", variant.name),
                )
                .related(baseline.place, "the baseline")
                .help("names become rows of the report; give each its own"),
            );
        } else if let Some(first) = variants[..index].iter().find(|it| it.name == variant.name) {
            findings.add(
                Finding::new(
                    variant.place,
                    format!("two variants are named `{}`", variant.name),
                )
                .label("and again here")
                .related(first.place, "first here")
                .help("names become rows of the report; give each its own"),
            );
        }
    }
}
