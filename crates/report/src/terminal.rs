//! Capabilities of a terminal: width, colors and characters.
//!
//! A report is laid out once, in Unicode. Colors are marked by characters without width, so that they do not
//! disturb the layout. They become escape sequences at the end. [`ascii`] replaces each character that is not
//! ASCII by text of equal width.

/// Capabilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns.
    pub width: usize,
    /// True if the terminal shows colors. A report is understandable without them.
    pub has_color: bool,
}

impl Terminal {
    /// A file or a pipe, without color because colors would be noise.
    pub fn plain(width: usize) -> Self {
        Self {
            width,
            has_color: false,
        }
    }
}

/// A style that makes text stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Heading,
    Worse,
    Better,
    Refused,
}

impl Tone {
    const ALL: [Self; 4] = [Self::Heading, Self::Worse, Self::Better, Self::Refused];

    /// The character without width that begins this tone.
    // Invisible mathematical operators are safe marks. No text of a report contains them, and every width
    // function counts them as zero.
    fn mark(self) -> char {
        match self {
            Self::Heading => '\u{2061}',
            Self::Worse => '\u{2062}',
            Self::Better => '\u{2063}',
            Self::Refused => '\u{2064}',
        }
    }

    /// "Select Graphic Rendition" of ECMA-48. The colors are distinguishable for people with red-green color
    /// blindness.
    fn sequence(self) -> &'static str {
        match self {
            Self::Heading => "\u{1b}[1m",
            Self::Worse => "\u{1b}[33m",
            Self::Better => "\u{1b}[36m",
            Self::Refused => "\u{1b}[31m",
        }
    }
}

/// Character without width that ends a tone.
const END: char = '\u{2060}';

/// Marks every word separately, so that a table may break the text between words.
pub(crate) fn toned(tone: Tone, text: &str) -> String {
    let word = |word: &str| match word {
        "" => String::new(),
        word => format!("{}{word}{END}", tone.mark()),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Width of a text in columns.
pub(crate) fn columns(text: &str) -> usize {
    let is_mark = |character: char| ('\u{2060}'..='\u{2064}').contains(&character);
    text.chars()
        .filter(|character| !is_mark(*character))
        .count()
}

/// Replaces marks by escape sequences, or removes them.
pub(crate) fn finished(text: &str, terminal: Terminal) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let tone = Tone::ALL.into_iter().find(|tone| tone.mark() == character);
        match (tone, terminal.has_color) {
            // Without color, the marks are removed as well. Some terminals show them.
            (Some(tone), true) => out += tone.sequence(),
            (None, true) if character == END => out += "\u{1b}[0m",
            (Some(_), false) => {}
            (None, _) if character == END => {}
            (None, _) => out.push(shown(character)),
        }
    }
    out
}

/// Replaces a character that a terminal would obey instead of showing it.
const OBEYED: char = '\u{fffd}';

/// The character, or a replacement if a terminal would obey it. Recordings come from other people. A name in
/// one of them must not move a cursor, set a title or turn a line around.
pub(crate) fn shown(character: char) -> char {
    let is_turning = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_obeyed = character.is_control() && !matches!(character, '\n' | '\t');
    if is_obeyed || is_turning {
        OBEYED
    } else {
        character
    }
}

/// A text on one line: [`printable`], with a space for every line break.
pub(crate) fn one_line(text: &str) -> String {
    // Both characters of a line break are one space.
    let text = text.replace("\r\n", "\n");
    let is_break = |it| matches!(it, '\n' | '\r' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}');
    text.chars()
        .map(|it| if is_break(it) { ' ' } else { shown(it) })
        .collect()
}

/// A text with a replacement for each character that a terminal would obey. It also replaces colors, so it is
/// for text without our own colors.
pub fn printable(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// A text that is safe to print. Colors stay, and every other character that a terminal would obey is
/// replaced. It is for text with our own colors. Reports themselves contain no foreign colors at this point.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        out += &printable(&rest[..start]);
        rest = &rest[start..];
        let length = color_length(rest);
        match length {
            Some(length) => out += &rest[..length],
            None => out.push(OBEYED),
        }
        rest = &rest[length.unwrap_or(1)..];
    }
    out + &printable(rest)
}

/// Length of the color sequence at the start of the text. `None` if the text does not begin with a color.
fn color_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    parameters[end..].starts_with('m').then_some(end + 3)
}

/// The report for a terminal that shows only ASCII. Every line keeps its width.
pub fn ascii(text: &str) -> String {
    // The ASCII sign needs two columns. The space before it provides one.
    let text = text.replace(" ±", "+-");
    text.chars()
        .map(|character| match character {
            '─' | '–' | '━' | '−' => '-',
            '│' | '├' | '┤' | '┼' => '|',
            '●' | '◆' => 'o',
            '▁' => '_',
            '▂' => '.',
            '▃' => ':',
            '▄' => '-',
            '▅' => '=',
            '▆' => '+',
            '▇' => '*',
            '█' => '#',
            '▏' => '|',
            '←' => '<',
            '→' => '>',
            '…' | '·' => '.',
            '±' => '~',
            'µ' => 'u',
            '’' | '‘' => '\'',
            other if other.is_ascii() => other,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_as_wide_as_what_it_replaces() {
        for line in ["requests/s ───", "+0.22 ±0.03", "▁▂▃▄▅▆▇█", "├─●──┤ │ –"]
        {
            let plain = ascii(line);
            assert!(plain.is_ascii(), "{plain}");
            assert_eq!(plain.chars().count(), line.chars().count(), "{plain}");
        }
        assert_eq!(ascii("0.90 ±0.03"), "0.90+-0.03");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_sign() {
        let evil = "a\u{1b}]0;owned\u{7}b\u{9b}2Jc\r\u{202e}d\n\te";
        let shown = "a\u{fffd}]0;owned\u{fffd}b\u{fffd}2Jc\u{fffd}\u{fffd}d\n\te";
        assert_eq!(finished(evil, Terminal::plain(80)), shown);
        assert_eq!(harmless(evil), shown);
        // The function keeps our own colors. A sequence that only begins like a color is not a color.
        let colored = "\u{1b}[1;31mred\u{1b}[0m";
        assert_eq!(harmless(colored), colored);
        assert_eq!(harmless("\u{1b}[2J \u{1b}[5"), "\u{fffd}[2J \u{fffd}[5");
        assert_eq!(
            finished(colored, Terminal::plain(80)),
            "\u{fffd}[1;31mred\u{fffd}[0m"
        );
    }

    #[test]
    fn a_tone_is_put_on_every_word_and_taken_off_where_there_is_no_color() {
        let text = toned(Tone::Worse, "slower by");
        assert_eq!(finished(&text, Terminal::plain(80)), "slower by");
        let colored = Terminal {
            width: 80,
            has_color: true,
        };
        assert_eq!(
            finished(&text, colored),
            "\u{1b}[33mslower\u{1b}[0m \u{1b}[33mby\u{1b}[0m"
        );
    }
}
