//! Shortens clients' texts for log lines and labels of metrics.
//!
//! A client chooses its name, its paths and the names of its operations. It must not control the length of a
//! line or the memory of a label.

use std::borrow::Cow;

/// Maximum number of characters of a name.
pub const NAME_CHARS_MAX: usize = 128;

/// Maximum number of characters of a path, a value or a message.
pub const TEXT_CHARS_MAX: usize = 1_024;

/// The text, or its beginning and an ellipsis. The result has at most `chars_max` characters. `0` counts as
/// 1.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    // Most names are short, and a text has no more characters than bytes.
    if text.len() <= chars_max {
        return Cow::Borrowed(text);
    }
    let mut ends = text.char_indices().map(|(at, _)| at);
    let Some(end) = ends.nth(chars_max.saturating_sub(1)) else {
        return Cow::Borrowed(text);
    };
    if ends.next().is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_stays_as_it_is() {
        for text in ["", "a", "abcd", "üüüü", "a\u{0}😀b"] {
            assert_eq!(shortened(text, 4), text);
            assert!(matches!(shortened(text, 4), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn a_longer_one_is_cut_between_two_characters_and_says_so() {
        assert_eq!(shortened("abcde", 4), "abc…");
        assert_eq!(shortened("üüüüü", 4), "üüü…");
        assert_eq!(shortened("a😀😀😀😀", 4), "a😀😀…");
        assert_eq!(shortened("ab", 1), "…");
        assert_eq!(shortened("ab", 0), "…");
        let long = "😀".repeat(1_000_000);
        let shown = shortened(&long, NAME_CHARS_MAX);
        assert_eq!(shown.chars().count(), NAME_CHARS_MAX);
        assert!(shown.ends_with('…'));
    }
}
