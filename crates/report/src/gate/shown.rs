//! Judgements in words, for every rendering.

use super::judgement::Judgement;

/// `broken: rhai p99 overhead < 0.2ms: 0.30 to 0.41 ms`, a line each.
pub(crate) fn lines(judgements: &[Judgement]) -> Vec<String> {
    let line = |judgement: &Judgement| {
        let reason = &judgement.reason;
        // The reason of an undecided one begins with that word.
        let ruling = match judgement.ruling {
            super::Ruling::Undecided => String::new(),
            ruling => format!("{ruling}: "),
        };
        format!("{}: {ruling}{reason}", subject(judgement))
    };
    judgements.iter().map(line).collect()
}

/// The gate as written, with the variant where it does not name it.
pub(crate) fn subject(judgement: &Judgement) -> String {
    let variant = &judgement.variant;
    let gate = judgement.gate.trim_start_matches(['"', '\'']);
    // Not anywhere in it: `overhead` has the name `head` in it.
    if variant == "*" || gate.starts_with(variant.as_str()) {
        format!("`{}`", judgement.gate)
    } else {
        format!("`{}` on {variant}", judgement.gate)
    }
}

/// Cells of a table: gate, variant, ruling, interval or reason.
pub(crate) fn cells(judgement: &Judgement) -> [String; 4] {
    let ruling = if judgement.is_passed {
        judgement.ruling.to_string()
    } else {
        format!("**{}**", judgement.ruling)
    };
    let reason = judgement.why();
    [
        judgement.gate.clone(),
        judgement.variant.clone(),
        ruling,
        reason.to_owned(),
    ]
}

/// The headings of these cells.
pub(crate) const HEADINGS: [&str; 4] = [
    "Gate",
    "Variant",
    "Ruling",
    "Interval, or why it is missing",
];
