//! The causes of the differences, with a flamegraph for each system.

use analysis::summary::Summary;
use recording::{Recording, SampledSystem};

use super::Section;
use super::escape::escape;
use super::markup::{list, table};
use crate::flame::{self, Scale, Stacks};
use crate::tables::why;

/// The section. Empty without `--why`.
pub(super) fn section(recording: &Recording, summary: &Summary) -> Section {
    let functions = match table(&why::functions(summary), "").as_str() {
        "" => String::new(),
        functions => format!("<h3>{}</h3>\n{functions}", why::FUNCTIONS_TITLE),
    };
    let runtimes = match table(&why::runtimes(summary), "").as_str() {
        "" => String::new(),
        runtimes => format!("<h3>{}</h3>\n{runtimes}", why::RUNTIMES_TITLE),
    };
    let sentences = why::sentences(summary);
    let said = match sentences.as_slice() {
        [] => String::new(),
        sentences => list(sentences),
    };
    let body = said
        + &functions
        + &table(&why::parts(summary), "")
        + &runtimes
        + &graphs(recording, summary);
    Section::new("why", why::TITLE, body).lead(
        "Causes from extra rounds with samplers, which decide no figure. The graphs show processor time per \
         request. Red functions take more time than in the baseline, and blue functions less.",
    )
}

/// A differential flamegraph of each system of each compared variant.
fn graphs(recording: &Recording, summary: &Summary) -> String {
    let Some(record) = &recording.why else {
        return String::new();
    };
    let compared = summary.why.iter().flat_map(|why| &why.variants);
    let mut out = String::new();
    for variant in compared {
        let own = record.systems.iter();
        for one in own.filter(|it| it.variant == variant.variant) {
            let mut others = record.systems.iter();
            let before =
                others.find(|it| it.variant == variant.baseline && it.system == one.system);
            out += &graph(one, before, &variant.baseline);
        }
    }
    out
}

fn graph(one: &SampledSystem, before: Option<&SampledSystem>, baseline: &str) -> String {
    let title = format!("{} of {} against {baseline}", one.system, one.variant);
    if one.stacks.is_empty() {
        let missing = one
            .missing
            .as_deref()
            .unwrap_or("no sample found it at work");
        return format!(
            "<p class=\"note\">{}: {}</p>\n",
            escape(&title),
            escape(missing)
        );
    }
    let stacks = Stacks::of_counts(&one.stacks);
    let scale = Scale::new(&stacks, one.cpu_us_per_request);
    let (before, before_scale) = match before {
        Some(before) => {
            let stacks = Stacks::of_counts(&before.stacks);
            let scale = Scale::new(&stacks, before.cpu_us_per_request);
            (stacks, scale)
        }
        // The whole system is new, so every function is red.
        None => (Stacks::default(), Scale::new(&Stacks::default(), Some(0.0))),
    };
    let drawn = flame::inline_difference(&title, &stacks, &scale, &before, &before_scale);
    format!("<figure class=\"flame\">\n{drawn}</figure>\n")
}
