//! Calls that differ between iterations: which values of the script explain the difference.

mod align;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::raw::RawList;
use crate::recording::{CallBody, CallWire, Drawn, ScriptCall, ScriptRows, TextPart};
use align::{Column, Found, Piece, aligned};

/// One call of one iteration, with the values that the iteration drew.
pub(crate) struct Sample {
    pub(crate) call: ScriptCall,
    pub(crate) drawn: BTreeMap<String, Json>,
}

/// The begin of the time in a recording, in milliseconds.
const CLOCK_FROM: i64 = 1_767_225_600_000;

/// A year in milliseconds.
const YEAR: i64 = 31_536_000_000;

/// The parts of a version 4 UUID that digits can replace: their ranges, and the text after each.
const UUID: [(i64, i64, &str); 5] = [
    (10_000_000, 99_999_999, "-"),
    (1000, 9999, "-4"),
    (100, 999, "-8"),
    (100, 999, "-"),
    (100_000_000_000, 999_999_999_999, ""),
];

/// The explanation of differences for a whole script.
pub(crate) struct Variation<'a> {
    lists: &'a [RawList],
    users: u64,
    /// The list that became the data. A lab has one.
    list: Option<usize>,
    is_random: bool,
    ranges: Vec<Drawn>,
    /// Names of ranges by the value that they replace.
    names: BTreeMap<String, Vec<TextPart>>,
}

impl Variation<'_> {
    pub(crate) fn new(lists: &[RawList], users: u64) -> Variation<'_> {
        Variation {
            lists,
            users,
            list: None,
            is_random: false,
            ranges: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// The data and the ranges that calls use.
    pub(crate) fn finish(self) -> (Option<ScriptRows>, Vec<Drawn>) {
        let list = self
            .list
            .and_then(|number| self.lists.iter().find(|it| it.number == number));
        let data = list.map(|list| ScriptRows {
            rows: list.rows.iter().flatten().map(flat).collect(),
            is_random: self.is_random,
        });
        (data, self.ranges)
    }

    /// The calls for a call of all iterations: one, if the drawn values explain its differences.
    pub(crate) fn calls(&mut self, mut samples: Vec<Sample>) -> Vec<ScriptCall> {
        let Some(first) = samples.first() else {
            return Vec::new();
        };
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        if samples.iter().all(|it| is_same(&it.call, &first.call)) {
            let mut call = samples.swap_remove(0).call;
            call.count = count;
            return vec![call];
        }
        // A message of gRPC is binary, so a lab cannot fill in values.
        let is_fixed = matches!(first.call.wire, CallWire::Grpc { .. });
        if !is_fixed && let Some(mut call) = self.explained(&samples) {
            call.count = count;
            return vec![call];
        }
        let mut groups = Vec::<ScriptCall>::new();
        for sample in &samples {
            match groups.iter_mut().find(|known| is_same(known, &sample.call)) {
                Some(known) => known.count += 1,
                None => groups.push(sample.call.clone()),
            }
        }
        // Few different calls are a choice of the script. Many are values of their own, such as an id.
        if groups.len() > samples.len() / 2 && samples.len() > 2 {
            groups.truncate(1);
            for call in &mut groups {
                call.count = count;
                call.notes.push(
                    "the script computes a value of it for each iteration. Here it is fixed"
                        .to_owned(),
                );
            }
        } else {
            for call in &mut groups {
                call.notes
                    .push(format!("one of {count} recorded variants of a call"));
            }
            if let [call] = groups.as_mut_slice() {
                call.notes.pop();
            }
        }
        groups
    }

    /// The call with columns and ranges instead of its differences.
    fn explained(&mut self, samples: &[Sample]) -> Option<ScriptCall> {
        let mut call = samples.first()?.call.clone();
        let has_one_form = samples.iter().all(|it| {
            let names = |call: &ScriptCall| {
                call.headers
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect::<Vec<_>>()
            };
            it.call.method == call.method
                && it.call.wire == call.wire
                && names(&it.call) == names(&call)
        });
        if !has_one_form {
            return None;
        }
        let columns = self.columns(samples);
        let mut used = Vec::new();
        let mut text = |read: &dyn Fn(&ScriptCall) -> Option<&[TextPart]>,
                        is_url: bool|
         -> Option<Vec<TextPart>> {
            let texts: Option<Vec<&[TextPart]>> = samples.iter().map(|it| read(&it.call)).collect();
            self.text(&texts?, &columns, is_url, &mut used)
        };
        call.url = text(&|it| Some(&it.url), true)?;
        for index in 0..call.headers.len() {
            call.headers[index].1 = text(
                &|it| it.headers.get(index).map(|(_, value)| value.as_slice()),
                false,
            )?;
        }
        let is_form = call.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type")
                && matches!(value.as_slice(), [TextPart::Plain(text)] if text.contains("urlencoded"))
        });
        if let Some(CallBody::Text(_)) = &call.body {
            let body = text(
                &|it| match &it.body {
                    Some(CallBody::Text(parts)) => Some(parts.as_slice()),
                    _ => None,
                },
                is_form,
            )?;
            call.body = Some(CallBody::Text(body));
        } else if samples.iter().any(|it| it.call.body != call.body) {
            return None;
        }
        call.notes.extend(used);
        Some(call)
    }

    /// The values of all iterations that can explain a difference.
    fn columns(&self, samples: &[Sample]) -> Vec<Column> {
        let mut columns = Vec::new();
        let Some(first) = samples.first() else {
            return columns;
        };
        for key in first.drawn.keys() {
            let values: Option<Vec<&Json>> = samples.iter().map(|it| it.drawn.get(key)).collect();
            let Some(values) = values else {
                continue;
            };
            if let Some(number) = key.strip_prefix("row|") {
                columns.extend(self.rows(number.parse().ok(), &values));
                continue;
            }
            columns.push(Column {
                key: key.clone(),
                values: values.iter().map(|it| shown(it)).collect(),
                is_number: !key.starts_with("uuid|") && !key.starts_with("letters|"),
            });
        }
        columns
    }

    /// The members of the rows that the iterations used.
    fn rows(&self, number: Option<usize>, indexes: &[&Json]) -> Vec<Column> {
        let is_taken = self.list.is_some() && self.list != number;
        let list = self.lists.iter().find(|it| Some(it.number) == number);
        let Some(rows) = list
            .and_then(|list| list.rows.as_ref())
            .filter(|_| !is_taken)
        else {
            return Vec::new();
        };
        let used = indexes
            .iter()
            .map(|index| rows.get(usize::try_from(index.as_u64()?).ok()?).map(flat));
        let Some(used) = used.collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let names = used
            .first()
            .map(|row| row.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default();
        let columns = names.into_iter().filter_map(|name| {
            let values: Option<Vec<String>> =
                used.iter().map(|row| row.get(&name).map(shown)).collect();
            Some(Column {
                key: format!("row|{}|{name}", number?),
                values: values?,
                is_number: false,
            })
        });
        columns.collect()
    }

    /// One text of all iterations, with columns and ranges.
    fn text(
        &mut self,
        texts: &[&[TextPart]],
        columns: &[Column],
        is_url: bool,
        notes: &mut Vec<String>,
    ) -> Option<Vec<TextPart>> {
        let first = *texts.first()?;
        if texts.iter().any(|it| it.len() != first.len()) {
            return None;
        }
        let mut parts = Vec::new();
        for index in 0..first.len() {
            let same = texts.iter().all(|it| it[index] == first[index]);
            if same {
                parts.push(first[index].clone());
                continue;
            }
            let plain: Option<Vec<&str>> = texts
                .iter()
                .map(|it| match &it[index] {
                    TextPart::Plain(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            for piece in aligned(&plain?, columns)? {
                match piece {
                    Piece::Plain(text) => parts.push(TextPart::Plain(text)),
                    Piece::Column(found) => parts.extend(self.replaced(&found, is_url, notes)?),
                }
            }
        }
        Some(parts)
    }

    /// The parts that replace a drawn value.
    fn replaced(
        &mut self,
        found: &Found,
        is_url: bool,
        notes: &mut Vec<String>,
    ) -> Option<Vec<TextPart>> {
        if let Some(rest) = found.key.strip_prefix("row|") {
            let (number, name) = rest.split_once('|')?;
            return self.column(number.parse().ok()?, name, is_url, found);
        }
        let identity = format!("{}+{}", found.key, found.offset);
        if let Some(known) = self.names.get(&identity) {
            return Some(known.clone());
        }
        let fields: Vec<&str> = found.key.split('|').collect();
        let parts = match fields.as_slice() {
            ["range", from, to, ..] => {
                let bound = |text: &str| text.parse::<i64>().ok()?.checked_add(found.offset);
                self.range(bound(from)?, bound(to)?, "a random number")
            }
            ["user", ..] => {
                let last = i64::try_from(self.users).ok()?.checked_add(found.offset)?;
                self.range(1 + found.offset, last, "the number of the user")
            }
            ["iteration", ..] if found.offset == 0 => vec![TextPart::Index],
            ["clock", ..] if found.offset == 0 => {
                notes.push(
                    "the script sends the time. Here it is a random number of this size".to_owned(),
                );
                self.range(CLOCK_FROM, CLOCK_FROM + YEAR, "the time")
            }
            ["uuid", ..] => {
                let mut parts = Vec::new();
                for (from, to, after) in UUID {
                    parts.extend(self.range(from, to, "a part of a UUID"));
                    if !after.is_empty() {
                        parts.push(TextPart::Plain(after.to_owned()));
                    }
                }
                parts
            }
            ["letters", ..] => {
                let length = u32::try_from(found.length)
                    .ok()
                    .filter(|it| (1..=17).contains(it))?;
                notes.push(
                    "the script sends random letters. Here they are random digits".to_owned(),
                );
                self.range(
                    10_i64.pow(length - 1),
                    10_i64.pow(length) - 1,
                    "random letters",
                )
            }
            _ => return None,
        };
        self.names.insert(identity, parts.clone());
        Some(parts)
    }

    fn range(&mut self, from: i64, to: i64, origin: &'static str) -> Vec<TextPart> {
        let name = format!("drawn-{}", self.ranges.len() + 1);
        self.ranges.push(Drawn {
            name: name.clone(),
            from,
            to,
            origin,
        });
        vec![TextPart::Range(name)]
    }

    /// A column of the data, if all its values can stand in the text as they are.
    fn column(
        &mut self,
        number: usize,
        name: &str,
        is_url: bool,
        found: &Found,
    ) -> Option<Vec<TextPart>> {
        let list = self.lists.iter().find(|it| it.number == number)?;
        let stands = |text: &str| match is_url {
            // The lab writes it unchanged.
            true => text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\"#<>`{}".contains(&byte)),
            false => !text.contains(['"', '\\']) && !text.chars().any(char::is_control),
        };
        let rows = list.rows.as_ref()?;
        let all = rows.iter().all(|row| {
            flat(row)
                .get(name)
                .is_some_and(|value| stands(&shown(value)))
        });
        if !all {
            return None;
        }
        let position = |value: &String| {
            rows.iter()
                .position(|row| flat(row).get(name).map(shown).as_ref() == Some(value))
        };
        let is_in_turn = found
            .values
            .iter()
            .enumerate()
            .all(|(turn, value)| position(value) == Some(turn % rows.len()));
        self.is_random |= !is_in_turn;
        self.list = Some(number);
        Some(vec![TextPart::Column(name.to_owned())])
    }
}

/// True if both calls send the same bytes.
fn is_same(left: &ScriptCall, right: &ScriptCall) -> bool {
    (
        &left.method,
        &left.url,
        &left.headers,
        &left.body,
        &left.wire,
    ) == (
        &right.method,
        &right.url,
        &right.headers,
        &right.body,
        &right.wire,
    )
}

/// A value as a text that a script makes of it.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The scalars of a row by names that a lab accepts.
fn flat(row: &Json) -> Map<String, Json> {
    let mut columns = Map::new();
    add(&mut columns, "", row);
    columns
}

fn add(columns: &mut Map<String, Json>, name: &str, value: &Json) {
    let below = |key: &str| match name {
        "" => named(key),
        name => format!("{name}-{}", named(key)),
    };
    match value {
        Json::Object(members) => members
            .iter()
            .for_each(|(key, value)| add(columns, &below(key), value)),
        Json::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| add(columns, &below(&index.to_string()), value));
        }
        Json::Null => {}
        scalar => {
            let name = if name.is_empty() { "value" } else { name };
            columns.insert(name.to_owned(), scalar.clone());
        }
    }
}

/// A name with letters, digits, `-` and `_`.
fn named(key: &str) -> String {
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '-'
        }
    };
    let name: String = key.chars().map(plain).collect();
    match name.starts_with(|it: char| it.is_ascii_alphabetic()) {
        true => name,
        false => format!("c{name}"),
    }
}
