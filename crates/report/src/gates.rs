//! Judgements on gates in words, for every report format.

use analysis::gate::{Judgement, Ruling};

use crate::words;

/// The judgements, one per line: `broken: rhai p99 overhead < 0.2ms: 0.30 to 0.41 ms`.
pub(crate) fn lines(judgements: &[Judgement]) -> Vec<String> {
    let line = |judgement: &Judgement| {
        let reason = words::gate_reason(judgement);
        // The reason of an undecided gate begins with that word.
        let ruling = match judgement.ruling {
            Ruling::Undecided => String::new(),
            ruling => format!("{ruling}: "),
        };
        format!("{}: {ruling}{reason}", subject(judgement))
    };
    judgements.iter().map(line).collect()
}

/// The gate as written. If it does not name the variant, the name is added.
pub(crate) fn subject(judgement: &Judgement) -> String {
    let variant = &judgement.variant;
    let gate = judgement.gate.trim_start_matches(['"', '\'']);
    // Only the start is compared, because `overhead` contains the name `head`.
    if variant == "*" || gate.starts_with(variant.as_str()) {
        format!("`{}`", judgement.gate)
    } else {
        format!("`{}` on `{variant}`", judgement.gate)
    }
}
