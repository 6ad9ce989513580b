//! Finds a member of a large object by its key, without a linear search.
//!
//! The client chooses the number of aliases of an object. If the members are not in the order of the
//! selection, linear searches would take quadratic time.

use std::collections::HashMap;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{ObjectId, Slice};

/// Maximum number of members for a linear search, which is faster than a hash up to here.
pub(super) const SCANNED_MAX: usize = 16;

/// The indexes of large objects. Each is built at the first search in its object.
#[derive(Debug, Default)]
pub(super) struct KeyIndexes {
    /// Positions in the store's members, hashed by the key.
    by_object: HashMap<ObjectId, HashTable<u32>>,
    hasher: DefaultHashBuilder,
}

impl KeyIndexes {
    /// Finds the position of a key in the members of an object. If two keys are equal, the first.
    ///
    /// `key_at` returns the key at a position.
    pub(super) fn find<'a>(
        &mut self,
        object: ObjectId,
        members: Slice,
        key: &[u8],
        key_at: impl Fn(u32) -> &'a [u8],
    ) -> Option<usize> {
        let hasher = &self.hasher;
        let index = self.by_object.entry(object).or_insert_with(|| {
            let mut index = HashTable::with_capacity(members.len as usize);
            for position in members.start..members.start + members.len {
                insert(&mut index, hasher, position, &key_at);
            }
            index
        });
        let found = index.find(hasher.hash_one(key), |it| key_at(*it) == key);
        found.map(|position| *position as usize)
    }

    /// Updates the index after the key at a position has changed. JSON does not allow two equal keys. If
    /// there are two, the index contains only the first.
    pub(super) fn rename<'a>(
        &mut self,
        object: ObjectId,
        position: u32,
        from: &[u8],
        to: &[u8],
        key_at: impl Fn(u32) -> &'a [u8],
    ) {
        let Some(index) = self.by_object.get_mut(&object) else {
            return;
        };
        let hash = self.hasher.hash_one(from);
        if let Ok(entry) = index.find_entry(hash, |it| *it == position) {
            entry.remove();
        }
        // If two keys are equal, the first stays, as in a linear search.
        let hash = self.hasher.hash_one(to);
        match index.find_mut(hash, |it| key_at(*it) == to) {
            Some(known) => *known = position.min(*known),
            None => {
                index.insert_unique(hash, position, |it| self.hasher.hash_one(key_at(*it)));
            }
        }
    }
}

fn insert<'a>(
    index: &mut HashTable<u32>,
    hasher: &DefaultHashBuilder,
    position: u32,
    key_at: impl Fn(u32) -> &'a [u8],
) {
    let key = key_at(position);
    let hash = hasher.hash_one(key);
    // If two keys are equal, the first stays, as in a linear search.
    if index.find(hash, |it| key_at(*it) == key).is_none() {
        index.insert_unique(hash, position, |it| hasher.hash_one(key_at(*it)));
    }
}
