//! "Did you mean": finds the known word that is nearest to a mistyped word.

/// The nearest known word, if it is near. A third of the letters may differ, one in a word of up to five
/// letters, and at most three. `authorization` is not a misspelling of `authentication`.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        // A third of one or two letters would be zero.
        .filter(|(distance, known)| *distance <= (known.chars().count() / 3).clamp(1, MOST))
        .min()
        .map(|(_, known)| known)
}

/// Maximum number of different letters, for words of any length.
const MOST: usize = 3;

/// A question with the nearest known word, if one is near.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean `{known}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins_and_a_far_one_is_not_named() {
        let known = || ["rate", "rounds", "connections"].into_iter();
        assert_eq!(nearest("conections", known()), Some("connections"));
        assert_eq!(nearest("raet", known()), Some("rate"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(
            nearest("authorization", ["authentication"].into_iter()),
            None
        );
        assert_eq!(
            did_you_mean("round", known()).unwrap(),
            "did you mean `rounds`?"
        );
    }

    #[test]
    fn one_letter_of_a_short_word_may_be_wrong() {
        assert_eq!(nearest("ab", ["a"].into_iter()), Some("a"));
        assert_eq!(nearest("abc", ["a"].into_iter()), None);
    }
}
