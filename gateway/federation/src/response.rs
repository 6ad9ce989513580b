//! Writes the client's `data` from the merged responses.
//!
//! The writer appends directly to the output. If a value is null and its place does not allow null, the
//! writer cuts the output back to the nearest nullable member. Section 6.4.4 of the GraphQL specification
//! requires this. Values that the schema does not allow count as null, with an error. Examples are a string
//! for an `Int` and an enum value that is hidden from clients.

mod introspection;
mod measure;
mod places;

use crate::bounds::ERRORS_MAX;
use crate::checked::Checked;
use crate::error::{GraphqlError, PathSegment};
use crate::projection::{Leaf, Member, Shape, What};
use crate::store::{Hint, ObjectId, Store, Value};
use crate::variables::{IntText, Variables, digits_of_int, int_of};

pub(crate) use measure::Measure;
pub(crate) use places::{Place, Places, Room, path_bytes};

/// Reason why the writer did not complete a value.
enum Stop {
    /// The value had to be null, and its place does not allow null.
    Nulled,
    /// Other requests run first. [`Writer::resumed`] contains the place to continue.
    Paused,
    /// The response would exceed its size limit.
    TooLarge,
}

/// State of the response after a call of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// The response is incomplete. Other requests of this thread can run now.
    Paused,
    /// The response would exceed its size limit. The caller must discard the output.
    TooLarge,
}

/// Members and items that the writer writes before other requests may run. This takes a fraction of a
/// millisecond, and most responses have fewer.
const TURN_STEPS: usize = 1 << 15;

/// Turns after which the writer measures the rest of a response before it continues. They write a few
/// megabytes.
const TURNS_UNMEASURED: usize = 8;

/// Bytes of text that count as one additional step.
const STEP_BYTES: usize = 64;

/// Minimum limit on the members and items of a response. The limit is higher if the response may have more
/// bytes than this. Members that a condition leaves out count, although they write no bytes.
const WORK_MIN: usize = 1 << 20;

/// Place at which the writer continues an object or a list after a pause.
#[derive(Clone, Copy)]
struct Resumption {
    /// Start of its text in the output.
    start: usize,
    /// Position of the incomplete member or item.
    position: usize,
    hint: Hint,
    /// True if a comma precedes the next member or item.
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

/// Writes the `data` of one response.
pub(crate) struct Writer<'a> {
    checked: &'a Checked,
    variables: &'a Variables,
    store: &'a Store,
    presences: &'a [bool],
    pub(crate) out: Vec<u8>,
    /// Errors about values that the schema does not allow.
    pub(crate) errors: Vec<GraphqlError>,
    /// Number of errors beyond [`ERRORS_MAX`].
    pub(crate) left_out: usize,
    /// Places of deferred fragments. `None` if the caller does not need them.
    pub(crate) places: Option<Places>,
    path: Vec<Step<'a>>,
    /// Start of the data in the output.
    start: usize,
    /// Maximum length of the output, minus all bytes that were cut off. So a response also pays for text that
    /// it writes and cuts off again.
    end_max: usize,
    /// Steps left before a pause.
    turn: usize,
    /// Number of finished turns of this response.
    turns: usize,
    /// Steps left in total, without the steps of this turn.
    work: usize,
    /// The objects and lists to continue, from the innermost to the root.
    resumed: Vec<Resumption>,
    /// The parts of an introspection response to continue, from the root to the innermost.
    introspected: Vec<introspection::Part<'a>>,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends at most about `bytes_max` bytes to `out`. A scalar is always written
    /// whole.
    pub(crate) fn new(
        checked: &'a Checked,
        variables: &'a Variables,
        store: &'a Store,
        presences: &'a [bool],
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

    /// Writes the root object, or null. After a pause, the caller calls it again with the same object.
    pub(crate) fn root(&mut self, root: ObjectId) -> Progress {
        self.object_with(self.checked.projection.root, root)
    }

    /// Like [`Writer::root`], for any object. `members` is the index of the requested members.
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

    /// True if the rest exceeds the limit. Checked before much memory is allocated, and only for responses
    /// that are already large.
    fn will_be_too_large(&self, members: usize, object: ObjectId) -> bool {
        let room = self.end_max.saturating_sub(self.start);
        let size = Measure::new(self.checked, self.store, self.presences).size(members, object);
        size.is_some_and(|size| size > room as u64)
    }

    /// Removes a value with everything inside it. Its text begins at `start`.
    fn cut_to_null(&mut self, start: usize) {
        self.end_max = self.end_max.saturating_sub(self.out.len() - start);
        self.out.truncate(start);
        self.out.extend_from_slice(b"null");
        if let Some(places) = &mut self.places {
            places.cut(start);
        }
    }

    /// Records the place of a deferred fragment.
    fn pass(&mut self, anchor: usize, members: usize, object: ObjectId) {
        if let Some(places) = &mut self.places
            && places.wants(anchor)
        {
            let steps = self.path.iter();
            let path = steps.map(|step| step.segment()).collect();
            places.note(anchor, members, object, path, self.out.len());
        }
    }

    /// Sets the path of the object to write. Errors and recorded places begin with this path.
    pub(crate) fn stand_at(&mut self, path: &'a [PathSegment]) {
        self.path = path
            .iter()
            .map(|segment| match segment {
                PathSegment::Key(key) => Step::Key(key.as_bytes()),
                PathSegment::Index(index) => Step::Index(*index),
            })
            .collect();
    }

    /// Counts the next member or item as a step.
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
        // Subgraphs respond in the order of the requested fields. So each search starts after the last hit,
        // and the writer reads the object once.
        let mut at = self.enter(b'{');
        // The writer pops outer places first. So the remaining ones lie inside the member at `position`.
        let mut is_inside = !self.resumed.is_empty() || !self.introspected.is_empty();
        for (position, member) in members.iter().enumerate().skip(at.position) {
            at.position = position;
            // Inside a resumed member, its key and a part of its value are written already.
            if !std::mem::take(&mut is_inside) {
                if let Err(stop) = self.step(member.opener.len()) {
                    return Err(self.leave(stop, at));
                }
                if let Some(presence) = member.presence
                    && !self.presences.get(presence).is_some_and(|it| *it)
                {
                    if let What::Deferred(anchor) = member.what {
                        self.pass(anchor, index, object);
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
                // The error is reported once for the operation, not for each object.
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

    /// Begins an object or a list, or continues it after a pause.
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

    /// Records the place in an object or a list if the writer leaves it for a pause.
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
        // If null is allowed here, the output is cut back to this position. This also removes the text that
        // `members` and `list` wrote before an error.
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
            return match written_int(self.store, leaf, value) {
                Some(digits) => self.digits(&digits),
                None => self.text(value),
            };
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
        // Checked before memory is allocated for the value.
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

    fn digits(&mut self, digits: &str) -> Result<(), Stop> {
        if !self.has_room(digits.len()) {
            return Err(Stop::TooLarge);
        }
        self.out.extend_from_slice(digits.as_bytes());
        Ok(())
    }

    /// Writes a text from the schema as a JSON string.
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

/// Meaning of an object's type at its place.
pub(crate) enum Type {
    /// Index of the members to write.
    Members(usize),
    /// A type that is hidden from clients, or a type of another interface.
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
    // A linear search, because an abstract type has few object types in most schemas.
    let name = store.text(name);
    for (known, members) in &per_type.by_type {
        if **known == *name {
            return Type::Members(*members);
        }
    }
    if checked.schema.is_object(name) {
        return Type::Foreign;
    }
    // The name is an interface. The subgraph of an interface object has no other type name.
    Type::Members(per_type.otherwise)
}

/// The digits of an `Int` that the subgraph wrote in another form, such as `1.0`. Clients with strict types read
/// only digits as an `Int`.
fn written_int(store: &Store, leaf: Leaf, value: Value) -> Option<String> {
    match (leaf, value) {
        (Leaf::Int, Value::Number(text)) => digits_of_int(store.text(text)),
        _ => None,
    }
}

/// True if the schema allows this value.
fn fits(checked: &Checked, store: &Store, leaf: Leaf, value: Value) -> bool {
    match (leaf, value) {
        (Leaf::Any, _)
        | (Leaf::String | Leaf::Id, Value::String(_))
        | (Leaf::Boolean, Value::Bool(_))
        | (Leaf::Float, Value::Number(_)) => true,
        (Leaf::Int, Value::Number(text)) => int_of(store.text(text)) == IntText::Fits,
        // Identifiers are strings, but many subgraphs send them as numbers.
        (Leaf::Id, Value::Number(text)) => int_of(store.text(text)) != IntText::Fraction,
        (Leaf::Enum(index), Value::String(text)) => {
            let text = store.text(text);
            let kind = checked.projection.enums.get(index);
            kind.is_some_and(|kind| kind.values.iter().any(|known| **known == *text))
        }
        _ => false,
    }
}
