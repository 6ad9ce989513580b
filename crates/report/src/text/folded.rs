//! Line breaks that keep a number with its unit.

use crate::terminal::columns;

/// Character in place of a space that must not become a line break. It is as wide as a space, and no text of a
/// report contains it.
const GLUE: char = '\u{e000}';

/// Words that belong to the number before them.
const UNITS: [&str; 11] = [
    "us",
    "ms",
    "s",
    "%",
    "B",
    "KiB",
    "MiB",
    "GiB",
    "MB/s",
    "requests/s",
    "minutes",
];

/// The text with a mark between each number and its unit, and between a number and its error.
pub(crate) fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    for word in text.split_inclusive(' ') {
        if belongs(before, word) {
            out.pop();
            out.push(GLUE);
        }
        out += word;
        before = word;
    }
    out
}

/// The text with spaces in place of the marks.
pub(crate) fn unglued(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// True if no line break may separate two words.
fn belongs(before: &str, word: &str) -> bool {
    let is_mark = |it: char| ('\u{2060}'..='\u{2064}').contains(&it);
    let bare = |word: &str| -> String { word.trim().chars().filter(|it| !is_mark(*it)).collect() };
    let (before, word) = (bare(before), bare(word));
    let is_number = before.ends_with(|it: char| it.is_ascii_digit());
    let word = word.trim_end_matches(['.', ',', ';', ':', ')']);
    is_number && (UNITS.contains(&word) || word.starts_with('±'))
}

/// A line of a layout, with further lines if it is wider than the terminal. Further lines begin below the text
/// of the column at `indent`.
pub(crate) fn folded(line: &str, indent: usize, width: usize) -> String {
    let line = glued(line);
    let mut rest: Vec<char> = line.chars().collect();
    let mut out = String::new();
    while rest.len() > width {
        let is_break = |at: &usize| rest[*at] == ' ';
        // A word wider than the terminal stays whole.
        let here = (indent + 1..=width).rev().find(is_break);
        let Some(here) = here.or_else(|| (width..rest.len()).find(is_break)) else {
            break;
        };
        out += rest[..here].iter().collect::<String>().trim_end();
        out.push('\n');
        let tail = &rest[here..];
        let words = tail.iter().position(|it| *it != ' ').unwrap_or(tail.len());
        rest = std::iter::repeat_n(' ', indent)
            .chain(tail[words..].iter().copied())
            .collect();
    }
    unglued(&(out + &rest.iter().collect::<String>()))
}

/// The lines of a layout, each folded at the width. Lines with a label have their text at `indent`.
pub(crate) fn all_folded(text: &str, indent: usize, width: usize) -> String {
    let fold = |line: &str| {
        let own = if line.starts_with("  ") { indent } else { 0 };
        match columns(line) > width {
            true => folded(line, own, width),
            false => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.lines().map(fold).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Tone, toned};

    #[test]
    fn numbers_keep_their_units_and_errors() {
        for (text, expected) in [
            ("by 5 us longer", "by 5_us longer"),
            ("+18.5 ±1.6 % with", "+18.5_±1.6_% with"),
            ("us and 5 of 6", "us and 5 of 6"),
            ("takes 12.5 s, then", "takes 12.5_s, then"),
        ] {
            assert_eq!(glued(text).replace(GLUE, "_"), expected);
            assert_eq!(unglued(&glued(text)), text);
        }
        let colored = glued(&toned(Tone::Worse, "slower by 5 us"));
        assert_eq!(colored.matches(GLUE).count(), 1, "{colored:?}");
    }

    #[test]
    fn a_line_is_folded_below_its_text() {
        let text =
            "  Outcomes      passed 200; 2xx 200, and 3 us\n  Time  2.00 s\nplain words here\n";
        assert_eq!(
            all_folded(text, 16, 28),
            "  Outcomes      passed 200;\n                2xx 200, and\n                3 us\n  \
             Time  2.00 s\nplain words here\n"
        );
        // A word that is too long is not broken.
        assert_eq!(
            folded("see http://127.0.0.1:8080/a b", 0, 10),
            "see\nhttp://127.0.0.1:8080/a\nb"
        );
    }
}
