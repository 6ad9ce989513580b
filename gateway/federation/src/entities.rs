//! Finds the entities of a fetch in the data and writes their representations. It also finds the places for
//! the entities in the subgraph's response.
//!
//! An entity that occurs many times is requested once, because equal representations have equal JSON. Error
//! paths are computed only after an error, with a second walk along the same path.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::bounds::{Excess, ExecutionLimits};
use crate::error::PathSegment;
use crate::plan::{Change, Input, Need, PathStep, Place, Rewrite, RewriteStep};
use crate::store::{ObjectId, Slice, Store, Value};

/// An object that waits for the entity of a representation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) object: ObjectId,
    /// Index in the list of representations.
    pub(crate) representation: usize,
    /// Index of the object's place in the input.
    pub(crate) place: usize,
}

/// Minimum limit on the steps of a walk. The received data normally bounds a walk. Only contradicting
/// responses need more than a few steps for each object.
const STEPS_MIN: usize = 1 << 20;

/// Appends the list of representations. Returns each waiting object with its representation.
///
/// # Errors
/// If there are more representations than the bounds allow.
pub(crate) fn write_representations(
    store: &Store,
    root: ObjectId,
    input: &Input,
    bounds: &ExecutionLimits,
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

/// The query roots inside of the data, at the places of an input. All take the whole response.
///
/// # Errors
/// If the walk takes more steps than the bounds allow.
pub(crate) fn roots(store: &Store, root: ObjectId, input: &Input) -> Result<Vec<Target>, Excess> {
    let mut targets = Vec::new();
    for (index, place) in input.places.iter().enumerate() {
        let mut walk = Walk::new(store, &place.path);
        walk.go(Value::Object(root), &place.path, &mut |object| {
            targets.push(Target {
                object,
                representation: 0,
                place: index,
            });
            Ok(())
        })?;
    }
    Ok(targets)
}

/// A walk that visits each object at the end of a path once.
///
/// Many paths can lead to an object that was merged into many others. The number of paths grows exponentially
/// with the levels of the query. So the walk visits the objects behind such an object once.
struct Walk<'a> {
    store: &'a Store,
    /// The mark for objects at the end of the path. Each earlier step adds one to it.
    marks: u32,
    steps_left: usize,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Store, path: &[PathStep]) -> Self {
        Walk {
            store,
            marks: store.marks(path.len() + 1),
            // Merged objects can share their lists, so the received data gives no strict bound. Only hostile
            // responses reach this limit.
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
            // A list that the path does not mention stands for each of its elements.
            (Value::List(list), [PathStep::List, path @ ..] | path) => {
                for item in store.items(list) {
                    self.go(*item, path, visit)?;
                }
            }
            (Value::Object(object), []) if self.is_new(object, path) => visit(object)?,
            (Value::Object(object), [PathStep::Key(key), rest @ ..]) => {
                // Marks the object that owns the member, not the many objects that it was merged into.
                if let Some((owner, value)) = store.get_owned(object, key)
                    && self.is_new(owner, path)
                {
                    self.go(value, rest, visit)?;
                }
            }
            (Value::Object(object), [PathStep::Types(types), rest @ ..])
                // Without a `__typename` the condition cannot be checked. The planner requests it at every
                // place with several possible types.
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

/// A search for the places of objects, for error paths.
pub(crate) struct Places<'a> {
    pub(crate) store: &'a Store,
    /// Callback for each object and its path.
    pub(crate) found: &'a mut dyn FnMut(ObjectId, &[PathSegment]),
    pub(crate) steps_left: usize,
}

impl Places<'_> {
    /// Finds every place of each object at the end of a path. Returns false if the search ended early.
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
            // These cases must match the cases of `Walk::go`, except for the marks.
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

/// The path of a whole fetch, with `@` for each list.
pub(crate) fn fetch_path(input: &Input) -> Vec<PathSegment> {
    input.places.first().map(place_path).unwrap_or_default()
}

/// The path of a place, with `@` for each list.
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
    bounds: &'a ExecutionLimits,
    /// Maximum length of the output.
    bytes_max: usize,
    out: &'a mut Vec<u8>,
    /// The start and end of each representation in the output.
    ranges: Vec<(usize, usize)>,
    /// Indexes into `ranges`, hashed by the text of the representation.
    known: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

/// Result of writing one part of a representation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Value,
    Null,
    /// A required part is missing, so there is no representation.
    Missing,
}

impl Representations<'_> {
    /// The index of the object's representation. `None` if the object has no complete key.
    fn add(&mut self, object: ObjectId, needs: &[Need]) -> Result<Option<usize>, Excess> {
        let comma = self.out.len();
        // Written in place, and cut off if the representation is incomplete or exists already. This saves a
        // buffer and a copy for each entity.
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

    /// Writes an object. At the top level, an object with only nulls counts as missing.
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
        // A key of nulls identifies no entity. The subgraph could only respond with null, so the gateway does
        // not request it.
        let is_singleton = self.input.is_singleton && members.any;
        if top && members.values == 0 && !is_singleton {
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
                    // The plan renames only the type of the entity itself. Objects inside it keep the type
                    // name from their subgraph.
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
        // Required fields can lie below entities that were merged into many objects. `add` detects this case
        // by the length of the output.
        if self.out.len() > self.bytes_max {
            return Written::Missing;
        }
        match value {
            Value::Null => {
                self.out.extend_from_slice(b"null");
                Written::Null
            }
            // A value without a selection is a custom scalar. It can be an object or a list, and is copied
            // unchanged below.
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

/// The type name to send to the subgraph. The plan can replace it with the name of an interface object.
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
    /// True for the members of the representation itself, false for the members of an object inside it.
    top: bool,
    any: bool,
    /// Number of members that are not null, without `__typename`.
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
        // Stored once for all objects. With one copy per object, a long name in a plan could make the store
        // many times larger than the response.
        let change = match &rewrite.change {
            Change::Rename(to) => Kept::Key(store.keep_text(to)),
            Change::Set(text) => Kept::Value(store.keep_text(text)),
        };
        rewrite_at(store, value, &rewrite.path, change);
    }
}

/// A [`Change`] with its text in the store.
#[derive(Clone, Copy)]
enum Kept {
    Key(Slice),
    Value(Slice),
}

fn rewrite_at(store: &mut Store, value: Value, path: &[RewriteStep], change: Kept) {
    match (value, path) {
        (Value::List(list), path) => {
            // By index, because the change of each element borrows the store mutably.
            for index in 0..list.len as usize {
                if let Some(item) = store.items(list).get(index).copied() {
                    rewrite_at(store, item, path, change);
                }
            }
        }
        (Value::Object(object), [RewriteStep::Types(types), rest @ ..])
            // As in `Walk::go`: without a `__typename` only one type is possible.
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
