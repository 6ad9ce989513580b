//! The report as one HTML page without scripts and external requests. It fits light and dark mode, wide and
//! narrow screens, and paper.
//!
//! The order suits a reader with little time. The result comes first with its consequence, then the table, then
//! four pictures: the answer, the rounds, the distributions, and the systems. All other evidence is folded, and
//! the command that repeats the run is at the end. A [`Section`] without content is left out, so a recording
//! without intervals, errors or systems has a shorter page and no empty frames.

mod cost;
mod curve;
mod distribution;
mod ecdf;
mod effects;
mod escape;
mod forest;
mod history;
mod markup;
mod pairs;
#[cfg(test)]
mod palette_tests;
mod percentiles;
mod plot;
mod processor;
mod provenance;
mod shift;
mod so_far;
mod tables;
mod terms;
mod timeline;
mod waterfall;
mod why;

use analysis::summary::{CheckState, Summary, VariantSummary};
use model::Metric;
use recording::{Kind, Recording, describe};

use crate::answer;
use crate::bodies;
use crate::consequence::{self, GateState};
use crate::explain;
use crate::sent;
use crate::table::Table;
use crate::tables as models;
use effects::effects;
use escape::escape;
use markup::{folded, list, prose, table};
use waterfall::waterfall;

pub use curve::curve;
pub use history::history;
pub use so_far::{SoFar, html_so_far, html_waiting};

const STYLE: &str = include_str!("html/style.css");
/// The page may not load any resource, whatever a name in the recording contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The sections before the table of contents, which users need to decide.
const FIRST: [&str; 2] = ["answer", "gates"];

/// A part of the page.
struct Section {
    /// Anchor of the section.
    id: &'static str,
    title: &'static str,
    /// Explanation in a sentence or two of markup. It may be empty.
    lead: String,
    /// Content as markup. An empty section is not shown.
    body: String,
    /// True if the reader opens the section. Paper shows it.
    is_folded: bool,
}

impl Section {
    fn new(id: &'static str, title: &'static str, body: String) -> Self {
        Self {
            id,
            title,
            lead: String::new(),
            body,
            is_folded: false,
        }
    }

    /// A part that consists of one table.
    fn of(id: &'static str, title: &'static str, content: &Table) -> Self {
        Self::new(id, title, table(content, ""))
    }

    fn lead(self, lead: impl Into<String>) -> Self {
        Self {
            lead: lead.into(),
            ..self
        }
    }

    /// The section as a closed block.
    fn folded(self) -> Self {
        Self {
            is_folded: true,
            ..self
        }
    }

    fn draw(&self) -> String {
        let (id, title, body) = (self.id, self.title, &self.body);
        let lead = match self.lead.as_str() {
            "" => String::new(),
            lead => format!("<p class=\"lead\">{lead}</p>\n"),
        };
        match self.is_folded {
            false => {
                format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{lead}{body}</section>\n")
            }
            // A link to a place within a closed block opens it.
            true => format!(
                "<section id=\"{id}\" class=\"behind\">\n<details><summary><h2>{title}</h2></summary>\n\
                 <div id=\"{}\">\n{lead}{body}</div>\n</details>\n</section>\n",
                self.target()
            ),
        }
    }

    /// Anchor of the content.
    fn target(&self) -> String {
        match self.is_folded {
            false => self.id.to_owned(),
            true => format!("{}-content", self.id),
        }
    }
}

/// Number of pictures of one kind that are open. The others are folded.
const OPEN: usize = 4;

/// Pictures next to each other, the first ones open. `rest` names the others. Empty without a picture.
fn gallery(figures: &[String], rest: &str) -> String {
    let open = figures.len().min(OPEN);
    let (open, more) = figures.split_at(open);
    let class = match open.len() {
        3 => "panels three",
        _ => "panels",
    };
    let shown = match open {
        [] => String::new(),
        open => format!("<div class=\"{class}\">\n{}</div>\n", open.concat()),
    };
    match more.len() {
        0 => shown,
        count => {
            let title = format!("{count} more {rest}");
            shown + &folded(&title, &panels(&more.concat()))
        }
    }
}

/// The variants with a difference or an estimate of one, the largest first.
fn by_size(summary: &Summary) -> Vec<&VariantSummary> {
    let size = |row: &VariantSummary| {
        let (figure, _) = pairs::shown(row, summary.headline)?;
        let difference = figure.overhead.as_ref()?.difference;
        let mean = row.few_pay.as_ref().map_or(0.0, |few| few.latency_us_mean);
        Some(difference.abs().max(mean.abs()))
    };
    let rows = summary.variants.iter();
    let mut sized: Vec<(&VariantSummary, f64)> =
        rows.filter_map(|row| Some((row, size(row)?))).collect();
    sized.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    sized.into_iter().map(|(row, _)| row).collect()
}

/// Renders a recording as one HTML file.
pub fn html(recording: &Recording, summary: &Summary) -> String {
    page(recording, summary, None)
}

/// The page of a finished run, or of a running lab.
fn page(recording: &Recording, summary: &Summary, so_far: Option<SoFar>) -> String {
    let title = escape(&summary.title);
    let mut sections = sections(recording, summary);
    // Empty sections are removed before links are made, so that every link has a target.
    sections.retain(|section| !section.body.is_empty());
    // The result comes first, then the table of contents, then all other sections.
    let first = sections
        .iter()
        .take_while(|it| FIRST.contains(&it.id))
        .count();
    let rest = sections.split_off(first);
    let links: String = rest
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>\n", section.target(), section.title))
        .collect();
    let drawn = |sections: &[Section]| -> String { sections.iter().map(Section::draw).collect() };
    let main = format!(
        "{}{}<nav aria-label=\"sections\">\n{links}</nav>\n{}",
        drawn(&sections),
        facts(recording, summary),
        drawn(&rest)
    );
    let notice = so_far.map_or_else(String::new, |it| it.notice(summary));
    document(&Document {
        title: &format!("{title}: cost of each variant"),
        header: &(notice + &heading(recording, summary)),
        main: &main,
        footer: &footer(recording),
        refresh_s: so_far.and_then(SoFar::refresh_s),
    })
}

/// The parts of a page. All are markup.
struct Document<'a> {
    title: &'a str,
    header: &'a str,
    main: &'a str,
    footer: &'a str,
    /// Time in seconds after which a browser loads the page again. `None` for a page that does not change.
    refresh_s: Option<u32>,
}

/// A page with the meanings of its words.
fn document(parts: &Document<'_>) -> String {
    let meanings = terms::meanings(parts.main);
    let refresh = parts.refresh_s.map_or_else(String::new, |seconds| {
        format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n")
    });
    let Document {
        title,
        header,
        main,
        footer,
        ..
    } = parts;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n{refresh}\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         {header}<main>\n{main}{meanings}</main>\n{footer}</body>\n</html>\n"
    )
}

fn sections(recording: &Recording, summary: &Summary) -> Vec<Section> {
    let answer = answer(summary) + &answer_note(summary);
    let mut all = vec![
        Section::new("answer", "Cost of each variant", answer),
        Section::of("gates", "Gates", &models::gates::table(&summary.gates)),
        ladder(summary),
        factors(summary),
        Section::new("results", "Results", tables::results(summary)),
        rounds(summary),
        distribution(recording, summary),
        systems(summary),
    ];
    all.extend(costs(recording, summary));
    all.extend(evidence(recording, summary));
    all.extend(provenance(recording, summary));
    all
}

/// The sections on costs that only some recordings have.
fn costs(recording: &Recording, summary: &Summary) -> Vec<Section> {
    let mut all = vec![
        steps(recording, summary),
        Section::of(
            "capacity",
            "The highest rate sustained",
            &models::searches::table(summary),
        ),
    ];
    let streams = models::streams::all(summary);
    all.extend(streams.map(|it| Section::of(it.id, it.title, &it.table)));
    all.extend([why::section(recording, summary), hottest(recording)]);
    all
}

/// The evidence. A single load has no comparison, so its course is open.
fn evidence(recording: &Recording, summary: &Summary) -> Vec<Section> {
    let time = match summary.kind {
        Kind::Lab => time(recording, summary).folded(),
        Kind::Load => time(recording, summary),
    };
    let counts = models::breakdown::counts(summary);
    let instances = models::instances::table(summary);
    let traffic = models::traffic::table(summary);
    vec![
        Section::new("words", "In words", tables::in_words(summary)).folded(),
        breakdown(summary).folded(),
        Section::of("counts", models::breakdown::COUNTS_TITLE, &counts).folded(),
        overheads(summary).folded(),
        shift(recording, summary).folded(),
        time,
        cost(summary).folded(),
        Section::of("instances", models::instances::TITLE, &instances).folded(),
        Section::of("bodies", bodies::TITLE, &models::bodies::table(summary)).folded(),
        statuses(summary).folded(),
        Section::of("sent", sent::TITLE, &models::sent::table(summary)).folded(),
        packets(summary).folded(),
        handshakes(summary).folded(),
        Section::of("traffic", models::traffic::TITLE, &traffic).folded(),
        Section::new("checks", "Checks", tables::checks(summary)).lead(
            "Checks made while each variant was measured. Read the figures with care if a check is \
             weak. A failed check withholds the verdict.",
        ),
    ]
}

/// The explanation of the figures and their origin.
fn provenance(recording: &Recording, summary: &Summary) -> Vec<Section> {
    let reading = list(&explain::statistics(summary));
    vec![
        Section::new("reading", "How to read it", reading).folded(),
        Section::new("variants", "Variants", provenance::variants(recording)).folded(),
        Section::new("machine", "Machine", provenance::environment(recording)).folded(),
        Section::new("requests", "Requests", provenance::requests(recording)).folded(),
        Section::new(
            "reproduce",
            "How to reproduce it",
            provenance::reproduced(recording),
        ),
    ]
}

/// The differences of single rounds.
fn rounds(summary: &Summary) -> Section {
    let mut figures = gallery(&pairs::pairs(summary), "variants");
    if !figures.is_empty() {
        let all = list(&pairs::figures(summary));
        figures += &folded("The differences as figures", &all);
    }
    let confidence = describe::percent(summary.confidence_each);
    Section::new("rounds", "Difference in each round", figures).lead(format!(
        "A dot is the difference of one round. The line is the estimate over all rounds, and the band \
         is its {confidence} interval. An arrow marks a round outside of the picture. The \
         axis begins at zero only if zero is near."
    ))
}

/// The processor time of each system as a waterfall.
fn systems(summary: &Summary) -> Section {
    let figures = gallery(&processor::waterfalls(summary), "variants");
    Section::new("systems", "Processor time by system", figures).lead(
        "The bar of a system begins where the bar before it ends. The thin line is its interval. A \
         system that the baseline lacks adds all of its time.",
    )
}

fn ladder(summary: &Summary) -> Section {
    let figures = table(&models::ladder::table(summary), "");
    Section::new(
        "ladder",
        models::ladder::TITLE,
        waterfall(summary) + &figures,
    )
    .lead("A bar begins where the step before it ends. The thin line is the interval of the step.")
}

fn breakdown(summary: &Summary) -> Section {
    let figures = table(&models::breakdown::table(summary), "");
    Section::new(
        "parts",
        models::breakdown::TITLE,
        waterfall::parts(summary) + &figures,
    )
    .lead("A bar begins where the part before it ends. The last bar is the whole difference.")
}

fn factors(summary: &Summary) -> Section {
    let figures = table(&models::factors::table(summary), "");
    let pictures = effects(summary);
    Section::new("factors", models::factors::TITLE, pictures + &figures)
        .lead("A bar is the estimate of an effect. The thin line is its interval.")
}

fn steps(recording: &Recording, summary: &Summary) -> Section {
    let steps = models::steps::table(recording, summary.unit(Metric::Mean));
    Section::of("steps", "Steps of the scenario", &steps).lead(
        "Each step over the requests of all rounds. A step that did not pass ends its scenario, \
         and the steps after it are skipped.",
    )
}

fn packets(summary: &Summary) -> Section {
    let packets = models::packets::table(summary);
    Section::of("packets", models::packets::TITLE, &packets)
}

fn handshakes(summary: &Summary) -> Section {
    let handshakes = models::handshakes::table(summary);
    Section::of("handshakes", models::handshakes::TITLE, &handshakes)
}

fn statuses(summary: &Summary) -> Section {
    let statuses = models::statuses::table(summary);
    Section::of("statuses", bodies::STATUS_TITLE, &statuses)
}

fn heading(recording: &Recording, summary: &Summary) -> String {
    let (title, name) = match &summary.question {
        Some(question) => (question, Some(&summary.title)),
        None => (&summary.title, None),
    };
    let name = name.map_or_else(String::new, |name| format!("<b>{}</b>", escape(name)));
    // Only the day is shown, which is the first ten characters of RFC 3339. A recording of another origin may
    // contain any text.
    let day = recording.started_at.get(..10).unwrap_or_default();
    let said = prose(&answer::sentence(recording, summary));
    let (class, role) = match summary.interrupted {
        true => ("alarm", " role=\"alert\""),
        false => ("said-first", ""),
    };
    format!(
        "<header>\n<p class=\"eyebrow\"><span>Weighbridge</span>{name}<time>{}</time></p>\n\
         <h1>{}</h1>\n<p class=\"{class}\"{role}>{said}</p>\n{}</header>\n",
        escape(day),
        escape(title),
        stake(summary)
    )
}

/// The state of the gates in a word, and the consequence of the answer. Empty for a single load without gates.
fn stake(summary: &Summary) -> String {
    let state = GateState::of(&summary.gates);
    let class = match state {
        GateState::Pass => "passed",
        GateState::Fail => "failed",
        GateState::NoGate => "none",
    };
    let sentence = consequence::sentence(summary);
    sentence.map_or_else(String::new, |sentence| {
        format!(
            "<p class=\"stake\"><b class=\"state {class}\">{}</b> {}.</p>\n",
            state.word(),
            prose(&answer::begun(&sentence))
        )
    })
}

/// Summary of the measurement in few words.
fn facts(recording: &Recording, summary: &Summary) -> String {
    tiles(&[
        ("Load", prose(&describe::load(recording))),
        ("Rounds", prose(&explain::rounds(summary))),
        (
            "Revisions",
            escape(summary.revisions.as_deref().unwrap_or_default()),
        ),
        ("Machine", escape(&machine(recording))),
        ("Checks", checks(summary.variants.iter())),
    ])
}

/// Labels with their texts as markup. An empty text is left out.
fn tiles(facts: &[(&str, String)]) -> String {
    let fact = |(label, text): &(&str, String)| {
        if text.is_empty() {
            return String::new();
        }
        format!("<div><dt>{label}</dt><dd>{text}</dd></div>\n")
    };
    let facts: String = facts.iter().map(fact).collect();
    format!("<dl class=\"facts\">\n{facts}</dl>\n")
}

/// The machine in words: `AMD EPYC, 2 cores, virtual machine`.
fn machine(recording: &Recording) -> String {
    let wanted = ["CPU", "virtualization", "system"];
    let facts = describe::environment(recording);
    let value = |label: &&str| {
        let fact = facts.iter().find(|(name, _)| name == label);
        fact.map(|(_, value)| value.clone())
    };
    let values: Vec<String> = wanted.iter().filter_map(value).collect();
    values.join(", ")
}

/// Summary of all checks of these variants in one word, for the head of the page.
fn checks<'a>(rows: impl Iterator<Item = &'a VariantSummary>) -> String {
    let all: Vec<CheckState> = rows
        .flat_map(|row| &row.checks)
        .map(|check| check.state)
        .collect();
    let count = |state| all.iter().filter(|known| **known == state).count() as u64;
    let (weak, failed) = (count(CheckState::Weak), count(CheckState::Failed));
    let total = all.len() as u64;
    let word = |class: &str, text: String| format!("<span class=\"state {class}\">{text}</span>");
    match (total, weak, failed) {
        (0, ..) => String::new(),
        (_, 0, 0) => format!(
            "{} {} in order",
            word("ok", "ok".to_owned()),
            describe::plural(total, "check")
        ),
        _ => {
            let mut parts = Vec::new();
            if failed > 0 {
                parts.push(word("failed", format!("{failed} failed")));
            }
            if weak > 0 {
                parts.push(word("weak", format!("{weak} weak")));
            }
            format!("{} of {total}", parts.join(" "))
        }
    }
}

/// The result. A single load has no verdicts, so its table is the result.
fn answer(summary: &Summary) -> String {
    match summary.kind {
        Kind::Lab => forest::answer(summary),
        Kind::Load => String::new(),
    }
}

/// The caption of the picture. Empty for a single load.
fn answer_note(summary: &Summary) -> String {
    if summary.kind == Kind::Load {
        return String::new();
    }
    let baseline = escape(&summary.baseline);
    let what = match summary.headline {
        Metric::Requests => "Change in requests per second",
        Metric::Typical => {
            "Difference in typical latency (the mean of the fastest three quarters of a round's requests)"
        }
        _ => "Difference in mean latency",
    };
    let note = |text: &str| format!("<p class=\"note\">{text}</p>\n");
    let has_intervals = summary.variants.iter().any(|row| {
        let overhead = row
            .metric(summary.headline)
            .and_then(|metric| metric.overhead.as_ref());
        overhead.is_some_and(|overhead| overhead.difference_low.is_some())
    });
    let key = match forest::key(summary) {
        "" => String::new(),
        key => format!(" {key}"),
    };
    let doubtful = match summary.variants.iter().any(|row| row.estimate.is_some()) {
        true => " A broken line, and ~ before a figure, mark an estimate that is not trusted.",
        false => "",
    };
    if has_intervals {
        note(&format!(
            "{what} against <b>{baseline}</b>, with {}. A line that crosses zero shows no difference.{key}{doubtful}",
            terms::intervals(summary)
        ))
    } else if !doubtful.is_empty() {
        note(&format!("{what} against <b>{baseline}</b>.{doubtful}"))
    } else if summary.comparisons > 0 {
        note(&format!(
            "{what} against <b>{baseline}</b>: {}.",
            prose(&explain::difference(summary))
        ))
    } else {
        note("There is no comparison. Each row has the reason.")
    }
}

/// The metrics that the result does not show, without the headline.
fn overheads(summary: &Summary) -> Section {
    let plots: String = [Metric::Mean, Metric::P50, Metric::P99, Metric::Cpu]
        .into_iter()
        .filter(|metric| *metric != summary.headline)
        .filter_map(|metric| forest::forest(summary, metric))
        .collect();
    Section::new("overhead", "Overhead by metric", panels(&plots)).lead(format!(
        "The dot is the estimate, and the line is its {} interval. A line that crosses zero shows no \
         difference, and is gray.",
        describe::percent(summary.confidence_each)
    ))
}

/// The distributions. In a lab, each is next to the distribution of the baseline.
fn distribution(recording: &Recording, summary: &Summary) -> Section {
    let all = distribution::pooled_latencies(recording, summary);
    let lines = gallery(&ecdf::distributions(summary, &all), "variants");
    let tails = gallery(&percentiles::percentiles(summary, &all), "variants");
    let tail_lead = format!(
        "<p class=\"lead\">{} The axis is logarithmic in 1 - quantile. A line ends where fewer than \
         ten requests lie beyond it.</p>\n",
        explain::latency(summary)
    );
    let tails = match tails.as_str() {
        "" => String::new(),
        tails => tail_lead + tails,
    };
    let figures = tables::distributions(summary);
    let lead = "The share of the requests that were answered within each latency, up to p95. The area \
                between the lines is the difference of the means of these requests.";
    if lines.is_empty() {
        return Section::new("distribution", "Latency distribution", tails + &figures);
    }
    let behind = |title: &str, content: &str| match content {
        "" => String::new(),
        content => folded(title, content),
    };
    let body = lines
        + &behind("The slowest requests: latency by percentile", &tails)
        + &behind("The figures of the distributions", &figures);
    Section::new("distribution", "Latency distribution", body).lead(lead)
}

fn shift(recording: &Recording, summary: &Summary) -> Section {
    let figures = match shift::shifts(recording, summary).as_str() {
        "" => String::new(),
        figures => format!("<div class=\"panels small\">\n{figures}</div>\n"),
    };
    Section::new("shift", "Which requests pay", figures).lead(format!(
        "The difference from <b>{}</b> at each quantile of latency. A cost that every request pays \
         is a level row of dots. A cost that few requests pay rises at the right. All intervals of \
         a picture together have a confidence of {}.",
        escape(&summary.baseline),
        describe::percent(summary.confidence_each)
    ))
}

fn time(recording: &Recording, summary: &Summary) -> Section {
    let lines = timeline::timelines(recording, summary);
    let width = timeline::width(recording, summary).unwrap_or_default();
    Section::new("time", "Over time", panels(&lines)).lead(format!(
        "The rounds of each variant side by side, without the pauses between them. A point is \
         {width}. All pictures have the same scales."
    ))
}

/// The hottest functions, from the rounds that `--flamegraph` adds.
fn hottest(recording: &Recording) -> Section {
    Section::new("hottest", "Hottest functions", tables::hottest(recording)).lead(
        "The functions with the most processor time of the systems, sampled in extra rounds without \
         other figures. The flamegraphs are files next to this page, in <code>flamegraphs</code>.",
    )
}

fn cost(summary: &Summary) -> Section {
    let bars = cost::bars(summary);
    let lead = if bars.is_empty() {
        ""
    } else {
        "Processor time and memory of the systems. The line is the 95 % interval of the sum."
    };
    Section::new(
        "cost",
        models::systems::TITLE,
        bars + &table(&models::systems::table(summary), ""),
    )
    .lead(lead)
}

/// Pictures next to each other. Empty without a picture.
fn panels(figures: &str) -> String {
    match figures {
        "" => String::new(),
        figures => format!("<div class=\"panels\">\n{figures}</div>\n"),
    }
}

fn footer(recording: &Recording) -> String {
    format!(
        "<footer>Made by weigh {} from a recording of {}. <code>weigh report</code> computes this \
         page again from <code>recording.json</code>.</footer>\n",
        escape(&recording.weigh.version),
        escape(&describe::moment(&recording.started_at))
    )
}

#[cfg(test)]
mod tests;
