//! A history as one HTML page: the cost of each variant by run, and its changes.

use analysis::history::{Change, Entry, Series, name_of};
use recording::float;

use super::escape::escape;
use super::markup::{figure, grid, list, name, prose};
use super::plot::{Frame, Scale, Tick, figure as framed, signed};
use super::{Document, document};
use crate::cell;
use crate::table::Column;

/// Maximum number of runs in a picture. The latest runs are shown.
const SHOWN: usize = 200;
/// Maximum number of runs in a table. The latest runs are shown.
const ROWS: usize = 20;

/// Renders a history as one HTML file.
#[must_use]
pub fn history(series: &[Series]) -> String {
    let runs: usize = series.iter().map(|one| one.entries.len()).sum();
    let header = format!(
        "<header>\n<p class=\"eyebrow\"><span>Weighbridge</span></p>\n<h1>Cost of each variant, run \
         by run</h1>\n<p class=\"lead\">{}</p>\n</header>\n",
        escape(&format!(
            "{runs} figures in {} series. Each figure is a difference with its interval, paired \
             with its baseline within one run. Each machine, method and order has its own series.",
            series.len()
        ))
    );
    let changed = series.iter().enumerate().flat_map(|(index, one)| {
        let link = move |change: &Change| {
            format!(
                "<li><a href=\"#s{index}\">{}</a>: {}</li>\n",
                prose(&one.title()),
                prose(&one.sentence(change))
            )
        };
        one.changes.iter().map(link)
    });
    let changed: String = changed.collect();
    let changed = if changed.is_empty() {
        list(&["No level has changed.".to_owned()])
    } else {
        format!("<ul>\n{changed}</ul>\n")
    };
    let sections = series.iter().enumerate();
    let sections: String = sections.map(|(index, one)| section(index, one)).collect();
    let main = format!(
        "<section id=\"changes\">\n<h2>Changes</h2>\n<p class=\"lead\">A change is a new level of at least \
         three runs (optimal partitioning, PELT). A level that is worse than the one before is orange, and a better one is blue and \
         dashed.</p>\n{changed}</section>\n{sections}"
    );
    document(&Document {
        title: "Cost of each variant, run by run",
        header: &header,
        main: &main,
        footer: "",
        refresh_s: None,
    })
}

fn section(index: usize, series: &Series) -> String {
    let count = series.entries.len();
    let hidden = count.saturating_sub(SHOWN);
    let shown = match hidden {
        0 => format!("{count} runs"),
        _ => format!("the latest {SHOWN} of {count} runs"),
    };
    let changes: Vec<String> = series
        .changes
        .iter()
        .map(|it| series.sentence(it))
        .collect();
    let changes = if changes.is_empty() {
        String::new()
    } else {
        list(&changes)
    };
    format!(
        "<section id=\"s{index}\">\n<h2>{}</h2>\n<p class=\"lead\">{}, {shown}. Last: \
         <b>{}</b></p>\n{}{changes}{}</section>\n",
        prose(&series.title()),
        escape(&series.about()),
        escape(&series.shown(series.last().overhead)),
        picture(series, hidden),
        table(series)
    )
}

fn picture(series: &Series, first: usize) -> String {
    let entries = &series.entries[first..];
    let scale = series.scale();
    let ends = entries
        .iter()
        .flat_map(|it| [it.overhead.low, it.overhead.high]);
    let values = Scale::around_zero(ends.map(|value| value * scale));
    let room = 100.0 / float(entries.len() as u64);
    let place = |index: usize| (float(index as u64) + 0.5) * room;
    let zero = 100.0 - values.percent(0.0);
    let mut body = format!(
        "<line class=\"zero\" x1=\"0\" x2=\"100%\" y1=\"{zero:.2}%\" y2=\"{zero:.2}%\"/>\n"
    );
    body += &levels(series, first, |value| values.percent(value * scale));
    for (index, entry) in entries.iter().enumerate() {
        body += &mark(series, entry, place(index), |value| {
            values.percent(value * scale)
        });
    }
    // Labels for all runs would not fit, so only the first, the last and some between are shown.
    let every = entries.len().div_ceil(6);
    let across = (0..entries.len()).step_by(every).map(|index| Tick {
        percent: place(index),
        is_minor: index > 0 && index / every % 2 == 1,
        label: day(&entries[index]).to_owned(),
    });
    let frame = Frame {
        title: &format!("{}: overhead by run", series.title().replace('`', "")),
        description: &format!(
            "{} runs, the last {}",
            entries.len(),
            series.shown(series.last().overhead)
        ),
        class: "shift",
        across: across.collect(),
        up: signed(values, 5.0),
    };
    let picture = frame.draw(&body);
    let up = format!("overhead, {}", series.unit());
    framed("", &up, "day of the run, in the order of time", &picture)
}

/// A line for each level, over the runs that are shown.
fn levels(series: &Series, first: usize, percent: impl Fn(f64) -> f64) -> String {
    let count = series.entries.len();
    let mut starts = vec![0];
    starts.extend(series.changes.iter().map(|change| change.at));
    let mut heights: Vec<f64> = series.changes.iter().map(|change| change.before).collect();
    heights.push(series.level);
    let ends = starts[1..].iter().copied().chain([count]);
    let shown = float((count - first) as u64);
    let x = |index: usize| float(index.saturating_sub(first) as u64) / shown * 100.0;
    starts
        .iter()
        .zip(ends)
        .zip(&heights)
        .filter(|((_, end), _)| *end > first)
        .map(|((start, end), level)| {
            let y = 100.0 - percent(*level);
            let change = series.changes.iter().find(|change| change.at == *start);
            let class = change.map_or("", |change| way(series, change));
            format!(
                "<line class=\"level {class}\" x1=\"{:.2}%\" \
                 x2=\"{:.2}%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/>\n",
                x(*start),
                x(end)
            )
        })
        .collect()
}

/// The color of a change: worse or better.
fn way(series: &Series, change: &Change) -> &'static str {
    let is_more = change.after > change.before;
    // More latency is worse, and more requests are better.
    match is_more == series.last().metric.is_better_low() {
        true => "worse",
        false => "better",
    }
}

fn mark(series: &Series, entry: &Entry, x: f64, percent: impl Fn(f64) -> f64) -> String {
    let y = |value: f64| 100.0 - percent(value);
    let (value, low, high) = (
        y(entry.overhead.value),
        y(entry.overhead.low),
        y(entry.overhead.high),
    );
    let mark = format!(
        "<g class=\"mark same\"><title>{}: {}</title>\
         <line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{low:.2}%\" y2=\"{high:.2}%\"/>\
         <circle cx=\"{x:.2}%\" cy=\"{value:.2}%\" r=\"3\"/></g>",
        escape(&name_of(entry)),
        escape(&series.shown(entry.overhead))
    );
    linked(entry, &mark) + "\n"
}

fn table(series: &Series) -> String {
    let row = |entry: &Entry| {
        let commit = entry.commit.as_deref().unwrap_or(cell::NOTHING);
        format!(
            "<tr>{}{}{}{}<td class=\"words\">{}</td></tr>\n",
            name(entry.started_at.get(..16).unwrap_or(&entry.started_at)),
            figure(commit.get(..9).unwrap_or(commit)),
            figure(&series.shown(entry.overhead)),
            figure(&entry.cpu_us.map_or_else(|| cell::NOTHING.to_owned(), cpu)),
            linked(entry, &escape(&entry.recording))
        )
    };
    let columns = [
        Column::words("run"),
        Column::figure("commit", ""),
        Column::figure("overhead", ""),
        Column::figure("CPU", "us/request"),
        Column::words("recording"),
    ];
    let rows = series.entries.iter().rev().take(ROWS);
    let title = series.title().replace('`', "");
    // A lab may have a series for each of several loads, and each region of a page has its own name.
    grid(
        &format!("the latest runs of {title}, {}", series.about()),
        "",
        &columns,
        &rows.map(row).collect::<String>(),
    )
}

fn cpu(figure: analysis::history::Figure) -> String {
    let (from, to) = recording::digits::interval_ends(figure.low, figure.high);
    format!("{from} to {to}")
}

/// The content as a link to the recording, if that is a path or a web address.
fn linked(entry: &Entry, content: &str) -> String {
    let target = &entry.recording;
    let is_web = target.starts_with("https://") || target.starts_with("http://");
    // Any other text before a colon is a URL scheme, and some schemes execute the rest.
    if !is_web && target.contains(':') {
        return content.to_owned();
    }
    format!("<a href=\"{}\">{content}</a>", escape(target))
}

fn day(entry: &Entry) -> &str {
    entry.started_at.get(5..10).unwrap_or(&entry.started_at)
}

#[cfg(test)]
mod tests {

    use super::*;
    use analysis::sample::entry;

    #[test]
    fn a_page_names_the_change_and_links_each_run() {
        let entries: Vec<Entry> = (0..24)
            .map(|number| entry(number, if number < 12 { 50.0 } else { 80.0 }))
            .collect();
        let page = history(&Series::all(&entries));
        assert!(
            page.contains("since 123456789 of 2026-11-13: +80 us instead of +50 us"),
            "{page}"
        );
        assert!(
            page.contains("<a href=\"recordings/3\"><g class=\"mark same\">"),
            "{page}"
        );
        assert!(page.starts_with("<!doctype html>"));
    }

    #[test]
    fn what_is_no_address_is_no_link() {
        let mut entry = entry(0, 1.0);
        entry.recording = "javascript:alert(1)".to_owned();
        entry.lab = "<script>".to_owned();
        let page = history(&Series::all(&[entry]));
        assert!(!page.contains("href=\"javascript"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}
