//! Text forms of a curve: for a terminal, in Markdown, as lines for scripts, and for CI.

use analysis::curve::{Curve, LoadLevel, overhead_of};
use analysis::gate::{Grounds, Judgement, Ruling};
use analysis::summary::{ClaimName, VariantSummary};
use model::Metric;
use recording::digits;

use crate::cell;
use crate::explain;
use crate::gates;
use crate::junit as cases;
use crate::markdown::escape;
use crate::tables;
use crate::terminal::{Terminal, Tone, finished, toned};
use crate::text::{list, printed, wrapped};
use crate::words;

/// Maximum number of rows of the table in a comment.
const ROWS_MAX: usize = 12;
/// Maximum number of gates in a comment.
const GATES_MAX: usize = 6;

/// The curve for a terminal.
#[must_use]
pub fn text(curve: &Curve, terminal: Terminal) -> String {
    let width = terminal.width;
    let mut out = wrapped("", &toned(Tone::Heading, &title(curve)), width);
    out += &list(&sentences(curve), width);
    let levels = tables::levels::table(curve);
    out += &format!("\n{}", printed(&levels, width));
    let invalid = invalid(curve);
    if !invalid.is_empty() {
        let lines = list(&invalid, width);
        out += &format!("\n{}\n{lines}", toned(Tone::Heading, "Invalid"));
    }
    let gates = judgements(curve);
    if !gates.is_empty() {
        let lines = list(&gates::lines(&gates), width);
        out += &format!("\n{}\n{lines}", toned(Tone::Heading, "Gates"));
    }
    finished(&out, terminal)
}

/// The curve in Markdown.
#[must_use]
pub fn markdown(curve: &Curve) -> String {
    let mut parts = vec![
        format!("# {}", escape(&title(curve))),
        crate::markdown::list(&sentences(curve))
            .trim_end()
            .to_owned(),
        whole_table(curve, usize::MAX),
    ];
    let gates = judgements(curve);
    if !gates.is_empty() {
        let table = crate::markdown::printed(&tables::gates::table(&gates));
        parts.push(format!("## Gates\n\n{}", table.trim_end()));
    }
    parts.join("\n\n") + "\n"
}

/// The curve as a comment on a pull request, of at most 30 lines.
#[must_use]
pub fn comment(curve: &Curve) -> String {
    let answer = sentences(curve).into_iter().take(3);
    let mut parts = vec![format!(
        "{}\n{}**{}**: {}",
        crate::comment::marker(curve.title()),
        crate::comment::passed(&judgements(curve)),
        escape(curve.title()),
        answer.map(|it| escape(&it)).collect::<Vec<_>>().join("; ")
    )];
    parts.push(whole_table(curve, ROWS_MAX));
    parts.extend(crate::comment::gates(&judgements(curve), GATES_MAX));
    parts.join("\n\n").replace('@', "@\u{200b}") + "\n"
}

/// Every figure of every level as a line. The first field is the lab with its load.
#[must_use]
pub fn csv(curve: &Curve) -> String {
    let mut out = String::new();
    for level in curve.levels() {
        let mut summary = level.summary.clone();
        summary.title = at(curve.title(), level);
        let lines = crate::csv(&level.recording, &summary);
        let lines = match out.is_empty() {
            true => lines.as_str(),
            false => lines.split_once('\n').map_or("", |(_, lines)| lines),
        };
        out += lines;
    }
    out
}

/// A test case for each variant and gate at each level.
#[must_use]
pub fn junit(curve: &Curve) -> String {
    let of_level = |level: &LoadLevel| -> Vec<cases::Case> {
        let all = cases::cases(&level.recording, &level.summary).into_iter();
        all.map(|case| cases::Case {
            name: at(&case.name, level),
            ..case
        })
        .collect()
    };
    let all: Vec<cases::Case> = curve.levels().iter().flat_map(of_level).collect();
    cases::document(curve.title(), &all, &judgements(curve))
}

fn at(name: &str, level: &LoadLevel) -> String {
    format!("{name} at {}", level.load())
}

fn title(curve: &Curve) -> String {
    explain::title(&curve.levels()[0].summary)
}

/// The cost of each variant at the lowest and the highest load with a known cost. A stream is judged by its events
/// before its end.
pub(crate) fn sentences(curve: &Curve) -> Vec<String> {
    let of_events = curve.metric_of_events();
    let metric = of_events.unwrap_or(curve.metric());
    let events = match of_events {
        Some(metric) => format!("{}: ", metric.label()),
        None => String::new(),
    };
    let stopped = curve
        .levels()
        .iter()
        .filter(|level| level.summary.interrupted);
    let stopped = stopped.map(|level| format!("INTERRUPTED at {}", level.load()));
    let of_variant = |name: &str| {
        let known: Vec<String> = curve
            .levels()
            .iter()
            .filter_map(|level| {
                let row = level.summary.variant(name)?;
                Some(format!("{} at {}", size(row, metric)?, level.load()))
            })
            .collect();
        match known.as_slice() {
            [] => format!("`{name}`: no level has a verdict"),
            [one] => format!("`{name}`: {events}{one}"),
            [first, .., last] => format!("`{name}`: {events}{first}, {last}"),
        }
    };
    stopped
        .chain(curve.variants().into_iter().map(of_variant))
        .collect()
}

/// The overhead in words: `30 us (26 to 34) slower`. `None` without an interval.
fn size(row: &VariantSummary, metric: Metric) -> Option<String> {
    let overhead = overhead_of(row, metric)?;
    if metric == Metric::Requests {
        return Some(format!("{} requests/s", cell::change(row, metric)?));
    }
    let words = overhead.in_words(row.unit(metric))?;
    Some(match overhead.claim {
        ClaimName::Higher => format!("{words} slower"),
        ClaimName::Lower => format!("{words} faster"),
        _ => "no difference shown".to_owned(),
    })
}

/// The invalid levels: `late at 100 requests/s: invalid: interrupted`.
fn invalid(curve: &Curve) -> Vec<String> {
    let of_level = |level: &LoadLevel| -> Vec<String> {
        let rows = level.summary.variants.iter();
        rows.filter(|row| row.verdict.is_invalid())
            .map(|row| format!("{}: {}", at(&row.name, level), words::verdict_short(row)))
            .collect()
    };
    curve.levels().iter().flat_map(of_level).collect()
}

fn whole_table(curve: &Curve, most: usize) -> String {
    let mut table = tables::levels::table(curve);
    let more = table.rows.len().saturating_sub(most);
    table.rows.truncate(most);
    let more = match more {
        0 => String::new(),
        more => format!(
            "\n\n{} more rows in the report.",
            digits::count(more as u64)
        ),
    };
    crate::markdown::printed(&table).trim_end().to_owned() + &more
}

/// The gates of all levels, each with its load next to the variant.
pub(crate) fn judgements(curve: &Curve) -> Vec<Judgement> {
    let of_level = |level: &LoadLevel| -> Vec<Judgement> {
        let gates = level.summary.gates.iter();
        gates
            .map(|judgement| Judgement {
                variant: at(&judgement.variant, level),
                grounds: match (judgement.ruling, &judgement.grounds) {
                    (Ruling::Undecided, Grounds::Figure(text)) => {
                        Grounds::Figure(text.replace("more rounds", "more rounds at this load"))
                    }
                    (_, grounds) => grounds.clone(),
                },
                ..judgement.clone()
            })
            .collect()
    };
    curve.levels().iter().flat_map(of_level).collect()
}

#[cfg(test)]
mod tests {
    use analysis::Summary;
    use analysis::sample::{curve, level};
    use recording::{EventsRecord, Hdr, SummedTimes, TimesRecord};
    use stats::Histogram;

    use super::*;

    #[test]
    fn a_variant_without_a_number_at_a_level_is_a_row_that_says_so() {
        let mut broken = level(6_400.0, 1.0);
        broken
            .recording
            .rounds
            .retain(|round| round.variant != "late");
        broken.summary = Summary::of(&broken.recording);
        let curve = Curve::new(vec![level(100.0, 30.0), level(400.0, 30.0), broken]).unwrap();
        assert_eq!(curve.points("late").len(), 2);
        let shown = text(&curve, crate::Terminal::plain(100));
        let (_, after) = shown.split_once("\n6,400 ").unwrap();
        let late = after.lines().nth(1).unwrap();
        assert!(late.contains("–") && late.contains("invalid"), "{shown}");
        assert!(
            shown.contains("- late at 6,400 requests/s: invalid: "),
            "{shown}"
        );
    }

    /// A level with streams of events: the publisher's events arrive 1 ms after their stamp, and 2 ms later if late.
    fn level_of_events(per_s: f64) -> LoadLevel {
        let mut level = level(per_s, 30.0);
        for (index, round) in level.recording.rounds.iter_mut().enumerate() {
            let late_ns = if round.variant == "late" {
                2_000_000
            } else {
                0
            };
            let mut delivery = Histogram::new();
            delivery.record_n_ns(1_000_000 + late_ns + 1_000 * index as u64, 1_000);
            let sum_ns = 1_000 * (1_000_000 + late_ns + 1_000 * index as u64);
            round.events = Some(EventsRecord {
                streams: 100,
                events_of_streams: 1_000,
                events: 1_000,
                first: TimesRecord::of(&delivery),
                event_sum_ns: sum_ns,
                gaps_ns_hdr: Hdr::of(&delivery),
                gaps_sum_ns: sum_ns,
                positions: Vec::new(),
                delivery: Some(SummedTimes::of(&delivery, sum_ns)),
                round_trips: None,
            });
        }
        level.summary = Summary::of(&level.recording);
        level
    }

    #[test]
    fn a_curve_of_streams_has_the_delivery_of_their_events() {
        let curve = Curve::new(vec![level_of_events(100.0), level_of_events(400.0)]).unwrap();
        assert_eq!(curve.metric_of_events(), Some(Metric::Delivery));
        let shown = sentences(&curve);
        let [line] = &shown[..] else {
            panic!("{shown:?}");
        };
        assert!(line.starts_with("`late`: delivery: 2,001 us"), "{line}");
        assert!(
            line.contains("slower at 100 requests/s, 2,001 us"),
            "{line}"
        );
        let table = markdown(&curve);
        assert!(table.contains("| Delivery (us) | Overhead"), "{table}");
        assert!(!table.contains("p99"), "{table}");
        assert_eq!(analysis::sample::curve().metric_of_events(), None);
    }

    #[test]
    fn what_the_user_wrote_is_text_and_never_markup() {
        let evil = "<script>alert(1)</script>\"'&";
        let mut levels = vec![level(100.0, 30.0), level(400.0, 45.0)];
        for level in &mut levels {
            level.folder = format!("at-{evil}");
            level.summary.title = evil.to_owned();
            level.summary.question = Some(evil.to_owned());
            for row in &mut level.summary.variants {
                row.name = evil.to_owned();
                row.baseline = evil.to_owned();
            }
        }
        let page = crate::curve_page(&Curve::new(levels).unwrap());
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("<title>&lt;script&gt;"));
    }

    #[test]
    fn every_rendering_says_which_level_breaks_a_gate() {
        let curve = curve();
        let text = text(&curve, crate::Terminal::plain(100));
        for page in [
            text.clone(),
            markdown(&curve),
            comment(&curve),
            csv(&curve),
            junit(&curve),
            crate::curve_page(&curve),
        ] {
            for words in ["1,600 requests/s", "broken"] {
                assert!(page.contains(words), "{words}:\n{page}");
            }
        }
        let comment = comment(&curve);
        assert!(comment.lines().count() <= 30);
        let top = comment.lines().nth(1).unwrap();
        assert!(top.starts_with("\u{274c} **Failed"), "{comment}");
        insta::assert_snapshot!(text);
        insta::assert_snapshot!(markdown(&curve));
    }
}
