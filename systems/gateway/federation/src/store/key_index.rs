//! Finds a member of a large object by its key, without a look at all the others.
//!
//! A client chooses how many aliases an object has. Where the members are not in the order of
//! the selection, a search for each in a row would take time by the square of their number.

use std::collections::HashMap;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{ObjectId, Slice};

/// Objects of so many members are searched in a row: that is faster than a hash.
pub(super) const SCANNED_MAX: usize = 16;

/// The indexes of the large objects that were searched, each made at its first search.
#[derive(Debug, Default)]
pub(super) struct KeyIndexes {
    /// Positions in the store's members, by the key there.
    by_object: HashMap<ObjectId, HashTable<u32>>,
    hasher: DefaultHashBuilder,
}

impl KeyIndexes {
    /// The position of a key among the members of an object; of two equal keys the first.
    ///
    /// `key_at` is the key at a position.
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

    /// Follows the change of the key at a position. Of two members whose keys were equal, which
    /// JSON does not allow, only the first is known.
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
        // As a search in a row would find it: of two equal keys the first.
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
    // Of two equal keys the first stays, as a search in a row finds it.
    if index.find(hash, |it| key_at(*it) == key).is_none() {
        index.insert_unique(hash, position, |it| hasher.hash_one(key_at(*it)));
    }
}
