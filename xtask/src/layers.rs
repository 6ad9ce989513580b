//! `cargo xtask layers`: the page with the costs of all layers, from the recordings of `labs/layers`.
//!
//! A lab with a ladder has one row for each step. Another lab has one row for each compared variant.

use std::collections::BTreeMap;
use std::fs;

use analysis::summary::quantity;
use analysis::{MetricSummary, Summary};
use anyhow::Context as _;
use model::{Metric, Unit};
use recording::Recording;

use crate::page;
use crate::repository::{root, tracked};

/// The page with the table.
const PAGE: &str = "docs/layers.md";
/// The title of the table in its markers.
const TITLE: &str = "layers";
/// The folder of the labs.
const FOLDER: &str = "labs/layers";

/// One row: a layer with its cost.
struct Layer {
    lab: String,
    name: String,
    below: String,
    metrics: BTreeMap<Metric, MetricSummary>,
}

/// Writes the table into the page.
pub(crate) fn write() -> anyhow::Result<()> {
    page::write(PAGE, TITLE, &table(&layers()?))
}

/// All layers, the cheapest first.
fn layers() -> anyhow::Result<Vec<Layer>> {
    let files = tracked(&format!("{FOLDER}/records"))?.into_iter();
    let mut layers = Vec::new();
    for file in files.filter(|file| file.ends_with(".json")) {
        let text = fs::read_to_string(root().join(&file)).context(file.clone())?;
        let recording = Recording::from_json(&text).context(file)?;
        layers.extend(of(Summary::of(&recording)));
    }
    layers.sort_by(|one, other| one.cost().total_cmp(&other.cost()));
    Ok(layers)
}

/// The layers of one recording that have a trusted cost.
fn of(summary: Summary) -> Vec<Layer> {
    let lab = summary.title;
    let layer = |name: String, below: String, metrics| Layer {
        lab: lab.clone(),
        name,
        below,
        metrics,
    };
    let layers: Vec<Layer> = match summary.ladder {
        Some(ladder) => {
            let steps = ladder.steps.into_iter();
            steps
                .map(|step| layer(step.to, step.from, step.metrics))
                .collect()
        }
        None => {
            let rows = summary.variants.into_iter().filter(|row| !row.is_baseline);
            rows.map(|row| layer(row.name, row.baseline, row.metrics))
                .collect()
        }
    };
    layers
        .into_iter()
        .filter(|it| it.difference(Metric::Typical).is_some())
        .collect()
}

impl Layer {
    /// The difference in typical latency, in microseconds.
    fn cost(&self) -> f64 {
        let overhead = self
            .metrics
            .get(&Metric::Typical)
            .and_then(|it| it.overhead.as_ref());
        overhead.map_or(f64::INFINITY, |it| it.difference)
    }

    /// A difference with its interval, such as `+136.7 us (134.4 to 138.4)`. `None` without an interval. A
    /// narrow column may break it only before the interval.
    fn difference(&self, metric: Metric) -> Option<String> {
        let overhead = self.metrics.get(&metric)?.overhead.as_ref()?;
        let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
        // All layers of the page are shown in one unit.
        let unit = metric.unit().with_times(Unit::Microseconds);
        let text = quantity::signed(unit, overhead.difference, low, high);
        Some(text.replace(' ', "&nbsp;").replace("&nbsp;(", " ("))
    }
}

fn table(layers: &[Layer]) -> String {
    let mut out =
        String::from("| Layer | Typical | Mean | Processor time |\n| --- | --- | --- | --- |\n");
    let cell = |text: &str| text.replace('|', "\\|");
    for layer in layers {
        let difference = |metric| layer.difference(metric).unwrap_or_else(|| "–".to_owned());
        out += &format!(
            "| **{}**<br>against {}<br>[`{lab}`](../labs/layers/{lab}.yaml) | {} | {} | {} |\n",
            cell(&layer.name),
            cell(&layer.below),
            difference(Metric::Typical),
            difference(Metric::Mean),
            difference(Metric::Cpu),
            lab = layer.lab,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_follows_from_the_recordings() {
        let text = fs::read_to_string(root().join(PAGE)).unwrap();
        let (_, written) = page::place(&text, TITLE).unwrap();
        let layers = layers().unwrap();
        assert_eq!(written, table(&layers).trim(), "run `cargo xtask layers`");
        for layer in layers {
            let lab = root().join(FOLDER).join(&layer.lab).with_extension("yaml");
            assert!(lab.is_file(), "{} is not a lab", lab.display());
        }
    }
}
