//! Writes the client's `data` from the merged answers.
//!
//! Straight into the output: what turns out to be null where null is not allowed is taken
//! back to the nearest member that may be null, by cutting the output there (GraphQL
//! specification, section 6.4.4). Values that the schema does not allow (an `Int` that is a
//! text, an enum value that clients may not see) count as null, with an error.

mod introspection;
mod measure;
mod places;

use crate::bounds::ERRORS_MAX;
use crate::checked::Checked;
use crate::error::{GraphqlError, PathSegment};
use crate::projection::{Leaf, Member, Shape, What};
use crate::store::{Hint, ObjectId, Store, Value};
use crate::variables::{IntText, Variables, int_of};

pub(crate) use measure::Measure;
pub(crate) use places::{Place, Places, Room, path_bytes};

/// Why a value was not written to its end.
enum Stop {
    /// It had to be null, and its place does not allow that.
    Nulled,
    /// Other requests come first; [`Writer::resumed`] knows where to go on.
    Paused,
    /// The response would be larger than it may be.
    TooLarge,
}

/// How far a response was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// Not to its end, so that other requests of this thread can go on.
    Paused,
    /// It would be larger than it may be; what was written is of no use.
    TooLarge,
}

/// Members and items that are written before other requests may go on, a fraction of a
/// millisecond of work. Most responses have fewer.
const TURN_STEPS: usize = 1 << 15;

/// Turns after which the rest of a response is measured before it is written: a few megabytes.
const TURNS_UNMEASURED: usize = 8;

/// Bytes of text that count as one step more.
const STEP_BYTES: usize = 64;

/// Members and items that may be written in any case. Beyond them there are at most as many as the
/// response may have bytes, though members that are left out by a condition write nothing.
const WORK_MIN: usize = 1 << 20;

/// Where to go on with an object or a list after a pause.
#[derive(Clone, Copy)]
struct Resumption {
    /// Where its text begins.
    start: usize,
    /// Of the member or item that was not written to its end.
    position: usize,
    hint: Hint,
    /// Whether a comma stands before the next one.
    separate: bool,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a [u8]),
    Index(usize),
}

impl Step<'_> {
    fn segment(self) -> PathSegment {
        match self {
            Step::Key(key) => PathSegment::Key(String::from_utf8_lossy(key).into_owned()),
            Step::Index(index) => PathSegment::Index(index),
        }
    }
}

/// Writes one response's data.
pub(crate) struct Writer<'a> {
    checked: &'a Checked,
    variables: &'a Variables,
    store: &'a Store,
    presences: &'a [bool],
    pub(crate) out: Vec<u8>,
    /// What the schema did not allow.
    pub(crate) errors: Vec<GraphqlError>,
    /// How many errors there were beyond [`ERRORS_MAX`].
    pub(crate) left_out: usize,
    /// Where deferred fragments stand, when that is of interest.
    pub(crate) places: Option<Places>,
    path: Vec<Step<'a>>,
    /// Where the data begins in the output.
    start: usize,
    /// Length of the output that the data may reach, less what was cut off: a response that has much
    /// written and cut off again pays for it, too.
    end_max: usize,
    /// Steps left before a pause.
    turn: usize,
    /// How many turns are over.
    turns: usize,
    /// Steps left in all, those of this turn not counted.
    work: usize,
    /// The objects and lists to go on with, from the innermost to the root.
    resumed: Vec<Resumption>,
    /// The parts of an answer of introspection to go on with, from the root to the innermost.
    introspected: Vec<introspection::Part<'a>>,
}

impl<'a> Writer<'a> {
    /// Appends to `out` at most so many bytes, roughly: the text of one scalar is written whole.
    pub(crate) fn new(
        checked: &'a Checked,
        variables: &'a Variables,
        (store, presences): (&'a Store, &'a [bool]),
        out: Vec<u8>,
        bytes_max: usize,
    ) -> Self {
        Writer {
            checked,
            variables,
            store,
            presences,
            start: out.len(),
            end_max: out.len().saturating_add(bytes_max),
            turn: TURN_STEPS,
            turns: 0,
            work: bytes_max.max(WORK_MIN),
            resumed: Vec::new(),
            introspected: Vec::new(),
            out,
            errors: Vec::new(),
            left_out: 0,
            places: None,
            path: Vec::new(),
        }
    }

    /// Writes the object at the root, or null; called again with the same object after a pause.
    pub(crate) fn root(&mut self, root: ObjectId) -> Progress {
        self.object_with(self.checked.projection.root, root)
    }

    /// The same for an object anywhere, of which members of this index are asked.
    pub(crate) fn object_with(&mut self, members: usize, object: ObjectId) -> Progress {
        match self.members(members, object) {
            Ok(()) => Progress::Done,
            Err(Stop::Nulled) => {
                self.cut_to_null(self.start);
                Progress::Done
            }
            Err(Stop::Paused) => {
                self.turns += 1;
                if self.turns == TURNS_UNMEASURED && self.will_be_too_large(members, object) {
                    return Progress::TooLarge;
                }
                Progress::Paused
            }
            Err(Stop::TooLarge) => Progress::TooLarge,
        }
    }

    /// Looked at before much memory is taken, and only for responses that are large already.
    fn will_be_too_large(&self, members: usize, object: ObjectId) -> bool {
        let room = self.end_max.saturating_sub(self.start);
        let size = Measure::new(self.checked, self.store, self.presences).size(members, object);
        size.is_some_and(|size| size > room as u64)
    }

    /// Takes back a value and everything inside of it: the text lies behind its start.
    fn cut_to_null(&mut self, start: usize) {
        self.end_max = self.end_max.saturating_sub(self.out.len() - start);
        self.out.truncate(start);
        self.out.extend_from_slice(b"null");
        if let Some(places) = &mut self.places {
            places.cut(start);
        }
    }

    /// Passes a deferred fragment.
    fn pass(&mut self, anchor: usize, at: (usize, ObjectId)) {
        if let Some(places) = &mut self.places
            && places.wants(anchor)
        {
            let steps = self.path.iter();
            let path = steps.map(|step| step.segment()).collect();
            places.note(anchor, at, (path, self.out.len()));
        }
    }

    /// Errors are told, and places noted, as of an object at this path.
    pub(crate) fn stand_at(&mut self, path: &'a [PathSegment]) {
        self.path = path
            .iter()
            .map(|segment| match segment {
                PathSegment::Key(key) => Step::Key(key.as_bytes()),
                PathSegment::Index(index) => Step::Index(*index),
            })
            .collect();
    }

    /// Counts what is about to be written, a member or an item.
    fn step(&mut self, bytes: usize) -> Result<(), Stop> {
        if self.turn == 0 {
            return Err(self.end_turn());
        }
        self.turn = self.turn.saturating_sub(1 + bytes / STEP_BYTES);
        Ok(())
    }

    #[cold]
    fn end_turn(&mut self) -> Stop {
        self.turn = TURN_STEPS;
        match self.work.checked_sub(TURN_STEPS) {
            Some(left) if self.has_room(0) => self.work = left,
            _ => return Stop::TooLarge,
        }
        Stop::Paused
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.out.len().saturating_add(bytes) <= self.end_max
    }

    fn members(&mut self, index: usize, object: ObjectId) -> Result<(), Stop> {
        let projection = &self.checked.projection;
        let Some(members) = projection.members.get(index) else {
            return Err(Stop::Nulled);
        };
        // Subgraphs answer in the order they were asked, so each search starts behind the last hit
        // and reads the object once.
        let mut at = self.enter(b'{');
        // Outer ones are popped first, so whatever is left lies inside the member at `position`.
        let mut is_inside = !self.resumed.is_empty() || !self.introspected.is_empty();
        for (position, member) in members.iter().enumerate().skip(at.position) {
            at.position = position;
            // Otherwise the member's key is written, and a part of its value.
            if !std::mem::take(&mut is_inside) {
                if let Err(stop) = self.step(member.opener.len()) {
                    return Err(self.leave(stop, at));
                }
                if let Some(presence) = member.presence
                    && !self.presences.get(presence).is_some_and(|it| *it)
                {
                    if let What::Deferred(anchor) = member.what {
                        self.pass(anchor, (index, object));
                    }
                    continue;
                }
                if at.separate {
                    self.out.push(b',');
                }
                at.separate = true;
                self.out.extend_from_slice(&member.opener);
            }
            match &member.what {
                What::Text(text) => self.out.extend_from_slice(text),
                // Told with the operation, not again for each object.
                What::Denied if member.non_null => return Err(Stop::Nulled),
                What::Denied => self.out.extend_from_slice(b"null"),
                What::Deferred(_) => unreachable!("such a member is never present"),
                What::Value(shape) => match &member.introspection {
                    Some(asked) => {
                        if let Err(stop) = introspection::write_root(self, asked, shape) {
                            return Err(self.leave(stop, at));
                        }
                        if !self.has_room(0) {
                            return Err(Stop::TooLarge);
                        }
                    }
                    None => {
                        let value = self.store.get_hinted(object, &member.key, &mut at.hint);
                        let written = self.member(member, shape, value.unwrap_or(Value::Null));
                        if let Err(stop) = written {
                            return Err(self.leave(stop, at));
                        }
                    }
                },
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Begins an object or a list, or goes on with it.
    fn enter(&mut self, opener: u8) -> Resumption {
        if let Some(resumed) = self.resumed.pop() {
            return resumed;
        }
        let start = self.out.len();
        self.out.push(opener);
        Resumption {
            start,
            position: 0,
            hint: Hint::default(),
            separate: false,
        }
    }

    /// Keeps the place in an object or a list if it is left for a pause.
    fn leave(&mut self, stop: Stop, at: Resumption) -> Stop {
        if matches!(stop, Stop::Paused) {
            self.resumed.push(at);
        }
        stop
    }

    fn member(&mut self, member: &'a Member, shape: &'a Shape, value: Value) -> Result<(), Stop> {
        self.path.push(Step::Key(&member.key));
        let outcome = self.value(shape, member.non_null, value, &member.coordinate);
        self.path.pop();
        outcome
    }

    fn value(
        &mut self,
        shape: &'a Shape,
        non_null: bool,
        value: Value,
        coordinate: &str,
    ) -> Result<(), Stop> {
        if value == Value::Null {
            if non_null {
                self.report(format!(
                    "Cannot return null for non-nullable field {coordinate}."
                ));
                return Err(Stop::Nulled);
            }
            self.out.extend_from_slice(b"null");
            return Ok(());
        }
        // Where a null is allowed, the output is cut back to here; what `members` and `list` wrote
        // up to an error goes with it.
        let start = match self.resumed.last() {
            Some(resumed) => resumed.start,
            None => self.out.len(),
        };
        let written = match (shape, value) {
            (Shape::Leaf(leaf), _) => self.leaf(*leaf, value, coordinate),
            (Shape::Object(selection), Value::Object(object)) => self.object(*selection, object),
            (
                Shape::List {
                    item,
                    item_non_null,
                },
                Value::List(list),
            ) => self.list(item, *item_non_null, list, coordinate),
            (Shape::Object(_), _) => self.unfit("an object", coordinate),
            (Shape::List { .. }, _) => self.unfit("a list", coordinate),
        };
        match written {
            Err(Stop::Nulled) if !non_null => {
                self.cut_to_null(start);
                Ok(())
            }
            written => written,
        }
    }

    fn list(
        &mut self,
        item: &'a Shape,
        item_non_null: bool,
        list: crate::store::Slice,
        coordinate: &str,
    ) -> Result<(), Stop> {
        // A copy of the reference, because the loop needs `self` mutably.
        let store = self.store;
        let mut at = self.enter(b'[');
        let mut is_inside = !self.resumed.is_empty();
        for (index, value) in store.items(list).iter().enumerate().skip(at.position) {
            at.position = index;
            if !std::mem::take(&mut is_inside) {
                if let Err(stop) = self.step(0) {
                    return Err(self.leave(stop, at));
                }
                if at.separate {
                    self.out.push(b',');
                }
                at.separate = true;
            }
            self.path.push(Step::Index(index));
            let written = self.value(item, item_non_null, *value, coordinate);
            self.path.pop();
            if let Err(stop) = written {
                return Err(self.leave(stop, at));
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, selection: usize, object: ObjectId) -> Result<(), Stop> {
        match type_of(self.checked, self.store, selection, object) {
            Type::Members(index) => self.members(index, object),
            Type::Unknown => Err(Stop::Nulled),
            Type::Foreign => {
                self.report(
                    "a subgraph answered with an object of a type that is not allowed here"
                        .to_owned(),
                );
                Err(Stop::Nulled)
            }
        }
    }

    fn leaf(&mut self, leaf: Leaf, value: Value, coordinate: &str) -> Result<(), Stop> {
        let fits = fits(self.checked, self.store, leaf, value);
        if fits {
            return self.text(value);
        }
        let wanted = match leaf {
            Leaf::Int => "Int".to_owned(),
            Leaf::Float => "Float".to_owned(),
            Leaf::String => "String".to_owned(),
            Leaf::Boolean => "Boolean".to_owned(),
            Leaf::Id => "ID".to_owned(),
            Leaf::Any => "a scalar".to_owned(),
            Leaf::Enum(index) => match self.checked.projection.enums.get(index) {
                Some(kind) => format!("a value of the enum {}", kind.name),
                None => "an enum".to_owned(),
            },
        };
        self.unfit(&wanted, coordinate)
    }

    /// Writes a value as the subgraph did.
    fn text(&mut self, value: Value) -> Result<(), Stop> {
        let before = self.out.len();
        // Looked at before memory is taken for it.
        let known = match value {
            Value::String(text) | Value::Number(text) => text.len as usize,
            _ => 0,
        };
        if !self.has_room(known) {
            return Err(Stop::TooLarge);
        }
        self.store.write(value, &mut self.out);
        let bytes = self.out.len() - before;
        self.turn = self.turn.saturating_sub(bytes / STEP_BYTES);
        Ok(())
    }

    /// Writes a text of the schema.
    fn json_string(&mut self, text: &str) -> Result<(), Stop> {
        if !self.has_room(text.len()) {
            return Err(Stop::TooLarge);
        }
        json_text::write_string(text, &mut self.out);
        self.turn = self.turn.saturating_sub(text.len() / STEP_BYTES);
        Ok(())
    }

    fn unfit(&mut self, wanted: &str, coordinate: &str) -> Result<(), Stop> {
        self.report(format!(
            "a subgraph answered {coordinate} with a value that is not {wanted}"
        ));
        Err(Stop::Nulled)
    }

    fn report(&mut self, message: String) {
        // Counted per response: one list of a million wrong values must not become a million
        // errors.
        if self.errors.len() >= ERRORS_MAX {
            self.left_out += 1;
            return;
        }
        let path = self.path.iter().map(|step| step.segment());
        let mut error = GraphqlError::new(message, "RESPONSE_VALIDATION_FAILED");
        error.path = path.collect();
        self.errors.push(error);
    }
}

/// What an object's type means where it stands.
pub(crate) enum Type {
    /// Index of the members to write.
    Members(usize),
    /// An object that clients may not see, or one of another interface.
    Foreign,
    Unknown,
}

pub(crate) fn type_of(
    checked: &Checked,
    store: &Store,
    selection: usize,
    object: ObjectId,
) -> Type {
    let Some(per_type) = checked.projection.selections.get(selection) else {
        return Type::Unknown;
    };
    if per_type.by_type.is_empty() {
        return Type::Members(per_type.otherwise);
    }
    let Some(Value::String(name)) = store.get(object, b"__typename") else {
        return Type::Members(per_type.otherwise);
    };
    // Searched in a row: an abstract type has few objects in most schemas.
    let name = store.text(name);
    for (known, members) in &per_type.by_type {
        if **known == *name {
            return Type::Members(*members);
        }
    }
    if checked.schema.is_object(name) {
        return Type::Foreign;
    }
    // The name of an interface, from the subgraph of an interface object, which knows no other.
    Type::Members(per_type.otherwise)
}

/// Whether the schema allows this value.
fn fits(checked: &Checked, store: &Store, leaf: Leaf, value: Value) -> bool {
    match (leaf, value) {
        (Leaf::Any, _)
        | (Leaf::String | Leaf::Id, Value::String(_))
        | (Leaf::Boolean, Value::Bool(_))
        | (Leaf::Float, Value::Number(_)) => true,
        (Leaf::Int, Value::Number(text)) => int_of(store.text(text)) == IntText::Fits,
        // Identifiers are texts; many subgraphs answer with their numbers.
        (Leaf::Id, Value::Number(text)) => int_of(store.text(text)) != IntText::Fraction,
        (Leaf::Enum(index), Value::String(text)) => {
            let text = store.text(text);
            let kind = checked.projection.enums.get(index);
            kind.is_some_and(|kind| kind.values.iter().any(|known| **known == *text))
        }
        _ => false,
    }
}
