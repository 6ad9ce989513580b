//! Records the places of deferred fragments in the output.

use crate::error::PathSegment;
use crate::store::ObjectId;

/// An object with a deferred fragment.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) group: usize,
    /// Index of the members to write for it.
    pub(crate) members: usize,
    pub(crate) object: ObjectId,
    pub(crate) path: Vec<PathSegment>,
}

/// Maximum number of places, and maximum bytes of their paths together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) places: usize,
    pub(crate) path_bytes: usize,
}

/// The places of the wanted groups that the writer has passed.
#[derive(Debug)]
pub(crate) struct Places {
    /// The group of each wanted anchor.
    wanted: Vec<Option<usize>>,
    /// Each place with the output length at the time of recording.
    found: Vec<(usize, Place)>,
    room: Room,
    /// Groups with too many places.
    pub(crate) crowded: Vec<usize>,
}

impl Places {
    /// Creates a recorder for the places of these anchors, with limited room.
    pub(crate) fn new(wanted: Vec<Option<usize>>, room: Room) -> Self {
        Places {
            wanted,
            found: Vec::new(),
            room,
            crowded: Vec::new(),
        }
    }

    /// True if the recorder needs the places of an anchor.
    pub(super) fn wants(&self, anchor: usize) -> bool {
        self.wanted.get(anchor).is_some_and(Option::is_some)
    }

    pub(super) fn note(
        &mut self,
        anchor: usize,
        members: usize,
        object: ObjectId,
        path: Vec<PathSegment>,
        at: usize,
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

    /// Records a place without output.
    pub(crate) fn note_unwritten(
        &mut self,
        anchor: usize,
        members: usize,
        object: ObjectId,
        path: &[PathSegment],
    ) {
        self.note(anchor, members, object, path.to_vec(), 0);
    }

    /// Removes the places in output that is cut off at `start`.
    pub(super) fn cut(&mut self, start: usize) {
        while let Some((_, place)) = self.found.pop_if(|(at, _)| *at > start) {
            self.room.places += 1;
            self.room.path_bytes += path_bytes(&place.path);
        }
    }

    /// Returns the places and the remaining room.
    pub(crate) fn into_found(self) -> (Vec<Place>, Room) {
        let places = self.found.into_iter().map(|(_, place)| place);
        (places.collect(), self.room)
    }
}

/// Approximate bytes of a path.
pub(crate) fn path_bytes(path: &[PathSegment]) -> usize {
    let segments = path.iter().map(|segment| match segment {
        PathSegment::Key(key) => size_of::<PathSegment>() + key.len(),
        PathSegment::Index(_) => size_of::<PathSegment>(),
    });
    segments.sum()
}
