//! Commands of a shell as lists of words, for pasted commands.
//!
//! Quotes, escapes and `$'…'` have their meaning of bash. No command runs. Values of the shell are reported
//! by name.

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// A variable or a command in the word. Its value exists only in the shell.
    pub(super) unknown: Option<String>,
}

/// A command with its first line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) words: Vec<Word>,
}

/// Splits a text into commands. Commands end at a line end, at `;`, `&`, `|` and at redirections.
///
/// # Errors
/// A sentence, if a quote is not closed.
pub(super) fn commands(text: &str) -> Result<Vec<Command>, String> {
    let mut reader = Reader {
        characters: text.chars().collect(),
        at: 0,
        line: 1,
        commands: Vec::new(),
        words: Vec::new(),
        first_line: 1,
        word: None,
    };
    while let Some(character) = reader.next() {
        reader.take(character)?;
    }
    reader.end_command();
    Ok(reader.commands)
}

struct Reader {
    characters: Vec<char>,
    at: usize,
    line: usize,
    commands: Vec<Command>,
    words: Vec<Word>,
    first_line: usize,
    word: Option<Word>,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.get(self.at).copied()?;
        self.at += 1;
        if character == '\n' {
            self.line += 1;
        }
        Some(character)
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn push(&mut self, character: char) {
        self.open().text.push(character);
    }

    fn open(&mut self) -> &mut Word {
        if self.words.is_empty() && self.word.is_none() {
            self.first_line = self.line;
        }
        self.word.get_or_insert_with(Word::default)
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            let line = self.first_line;
            self.commands.push(Command { line, words });
        }
    }

    fn take(&mut self, character: char) -> Result<(), String> {
        match character {
            '\n' | ';' | '&' | '|' | '<' | '>' => self.end_command(),
            ' ' | '\t' | '\r' => self.end_word(),
            '\\' => match self.next() {
                // The command continues on the next line.
                Some('\n') => {}
                Some('\r') if self.peek() == Some('\n') => drop(self.next()),
                Some(escaped) => self.push(escaped),
                None => {}
            },
            '\'' => {
                self.open();
                while let Some(inside) = self.closed_by('\'')? {
                    self.push(inside);
                }
            }
            '"' => self.double_quoted()?,
            '$' if self.peek() == Some('\'') => {
                self.next();
                self.ansi_quoted()?;
            }
            '$' => self.variable(),
            '`' => self.unknown("a command in backticks".to_owned()),
            '#' if self.word.is_none() => {
                while self.peek().is_some_and(|it| it != '\n') {
                    self.next();
                }
            }
            other => self.push(other),
        }
        Ok(())
    }

    /// The next character before a quote. `None` at the quote.
    fn closed_by(&mut self, quote: char) -> Result<Option<char>, String> {
        match self.next() {
            None => Err(format!("a quote `{quote}` is not closed")),
            Some(found) => Ok(Some(found).filter(|found| *found != quote)),
        }
    }

    fn double_quoted(&mut self) -> Result<(), String> {
        self.open();
        while let Some(inside) = self.closed_by('"')? {
            match inside {
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                    None => {}
                },
                '$' => self.variable(),
                '`' => self.unknown("a command in backticks".to_owned()),
                other => self.push(other),
            }
        }
        Ok(())
    }

    /// Text in `$'…'` with the escapes of C.
    fn ansi_quoted(&mut self) -> Result<(), String> {
        self.open();
        while let Some(inside) = self.closed_by('\'')? {
            if inside != '\\' {
                self.push(inside);
                continue;
            }
            let escaped = self.next().unwrap_or('\\');
            let character = match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'v' => '\u{b}',
                'e' | 'E' => '\u{1b}',
                'u' => self.number(16, 4),
                'U' => self.number(16, 8),
                'x' => self.number(16, 2),
                '0'..='7' => {
                    self.at -= 1;
                    self.number(8, 3)
                }
                other => other,
            };
            self.push(character);
        }
        Ok(())
    }

    /// The character with a number of at most `digits` digits.
    fn number(&mut self, base: u32, digits: usize) -> char {
        let mut number = 0;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|it| it.to_digit(base)) else {
                break;
            };
            number = number * base + digit;
            self.next();
        }
        char::from_u32(number).unwrap_or('\u{fffd}')
    }

    /// A variable after `$`, or a dollar sign.
    fn variable(&mut self) {
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        match self.peek() {
            Some('{' | '(') => self.unknown("a value of the shell after `$`".to_owned()),
            Some(first) if is_of_name(first) => {
                let mut name = String::new();
                while let Some(next) = self.peek().filter(|it| is_of_name(*it)) {
                    name.push(next);
                    self.next();
                }
                self.unknown(format!("the variable `${name}` of the shell"));
            }
            _ => self.push('$'),
        }
    }

    fn unknown(&mut self, what: String) {
        self.open().unknown.get_or_insert(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<Vec<String>> {
        let commands = commands(text).expect("commands");
        let words = |command: Command| command.words.into_iter().map(|it| it.text).collect();
        commands.into_iter().map(words).collect()
    }

    #[test]
    fn words_are_those_of_bash() {
        assert_eq!(
            texts(
                "curl 'a b' \"c\\\"d $\" e\\ f \\\n  $'g\\n\\u0021\\x41\\'' '' # comment\n next; third|fourth"
            ),
            [
                vec!["curl", "a b", "c\"d $", "e f", "g\n!A'", ""],
                vec!["next"],
                vec!["third"],
                vec!["fourth"],
            ]
        );
        assert!(commands("curl 'a").is_err());
        assert_eq!(commands("\n\na").expect("a command")[0].line, 3);
    }

    #[test]
    fn values_of_the_shell_are_named() {
        for (text, unknown) in [
            (
                "\"Bearer $TOKEN\"",
                Some("the variable `$TOKEN` of the shell"),
            ),
            ("'$TOKEN'", None),
            ("\"$(date)\"", Some("a value of the shell after `$`")),
            ("`date`", Some("a command in backticks")),
        ] {
            let commands = commands(text).expect("a command");
            assert_eq!(commands[0].words[0].unknown.as_deref(), unknown, "{text}");
        }
    }
}
