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

/// How many places there may be, and what their paths may take together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) places: usize,
    pub(crate) path_bytes: usize,
}

/// The places that were passed, as far as they are wanted.
#[derive(Debug)]
pub(crate) struct Places {
    /// The group of each anchor that is wanted.
    wanted: Vec<Option<usize>>,
    /// With the length of the output before the rest of their object.
    found: Vec<(usize, Place)>,
    room: Room,
    /// Groups of which there were too many places.
    pub(crate) crowded: Vec<usize>,
}

impl Places {
    /// Notes places of these anchors, as far as there is room.
    pub(crate) fn new(wanted: Vec<Option<usize>>, room: Room) -> Self {
        Places {
            wanted,
            found: Vec::new(),
            room,
            crowded: Vec::new(),
        }
    }

    /// Whether places of an anchor are of interest.
    pub(super) fn wants(&self, anchor: usize) -> bool {
        self.wanted.get(anchor).is_some_and(Option::is_some)
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
        let bytes = path_bytes(&path);
        if self.room.places == 0 || self.room.path_bytes < bytes {
            if !self.crowded.contains(&group) {
                self.crowded.push(group);
            }
            return;
        }
        self.room.places -= 1;
        self.room.path_bytes -= bytes;
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
        while let Some((_, place)) = self.found.pop_if(|(at, _)| *at > start) {
            self.room.places += 1;
            self.room.path_bytes += path_bytes(&place.path);
        }
    }

    /// The places, and the room that is left.
    pub(crate) fn into_found(self) -> (Vec<Place>, Room) {
        let places = self.found.into_iter().map(|(_, place)| place);
        (places.collect(), self.room)
    }
}

/// What a path takes, roughly.
pub(crate) fn path_bytes(path: &[PathSegment]) -> usize {
    let segments = path.iter().map(|segment| match segment {
        PathSegment::Key(key) => size_of::<PathSegment>() + key.len(),
        PathSegment::Index(_) => size_of::<PathSegment>(),
    });
    segments.sum()
}
