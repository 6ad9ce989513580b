//! The result in one sentence, at the start of every report format.

use analysis::summary::quantity::{self, amount};
use analysis::summary::{
    Aside, CheckName, ClaimName, FewPay, Invalidity, OverheadSummary, Summary, VariantSummary,
    Verdict,
};
use model::{InvalidKind, Load, Metric};
use recording::{Recording, describe};

use crate::cell;
use crate::explain;
use crate::words;

/// Maximum number of variants with a figure in the sentence.
const NAMED_MAX: usize = 4;

/// The result in one sentence: the cost of a request, the load, and other changed figures. If the run was
/// stopped or the baseline has no number, the sentence states that instead.
pub(crate) fn sentence(recording: &Recording, summary: &Summary) -> String {
    if let Some(interruption) = explain::interruption(summary) {
        return format!("{interruption}.");
    }
    let rows = summary.variants.iter();
    let compared: Vec<&VariantSummary> = rows.filter(|row| !row.is_baseline).collect();
    if let Some(baseline) = lost_baseline(summary).filter(|_| compared.len() > 1) {
        return without_number(baseline);
    }
    match compared.as_slice() {
        // A single load is not compared.
        [] => {
            let rows = summary.variants.iter();
            let verdicts: Vec<String> = rows.map(words::verdict_text).collect();
            verdicts.join("; ")
        }
        [row] => of_one(recording, summary, row),
        rows if summary.factors.is_some() => of_factors(recording, summary, rows),
        rows => of_several(recording, summary, rows),
    }
}

/// The baseline, if it is invalid and therefore no variant has a verdict.
fn lost_baseline(summary: &Summary) -> Option<&VariantSummary> {
    let baseline = summary.variant(&summary.baseline);
    let is_alone = summary.baselines == 1 && summary.comparisons == 0;
    baseline.filter(|row| is_alone && row.verdict.is_invalid() && !follows(row))
}

/// True if the row has no number because of another row.
fn follows(row: &VariantSummary) -> bool {
    let kind = Invalidity::Recorded(InvalidKind::NotNeeded);
    matches!(&row.verdict, Verdict::Invalid { kind: found, .. } if *found == kind)
}

/// The kind of problem of the invalid rows: ` (not ready)`. Empty if they differ.
fn kind_of(rows: &[&VariantSummary]) -> String {
    let mut kinds = rows.iter().filter_map(|row| match &row.verdict {
        Verdict::Invalid { kind, .. } => Some(kind.to_string()),
        _ => None,
    });
    let Some(first) = kinds.next() else {
        return String::new();
    };
    match kinds.all(|other| other == first) {
        true => format!(" ({first})"),
        false => String::new(),
    }
}

/// Sentence on a run without a verdict: the row that has no number, and the reason.
fn without_number(row: &VariantSummary) -> String {
    let reason = words::verdict_text(row);
    let reason = reason.strip_prefix("invalid: ").unwrap_or(&reason);
    let which = if row.is_baseline { "the baseline " } else { "" };
    format!(
        "No verdict: {which}`{}` has no number: {}.",
        row.name,
        reason.trim_end_matches('.')
    )
}

/// The names of the invalid variants that [`sentence`] explains. It contains their reason or its cause.
pub(crate) fn told(summary: &Summary) -> Vec<&str> {
    if summary.interrupted {
        return Vec::new();
    }
    let invalid: Vec<&VariantSummary> = summary
        .variants
        .iter()
        .filter(|row| row.verdict.is_invalid())
        .collect();
    let has_cause = invalid.iter().any(|row| !follows(row));
    let compared = summary.variants.iter().filter(|row| !row.is_baseline);
    let is_told = |row: &VariantSummary| match compared.clone().count() {
        // The list of a single load is its sentence.
        0 => true,
        _ if follows(row) => has_cause,
        // The sentence on a single variant has the reason of its baseline, or its own.
        count => {
            let lost = lost_baseline(summary);
            lost.map_or(count == 1, |baseline| baseline.name == row.name)
        }
    };
    let told = invalid.into_iter().filter(|row| is_told(row));
    told.map(|row| row.name.as_str()).collect()
}

/// The check that explains the withheld verdicts, if [`sentence`] names it. `None` if there are several.
pub(crate) fn named_check(summary: &Summary) -> Option<CheckName> {
    if summary.interrupted {
        return None;
    }
    let mut checks = summary
        .variants
        .iter()
        .filter_map(|row| match &row.verdict {
            Verdict::Withheld { check, .. } => Some(*check),
            _ => None,
        });
    let first = checks.next()?;
    checks.all(|other| other == first).then_some(first)
}

/// Sentence on one variant: `` `rhai` costs a typical request 52 us (46 to 60), some 28 % of the baseline's
/// typical 190 us, at 100 requests/s; processor time +56 us; p99 +0.23 ms. ``
fn of_one(recording: &Recording, summary: &Summary, row: &VariantSummary) -> String {
    if let Some(withheld) = withheld(summary, &[row]) {
        return withheld;
    }
    let baseline = summary.variant(&row.baseline);
    // An invalid baseline is the reason why its variant has no verdict.
    let told = baseline.filter(|it| !it.has_number() && !follows(it));
    let told = told.unwrap_or(row);
    if told.verdict.is_invalid() {
        return without_number(told);
    }
    let Some(words) = words::in_words_at(told, &at(recording)) else {
        return format!("`{}`: {}.", told.name, words::verdict_text(told));
    };
    let mut parts = vec![words];
    let aside = row.meaning.as_ref().and_then(|it| it.aside.as_ref());
    // The aside has the same figure with its interval.
    if !matches!(aside, Some(Aside::ProcessorTime(_))) {
        parts.extend(moved(row, Metric::Cpu, "processor time"));
    }
    // A stream is judged by its events before its end.
    for (metric, name) in [
        (Metric::FirstEvent, "first event"),
        (Metric::EventGap, "gap between events"),
        (Metric::Delivery, "delivery"),
        (Metric::RoundTrip, "round trip"),
    ] {
        parts.extend(moved(row, metric, name));
    }
    parts.extend(moved(row, Metric::P99, "p99"));
    parts.join("; ") + "."
}

/// Sentence on a lab with factors: the effects instead of the costs of all combinations.
fn of_factors(recording: &Recording, summary: &Summary, rows: &[&VariantSummary]) -> String {
    let factors = summary.factors.as_ref();
    let Some(words) =
        factors.and_then(|it| words::effects(it, summary.headline, summary.unit(Metric::Mean)))
    else {
        return of_several(recording, summary, rows);
    };
    let both = [
        Some(format!("{words}{}.", at(recording))),
        withheld(summary, rows),
    ];
    both.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the sentence on the rows with a withheld verdict, on the row or on its baseline. An example is
/// `No verdict: other programs used 74 % of the cores (failed check: lateness). Estimate +90 us (60 to 110),
/// not trusted. End what else runs, or use …`. `None` without such rows.
fn withheld(summary: &Summary, rows: &[&VariantSummary]) -> Option<String> {
    let withheld = rows
        .iter()
        .filter_map(|row| Some((*row, withheld_from(summary, row)?)));
    let doubtful: Vec<(&VariantSummary, &VariantSummary)> = withheld.collect();
    let (first, from) = doubtful.first()?;
    let cause = cause(first, from)?;
    let whom = match doubtful.len() {
        all if all == rows.len() && summary.comparisons == 0 => String::new(),
        1 => format!(" on `{}`", first.name),
        several => format!(" on {several} of {}", rows.len()),
    };
    let causes = doubtful
        .iter()
        .filter_map(|(row, from)| self::cause(row, from));
    let others = match causes.filter(|other| *other != cause).count() {
        0 => String::new(),
        others => format!(", and {others} with other causes"),
    };
    let estimates: Vec<String> = doubtful
        .iter()
        .filter_map(|(row, ..)| {
            let words = words::estimate(row)?;
            Some(match rows.len() {
                1 => words,
                _ => format!("{words} with `{}`", row.title()),
            })
        })
        .collect();
    let estimates = match estimates.as_slice() {
        [] => String::new(),
        [one] => format!(" Estimate {one}, not trusted."),
        [some @ .., _] if some.len() >= NAMED_MAX => {
            let more = estimates.len() - NAMED_MAX;
            let named = estimates[..NAMED_MAX].join(", ");
            format!(" Estimates, not trusted: {named}, and {more} more.")
        }
        few => format!(" Estimates, not trusted: {}.", few.join(", ")),
    };
    let remedy = match &from.verdict {
        Verdict::Withheld {
            check, headline, ..
        } => format!(" {}.", begun(&words::remedy_for(*check, *headline))),
        _ => String::new(),
    };
    Some(format!(
        "No verdict{whom}: {cause}{others}.{estimates}{remedy}"
    ))
}

/// Change of a metric: `processor time +56 us`, `p99 unchanged within 0.2 ms`. `None` without an interval.
fn moved(row: &VariantSummary, metric: Metric, name: &str) -> Option<String> {
    let figure = row.metric(metric).filter(|figure| !figure.is_sparse)?;
    let overhead = figure.overhead.as_ref()?;
    let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
    let unit = row.unit(metric);
    Some(match overhead.claim {
        ClaimName::Higher | ClaimName::Lower => {
            let sign = if overhead.difference < 0.0 { '-' } else { '+' };
            format!("{name} {sign}{}", amount(unit, overhead.difference.abs()))
        }
        ClaimName::NoDifferenceShown => {
            let most = low.abs().max(high.abs());
            format!("{name} unchanged within {}", amount(unit, most))
        }
        ClaimName::TooFewRounds => return None,
    })
}

/// The load: `, at 100 requests/s`. Empty if a search or a plan has several rates.
fn at(recording: &Recording) -> String {
    let load = &recording.load;
    if load.capacity.is_some() {
        return String::new();
    }
    let amount = describe::amount(&load.model);
    match &load.model {
        Load::Closed { .. } => format!(", with {amount}"),
        Load::Open { phases, .. } if phases.len() == 1 => format!(", at {amount}"),
        Load::Open { .. } => String::new(),
    }
}

/// Sentence on several variants. A short list contains each variant, and a long list only its ends.
fn of_several(recording: &Recording, summary: &Summary, rows: &[&VariantSummary]) -> String {
    let metric = summary.headline;
    let mut shown: Vec<(&VariantSummary, &OverheadSummary)> = rows
        .iter()
        .filter_map(|row| Some((*row, row.metric(metric)?.overhead.as_ref()?)))
        .filter(|(_, overhead)| matches!(overhead.claim, ClaimName::Higher | ClaimName::Lower))
        .collect();
    shown.sort_by(|(_, one), (_, other)| one.difference.total_cmp(&other.difference));
    let count = |is_meant: &dyn Fn(&VariantSummary) -> bool| {
        rows.iter().filter(|row| is_meant(row)).count()
    };
    let alike = count(&|row| {
        let overhead = row
            .metric(metric)
            .and_then(|figure| figure.overhead.as_ref());
        overhead.is_some_and(|it| it.claim == ClaimName::NoDifferenceShown)
    });
    let withheld = withheld(summary, rows);
    let doubtful = rows
        .iter()
        .filter_map(|row| withheld_from(summary, row))
        .count();
    let rest = rows.len() - shown.len() - alike - doubtful;
    let mut parts = Vec::new();
    if !shown.is_empty() {
        parts.push(sizes(recording, summary, &shown));
    }
    if alike > 0 {
        parts.push(format!("no difference shown for {alike} of {}", rows.len()));
    }
    if rest > 0 {
        let kind = kind_of(rows);
        parts.push(format!("no verdict on {rest} of {}{kind}", rows.len()));
    }
    parts.extend(few_pay(rows));
    let said = match parts.as_slice() {
        [] => String::new(),
        parts => begun(&parts.join("; ")) + ".",
    };
    let both: Vec<String> = [Some(said), withheld].into_iter().flatten().collect();
    both.join(" ").trim().to_owned()
}

/// The row with the withheld verdict that turns this row's figures into an estimate: the row itself, or its
/// baseline.
fn withheld_from<'s>(summary: &'s Summary, row: &'s VariantSummary) -> Option<&'s VariantSummary> {
    row.estimate.as_ref()?;
    let both = [Some(row), summary.variant(&row.baseline)];
    let mut both = both.into_iter().flatten();
    both.find(|it| matches!(it.verdict, Verdict::Withheld { .. }))
}

/// The reason why a row has no verdict. `from` is the row without a verdict: this row or its baseline.
fn cause(row: &VariantSummary, from: &VariantSummary) -> Option<String> {
    let cause = words::withheld_cause(&from.verdict)?;
    Some(match from.name == row.name {
        true => cause,
        false => format!("{cause} while the baseline `{}` was measured", from.name),
    })
}

/// Sentence on the means that disagree with the typical latency, the largest first: `` on average, slow
/// requests included, +1.04 ms with `b`: about a fifth of the requests pay ``. `None` if all means agree.
fn few_pay(rows: &[&VariantSummary]) -> Option<String> {
    let found = rows
        .iter()
        .filter_map(|row| Some((*row, row.few_pay.as_ref()?)));
    let mut found: Vec<(&VariantSummary, &FewPay)> = found.collect();
    found.sort_by(|(_, one), (_, other)| {
        let size = |few: &FewPay| few.latency_us_mean.abs();
        size(other).total_cmp(&size(one))
    });
    let (named, more) = found.split_at(found.len().min(NAMED_MAX));
    let one = |(row, few): &(&VariantSummary, &FewPay)| {
        let overhead = row.metric(Metric::Mean)?.overhead.as_ref()?;
        let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
        let size = quantity::signed(row.unit(Metric::Mean), overhead.difference, low, high);
        let payers = words::payers(few);
        let payers = payers.map_or_else(String::new, |payers| format!(": {payers}"));
        Some(format!("{size} with `{}`{payers}", row.title()))
    };
    let named: Vec<String> = named.iter().filter_map(one).collect();
    let more = match more.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "on average, slow requests included, {}{more}",
            named.join(", ")
        )
    })
}

/// The text with a capital letter at the start.
pub(crate) fn begun(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(rest).collect()
    })
}

/// The cost of each of these variants, the cheapest first.
fn sizes(
    recording: &Recording,
    summary: &Summary,
    shown: &[(&VariantSummary, &OverheadSummary)],
) -> String {
    let metric = summary.headline;
    let size = |(row, overhead): &(&VariantSummary, &OverheadSummary)| {
        let name = row.title();
        if metric == Metric::Requests {
            let change = cell::change(row, metric).unwrap_or_default();
            return format!("{change} with `{name}`");
        }
        let words = overhead.in_words(summary.unit(metric)).unwrap_or_default();
        let way = if overhead.difference < 0.0 {
            "less"
        } else {
            "longer"
        };
        format!("{words} {way} with `{name}`")
    };
    let sizes = match shown {
        [least, .., most] if shown.len() > NAMED_MAX => {
            format!("from {} to {}", size(least), size(most))
        }
        few => few.iter().map(size).collect::<Vec<_>>().join(", "),
    };
    let baseline = summary
        .variant(&summary.baseline)
        .and_then(|it| it.metric(metric))
        // If there are several baselines, each has its own figure.
        .filter(|_| summary.baselines == 1)
        .map(|figure| {
            format!(
                " ({})",
                quantity::figure(summary.unit(metric), figure.value)
            )
        });
    let against = format!("{}{}", summary.against(), baseline.unwrap_or_default());
    let at = at(recording);
    match metric {
        Metric::Requests => format!("Requests a second, compared with {against}{at}: {sizes}"),
        Metric::Typical => format!("Compared with {against}{at}, a typical request takes {sizes}"),
        _ => format!("Compared with {against}{at}, a request takes on average {sizes}"),
    }
}
