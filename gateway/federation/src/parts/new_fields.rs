//! Finds the data of a part that was not sent yet. If the client already has an object, only its missing
//! members are sent.

use std::collections::HashMap;

use super::groups::{Bits, Delivery, bit};
use crate::checked::Checked;
use crate::error::PathSegment;
use crate::projection::{Member, Shape, What};
use crate::response::{Measure, Place, Places, Type, path_bytes, type_of};
use crate::store::{ObjectId, Store, Value};

/// Maximum number of objects at one place that are written separately.
const TARGETS_MAX: usize = 200;

/// Maximum number of values that the search visits at one place.
const STEPS_MAX: usize = 50_000;

/// An object with missing members.
pub(super) struct Target {
    pub(super) members: usize,
    pub(super) object: ObjectId,
    /// The path from the place to the object.
    pub(super) below: Vec<PathSegment>,
}

impl Target {
    pub(super) fn of(place: &Place) -> Self {
        Self {
            members: place.members,
            object: place.object,
            below: Vec::new(),
        }
    }
}

pub(super) struct NewFields<'a> {
    pub(super) checked: &'a Checked,
    pub(super) store: &'a Store,
    pub(super) delivery: &'a Delivery<'a>,
    pub(super) part: usize,
    pub(super) sent: Bits,
    /// The members of each sent part.
    pub(super) sent_members: &'a [(usize, Vec<bool>)],
    /// The members that only this part contains.
    pub(super) new: &'a [bool],
}

struct Search<'a> {
    targets: Vec<Target>,
    path: Vec<PathSegment>,
    /// Number of segments in the path of the place.
    depth: usize,
    measures: HashMap<usize, Measure<'a>>,
    /// Remaining bytes for the paths of further targets.
    path_bytes: usize,
    steps: usize,
    is_over: bool,
}

impl<'a> NewFields<'a> {
    /// Finds the objects with missing members at and below a place. `None` if there are too many, or if their
    /// paths need more than `path_bytes` bytes. Records the deferred fragments on the way.
    pub(super) fn find(
        &self,
        place: &Place,
        places: &mut Places,
        path_bytes: usize,
    ) -> Option<Vec<Target>> {
        let measures = self.sent_members.iter().map(|(part, members)| {
            let measure = Measure::new(self.checked, self.store, members);
            (*part, measure)
        });
        let mut search = Search {
            targets: Vec::new(),
            path: place.path.clone(),
            depth: place.path.len(),
            measures: measures.collect(),
            path_bytes,
            steps: STEPS_MAX,
            is_over: false,
        };
        self.object(place.members, place.object, &mut search, places);
        (!search.is_over).then_some(search.targets)
    }

    fn object(&self, index: usize, object: ObjectId, search: &mut Search<'a>, places: &mut Places) {
        let members = &self.checked.projection.members[index];
        let is_new = |member: &Member| member.presence.is_some_and(|it| self.new[it]);
        let is_target = members.iter().any(is_new);
        if is_target {
            let below = &search.path[search.depth..];
            let bytes = path_bytes(below);
            search.is_over |= search.targets.len() >= TARGETS_MAX || bytes > search.path_bytes;
            if search.is_over {
                return;
            }
            search.path_bytes -= bytes;
            search.targets.push(Target {
                members: index,
                object,
                below: below.to_vec(),
            });
        }
        for member in members {
            match &member.what {
                // If the object is written, the writer records the fragment.
                What::Deferred(anchor) if !is_target => {
                    places.note_unwritten(*anchor, index, object, &search.path);
                }
                What::Value(shape) if member.introspection.is_none() => {
                    let delivers = self.delivery.delivers(member);
                    let had = delivers & self.sent;
                    if delivers & bit(self.part) == 0 || had == 0 || is_leaf(shape) {
                        continue;
                    }
                    let value = self.store.get(object, &member.key).unwrap_or(Value::Null);
                    let key = String::from_utf8_lossy(&member.key).into_owned();
                    search.path.push(PathSegment::Key(key));
                    let from = had.trailing_zeros() as usize;
                    self.value(shape, value, from, search, places);
                    search.path.pop();
                }
                _ => {}
            }
        }
    }

    /// Searches a value that an earlier part contained.
    fn value(
        &self,
        shape: &'a Shape,
        value: Value,
        from: usize,
        search: &mut Search<'a>,
        places: &mut Places,
    ) {
        search.is_over |= search.steps == 0;
        search.steps = search.steps.saturating_sub(1);
        let measure = search.measures.get_mut(&from);
        if search.is_over || !measure.is_some_and(|it| it.is_there(shape, value)) {
            return;
        }
        match (shape, value) {
            (Shape::Object(selection), Value::Object(object)) => {
                if let Type::Members(index) = type_of(self.checked, self.store, *selection, object)
                {
                    self.object(index, object, search, places);
                }
            }
            (Shape::List { item, .. }, Value::List(list)) => {
                for (index, value) in self.store.items(list).iter().enumerate() {
                    search.path.push(PathSegment::Index(index));
                    self.value(item, *value, from, search, places);
                    search.path.pop();
                }
            }
            _ => {}
        }
    }
}

fn is_leaf(shape: &Shape) -> bool {
    match shape {
        Shape::Leaf(_) => true,
        Shape::Object(_) => false,
        Shape::List { item, .. } => is_leaf(item),
    }
}
