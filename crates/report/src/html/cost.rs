//! Bars of the cost of each system of a variant. The sum of the bars is the figure of the table.

use analysis::summary::{MetricSummary, Summary, SystemSummary, VariantSummary};
use model::{Metric, Unit};

use super::escape::escape;
use super::plot::{Scale, series};
use crate::cell;

/// Bars of processor time and of memory, with a legend if there is more than one system.
pub(super) fn bars(summary: &Summary) -> String {
    let names = names(summary);
    let panels: String = [Metric::Cpu, Metric::Memory]
        .into_iter()
        .filter_map(|metric| panel(summary, metric, &names))
        .collect();
    if panels.is_empty() {
        return panels;
    }
    let legend: String = names
        .iter()
        .enumerate()
        .map(|(index, name)| format!("<li class=\"{}\">{}</li>", series(index), escape(name)))
        .collect();
    let legend = if names.len() > 1 {
        format!("<ul class=\"legend always\">{legend}</ul>\n")
    } else {
        String::new()
    };
    format!("{legend}<div class=\"panels\">\n{panels}</div>\n")
}

/// The names of the systems of all variants, each once.
fn names(summary: &Summary) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for system in summary.variants.iter().flat_map(|row| &row.systems) {
        if !names.contains(&system.name.as_str()) {
            names.push(&system.name);
        }
    }
    names
}

fn figure_of(system: &SystemSummary, metric: Metric) -> Option<&MetricSummary> {
    match metric {
        Metric::Cpu => system.cpu_us_per_request.as_ref(),
        _ => system.memory_peak_bytes.as_ref(),
    }
}

fn panel(summary: &Summary, metric: Metric, names: &[&str]) -> Option<String> {
    let unit = metric.unit();
    let shown: Vec<(&VariantSummary, &MetricSummary)> = summary
        .variants
        .iter()
        .filter_map(|row| Some((row, row.metric(metric)?)))
        .collect();
    let ends = shown
        .iter()
        // With too few rounds for an interval, the bar itself is the longest mark.
        .map(|(_, figure)| figure.high.unwrap_or(figure.value));
    // 2 % of room on the right, so that the end of the longest interval is visible.
    let scale = Scale::linear(0.0, unit.shown(ends.fold(0.0, f64::max)) * 1.02);
    if shown.is_empty() {
        return None;
    }
    let rows: String = shown
        .iter()
        .map(|(row, figure)| {
            format!(
                "<div class=\"row\"><span class=\"name\">{}</span>{}\
                 <span class=\"figure\">{}</span></div>\n",
                escape(&row.name),
                bar(row, figure, metric, scale, names),
                cell::level_with_error(row, metric, figure)
            )
        })
        .collect();
    let title = match unit {
        Unit::Mebibytes => "peak memory, MiB",
        _ => "CPU time per request, us",
    };
    Some(format!(
        "<figure>\n<figcaption>{title}</figcaption>\n<div class=\"forest panel\">\n{rows}</div>\n\
         </figure>\n"
    ))
}

/// The bars of the systems in a row, and the interval of their sum.
fn bar(
    row: &VariantSummary,
    sum: &MetricSummary,
    metric: Metric,
    scale: Scale,
    names: &[&str],
) -> String {
    let unit = metric.unit();
    let mut out = "<svg class=\"bar\" aria-hidden=\"true\">".to_owned();
    let mut from = 0.0;
    // The names have one order, so that a system has one place and one color in every row.
    for (index, name) in names.iter().enumerate() {
        let system = row.systems.iter().find(|system| system.name == *name);
        let Some((system, figure)) = system.and_then(|it| Some((it, figure_of(it, metric)?)))
        else {
            continue;
        };
        let width = scale.percent(unit.shown(figure.value)).max(0.0);
        out += &format!(
            "<rect class=\"{}\" x=\"{from:.2}%\" width=\"{width:.2}%\" y=\"24%\" height=\"52%\">\
             <title>{}: {} {}</title></rect>",
            series(index),
            escape(&system.name),
            cell::with_error(figure, unit),
            unit.sign()
        );
        from += width;
    }
    if let Some((low, high)) = sum.low.zip(sum.high) {
        let (low, high) = (
            scale.percent(unit.shown(low)),
            scale.percent(unit.shown(high)),
        );
        out += &format!(
            "<g class=\"whisker\"><line x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"50%\" y2=\"50%\"/>\
             <line x1=\"{low:.2}%\" x2=\"{low:.2}%\" y1=\"36%\" y2=\"64%\"/>\
             <line x1=\"{high:.2}%\" x2=\"{high:.2}%\" y1=\"36%\" y2=\"64%\"/></g>"
        );
    }
    out + "</svg>"
}
