//! Counts of outcomes in words.

use model::Outcomes;
use recording::digits;

/// The kinds that occurred, with their counts: `timeout 3, reset 1`.
pub(crate) fn named(kinds: &[(&str, u64)]) -> String {
    let seen = kinds.iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = seen
        .map(|(name, count)| format!("{name} {}", digits::count(*count)))
        .collect();
    words.join(", ")
}

/// The outcomes that occurred, in words: `passed 990, failed 10 (timeout 10)`.
pub(crate) fn named_outcomes(outcomes: &Outcomes) -> String {
    let mut words = vec![format!("passed {}", digits::count(outcomes.passed))];
    let groups = [
        (
            "mismatched",
            outcomes.mismatched.total(),
            named(&outcomes.mismatched.by_name()),
        ),
        (
            "failed",
            outcomes.failed.total(),
            named(&outcomes.failed.by_name()),
        ),
        ("missed", outcomes.missed, String::new()),
    ];
    for (name, count, kinds) in groups.iter().filter(|(_, count, _)| *count > 0) {
        let kinds = if kinds.is_empty() {
            String::new()
        } else {
            format!(" ({kinds})")
        };
        words.push(format!("{name} {}{kinds}", digits::count(*count)));
    }
    words.join(", ")
}
