//! The report on one screen: the result, one table, and the failed checks.

use analysis::summary::Summary;
use recording::{Recording, describe};

use super::{hottest, invalid, list, printed, wrapped};
use crate::answer;
use crate::bodies;
use crate::explain;
use crate::gates;
use crate::sent;
use crate::tables;
use crate::terminal::{Terminal, Tone, finished, toned};

/// Maximum number of checks on the screen. Further checks are only counted, and the full report contains all.
const TROUBLES_MAX: usize = 4;

/// Renders a lab's recording for a terminal, with the figures that a decision needs. [`super::full_text`] has
/// the rest.
pub fn text(recording: &Recording, summary: &Summary, terminal: Terminal) -> String {
    let width = terminal.width;
    let answer = answer::sentence(recording, summary);
    let answer = if summary.interrupted {
        toned(Tone::Refused, &answer)
    } else {
        answer
    };
    let mut lines = vec![toned(Tone::Heading, &explain::title(summary)), answer];
    lines.extend(summary.revisions.clone());
    lines.push(explain::rounds_in_short(summary));
    // The network's share of the latencies follows the overhead.
    lines.extend(describe::lost_rounds(recording).map(|lost| format!("Lost: {lost}")));
    lines.extend(describe::network(recording).map(|way| format!("Network: {way}")));
    // Readers must see the variation that the intervals do not contain.
    lines.extend(summary.starts_omitted.clone());
    lines.extend(explain::left_out(summary));
    lines.extend(sent::sentences(summary));
    lines.extend(bodies::sentence_if_telling(summary));
    lines.extend(bodies::status_sentences(summary));
    lines.extend(bodies::notes(summary));
    let mut out: String = lines.iter().map(|line| wrapped("", line, width)).collect();
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            let title = match title {
                "" => String::new(),
                title => format!("{}\n", toned(Tone::Heading, title)),
            };
            out += &format!("\n{title}{body}");
        }
    };
    let deciding = tables::results::deciding(summary);
    add("", &printed(&deciding, width));
    for (title, costs) in tables::costs(summary) {
        add(title, &printed(&costs, width));
    }
    add("Gates", &list(&gates::lines(&summary.gates), width));
    let told = answer::told(summary);
    add("Invalid", &list(&invalid(summary, &told), width));
    // These are shown only if the user requested them.
    add(tables::why::TITLE, &why_in_short(summary, width));
    add("Hottest functions", &hottest(recording, width));
    let mut troubles = explain::troubles_without(summary, answer::named_check(summary));
    let shown = TROUBLES_MAX.max(explain::troubles_unanswered(summary));
    let more = troubles.len().saturating_sub(shown);
    troubles.truncate(shown);
    if more > 0 {
        troubles.push(format!("and {more} more, which --full shows"));
    }
    add("Checks that were not in order", &list(&troubles, width));
    finished(&out, terminal)
}

/// The causes in words, the functions, and the cost of the samplers. Empty without `--why`.
fn why_in_short(summary: &Summary, width: usize) -> String {
    let mut sentences = tables::why::sentences(summary);
    let cost = summary.why.iter().flat_map(|why| &why.cost);
    sentences.extend(cost.map(tables::why::cost));
    let functions = printed(&tables::why::functions(summary), width);
    list(&sentences, width) + &functions
}

#[cfg(test)]
mod tests {
    use analysis::gate::Undecided;
    use model::InvalidKind;
    use recording::VariantStatus;
    use recording::sample::SampleRun;

    use super::*;
    use crate::tests::cluster_that_lost;

    #[test]
    fn a_lab_is_one_screen() {
        let recording = SampleRun::graphql_server();
        let gates = ["p99 overhead < 1us".parse().unwrap()];
        let summary = Summary::of(&recording).judged(&gates, Undecided::Fails);
        let text = text(&recording, &summary, Terminal::plain(100));
        assert!(text.lines().count() <= 24, "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nine_variants_are_one_screen() {
        let mut sample = SampleRun::side_by_side()
            .rounds(12)
            .variant("baseline", 190.0);
        for (index, name) in [
            "config", "rhai", "rust", "go", "node", "csharp", "java", "python",
        ]
        .into_iter()
        .enumerate()
        {
            sample = sample.variant(name, 200.0 + 40.0 * index as f64);
        }
        let recording = sample.build();
        let text = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        assert!(text.lines().count() <= 24, "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn requests_without_an_answer_are_said_first_and_all() {
        let mut sample = SampleRun::side_by_side().variant("baseline", 190.0);
        for name in ["a", "b", "c", "d", "e", "f"] {
            sample = sample.variant(name, 250.0);
        }
        let mut recording = sample.build();
        for round in &mut recording.rounds {
            // The noise affects all variants. Each variant except the baseline has an unanswered request.
            round.generator.waited_for_cpu =
                Some(std::time::Duration::from_micros(round.elapsed_us / 5));
            if round.variant != "baseline" && round.round == 0 {
                round.outcomes.passed -= 1;
                round.outcomes.failed.timeout += 1;
            }
        }
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let checks = said
            .split("Checks that were not in order\n")
            .nth(1)
            .unwrap();
        let lines = checks.lines().filter(|line| line.starts_with("- "));
        let lines: Vec<&str> = lines.collect();
        assert!(
            lines[0].starts_with("- `a`, `b`, `c`, `d`, `e`, `f`: failures (weak)"),
            "{said}"
        );
    }

    /// Returns a recording whose variants with these reasons have no number.
    fn without_numbers(reasons: &[(&str, InvalidKind, &str)]) -> Recording {
        let mut sample = SampleRun::side_by_side().variant("as it is", 190.0);
        for name in ["b", "c", "d"] {
            sample = sample.variant(name, 250.0);
        }
        let mut recording = sample.build();
        for (name, kind, reason) in reasons {
            let mut variants = recording.variants.iter_mut();
            let variant = variants.find(|it| it.name == *name).unwrap();
            variant.status = VariantStatus::Invalid {
                kind: *kind,
                reason: (*reason).to_owned(),
            };
        }
        recording
    }

    #[test]
    fn a_failed_baseline_is_the_first_sentence_and_is_said_once() {
        let lost = "its baseline `as it is` has no number";
        let mut reasons = vec![(
            "as it is",
            InvalidKind::NotReady,
            "`server` listens nowhere",
        )];
        reasons.extend(["b", "c", "d"].map(|name| (name, InvalidKind::NotNeeded, lost)));
        let recording = without_numbers(&reasons);
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let second = said.lines().nth(1).unwrap();
        assert_eq!(
            second,
            "No verdict: the baseline `as it is` has no number: `server` listens nowhere."
        );
        assert_eq!(said.matches("listens nowhere").count(), 1, "{said}");
        assert!(!said.contains("\nInvalid\n"), "{said}");
    }

    #[test]
    fn the_reason_of_a_single_variant_is_the_first_sentence_and_is_said_once() {
        let mut recording = SampleRun::side_by_side()
            .variant("as it is", 190.0)
            .variant("b", 250.0)
            .build();
        let invalid = |kind, reason: &str| VariantStatus::Invalid {
            kind,
            reason: reason.to_owned(),
        };
        let lost = "not measured, because no variant is left for a comparison";
        recording.variants[0].status = invalid(InvalidKind::NotNeeded, lost);
        recording.variants[1].status = invalid(InvalidKind::NotProven, "found 0 in 2 requests");
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let second = said.lines().nth(1).unwrap();
        assert_eq!(
            second,
            "No verdict: `b` has no number: found 0 in 2 requests."
        );
        assert!(!said.contains("\nInvalid\n"), "{said}");
        // If both have a reason of their own, the baseline is first, and the other is in the list.
        recording.variants[0].status = invalid(InvalidKind::NotReady, "it listens nowhere");
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let second = said.lines().nth(1).unwrap();
        assert!(
            second.ends_with("`as it is` has no number: it listens nowhere."),
            "{said}"
        );
        assert!(
            said.contains("\nInvalid\n- `b`: found 0 in 2 requests\n"),
            "{said}"
        );
    }

    #[test]
    fn variants_that_share_a_reason_are_one_line() {
        let recording = without_numbers(&[
            ("b", InvalidKind::NotReady, "`server` listens nowhere"),
            ("c", InvalidKind::NotReady, "`server` listens nowhere"),
            ("d", InvalidKind::ProgramMissing, "`d` needs `node`"),
        ]);
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let list = said.split("\nInvalid\n").nth(1).unwrap();
        assert!(
            list.starts_with(
                "- `b`, `c`: `server` listens nowhere\n- `d`: NOT RUN: `d` needs `node`\n"
            ),
            "{said}"
        );
    }

    #[test]
    fn what_was_not_measured_is_said_first() {
        let mut recording = SampleRun::side_by_side()
            .variant("baseline", 190.0)
            .variant("rhai", 250.0)
            .build();
        recording.interrupted = true;
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(100));
        let second = said.lines().nth(1).unwrap();
        assert!(second.starts_with("INTERRUPTED"), "{said}");
        recording.ended_because = Some("the namespace has a quota".to_owned());
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(200));
        let second = said.lines().nth(1).unwrap();
        assert!(
            second.ends_with("before the run ended: the namespace has a quota."),
            "{said}"
        );
    }

    #[test]
    fn rounds_that_lost_a_pod_are_counted() {
        let mut recording = SampleRun::side_by_side()
            .variant("baseline", 190.0)
            .variant("rhai", 250.0)
            .build();
        recording.cluster = Some(cluster_that_lost("round 2: generator 1 of 1, was evicted"));
        let said = text(&recording, &Summary::of(&recording), Terminal::plain(200));
        let lost = "Lost: the cluster took a pod away, or its result, in 1 attempt. Their figures do not count. The last: \
                    round 2: generator 1 of 1, was evicted\n";
        assert!(said.contains(lost), "{said}");
    }
}
