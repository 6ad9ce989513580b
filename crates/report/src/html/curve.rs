//! A curve as one HTML page: overhead against load, with bands.

use analysis::curve::{Curve, LoadLevel, Point};
use model::Metric;
use recording::{describe, digits};

use super::escape::escape;
use super::markup::{list, prose, table};
use super::plot::{Frame, STRETCHED, Scale, Tick, figure, path, series, signed};
use super::{Document, checks, document, machine, tiles};
use crate::curve::{judgements, sentences};
use crate::tables;

/// Minimum ratio of the highest to the lowest load for a logarithmic scale.
const LOG_FROM: f64 = 8.0;

/// Renders a curve as one HTML file.
#[must_use]
pub fn curve(curve: &Curve) -> String {
    let title = escape(curve.title());
    let question = curve.levels()[0].summary.question.as_deref();
    let header = format!(
        "<header>\n<p class=\"eyebrow\"><span>Weighbridge</span><b>{title}</b></p>\n<h1>{}</h1>\n</header>\n",
        escape(question.unwrap_or("What does a request pay by load?"))
    );
    let gates = table(&tables::gates::table(&judgements(curve)), "");
    let gates = match gates.as_str() {
        "" => String::new(),
        gates => format!("<section id=\"gates\">\n<h2>Gates</h2>\n{gates}</section>\n"),
    };
    let main = format!(
        "<section id=\"curve\">\n<h2>Overhead by load</h2>\n{}{}</section>\n{gates}{}\
         <section id=\"levels\">\n<h2>By load</h2>\n{}{}</section>\n\
         <section id=\"reading\">\n<h2>How to read it</h2>\n{}</section>\n",
        list(&sentences(curve)),
        picture(curve),
        facts(curve),
        table(&tables::levels::table(curve), ""),
        links(curve),
        list(&reading(curve))
    );
    document(&Document {
        title: &title,
        header: &header,
        main: &main,
        footer: "",
        refresh_s: None,
    })
}

/// The loads, the rounds, the machine and the checks of all levels.
fn facts(curve: &Curve) -> String {
    let levels = curve.levels();
    let (first, last) = (&levels[0], &levels[levels.len() - 1]);
    let loads = format!(
        "{} from {} to {}",
        describe::plural(levels.len() as u64, "level"),
        first.number(),
        last.load()
    );
    let rounds = levels.iter().map(|level| level.summary.rounds_measured);
    let (fewest, most) = (rounds.clone().min().unwrap_or(0), rounds.max().unwrap_or(0));
    let rounds = match fewest == most {
        true => format!("{} at each level", describe::plural(most as u64, "round")),
        false => format!("{fewest} to {most} rounds at a level"),
    };
    tiles(&[
        ("Load", escape(&loads)),
        ("Rounds", rounds),
        ("Machine", escape(&machine(&first.recording))),
        (
            "Checks",
            checks(levels.iter().flat_map(|level| &level.summary.variants)),
        ),
    ])
}

/// Sentences that explain the picture.
fn reading(curve: &Curve) -> Vec<String> {
    let first = &curve.levels()[0].summary;
    let what = match curve.metric() {
        Metric::Requests => "the change in requests per second",
        Metric::Typical => {
            "the difference in typical latency (the mean of the fastest three quarters of a round's requests)"
        }
        _ => "the difference in mean latency",
    };
    vec![
        format!("A mark is {what} from {} at one load.", first.against()),
        format!(
            "A band is the interval of each mark, at {}. A band that contains zero shows no difference.",
            describe::percent(first.confidence_each)
        ),
        "Each load was measured on its own, with its own baseline, and the order of the loads was \
         random. The lines between the marks help the eye and are not measured."
            .to_owned(),
    ]
}

fn picture(curve: &Curve) -> String {
    let names = curve.variants();
    let lines: Vec<(usize, &str, Vec<Point>)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (index + 1, *name, curve.points(name)))
        .filter(|(_, _, points)| !points.is_empty())
        .collect();
    if lines.is_empty() {
        return "<p>No level has an overhead with an interval.</p>\n".to_owned();
    }
    let across = scale_of_loads(curve);
    let all = lines.iter().flat_map(|(_, _, points)| points);
    let up = Scale::around_zero(all.flat_map(|point| [point.low, point.high]));
    let zero = 100.0 - up.percent(0.0);
    let mut body = format!(
        "<line class=\"zero\" x1=\"0\" x2=\"100%\" y1=\"{zero:.2}%\" y2=\"{zero:.2}%\"/>\n{STRETCHED}"
    );
    for (index, _, points) in &lines {
        let x = |point: &Point| across.percent(point.load);
        let there = points.iter().map(|it| (x(it), up.percent(it.high)));
        let back = points.iter().rev().map(|it| (x(it), up.percent(it.low)));
        let class = series(*index - 1);
        body += &format!(
            "<path class=\"band {class}\" d=\"{}Z\"/><path class=\"curve {class}\" d=\"{}\"/>",
            path(there.chain(back)),
            path(points.iter().map(|it| (x(it), up.percent(it.value))))
        );
    }
    body += "</svg>\n";
    for (index, name, points) in &lines {
        for point in points {
            body += &mark(curve, *index, name, point, across, up);
        }
    }
    let unit = unit(curve);
    let tick = |level: &LoadLevel| Tick {
        percent: across.percent(level.amount()),
        is_minor: false,
        label: level.number(),
    };
    let frame = Frame {
        title: &format!("{}: overhead by load", curve.title()),
        description: &sentences(curve).join("; ").replace('`', ""),
        class: "shift tall",
        across: curve.levels().iter().map(tick).collect(),
        up: signed(up, 5.0),
    };
    let picture = frame.draw(&body);
    figure(
        "",
        &format!("overhead, {unit}, with its interval as a band"),
        &escape(&axis_of_loads(curve)),
        &picture,
    ) + &legend(&lines)
}

/// Name of the axis of loads.
fn axis_of_loads(curve: &Curve) -> String {
    let (first, last) = (
        &curve.levels()[0],
        &curve.levels()[curve.levels().len() - 1],
    );
    let log = match last.amount() / first.amount() >= LOG_FROM {
        true => " (logarithmic)",
        false => "",
    };
    let kind = curve.kind();
    format!("load, {kind}{log}")
}

fn scale_of_loads(curve: &Curve) -> Scale {
    let loads: Vec<f64> = curve.levels().iter().map(LoadLevel::amount).collect();
    let (low, high) = (loads[0], loads[loads.len() - 1]);
    // A margin on both sides keeps marks from being cut.
    if high / low >= LOG_FROM {
        let margin = (high / low).powf(0.06);
        Scale::log(low / margin, high * margin)
    } else {
        let margin = (high - low) * 0.06;
        Scale::linear(low - margin, high + margin)
    }
}

/// A mark with a shape per variant, so that variants are distinguishable without color. Its figures appear
/// under the pointer.
fn mark(
    curve: &Curve,
    index: usize,
    name: &str,
    point: &Point,
    across: Scale,
    up: Scale,
) -> String {
    let (from, to) = digits::interval_ends(point.low, point.high);
    let shown = format!(
        "{name} at {}: {from} to {to} {}",
        digits::planned(point.load),
        unit(curve)
    );
    format!(
        "<text class=\"sign {}\" x=\"{:.2}%\" y=\"{:.2}%\" dy=\".35em\" text-anchor=\"middle\">\
         <title>{}</title>{}</text>\n",
        series(index - 1),
        across.percent(point.load),
        100.0 - up.percent(point.value),
        escape(&shown),
        sign(index)
    )
}

/// The sign of a variant's marks.
fn sign(index: usize) -> char {
    const SIGNS: [char; 8] = ['●', '■', '▲', '◆', '○', '□', '△', '◇'];
    SIGNS[(index - 1) % SIGNS.len()]
}

fn legend(lines: &[(usize, &str, Vec<Point>)]) -> String {
    let entry = |(index, name, _): &(usize, &str, Vec<Point>)| {
        format!(
            "<li><span class=\"sign {}\" aria-hidden=\"true\">{}</span> {}</li>\n",
            series(*index - 1),
            sign(*index),
            escape(name)
        )
    };
    let entries: String = lines.iter().map(entry).collect();
    format!("<ul class=\"signs\">\n{entries}</ul>\n")
}

/// The unit of the overhead.
fn unit(curve: &Curve) -> &'static str {
    match curve.metric() {
        Metric::Requests => "% of requests/s",
        metric => curve.unit(metric).sign(),
    }
}

/// Links to the report of each level.
fn links(curve: &Curve) -> String {
    let link = |level: &LoadLevel| {
        format!(
            "<li><a href=\"{}/report.html\">{}</a></li>\n",
            escape(&level.folder),
            prose(&level.load())
        )
    };
    let links: String = curve.levels().iter().map(link).collect();
    format!("<p>The full report of each level:</p>\n<ul>\n{links}</ul>\n")
}
