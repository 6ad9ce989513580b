//! Requests with places that are filled in for every slot.
//!
//! The bytes of a slot depend only on its index, the seed and the data. They do not depend on threads or
//! timing, and a second send is equal to the first. A template is cut into pieces once. Filling it in copies
//! the pieces into a reused buffer, without an allocation.
//!
//! Places: `{{column}}` of the data, `{{name}}` of a range or of a captured value, `{{index}}` of the slot
//! (from 0), `{{random:1..1000}}`. If there are no names, other text in double braces stays unchanged. A
//! [notation](Notation) can stand before the name of a column or of a captured value, as in `{{json:id}}`.

mod notation;

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use crate::error::RequestError;
use crate::job::{Data, Range, RowOrder};
use crate::raw_place::RawPlace;
use crate::scenario::CapturedValue;

use notation::Notation;

/// The data of a job, ready to be copied into requests.
#[derive(Debug)]
pub(crate) struct Values {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    ranges: Vec<Range>,
    /// Names of the captures of iterations, in the order of their values.
    captures: Vec<String>,
    order: RowOrder,
    seed: u64,
    /// Number of slots after which the rotation of rows moves by one. 0 for never.
    shift_every: u64,
}

#[derive(Debug)]
struct Value {
    raw: Box<[u8]>,
    /// The value as written in a path.
    escaped: Box<[u8]>,
}

impl Values {
    /// Prepares the data. `turn` is the length of the rotation of requests.
    pub(crate) fn new(data: &Data, turn: usize, captures: Vec<String>) -> Values {
        let value = |text: &String| Value {
            raw: text.as_bytes().into(),
            escaped: notation::escape(text).into_bytes().into(),
        };
        let (turn, rows) = (turn as u64, data.rows.len() as u64);
        let divisor = greatest_common_divisor(turn, rows);
        Values {
            columns: data.columns.clone(),
            rows: data
                .rows
                .iter()
                .map(|row| row.iter().map(value).collect())
                .collect(),
            ranges: data.ranges.clone(),
            captures,
            order: data.order,
            seed: data.seed,
            // Otherwise two requests in rotation would see only every second row each.
            shift_every: if divisor > 1 {
                turn / divisor * rows
            } else {
                0
            },
        }
    }

    fn row(&self, index: u64) -> &[Value] {
        let rows = self.rows.len() as u64;
        if rows == 0 {
            return &[];
        }
        let row = match self.order {
            RowOrder::Rotation => {
                // 0 means never, and cannot be a divisor.
                (index % rows + index.checked_div(self.shift_every).unwrap_or(0)) % rows
            }
            RowOrder::Random => below(rows, self.draw(index, 0)),
        };
        &self.rows[usize::try_from(row).expect("less than the number of rows")]
    }

    /// Iterates over all names. Without any name, text in braces is no place.
    fn names(&self, known: usize) -> impl Iterator<Item = &str> {
        let ranges = self.ranges.iter().map(|range| &range.name);
        let captures = self.captures.iter().take(known);
        let columns = self.columns.iter();
        columns.chain(ranges).chain(captures).map(String::as_str)
    }

    /// Returns 64 uniform bits for a slot and a purpose.
    fn draw(&self, index: u64, purpose: u64) -> u64 {
        mix(self.seed ^ mix(index.wrapping_add(mix(purpose.wrapping_add(1)))))
    }
}

/// The part of a request that contains a value, which decides its notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Path,
    Head,
    Body,
}

/// A request cut into pieces.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// Captured values that stand raw in the path.
    raw: Vec<(usize, RawPlace)>,
    values: Arc<Values>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Box<[u8]>),
    Column {
        column: usize,
        notation: Notation,
    },
    Captured {
        value: usize,
        notation: Notation,
    },
    Index,
    /// A whole number out of `count` numbers, starting with `from`. `purpose` separates the places.
    Random {
        from: u64,
        count: u64,
        purpose: u64,
    },
    /// Length of the filled-in body.
    Length,
}

/// The names that places of one request may use.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) values: Arc<Values>,
    /// Number of captures from earlier steps.
    pub(crate) captures_known: usize,
    /// Index of the request, because each request has its own random numbers.
    pub(crate) request: usize,
}

/// The largest number of random places in one request.
const PURPOSES: u64 = 1 << 16;

/// Purposes of ranges come after the purposes of all places.
const RANGES: u64 = 1 << 48;

/// A request as text, split around its length.
pub(crate) struct Source<'a> {
    /// Method and path, up to the space behind it.
    pub(crate) start: &'a str,
    /// The text up to the value of `Content-Length`, or up to the body without that header.
    pub(crate) before_length: &'a str,
    /// The text after that value, up to the body.
    pub(crate) after_length: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

impl Template {
    /// Cuts a request into pieces. `None` if the request has no place.
    pub(crate) fn new(
        source: &Source<'_>,
        within: &Places,
    ) -> Result<Option<Template>, RequestError> {
        let mut cutter = Cutter {
            within,
            places: 0,
            raw: Vec::new(),
        };
        let mut head = cutter.cut(source.start.as_bytes(), Part::Path)?;
        head.extend(cutter.cut(source.before_length.as_bytes(), Part::Head)?);
        if let Some(after) = source.after_length {
            head.push(Piece::Length);
            head.extend(cutter.cut(after.as_bytes(), Part::Head)?);
        }
        let body = cutter.cut(source.body, Part::Body)?;
        let values = Arc::clone(&within.values);
        let raw = cutter.raw;
        Ok((cutter.places > 0).then_some(Template {
            head,
            body,
            raw,
            values,
        }))
    }

    /// The captured values that stand raw in the path, by their places in the iteration.
    pub(crate) fn raw_captures(&self) -> &[(usize, RawPlace)] {
        &self.raw
    }

    /// True if the body differs from slot to slot.
    pub(crate) fn has_places_in_body(&self) -> bool {
        !matches!(self.body[..], [] | [Piece::Text(_)])
    }

    /// Number of rows of the data.
    pub(crate) fn rows(&self) -> usize {
        self.values.rows.len()
    }

    /// Writes the body with a row of the data. False if it needs values that a response gives.
    pub(crate) fn fill_body_of_row(&self, row: usize, buffer: &mut Vec<u8>) -> bool {
        let needs_responses = |piece: &Piece| matches!(piece, Piece::Captured { .. });
        if self.body.iter().any(needs_responses) {
            return false;
        }
        let slot = Slot {
            index: row as u64,
            captured: &[],
            values: &self.values,
            row: self.values.rows.get(row).map_or(&[], Vec::as_slice),
        };
        buffer.clear();
        for piece in &self.body {
            slot.write(piece, 0, buffer);
        }
        true
    }

    /// Writes the request of slot `index` and replaces the content of the buffer.
    // Out of line, so that requests without places do not carry its code.
    #[inline(never)]
    pub(crate) fn fill(&self, index: u64, captured: &[CapturedValue], buffer: &mut Vec<u8>) {
        let slot = Slot {
            index,
            captured,
            values: &self.values,
            row: self.values.row(index),
        };
        buffer.clear();
        // The head contains the length, so it is computed before the body is written.
        let body_bytes = self.body.iter().map(|piece| slot.bytes(piece)).sum();
        for piece in self.head.iter().chain(&self.body) {
            slot.write(piece, body_bytes, buffer);
        }
    }
}

struct Slot<'a> {
    index: u64,
    captured: &'a [CapturedValue],
    values: &'a Values,
    row: &'a [Value],
}

impl Slot<'_> {
    fn write(&self, piece: &Piece, body_bytes: usize, buffer: &mut Vec<u8>) {
        match piece {
            Piece::Text(text) => buffer.extend_from_slice(text),
            Piece::Column { column, notation } => {
                buffer.extend_from_slice(&self.value(*column, *notation));
            }
            // Written for each request, because unlike a column the value does not exist before the load.
            Piece::Captured { value, notation } => {
                buffer.extend_from_slice(notation.write(&self.captured[*value]).as_bytes());
            }
            Piece::Index => number(buffer, self.index),
            Piece::Random { .. } => number(buffer, self.random(piece)),
            Piece::Length => number(buffer, body_bytes as u64),
        }
    }

    fn bytes(&self, piece: &Piece) -> usize {
        match piece {
            Piece::Text(text) => text.len(),
            Piece::Column { column, notation } => self.value(*column, *notation).len(),
            Piece::Captured { value, notation } => notation.write(&self.captured[*value]).len(),
            Piece::Index => digits(self.index),
            Piece::Random { .. } => digits(self.random(piece)),
            Piece::Length => 0,
        }
    }

    fn value(&self, column: usize, notation: Notation) -> Cow<'_, [u8]> {
        let value = &self.row[column];
        match notation {
            Notation::Text | Notation::Raw => Cow::Borrowed(&value.raw),
            Notation::Encoded => Cow::Borrowed(&value.escaped),
            other => other.write_bytes(&value.raw),
        }
    }

    fn random(&self, piece: &Piece) -> u64 {
        match piece {
            Piece::Random {
                from,
                count,
                purpose,
            } => from + below(*count, self.values.draw(self.index, *purpose)),
            _ => unreachable!("only places for random numbers are drawn"),
        }
    }
}

fn number(buffer: &mut Vec<u8>, number: u64) {
    write!(buffer, "{number}").expect("a buffer in memory takes everything");
}

fn digits(number: u64) -> usize {
    // 0 has no logarithm, and one digit.
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

struct Cutter<'a> {
    within: &'a Places,
    places: u64,
    raw: Vec<(usize, RawPlace)>,
}

impl Cutter<'_> {
    fn cut(&mut self, text: &[u8], part: Part) -> Result<Vec<Piece>, RequestError> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(begin) = find(rest, b"{{") {
            let place = find(&rest[begin..], b"}}").map(|length| begin + length);
            let piece = match place {
                Some(end) => {
                    // The target of a request follows its method and one space.
                    let is_start = pieces.is_empty() && rest[..begin].ends_with(b" ");
                    let at = match is_start {
                        true => RawPlace::Start,
                        false => RawPlace::Inside,
                    };
                    self.place(&rest[begin + 2..end], part, at)?
                }
                None => None,
            };
            if let (Some(piece), Some(end)) = (piece, place) {
                literal.extend_from_slice(&rest[..begin]);
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                }
                pieces.push(piece);
                rest = &rest[end + 2..];
            } else {
                // One byte further, not two: in `{{{name}}` the place begins at the second brace.
                literal.extend_from_slice(&rest[..=begin]);
                rest = &rest[begin + 1..];
            }
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Ok(pieces)
    }

    /// Returns the piece for a place. `None` if the text is ordinary text.
    fn place(
        &mut self,
        name: &[u8],
        part: Part,
        at: RawPlace,
    ) -> Result<Option<Piece>, RequestError> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Ok(None);
        };
        let (notation, name) = Notation::of(name.trim(), part);
        let values = &self.within.values;
        let known = &values.captures[..self.within.captures_known];
        let piece = if let Some(column) = values.columns.iter().position(|it| it == name) {
            self.verify(column, part)?;
            if notation == Notation::Raw {
                self.verify_raw(column, at)?;
            }
            Piece::Column { column, notation }
        } else if let Some(range) = values.ranges.iter().position(|it| it.name == name) {
            let Range { from, to, .. } = values.ranges[range];
            let more = to.checked_sub(from);
            Piece::Random {
                from,
                count: more
                    .and_then(|more| more.checked_add(1))
                    .ok_or_else(|| RequestError::Range(format!("{from}..{to}")))?,
                purpose: RANGES + range as u64,
            }
        } else if let Some(value) = known.iter().position(|it| it == name) {
            if notation == Notation::Raw {
                self.raw.push((value, at));
            }
            Piece::Captured { value, notation }
        } else if name == "index" {
            Piece::Index
        } else if let Some(range) = name.strip_prefix("random:") {
            let wrong = || RequestError::Range(range.to_owned());
            let (from, to) = range.split_once("..").ok_or_else(wrong)?;
            let from: u64 = from.trim().parse().map_err(|_| wrong())?;
            let to: u64 = to.trim().parse().map_err(|_| wrong())?;
            let more = to.checked_sub(from).ok_or_else(wrong)?;
            Piece::Random {
                from,
                count: more.checked_add(1).ok_or_else(wrong)?,
                // Purpose 0 draws the row of the data.
                purpose: self.within.request as u64 * PURPOSES + self.places + 1,
            }
        // A request without data may contain double braces as ordinary text.
        } else if values.names(usize::MAX).next().is_none() {
            return Ok(None);
        } else {
            return Err(RequestError::Place {
                name: name.to_owned(),
                columns: values
                    .names(self.within.captures_known)
                    .collect::<Vec<_>>()
                    .join("`, `"),
            });
        };
        self.places += 1;
        Ok(Some(piece))
    }

    /// Checks that each value of a column can stand raw in a path.
    fn verify_raw(&self, column: usize, at: RawPlace) -> Result<(), RequestError> {
        let values = &self.within.values;
        let texts = values.rows.iter().map(|row| &row[column].raw);
        let mut problems = texts.filter_map(|raw| at.problem(&String::from_utf8_lossy(raw)));
        match problems.next() {
            None => Ok(()),
            Some(found) => Err(RequestError::RawValue {
                name: values.columns[column].clone(),
                found,
            }),
        }
    }

    /// Checks that no value of a column can end a header.
    fn verify(&self, column: usize, part: Part) -> Result<(), RequestError> {
        let breaks = |value: &&Value| {
            value
                .raw
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        };
        // A path is escaped, and a body has a length. No value can end either.
        let mut values = self.within.values.rows.iter().map(|row| &row[column]);
        match values.find(breaks).filter(|_| part == Part::Head) {
            None => Ok(()),
            Some(value) => Err(RequestError::HeaderValue {
                name: self.within.values.columns[column].clone(),
                value: String::from_utf8_lossy(&value.raw).into_owned(),
            }),
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Returns a uniform number in 0..bound, with a bias below `bound / 2^64`.
fn below(bound: u64, draw: u64) -> u64 {
    let product = u128::from(draw) * u128::from(bound);
    u64::try_from(product >> 64).expect("the high half is less than the bound")
}

/// Returns the finalizer of SplitMix64 (Steele, Lea and Flood, 2014). Every bit of the input changes half of
/// the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 {
        left
    } else {
        greatest_common_divisor(right, left % right)
    }
}

#[cfg(test)]
mod tests;
