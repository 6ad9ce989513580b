//! Finds the entities of a fetch in the data, writes their representations and puts the
//! answers back where they belong.
//!
//! An entity that occurs many times is asked about once: representations are compared by
//! their JSON. Paths of errors are worked out only when there is an error, by walking the
//! same way again.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::bounds::{Bounds, Excess};
use crate::error::PathSegment;
use crate::plan::{Change, Input, Need, PathStep, Place, Rewrite, RewriteStep};
use crate::store::{ObjectId, Slice, Store, Value};

/// An object that waits for the answer about a representation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) object: ObjectId,
    /// Position in the list of representations.
    pub(crate) representation: usize,
    /// Position of its place among those of the input.
    pub(crate) place: usize,
}

/// Steps of a walk that are always allowed. What a walk visits is bounded by what was received;
/// only answers that contradict each other need more than a few steps for each object.
const STEPS_MIN: usize = 1 << 20;

/// Appends the list of representations and says which object waits for which.
///
/// # Errors
/// When there are more of them than the bounds allow.
pub(crate) fn write_representations(
    (store, root): (&Store, ObjectId),
    input: &Input,
    bounds: &Bounds,
    out: &mut Vec<u8>,
) -> Result<Vec<Target>, Excess> {
    let mut list = Representations {
        store,
        input,
        bounds,
        bytes_max: out.len().saturating_add(bounds.response_bytes),
        out,
        ranges: Vec::new(),
        known: HashTable::new(),
        hasher: DefaultHashBuilder::default(),
    };
    let mut targets = Vec::new();
    list.out.push(b'[');
    for (index, place) in input.places.iter().enumerate() {
        let mut walk = Walk::new(store, &place.path);
        walk.go(Value::Object(root), &place.path, &mut |object| {
            if let Some(representation) = list.add(object, &place.needs)? {
                targets.push(Target {
                    object,
                    representation,
                    place: index,
                });
            }
            Ok(())
        })?;
    }
    list.out.push(b']');
    Ok(targets)
}

/// A visit to the objects at the end of a path, to each once.
///
/// An object that was merged into many others is reached on many paths, and their number grows
/// by a power with each level of the query. So what lies behind it is visited once.
struct Walk<'a> {
    store: &'a Store,
    /// The mark of objects visited at the end of the path; one more for each step before it.
    marks: u32,
    steps_left: usize,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Store, path: &[PathStep]) -> Self {
        Walk {
            store,
            marks: store.marks(path.len() + 1),
            // Objects whose lists were merged may share them, so that this is no bound that
            // follows from what was received; it is one that only hostile answers reach.
            steps_left: STEPS_MIN.max(store.extent().saturating_mul(4)),
        }
    }

    fn go(
        &mut self,
        value: Value,
        path: &[PathStep],
        visit: &mut impl FnMut(ObjectId) -> Result<(), Excess>,
    ) -> Result<(), Excess> {
        let store = self.store;
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Excess::Work)?;
        match (value, path) {
            // A path that does not mention a list means each of its elements.
            (Value::List(list), [PathStep::List, path @ ..] | path) => {
                for item in store.items(list) {
                    self.go(*item, path, visit)?;
                }
            }
            (Value::Object(object), []) if self.is_new(object, path) => visit(object)?,
            (Value::Object(object), [PathStep::Key(key), rest @ ..]) => {
                // The one that has the member is marked, and not the many that have it merged.
                if let Some((owner, value)) = store.get_owned(object, key)
                    && self.is_new(owner, path)
                {
                    self.go(value, rest, visit)?;
                }
            }
            (Value::Object(object), [PathStep::Types(types), rest @ ..])
                // Without a `__typename` the condition cannot be checked. The planner asks for one
                // wherever several types are possible.
                if typename(store, object).is_none_or(|name| types.contains(name)) =>
            {
                self.go(value, rest, visit)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_new(&self, object: ObjectId, path: &[PathStep]) -> bool {
        self.store.mark(object, self.marks, path.len())
    }
}

/// The places of objects, for errors.
pub(crate) struct Places<'a> {
    pub(crate) store: &'a Store,
    /// Called with each place.
    pub(crate) found: &'a mut dyn FnMut(ObjectId, &[PathSegment]),
    pub(crate) steps_left: usize,
}

impl Places<'_> {
    /// Looks for all places of objects at the end of a path, as often as objects occur there.
    /// False when the search ended early.
    pub(crate) fn trace(
        &mut self,
        value: Value,
        path: &[PathStep],
        at: &mut Vec<PathSegment>,
    ) -> bool {
        let store = self.store;
        let Some(left) = self.steps_left.checked_sub(1) else {
            return false;
        };
        self.steps_left = left;
        match (value, path) {
            // The cases must stay those of `Walk::go`, without its marks.
            (Value::List(list), [PathStep::List, path @ ..] | path) => {
                for (index, item) in store.items(list).iter().enumerate() {
                    at.push(PathSegment::Index(index));
                    let goes_on = self.trace(*item, path, at);
                    at.pop();
                    if !goes_on {
                        return false;
                    }
                }
                true
            }
            (Value::Object(object), []) => {
                (self.found)(object, at);
                true
            }
            (Value::Object(object), [PathStep::Key(key), rest @ ..]) => {
                let Some(value) = store.get(object, key) else {
                    return true;
                };
                at.push(PathSegment::Key(String::from_utf8_lossy(key).into_owned()));
                let goes_on = self.trace(value, rest, at);
                at.pop();
                goes_on
            }
            (Value::Object(object), [PathStep::Types(types), rest @ ..])
                if typename(store, object).is_none_or(|name| types.contains(name)) =>
            {
                self.trace(value, rest, at)
            }
            _ => true,
        }
    }
}

/// The path of a fetch as a whole: `@` for each list.
pub(crate) fn fetch_path(input: &Input) -> Vec<PathSegment> {
    input.places.first().map(place_path).unwrap_or_default()
}

/// The path of a place: `@` for each list.
pub(crate) fn place_path(place: &Place) -> Vec<PathSegment> {
    let steps = place.path.iter();
    steps
        .filter_map(|step| match step {
            PathStep::Key(key) => Some(PathSegment::Key(String::from_utf8_lossy(key).into_owned())),
            PathStep::List => Some(PathSegment::Key("@".to_owned())),
            // A type condition is not part of a response path.
            PathStep::Types(_) => None,
        })
        .collect()
}

fn typename(store: &Store, object: ObjectId) -> Option<&[u8]> {
    match store.get(object, b"__typename") {
        Some(Value::String(name)) => Some(store.text(name)),
        _ => None,
    }
}

struct Representations<'a> {
    store: &'a Store,
    input: &'a Input,
    bounds: &'a Bounds,
    /// Length of the output at which no more is written.
    bytes_max: usize,
    out: &'a mut Vec<u8>,
    /// Where each representation stands in the output.
    ranges: Vec<(usize, usize)>,
    /// Positions in `ranges`, by the text there.
    known: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

/// How one part of a representation came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Value,
    Null,
    /// A required part is missing, so there is no representation.
    Missing,
}

impl Representations<'_> {
    /// The position of the object's representation; `None` when it has none.
    fn add(&mut self, object: ObjectId, needs: &[Need]) -> Result<Option<usize>, Excess> {
        let comma = self.out.len();
        // Written in place and cut off again when it is incomplete or known already: no buffer and
        // no copy for each entity.
        if !self.ranges.is_empty() {
            self.out.push(b',');
        }
        let start = self.out.len();
        let written = self.object(object, needs, true);
        if self.out.len() > self.bytes_max {
            return Err(Excess::FetchBytes(self.bounds.response_bytes));
        }
        if written != Written::Value {
            self.out.truncate(comma);
            return Ok(None);
        }
        let end = self.out.len();
        let text = &self.out[start..end];
        let hash = self.hasher.hash_one(text);
        let same = |index: &usize| {
            let (start, end) = self.ranges[*index];
            self.out[start..end] == *text
        };
        if let Some(index) = self.known.find(hash, same).copied() {
            self.out.truncate(comma);
            return Ok(Some(index));
        }
        let index = self.ranges.len();
        if index >= self.bounds.fetch_entities {
            return Err(Excess::FetchEntities(self.bounds.fetch_entities));
        }
        self.ranges.push((start, end));
        let (ranges, out, hasher) = (&self.ranges, &*self.out, &self.hasher);
        // The table stores positions, so it hashes the text again when it grows.
        self.known.insert_unique(hash, index, |index| {
            let (start, end) = ranges[*index];
            hasher.hash_one(&out[start..end])
        });
        Ok(Some(index))
    }

    /// Writes an object; at the top level one that is nothing but nulls counts as missing.
    fn object(&mut self, object: ObjectId, needs: &[Need], top: bool) -> Written {
        self.out.push(b'{');
        let mut members = Members {
            top,
            any: false,
            values: 0,
        };
        let name = typename(self.store, object);
        if self.needs(object, name, needs, &mut members) == Written::Missing {
            return Written::Missing;
        }
        // A key of nulls identifies no entity. The subgraph could only answer null, so it is not
        // asked.
        if top && members.values == 0 {
            return Written::Missing;
        }
        self.out.push(b'}');
        Written::Value
    }

    fn needs(
        &mut self,
        object: ObjectId,
        name: Option<&[u8]>,
        needs: &[Need],
        members: &mut Members,
    ) -> Written {
        for need in needs {
            match need {
                Need::Typename => {
                    let Some(name) = name else {
                        continue;
                    };
                    members.separate(self.out);
                    self.out.extend_from_slice(b"\"__typename\":\"");
                    // The plan renames the entity itself; objects inside of it keep the name that
                    // their subgraph gave.
                    let name = if members.top {
                        rewritten(name, &self.input.rewrites)
                    } else {
                        name
                    };
                    self.out.extend_from_slice(name);
                    self.out.push(b'"');
                }
                Need::Field {
                    key,
                    opener,
                    non_null,
                    is_optional,
                    needs,
                } => {
                    let Some(value) = self.store.get(object, key) else {
                        if *is_optional {
                            continue;
                        }
                        return Written::Missing;
                    };
                    if value == Value::Null && *non_null {
                        return Written::Missing;
                    }
                    members.separate(self.out);
                    self.out.extend_from_slice(opener);
                    match self.value(value, needs) {
                        Written::Missing => return Written::Missing,
                        Written::Null => {}
                        Written::Value => members.values += 1,
                    }
                }
                Need::Fragment {
                    name: condition,
                    types,
                    needs,
                } => {
                    let name = name.unwrap_or(condition.as_bytes());
                    if types.contains(name)
                        && self.needs(object, Some(name), needs, members) == Written::Missing
                    {
                        return Written::Missing;
                    }
                }
            }
        }
        Written::Value
    }

    fn value(&mut self, value: Value, needs: &[Need]) -> Written {
        // What is required may lie below entities that were merged into many objects. `add` tells
        // this case from others by the length.
        if self.out.len() > self.bytes_max {
            return Written::Missing;
        }
        match value {
            Value::Null => {
                self.out.extend_from_slice(b"null");
                Written::Null
            }
            // Without a selection of its own it is a custom scalar, which may be an object or a
            // list and is copied below as it is.
            Value::Object(object) if !needs.is_empty() => self.object(object, needs, false),
            Value::List(list) if !needs.is_empty() => {
                self.out.push(b'[');
                for (index, item) in self.store.items(list).iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    if self.value(*item, needs) == Written::Missing {
                        return Written::Missing;
                    }
                }
                self.out.push(b']');
                Written::Value
            }
            leaf => {
                self.store.write(leaf, self.out);
                Written::Value
            }
        }
    }
}

/// The name that the subgraph knows the type by: an interface object's, where the plan says
/// so.
pub(crate) fn rewritten<'a>(name: &'a [u8], rewrites: &'a [Rewrite]) -> &'a [u8] {
    for rewrite in rewrites {
        if let ([RewriteStep::Types(types), RewriteStep::Key(key)], Change::Set(text)) =
            (rewrite.path.as_slice(), &rewrite.change)
            && key == b"__typename"
            && types.contains(name)
        {
            return text;
        }
    }
    name
}

struct Members {
    /// Whether they are the representation's own, not those of an object within.
    top: bool,
    any: bool,
    /// Members other than `__typename` that are not null.
    values: usize,
}

impl Members {
    fn separate(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.any, true) {
            out.push(b',');
        }
    }
}

/// Applies the plan's changes to received data.
pub(crate) fn rewrite(store: &mut Store, value: Value, rewrites: &[Rewrite]) {
    for rewrite in rewrites {
        // Kept once for all objects: once per object, a plan's long name could make the store
        // many times larger than the answer.
        let change = match &rewrite.change {
            Change::Rename(to) => Kept::Key(store.keep_text(to)),
            Change::Set(text) => Kept::Value(store.keep_text(text)),
        };
        rewrite_at(store, value, &rewrite.path, change);
    }
}

/// A [`Change`] whose text lies in the store.
#[derive(Clone, Copy)]
enum Kept {
    Key(Slice),
    Value(Slice),
}

fn rewrite_at(store: &mut Store, value: Value, path: &[RewriteStep], change: Kept) {
    match (value, path) {
        (Value::List(list), path) => {
            // By index, because each element needs the store mutably.
            for index in 0..list.len as usize {
                if let Some(item) = store.items(list).get(index).copied() {
                    rewrite_at(store, item, path, change);
                }
            }
        }
        (Value::Object(object), [RewriteStep::Types(types), rest @ ..])
            // As in `walk`: without a `__typename` only one type is possible.
            if typename(store, object).is_none_or(|name| types.contains(name)) =>
        {
            rewrite_at(store, value, rest, change);
        }
        (Value::Object(object), [RewriteStep::Key(key)]) => match change {
            Kept::Key(to) => store.rename(object, key, to),
            Kept::Value(text) => store.set_string(object, key, text),
        },
        (Value::Object(object), [RewriteStep::Key(key), rest @ ..]) => {
            if let Some(value) = store.get(object, key) {
                rewrite_at(store, value, rest, change);
            }
        }
        _ => {}
    }
}
