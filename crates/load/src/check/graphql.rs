//! Finds a top-level `errors` member in a GraphQL response, in one pass and without a tree.
//!
//! The scanner supports strings, escapes and nesting, so `errors` inside a string or at a deeper level does
//! not count. `"errors": null` and `"errors": []` are no errors either, because servers send both.
//!
//! Absent on purpose: full validation. `{"data": 1x}` passes. A rule about the body finds more.

/// The fault of a body that should be a GraphQL response without errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphqlFault {
    /// It has a top-level `errors` member.
    #[error("a top-level `errors` member")]
    Errors,
    /// It is not a JSON object.
    #[error("a body that is not one complete JSON object")]
    NotAnObject,
}

/// The state of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorsScan {
    place: Place,
    /// Number of open braces and brackets.
    depth: u32,
    key: Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the opening brace.
    Start,
    /// At the top level, before a key or the closing brace.
    Member,
    /// In a key of the top level.
    Key,
    /// Between a key and its colon.
    Colon,
    /// Between a colon and its value.
    Value,
    /// After `"errors": [`.
    ErrorsList,
    /// In a number or a word of the top level, or after any value of it.
    Rest,
    /// In a string. `escaped` is true after a backslash.
    String { escaped: bool },
    /// Below the top level, outside of strings.
    Nested,
    /// After the closing brace.
    End,
    /// An error was found.
    Errors,
    /// The body is not a JSON object.
    Broken,
}

impl Default for ErrorsScan {
    fn default() -> ErrorsScan {
        ErrorsScan::new()
    }
}

/// Scans a whole body.
pub(super) fn scan(body: &[u8]) -> Result<(), GraphqlFault> {
    let mut scan = ErrorsScan::new();
    scan.feed(body);
    scan.finish()
}

impl ErrorsScan {
    pub(super) fn new() -> ErrorsScan {
        ErrorsScan {
            place: Place::Start,
            depth: 0,
            key: Key::new(),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            rest = match self.place {
                // Nearly all bytes of a large response are in these two places, so each has its own loop.
                Place::String { escaped: false } => self.skip_string(rest),
                Place::Nested => self.skip_nested(rest),
                Place::Errors | Place::Broken => return,
                _ => {
                    self.step(*byte);
                    tail
                }
            }
        }
    }

    /// Returns the verdict on a complete body.
    pub(super) fn finish(&self) -> Result<(), GraphqlFault> {
        match self.place {
            Place::Errors => Err(GraphqlFault::Errors),
            Place::End => Ok(()),
            _ => Err(GraphqlFault::NotAnObject),
        }
    }

    /// Skips to the end of a string and returns the rest.
    fn skip_string<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(end) = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return &[];
        };
        self.place = match bytes[end] {
            b'\\' => Place::String { escaped: true },
            _ if self.depth > 1 => Place::Nested,
            _ => Place::Rest,
        };
        &bytes[end + 1..]
    }

    /// Skips to the next string, or to the end of the nesting, and returns the rest.
    fn skip_nested<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.place = Place::String { escaped: false };
                    return &bytes[index + 1..];
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 1 {
                        self.place = Place::Rest;
                        return &bytes[index + 1..];
                    }
                }
                _ => {}
            }
        }
        &[]
    }

    fn step(&mut self, byte: u8) {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.place = match self.place {
            Place::Key => match self.key.step(byte) {
                KeyStep::Within => Place::Key,
                KeyStep::Ended => Place::Colon,
            },
            Place::String { .. } => Place::String { escaped: false },
            Place::Rest => match byte {
                b',' => Place::Member,
                b'}' => self.close(),
                _ => Place::Rest,
            },
            place if is_space => place,
            Place::Start if byte == b'{' => {
                self.depth = 1;
                Place::Member
            }
            Place::Member => match byte {
                b'"' => {
                    self.key = Key::new();
                    Place::Key
                }
                b'}' => self.close(),
                _ => Place::Broken,
            },
            Place::Colon if byte == b':' => Place::Value,
            Place::Value => self.value(byte),
            Place::ErrorsList if byte == b']' => {
                self.depth = 1;
                Place::Rest
            }
            Place::ErrorsList | Place::Errors => Place::Errors,
            Place::Start | Place::Colon | Place::End | Place::Nested | Place::Broken => {
                Place::Broken
            }
        };
    }

    fn close(&mut self) -> Place {
        self.depth = 0;
        Place::End
    }

    /// Takes the first byte of a value of the top level.
    fn value(&mut self, byte: u8) -> Place {
        let is_errors = self.key.is_errors();
        match byte {
            // An empty list contains no error, so the next character decides.
            b'[' if is_errors => Place::ErrorsList,
            // `null` means no errors.
            b'n' if is_errors => Place::Rest,
            _ if is_errors => Place::Errors,
            b'{' | b'[' => {
                self.depth = 2;
                Place::Nested
            }
            b'"' => Place::String { escaped: false },
            _ => Place::Rest,
        }
    }
}

/// A key that is compared with `errors` while it is read.
#[derive(Clone, Copy, Debug)]
struct Key {
    /// Number of matched characters of `errors`. `None` after a difference.
    matched: Option<usize>,
    escape: Escape,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    No,
    Backslash,
    /// `\u`: the value up to here, and the number of missing digits.
    Hex {
        value: u32,
        missing: u8,
    },
}

enum KeyStep {
    Within,
    Ended,
}

impl Key {
    const WORD: &'static [u8] = b"errors";

    fn new() -> Key {
        Key {
            matched: Some(0),
            escape: Escape::No,
        }
    }

    fn is_errors(&self) -> bool {
        self.matched == Some(Key::WORD.len())
    }

    fn step(&mut self, byte: u8) -> KeyStep {
        match self.escape {
            Escape::No if byte == b'"' => return KeyStep::Ended,
            Escape::No if byte == b'\\' => self.escape = Escape::Backslash,
            Escape::No => self.character(u32::from(byte)),
            Escape::Backslash if byte == b'u' => {
                self.escape = Escape::Hex {
                    value: 0,
                    missing: 4,
                };
            }
            // No other escape can produce a letter of the word.
            Escape::Backslash => {
                self.matched = None;
                self.escape = Escape::No;
            }
            Escape::Hex { value, missing } => {
                // Anything else is not JSON, which is not validated here.
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let value = value << 4 | digit;
                if missing == 1 {
                    self.escape = Escape::No;
                    self.character(value);
                } else {
                    self.escape = Escape::Hex {
                        value,
                        missing: missing - 1,
                    };
                }
            }
        }
        KeyStep::Within
    }

    fn character(&mut self, character: u32) {
        self.matched = self.matched.and_then(|matched| {
            let expected = Key::WORD.get(matched)?;
            (u32::from(*expected) == character).then_some(matched + 1)
        });
    }
}
