//! Sizes and numbers of cores in the notation of compose files.

use serde_json::Value;

use super::as_text;

/// A size in bytes: `67108864`, `64m`, `64MB`, `1.5g`. All units are powers of 1024, independent of their
/// names.
pub(super) fn bytes(value: &Value) -> Option<u64> {
    let text = as_text(value)?.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let factor: i32 = match text[digits.len()..].trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    let bytes = number * 1024_f64.powi(factor);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be a size that a machine can have"
    )]
    let whole = bytes as u64;
    (1.0..1e18).contains(&bytes).then_some(whole)
}

/// A number of cores above 0.
pub(super) fn cores(value: &Value) -> Option<f64> {
    let number: f64 = as_text(value)?.trim().parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some(number)
}
