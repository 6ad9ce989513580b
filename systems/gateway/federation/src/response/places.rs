//! Where deferred fragments stand in what was written.

use crate::error::PathSegment;
use crate::store::ObjectId;

/// An object on which a fragment was deferred.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) group: usize,
    /// Index of the members that are asked of it.
    pub(crate) members: usize,
    pub(crate) object: ObjectId,
    pub(crate) path: Vec<PathSegment>,
}

/// The places that were passed, as far as they are wanted.
#[derive(Debug)]
pub(crate) struct Places {
    /// The group of each anchor that is wanted.
    wanted: Vec<Option<usize>>,
    /// With the length of the output before the rest of their object.
    found: Vec<(usize, Place)>,
    most: usize,
    /// Groups of which there were too many places.
    pub(crate) crowded: Vec<usize>,
}

impl Places {
    /// Notes places of these anchors, at most so many.
    pub(crate) fn new(wanted: Vec<Option<usize>>, most: usize) -> Self {
        Places {
            wanted,
            found: Vec::new(),
            most,
            crowded: Vec::new(),
        }
    }

    pub(super) fn note(
        &mut self,
        anchor: usize,
        (members, object): (usize, ObjectId),
        (path, at): (Vec<PathSegment>, usize),
    ) {
        let Some(Some(group)) = self.wanted.get(anchor).copied() else {
            return;
        };
        if self.found.len() >= self.most {
            if !self.crowded.contains(&group) {
                self.crowded.push(group);
            }
            return;
        }
        let place = Place {
            group,
            members,
            object,
            path,
        };
        self.found.push((at, place));
    }

    /// Notes a place of which nothing is written.
    pub(crate) fn note_unwritten(
        &mut self,
        anchor: usize,
        at: (usize, ObjectId),
        path: &[PathSegment],
    ) {
        self.note(anchor, at, (path.to_vec(), 0));
    }

    /// Forgets the places in what is cut off from here.
    pub(super) fn cut(&mut self, start: usize) {
        while self.found.last().is_some_and(|(at, _)| *at > start) {
            self.found.pop();
        }
    }

    pub(crate) fn into_found(self) -> impl Iterator<Item = Place> {
        self.found.into_iter().map(|(_, place)| place)
    }
}
