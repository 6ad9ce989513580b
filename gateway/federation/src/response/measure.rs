//! Measures the size of a response without writing it.
//!
//! The output for an object depends only on the object and the selected members. So each pair is measured
//! once, even if it occurs at many places. The work to measure a response of gigabytes is proportional to the
//! number of values in the subgraph responses.

use std::collections::HashMap;

use super::{Type, fits, type_of, written_int};
use crate::checked::Checked;
use crate::projection::{Leaf, Shape, What};
use crate::store::{Hint, ObjectId, Slice, Store, Value};

/// Maximum number of visited members and items: a few milliseconds of work. With more, the response is long
/// because the subgraph responses are long.
const STEPS_MAX: usize = 1 << 17;

/// Reason for a missing size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The value must be null, and its place does not allow null.
    Nulled,
    /// The measurement would take too long.
    Unknown,
}

pub(crate) struct Measure<'a> {
    checked: &'a Checked,
    store: &'a Store,
    presences: &'a [bool],
    /// Sizes by index of members and object. `None` if the object must be null.
    known: HashMap<(usize, ObjectId), Option<u64>>,
    steps_left: usize,
}

impl<'a> Measure<'a> {
    pub(crate) fn new(checked: &'a Checked, store: &'a Store, presences: &'a [bool]) -> Self {
        Measure {
            checked,
            store,
            presences,
            known: HashMap::new(),
            steps_left: STEPS_MAX,
        }
    }

    /// Minimum number of bytes of the data. `None` if the measurement would take too long. Introspection
    /// counts as two bytes, and so do scalars that are objects or lists.
    pub(super) fn size(&mut self, members: usize, object: ObjectId) -> Option<u64> {
        match self.members(members, object) {
            Ok(bytes) => Some(bytes),
            Err(Stop::Nulled) => Some(4),
            Err(Stop::Unknown) => None,
        }
    }

    /// True if the writer writes a value other than null.
    pub(crate) fn is_there(&mut self, shape: &Shape, value: Value) -> bool {
        self.value(shape, true, value) != Err(Stop::Nulled)
    }

    fn members(&mut self, index: usize, object: ObjectId) -> Result<u64, Stop> {
        if let Some(known) = self.known.get(&(index, object)) {
            return known.ok_or(Stop::Nulled);
        }
        let measured = self.measure(index, object);
        // `Unknown` means that the steps ran out. This is not a property of the object.
        if measured != Err(Stop::Unknown) {
            self.known.insert((index, object), measured.ok());
        }
        measured
    }

    fn measure(&mut self, index: usize, object: ObjectId) -> Result<u64, Stop> {
        let checked = self.checked;
        let members = checked.projection.members.get(index).ok_or(Stop::Nulled)?;
        // All members count, even members that a condition leaves out, because the visit itself is work.
        self.step(members.len())?;
        let (mut hint, mut count, mut bytes) = (Hint::default(), 0_u64, 0_u64);
        for member in members {
            if let Some(presence) = member.presence
                && !self.presences.get(presence).is_some_and(|it| *it)
            {
                continue;
            }
            let inner = match &member.what {
                What::Text(text) => text.len() as u64,
                What::Denied if member.non_null => return Err(Stop::Nulled),
                What::Denied => 4,
                What::Deferred(_) => unreachable!("such a member is never present"),
                What::Value(_) if member.introspection.is_some() => 2,
                What::Value(shape) => {
                    let value = self.store.get_hinted(object, &member.key, &mut hint);
                    self.value(shape, member.non_null, value.unwrap_or(Value::Null))?
                }
            };
            count += 1;
            bytes = bytes.saturating_add(member.opener.len() as u64 + inner);
        }
        Ok(enclosed(bytes, count))
    }

    fn step(&mut self, steps: usize) -> Result<(), Stop> {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.ok_or(Stop::Unknown)?;
        Ok(())
    }

    fn value(&mut self, shape: &Shape, non_null: bool, value: Value) -> Result<u64, Stop> {
        let measured = match (shape, value) {
            (_, Value::Null) => Err(Stop::Nulled),
            (Shape::Leaf(leaf), _) => self.leaf(*leaf, value),
            (Shape::Object(selection), Value::Object(object)) => {
                match type_of(self.checked, self.store, *selection, object) {
                    Type::Members(index) => self.members(index, object),
                    Type::Unknown | Type::Foreign => Err(Stop::Nulled),
                }
            }
            (
                Shape::List {
                    item,
                    item_non_null,
                },
                Value::List(list),
            ) => self.list(item, *item_non_null, list),
            _ => Err(Stop::Nulled),
        };
        match measured {
            // The bytes of `null`. The error about it is not part of the data.
            Err(Stop::Nulled) if !non_null => Ok(4),
            measured => measured,
        }
    }

    fn list(&mut self, item: &Shape, non_null: bool, list: Slice) -> Result<u64, Stop> {
        let store = self.store;
        let items = store.items(list);
        self.step(items.len())?;
        let mut bytes = 0_u64;
        for value in items {
            bytes = bytes.saturating_add(self.value(item, non_null, *value)?);
        }
        Ok(enclosed(bytes, items.len() as u64))
    }

    fn leaf(&self, leaf: Leaf, value: Value) -> Result<u64, Stop> {
        if !fits(self.checked, self.store, leaf, value) {
            return Err(Stop::Nulled);
        }
        if let Some(digits) = written_int(self.store, leaf, value) {
            return Ok(digits.len() as u64);
        }
        Ok(match value {
            Value::String(text) => u64::from(text.len) + 2,
            Value::Number(text) => u64::from(text.len),
            Value::Bool(true) | Value::Null => 4,
            Value::Bool(false) => 5,
            Value::List(_) | Value::Object(_) => 2,
        })
    }
}

/// Adds the bytes of the brackets and of the commas between the parts.
fn enclosed(bytes: u64, parts: u64) -> u64 {
    bytes
        .saturating_add(2)
        .saturating_add(parts.saturating_sub(1))
}
