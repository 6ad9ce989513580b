//! Sentences that explain a summary: the order of measurements, and the meaning of figures and verdicts.

use analysis::company;
use analysis::summary::{
    Check, CheckName, CheckState, ClaimName, PAUSED_SHARE_MAX, STARVED_SHARE_MAX, SplitSummary,
    Summary, VariantSummary, quantity,
};
use model::{Metric, Order};
use recording::describe::{percent, plural};
use recording::{Kind, digits};

use crate::sent;
use crate::words;

/// The title with the question, if there is one.
pub(crate) fn title(summary: &Summary) -> String {
    match &summary.question {
        Some(question) => format!("{}: {question}", summary.title),
        None => summary.title.clone(),
    }
}

/// The rounds: `8 rounds, each variant once per round in shuffled order, seed 7`.
// The planned number of rounds is shown only if it differs from the measured number.
pub(crate) fn rounds(summary: &Summary) -> String {
    rounds_with(summary, &company::in_words(summary))
}

/// The rounds without the members of each group, which take several lines.
pub(crate) fn rounds_in_short(summary: &Summary) -> String {
    let groups = match summary.groups.len() {
        0 => String::new(),
        groups => format!(", in {}", plural(groups as u64, "group")),
    };
    rounds_with(summary, &groups)
}

fn rounds_with(summary: &Summary, groups: &str) -> String {
    let planned = summary.rounds_planned;
    let rounds = if summary.rounds_measured == planned {
        plural(planned as u64, "round")
    } else {
        format!(
            "{} of {}",
            summary.rounds_measured,
            plural(planned as u64, "round")
        )
    };
    let until = summary.until.as_ref();
    let wish = until
        .map(|until| &until.sentence)
        .or(summary.decided.as_ref());
    let until = wish.map_or(String::new(), |sentence| format!("; {sentence}"));
    let all = if summary.groups.is_empty() {
        "all variants side by side in each"
    } else {
        "variants of a group side by side"
    };
    let order = match (summary.order, summary.slice_us) {
        (Order::SideBySide, _) if summary.is_capacity => {
            format!("{all}, searches advance rate by rate in shuffled order")
        }
        (Order::SideBySide, Some(slice_us)) => format!(
            "{all}, in slices of {} in shuffled order",
            // Slices are fitted into the load, so their exact microseconds have no meaning.
            digits::length_us((slice_us + 500).max(1_000) / 1_000 * 1_000)
        ),
        (Order::SideBySide, None) => {
            format!("{all}, one request to each at every due time")
        }
        (Order::InTurn, _) => "each variant once per round in shuffled order".to_owned(),
    };
    let because = summary.in_turn_because.as_ref();
    let because = because.map_or(String::new(), |because| {
        format!(", in turn and not side by side: {because}")
    });
    format!(
        "{rounds}, {order}{groups}{because}, seed {}{until}",
        summary.seed
    )
}

/// Sentence at the top of every report format if the run ended before its last round.
pub(crate) fn interruption(summary: &Summary) -> Option<String> {
    summary.interrupted.then(|| match summary.kind {
        Kind::Lab => format!(
            "INTERRUPTED: {} of {} were measured before the run {}",
            summary.rounds_measured,
            plural(summary.rounds_planned as u64, "round"),
            match &summary.ended_because {
                Some(reason) => format!("ended: {}", reason.trim_end_matches('.')),
                None => "was stopped".to_owned(),
            }
        ),
        Kind::Load => "INTERRUPTED: the run was stopped before its end".to_owned(),
    })
}

/// The sentence about the checks if all are in order.
pub(crate) fn untroubled(summary: &Summary) -> &'static str {
    if summary.variants.iter().all(|row| row.checks.is_empty()) {
        "no checks, because there are no measurements"
    } else {
        "all in order"
    }
}

/// Sentences that explain the figures.
pub(crate) fn statistics(summary: &Summary) -> Vec<String> {
    let mut sentences = vec![
        "A figure is computed for each round. The report shows the Hodges-Lehmann estimate over the \
         rounds, with as many digits as its interval supports."
            .to_owned(),
    ];
    if summary.measurements_repeated > 0 {
        sentences.push(format!(
            "{} repeated, because the generator stood still for more than {} of the time or was \
             without a core for more than {}. The recording contains the disturbed measurements, \
             but no figure does.",
            match summary.measurements_repeated {
                1 => "1 measurement was".to_owned(),
                many => format!("{many} measurements were"),
            },
            percent(PAUSED_SHARE_MAX),
            percent(STARVED_SHARE_MAX)
        ));
    }
    if summary.comparisons > 0 {
        let confidence = percent(summary.confidence_each);
        sentences.push(format!(
            "A difference from {} is paired by round. ± is half of its {confidence} Wilcoxon \
             interval. An asymmetric interval is shown by its ends if ± would misstate whether it \
             contains 0.",
            summary.against()
        ));
        let decides = match summary.headline {
            Metric::Requests if summary.is_capacity => {
                "The highest sustained rate decides the verdict, and all other figures are measured at that rate"
            }
            Metric::Requests => "Requests per second decide the verdict (closed loop)",
            Metric::Typical => {
                "Typical latency, the mean of the fastest three quarters of a round's requests, decides \
                 the verdict (open loop, side by side)"
            }
            _ => "Mean latency decides the verdict (open loop)",
        };
        sentences.push(if summary.comparisons > 1 {
            format!(
                "{decides}. Each of {} comparisons has a confidence of {confidence}, so all \
                 verdicts together have a confidence of {}.",
                summary.comparisons,
                percent(summary.confidence)
            )
        } else {
            format!("{decides}, at {}.", percent(summary.confidence))
        });
    }
    sentences.extend(company::sentences(summary));
    sentences.extend(adjusted(summary));
    sentences.extend(summary.starts_omitted.clone());
    sentences.extend(left_out(summary));
    sentences.extend(sent::sentences(summary));
    sentences.extend(sparse(summary));
    sentences.extend(summary.split.as_ref().map(SplitSummary::sentence));
    sentences.push(latency(summary).to_owned());
    sentences
}

/// The mean of all requests of each variant, if more than a hundredth of them is in no latency.
pub(crate) fn left_out(summary: &Summary) -> Vec<String> {
    let rows = summary.variants.iter();
    rows.filter_map(|row| {
        row.left_out
            .as_ref()?
            .sentence(&row.name, row.unit(Metric::Mean))
    })
    .collect()
}

/// The meaning of each verdict, one sentence per variant.
pub(crate) fn in_words(summary: &Summary) -> Vec<String> {
    let rows = summary.variants.iter();
    rows.filter_map(words::in_words).collect()
}

/// Explains the percentiles beyond which a round has too few requests. `None` if each round has enough.
fn sparse(summary: &Summary) -> Option<String> {
    let with_number = || summary.variants.iter().filter(|row| row.has_number());
    let is_sparse = |metric: &Metric| {
        with_number().any(|row| row.metric(*metric).is_some_and(|it| it.is_sparse))
    };
    let sparse: Vec<&str> = Metric::ALL
        .into_iter()
        .filter(is_sparse)
        .map(Metric::label)
        .collect();
    (!sparse.is_empty()).then(|| {
        format!(
            "{}: fewer than ten requests of a round lie beyond, so the tables show the percentile \
             over all rounds together. They show no figure if fewer than ten requests of all rounds \
             lie beyond. The difference has a bootstrap interval over rounds, if there are ten \
             rounds and twenty requests beyond.",
            sparse.join(", ")
        )
    })
}

/// Explains differences that are adjusted by the machine's speed, which the other variants reveal. `None` if no
/// difference was adjusted.
fn adjusted(summary: &Summary) -> Option<String> {
    let (variants, headline) = (&summary.variants, summary.headline);
    let overheads = variants
        .iter()
        .filter_map(|one| one.metric(headline)?.overhead.as_ref());
    let adjusted = overheads.filter(|overhead| overhead.adjusted_by > 0);
    let fewest = adjusted.min_by_key(|overhead| overhead.usual_rounds)?;
    let (usual, all) = (fewest.usual_rounds, fewest.rounds);
    let rounds = match all - usual {
        0 => format!("{all} rounds"),
        left_out => {
            format!(
                "{usual} usual rounds (without {left_out} rounds at a far lower or higher speed)"
            )
        }
    };
    let far: Vec<String> = variants
        .iter()
        .filter_map(|row| {
            let overhead = row.metric(headline)?.overhead.as_ref()?;
            let median = overhead
                .median_of_rounds
                .filter(|_| overhead.is_far_from_median())?;
            let sign = if median < 0.0 { '-' } else { '+' };
            let size = quantity::figure(summary.unit(headline), median.abs());
            Some(format!("{sign}{size} with `{}`", row.name))
        })
        .collect();
    let far = match far.is_empty() {
        true => String::new(),
        false => format!(
            " Without this adjustment, the median of the rounds is {}.",
            far.join(", ")
        ),
    };
    Some(format!(
        "Differences apply to the speed of the machine in these {rounds}, estimated from the other \
         variants. No interval contains the changes of that speed between rounds.{far}"
    ))
}

/// The kind of the differences of this recording: with an interval, or with too few rounds for an interval.
pub(crate) fn difference(summary: &Summary) -> String {
    let overheads = summary
        .variants
        .iter()
        .filter_map(|row| row.metric(summary.headline));
    let mut overheads = overheads.filter_map(|metric| metric.overhead.as_ref());
    match overheads.find(|overhead| overhead.claim == ClaimName::TooFewRounds) {
        Some(overhead) => format!(
            "difference (an interval needs {} of both, {} measured)",
            plural(overhead.rounds_needed as u64, "round"),
            overhead.rounds
        ),
        None => {
            format!(
                "difference ± half of the {} interval",
                percent(summary.confidence_each)
            )
        }
    }
}

/// The meaning of latency in this load.
pub(crate) fn latency(summary: &Summary) -> &'static str {
    if summary.is_open_loop {
        "Latency counts from the planned send to the last byte, so waiting is part of it."
    } else {
        "Latency counts from the send to the last byte. A closed loop sends less when answers are \
         late, so it shows the sustained rate and not the wait of a user."
    }
}

/// Windows that stdev and max of requests per second refer to: `over 100 ms windows`.
pub(crate) fn windows(summary: &Summary) -> Option<String> {
    let mut widths = summary
        .variants
        .iter()
        .filter_map(|row| row.rate_windows.as_ref());
    let width = widths.next()?.width_us;
    Some(format!("over {} windows", digits::length_us(width)))
}

/// Returns every check that is not in order: `` `a`, `b`: lateness (weak): text ``. Requests without a response come
/// first, then the failed checks. A check that several variants share is one line, in the words of the
/// variant with the largest figure.
pub(crate) fn troubles(summary: &Summary) -> Vec<String> {
    troubles_without(summary, None)
}

/// Like [`troubles`], without the check that the sentence at the top already names.
pub(crate) fn troubles_without(summary: &Summary, named: Option<CheckName>) -> Vec<String> {
    let rows = summary.variants.iter();
    let measured = rows.filter(|row| !row.checks.is_empty()).count();
    let merged = not_in_order(summary);
    merged
        .iter()
        .filter(|alike| Some(alike[0].1.name) != named || is_unanswered(alike[0].1))
        .map(|alike| trouble(alike, measured))
        .collect()
}

/// Number of [`troubles`] about requests without a response. Every report format shows these.
pub(crate) fn troubles_unanswered(summary: &Summary) -> usize {
    let merged = not_in_order(summary);
    let unanswered = merged.iter().filter(|alike| is_unanswered(alike[0].1));
    unanswered.count()
}

/// The checks that are not in order, grouped by name and state.
fn not_in_order(summary: &Summary) -> Vec<Vec<(&VariantSummary, &Check)>> {
    let rows = summary.variants.iter();
    let all = rows.flat_map(|row| row.checks.iter().map(move |check| (row, check)));
    let mut merged: Vec<Vec<(&VariantSummary, &Check)>> = Vec::new();
    for (row, check) in all.filter(|(_, check)| check.state != CheckState::Ok) {
        let is_alike = |others: &&mut Vec<(&VariantSummary, &Check)>| {
            others[0].1.name == check.name && others[0].1.state == check.state
        };
        match merged.iter_mut().find(is_alike) {
            Some(others) => others.push((row, check)),
            None => merged.push(vec![(row, check)]),
        }
    }
    // The sort is stable, so checks of one state keep their order.
    merged.sort_by_key(|alike| {
        let check = alike[0].1;
        (!is_unanswered(check), std::cmp::Reverse(check.state))
    });
    merged
}

/// One line for the variants that share a check. `measured` is the number of measured variants.
fn trouble(alike: &[(&VariantSummary, &Check)], measured: usize) -> String {
    // If several variants have the largest figure, this is the first of them.
    let worst = alike.iter().rev();
    let worst = worst.max_by(|one, other| one.1.figure.total_cmp(&other.1.figure));
    let (worst, check) = worst.expect("a line is of one variant at least");
    let names = alike.iter().map(|(row, _)| format!("`{}`", row.name));
    let names: Vec<String> = names.collect();
    let whom = match names.len() {
        1 => names[0].clone(),
        2 if measured == 2 => "both variants".to_owned(),
        all if all == measured => format!("all {all} variants"),
        _ => names.join(", "),
    };
    let is_same = alike
        .iter()
        .all(|(_, other)| words::check_text(other) == words::check_text(check));
    let of = match is_same {
        true => String::new(),
        false => format!(" (worst: `{}`)", worst.name),
    };
    format!(
        "{whom}: {} ({}): {}{of}",
        check.name,
        check.state,
        words::check_text(check)
    )
}

fn is_unanswered(check: &Check) -> bool {
    matches!(
        check.name,
        CheckName::Failures | CheckName::StoppedAnswering | CheckName::Missed
    )
}
