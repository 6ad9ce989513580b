//! The baselines and the variants: names, factors, and the baseline of each variant.

use std::collections::BTreeMap;

use yaml_with_places::{At, Finding, Findings, Place};

use crate::formats::{Format, Name, SettingPath, Title, Verbatim, Written};
use crate::reading::Reading;
use crate::template::{RESERVED, Template};
use crate::wire::{Factors, ForFile, LabFile, ProofFile, SentFile, Switch, VariantFile, With};

/// A variant before its systems are built.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// The factors of the variant, with their values.
    pub(crate) factors: Vec<(String, String)>,
    /// Values by setting, with `{{name}}` and factors filled in.
    pub(crate) with: Vec<(At<SettingPath>, At<Template>)>,
    /// The variant that it is compared with, with factors filled in. `None` for its baseline.
    pub(crate) against: Option<At<String>>,
    /// The system that receives its load instead of the lab's target.
    pub(crate) target: Option<At<String>>,
    /// The requests that replace the requests of the lab.
    pub(crate) sent: Option<&'a SentFile>,
    /// Proofs of this variant, in addition to the proofs of all variants.
    pub(crate) proof: &'a [At<ProofFile>],
    /// True if a quick run measures it.
    pub(crate) is_quick: bool,
}

impl Draft<'_> {
    /// Returns the values as text, for the recording.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        self.with
            .iter()
            .map(|(setting, value)| (setting.value.to_string(), value.value.to_string()))
            .collect()
    }

    /// Returns the value of a factor.
    pub(crate) fn factor(&self, name: &str) -> Option<&str> {
        let mut factors = self.factors.iter();
        let found = factors.find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    /// True if a variant with these factors belongs to this baseline.
    fn is_baseline_of(&self, variant: &Draft<'_>) -> bool {
        let agrees = |(name, value): &(String, String)| variant.factor(name) == Some(value);
        self.factors.iter().all(agrees)
    }
}

/// The parts of a variant that do not depend on its factors.
#[derive(Clone, Copy)]
struct Parts<'a> {
    with: &'a With,
    against: Option<&'a At<Verbatim<Title>>>,
    target: Option<&'a At<Written<Template>>>,
    sent: Option<&'a SentFile>,
    proof: &'a [At<ProofFile>],
    is_quick: bool,
}

/// Returns the baselines. Empty if the baseline has no name.
pub(crate) fn baselines<'a>(file: &'a LabFile, reading: &mut Reading<'_>) -> Vec<Draft<'a>> {
    let Some(baseline) = &file.baseline else {
        return Vec::new();
    };
    let Some(name) = &baseline.name else {
        return Vec::new();
    };
    let parts = Parts {
        with: &baseline.with,
        against: None,
        target: baseline.target.as_ref(),
        sent: baseline.load.as_ref(),
        proof: &baseline.proof,
        is_quick: true,
    };
    crossed(Some(name), name.place, &baseline.r#for, parts, reading)
}

/// Returns every variant, with one variant for each item or combination of a `for`.
pub(crate) fn variants<'a>(file: &'a LabFile, reading: &mut Reading<'_>) -> Vec<Draft<'a>> {
    let mut drafts = Vec::new();
    for variant in file.variants.iter().flatten() {
        let VariantFile {
            name,
            r#for,
            with,
            against,
            target,
            load,
            proof,
            quick,
            ..
        } = &variant.value;
        let parts = Parts {
            with,
            against: against.as_ref(),
            target: target.as_ref(),
            sent: load.as_ref(),
            proof,
            is_quick: *quick != Some(Switch::Off),
        };
        match (name, r#for) {
            (Some(name), None) => drafts.push(draft(&name.value.0, name.place, &[], parts)),
            (None, Some(ForFile::Names(names))) => {
                let one = |name: &At<Verbatim<Title>>| draft(&name.value.0, name.place, &[], parts);
                drafts.extend(names.iter().map(one));
            }
            (name, Some(ForFile::Factors(factors))) => {
                let place = name.as_ref().map_or(variant.place, |name| name.place);
                drafts.extend(crossed(name.as_ref(), place, factors, parts, reading));
            }
            (Some(name), Some(ForFile::Names(_))) => reading.findings.add(
                Finding::new(name.place, "`name` and a list in `for` exclude each other")
                    .help("each item of a list is the name of a variant. With factors, as in `for: {size: [1, 10]}`, a name may contain `{{size}}`"),
            ),
            (None, None) => reading.findings.add(
                Finding::new(variant.place, "the variant has no name")
                    .help("give it a `name`, or `for` with a list of names"),
            ),
        }
    }
    drafts
}

/// Returns one draft for each combination of factors. The last factor changes fastest.
fn crossed<'a>(
    name: Option<&At<Verbatim<Title>>>,
    place: Place,
    factors: &Factors,
    parts: Parts<'a>,
    reading: &mut Reading<'_>,
) -> Vec<Draft<'a>> {
    // The start is one combination without factors. Each factor multiplies the combinations.
    let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (At { value, place }, values) in &factors.0 {
        let Name(factor) = value;
        if RESERVED.contains(&factor.as_str()) {
            reading.findings.add(
                Finding::new(*place, format!("a factor cannot be named `{factor}`")).help(format!(
                    "`{{{{{factor}}}}}` has a fixed meaning. Choose another name"
                )),
            );
        }
        let with = |known: &Vec<(String, String)>, value: &At<Verbatim<Title>>| {
            let mut longer = known.clone();
            longer.push((factor.clone(), value.value.0.0.clone()));
            longer
        };
        combinations = combinations
            .iter()
            .flat_map(|known| values.0.iter().map(move |value| with(known, value)))
            .collect();
    }
    let named = |factors: Vec<(String, String)>| {
        let values: Vec<&str> = factors.iter().map(|(_, value)| value.as_str()).collect();
        let values = values.join(", ");
        let title = match name {
            None => values,
            Some(name) => {
                let Title(text) = &name.value.0;
                let title = title(name, &factors);
                // A name without factors would be equal for every combination, so their values are added.
                match title != *text || values.is_empty() {
                    true => title,
                    false => format!("{text}, {values}"),
                }
            }
        };
        draft(&Title(title), place, &factors, parts)
    };
    combinations.into_iter().map(named).collect()
}

/// A title with factors filled in. A text that is no template stays as it is.
fn title(title: &At<Verbatim<Title>>, factors: &[(String, String)]) -> String {
    let Title(text) = &title.value.0;
    let template = Template::read(text);
    template.map_or_else(|_| text.clone(), |it| filled(&it, factors).to_string())
}

fn filled(template: &Template, factors: &[(String, String)]) -> Template {
    let fill = |template: Template, (name, value): &(String, String)| template.fill(name, value);
    factors.iter().fold(template.clone(), fill)
}

fn draft<'a>(
    Title(own): &Title,
    place: Place,
    factors: &[(String, String)],
    parts: Parts<'a>,
) -> Draft<'a> {
    let value = |value: &At<Verbatim<Template>>| At {
        place: value.place,
        // The name comes before the factors, because a factor cannot be called `name`.
        value: filled(&value.value.0.fill("name", own), factors),
    };
    Draft {
        name: own.clone(),
        place,
        factors: factors.to_vec(),
        with: parts
            .with
            .0
            .iter()
            .map(|(setting, text)| (setting.clone(), value(text)))
            .collect(),
        against: parts.against.map(|name| At {
            place: name.place,
            value: title(name, factors),
        }),
        target: parts.target.map(|target| At {
            place: target.place,
            value: filled(&target.value.0.fill("name", own), factors).to_string(),
        }),
        sent: parts.sent,
        proof: parts.proof,
        is_quick: parts.is_quick,
    }
}

/// Returns the variants grouped by their baseline, in the order of the baselines.
pub(crate) fn groups<'d, 'a>(
    baselines: &[Draft<'_>],
    variants: &'d [Draft<'a>],
    findings: &mut Findings,
) -> Vec<Vec<&'d Draft<'a>>> {
    let mut groups = vec![Vec::new(); baselines.len()];
    for variant in variants {
        // The first match, because a baseline without factors matches every variant.
        let found = baselines.iter().position(|it| it.is_baseline_of(variant));
        if let Some(index) = found {
            groups[index].push(variant);
        // A missing baseline is already reported.
        } else if let Some(first) = baselines.first() {
            let wanted: Vec<String> = first
                .factors
                .iter()
                .map(|(name, _)| match variant.factor(name) {
                    Some(value) => format!("`{name}` {value}"),
                    None => format!("without `{name}`"),
                })
                .collect();
            findings.add(
                Finding::new(
                    variant.place,
                    format!("no baseline for a variant {}", wanted.join(" and ")),
                )
                .related(first.place, "the baselines")
                .help("a variant is compared with the baseline of the same factors. Give both `for` with the same values"),
            );
        }
    }
    groups
}

/// Reports duplicate names.
pub(crate) fn check_names(
    baselines: &[Draft<'_>],
    variants: &[Draft<'_>],
    findings: &mut Findings,
) {
    let all: Vec<&Draft<'_>> = baselines.iter().chain(variants).collect();
    for (index, variant) in all.iter().enumerate() {
        // Only earlier names, so that each pair is reported once, at the later place.
        let Some(first) = all[..index].iter().position(|it| it.name == variant.name) else {
            continue;
        };
        let finding = if first < baselines.len() && index >= baselines.len() {
            Finding::new(
                variant.place,
                format!(
                    "the variant `{}` has the same name as the baseline",
                    variant.name
                ),
            )
            .related(all[first].place, "the baseline")
        } else {
            Finding::new(
                variant.place,
                format!("two variants are named `{}`", variant.name),
            )
            .label("and again here")
            .related(all[first].place, "first here")
        };
        findings
            .add(finding.help("names become rows of the report. Give each variant its own name"));
    }
}
