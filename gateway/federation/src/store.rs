//! The merged responses of all subgraphs for one request.
//!
//! The store does not unescape, box or copy single values. All responses stand one after the other in a
//! single text. A value is a tag and a range of this text. The members of an object are one run in one
//! vector. When the gateway merges an entity into an object, the store links the two and copies no members.
//! So an entity that many list elements share is stored once.
//!
//! The store deliberately does not convert numbers. The client receives each number as the subgraph wrote it.

mod json;
mod key_index;
mod merge;

use std::cell::{Cell, RefCell};

use key_index::{KeyIndexes, SCANNED_MAX};

/// Bytes of a value that count against the limit of [`Store::bounded`]. An item or a member takes 20 bytes
/// and an object 16, rounded up.
const VALUE_BYTES: usize = 40;

/// A range of the store's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A JSON value. Its text is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Slice),
    /// The text between the quotes, with escapes as the subgraph wrote them.
    String(Slice),
    /// A run of the store's items.
    List(Slice),
    Object(ObjectId),
}

/// Index into [`Store::objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(pub(crate) u32);

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The key without escapes.
    pub(crate) key: Slice,
    pub(crate) value: Value,
}

#[derive(Debug)]
struct Object {
    members: Slice,
    /// Index of the first link plus one, or 0 without a link.
    links: u32,
    /// The mark of the last walk that visited the object. See [`Store::marks`].
    mark: Cell<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    object: ObjectId,
    /// Index of the next link plus one, or 0 at the end.
    next: u32,
}

/// Positions at which the search for the next member of an object starts.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Hint {
    /// Position after the object's own member that was found last.
    own: usize,
    /// Position after the member that was found last in a merged object.
    linked: usize,
}

/// The subgraph responses of one request.
#[derive(Debug)]
pub(crate) struct Store {
    /// Approximate maximum of all bytes in the store.
    bytes_max: usize,
    /// True if the store refused a response because it would exceed `bytes_max`.
    is_full: bool,
    /// The last mark that a walk received.
    marks: Cell<u32>,
    /// Boxed, because most requests have no large object.
    indexes: RefCell<Option<Box<KeyIndexes>>>,
    #[cfg(test)]
    compared: Cell<usize>,
    text: Vec<u8>,
    items: Vec<Value>,
    members: Vec<Member>,
    objects: Vec<Object>,
    links: Vec<Link>,
    open_items: Vec<Value>,
    open_members: Vec<Member>,
}

/// Reason why the store could not read a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl Default for Store {
    fn default() -> Store {
        Store::bounded(usize::MAX)
    }
}

impl Store {
    /// Creates a store of at most about `bytes_max` bytes.
    pub(crate) fn bounded(bytes_max: usize) -> Store {
        Store {
            // The store also contains an unescaped copy of each key with escapes, which is at most half as
            // long. Rewrites add the plan's texts. Half of the range of a `Slice` leaves room for both.
            bytes_max: bytes_max.min(u32::MAX as usize / 2),
            is_full: false,
            marks: Cell::default(),
            indexes: RefCell::default(),
            #[cfg(test)]
            compared: Cell::default(),
            text: Vec::new(),
            items: Vec::new(),
            members: Vec::new(),
            objects: Vec::new(),
            links: Vec::new(),
            open_items: Vec::new(),
            open_members: Vec::new(),
        }
    }

    /// Reads a whole JSON text into the store. An unreadable text leaves the store unchanged.
    pub(crate) fn parse(&mut self, body: &[u8]) -> Result<Value, Malformed> {
        let body = std::str::from_utf8(body)
            .map_err(|_| Malformed("the body is not valid UTF-8".to_owned()))?;
        let start = self.text.len();
        let end = start.saturating_add(body.len());
        // The limit is checked before the text is copied, and again before each value is stored.
        let taken = self.taken().saturating_add(body.len());
        let Some(left) = self.bytes_max.checked_sub(taken) else {
            return Err(self.full());
        };
        self.text.extend_from_slice(body.as_bytes());
        let before = (self.items.len(), self.members.len(), self.objects.len());
        let outcome = json::parse(self, start..end, left / VALUE_BYTES);
        // A truncated body leaves elements open. The next body must not close them.
        self.open_items.clear();
        self.open_members.clear();
        if outcome.is_err() {
            // Links and indexes need no rollback, because only completely read values get any.
            self.text.truncate(start);
            self.items.truncate(before.0);
            self.members.truncate(before.1);
            self.objects.truncate(before.2);
        }
        outcome
    }

    /// Records that a response does not fit.
    #[cold]
    fn full(&mut self) -> Malformed {
        self.is_full = true;
        Malformed("it is larger than one request may hold".to_owned())
    }

    /// True if a response did not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Number of list items plus number of objects.
    pub(crate) fn extent(&self) -> usize {
        self.items.len() + self.objects.len()
    }

    /// Reserves `count` marks that no object has yet, for one walk. Returns the first.
    pub(crate) fn marks(&self, count: usize) -> u32 {
        let first = self.marks.get() + 1;
        self.marks.set(first + u32_of(count));
        first
    }

    /// Marks an object with one of a walk's marks. Returns false if the object has that mark already.
    pub(crate) fn mark(&self, object: ObjectId, first: u32, offset: usize) -> bool {
        let mark = first + u32_of(offset);
        self.objects[object.0 as usize].mark.replace(mark) != mark
    }

    pub(crate) fn text(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        &self.text[start..start + slice.len as usize]
    }

    /// The whole text. The parser reads it by position.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.text
    }

    /// Adds a text that is not part of a response.
    pub(crate) fn keep_text(&mut self, text: &[u8]) -> Slice {
        let slice = slice(self.text.len(), text.len());
        self.text.extend_from_slice(text);
        slice
    }

    pub(crate) fn items(&self, list: Slice) -> &[Value] {
        let start = list.start as usize;
        &self.items[start..start + list.len as usize]
    }

    /// The object's own members, without the members of merged entities.
    pub(crate) fn own_members(&self, object: ObjectId) -> &[Member] {
        let members = self.objects[object.0 as usize].members;
        let start = members.start as usize;
        &self.members[start..start + members.len as usize]
    }

    /// The objects merged into this one, oldest first.
    pub(crate) fn linked(&self, object: ObjectId) -> impl Iterator<Item = ObjectId> + '_ {
        let mut next = self.objects[object.0 as usize].links;
        std::iter::from_fn(move || {
            // Zero means "no link": four bytes, where an `Option<u32>` takes eight.
            let link = *self.links.get((next as usize).checked_sub(1)?)?;
            next = link.next;
            Some(link.object)
        })
    }

    /// Finds a member, first in the object and then in the objects merged into it.
    pub(crate) fn get(&self, object: ObjectId, key: &[u8]) -> Option<Value> {
        self.get_hinted(object, key, &mut Hint::default())
    }

    /// Like [`Store::get`], but first tries the member after the last hit. Subgraphs respond in the order of
    /// the requested fields.
    pub(crate) fn get_hinted(
        &self,
        object: ObjectId,
        key: &[u8],
        hint: &mut Hint,
    ) -> Option<Value> {
        if let Some(value) = self.own_hinted(object, key, &mut hint.own) {
            return Some(value);
        }
        // All linked objects share one hint. A wrong hint costs one comparison.
        self.linked(object).find_map(|linked| {
            let own = self.own_hinted(linked, key, &mut hint.linked);
            own.or_else(|| Some(self.linked_place(linked, key)?.1))
        })
    }

    fn own_hinted(&self, object: ObjectId, key: &[u8], position: &mut usize) -> Option<Value> {
        let own = self.own_members(object);
        if let Some(member) = own.get(*position)
            && self.is_key(member, key)
        {
            *position += 1;
            return Some(member.value);
        }
        let index = self.own_position(object, key)?;
        *position = index + 1;
        own.get(index).map(|member| member.value)
    }

    /// Like [`Store::get`], and also returns the object that owns the member.
    pub(crate) fn get_owned(&self, object: ObjectId, key: &[u8]) -> Option<(ObjectId, Value)> {
        match self.own_position(object, key) {
            Some(index) => Some((object, self.own_members(object)[index].value)),
            None => self.linked_place(object, key),
        }
    }

    /// A member of a merged object, together with that object.
    fn linked_place(&self, object: ObjectId, key: &[u8]) -> Option<(ObjectId, Value)> {
        self.linked(object)
            .find_map(|linked| self.get_owned(linked, key))
    }

    fn own_position(&self, object: ObjectId, key: &[u8]) -> Option<usize> {
        let own = self.own_members(object);
        if own.len() > SCANNED_MAX {
            return self.indexed_position(object, key);
        }
        own.iter().position(|member| self.is_key(member, key))
    }

    /// Separate from `own_position`, because that function is inlined into every search.
    #[inline(never)]
    fn indexed_position(&self, object: ObjectId, key: &[u8]) -> Option<usize> {
        let members = self.objects[object.0 as usize].members;
        let mut indexes = self.indexes.borrow_mut();
        let indexes = indexes.get_or_insert_default();
        let key_at = |position: u32| self.key_at(position);
        let found = indexes.find(object, members, key, key_at)?;
        Some(found - members.start as usize)
    }

    fn key_at(&self, position: u32) -> &[u8] {
        self.count_comparison();
        self.text(self.members[position as usize].key)
    }

    fn is_key(&self, member: &Member, key: &[u8]) -> bool {
        self.count_comparison();
        self.text(member.key) == key
    }

    /// Counts comparisons, so that tests can limit the work.
    #[inline]
    fn count_comparison(&self) {
        #[cfg(test)]
        self.compared.set(self.compared.get() + 1);
    }

    /// The owner of a member and the member's position in the store. Includes merged objects.
    fn find_slot(&self, object: ObjectId, key: &[u8]) -> Option<(ObjectId, usize)> {
        let start = self.objects[object.0 as usize].members.start as usize;
        if let Some(index) = self.own_position(object, key) {
            return Some((object, start + index));
        }
        self.linked(object)
            .find_map(|linked| self.find_slot(linked, key))
    }

    /// Gives one member another key.
    pub(crate) fn rename(&mut self, object: ObjectId, from: &[u8], to: Slice) {
        let Some((owner, slot)) = self.find_slot(object, from) else {
            return;
        };
        self.members[slot].key = to;
        // An index holds the hash of the old key, so a search for the new one would miss it.
        if let Some(indexes) = self.indexes.borrow_mut().as_deref_mut() {
            let key_at = |position: u32| self.key_at(position);
            indexes.rename(owner, u32_of(slot), from, self.text(to), key_at);
        }
    }

    /// Sets one member to a string.
    pub(crate) fn set_string(&mut self, object: ObjectId, key: &[u8], text: Slice) {
        let Some((_, slot)) = self.find_slot(object, key) else {
            return;
        };
        // Unlike `rename`, this leaves the keys alone, so no index has to follow.
        self.members[slot].value = Value::String(text);
    }

    fn begin(&self) -> (usize, usize) {
        (self.open_items.len(), self.open_members.len())
    }

    fn push_item(&mut self, value: Value) {
        self.open_items.push(value);
    }

    fn push_member(&mut self, key: Slice, value: Value) {
        self.open_members.push(Member { key, value });
    }

    /// Closes a list. Its elements are the open items from index `open` on.
    fn close_list(&mut self, open: usize) -> Value {
        // Open elements wait on a separate stack. So a nested list is complete first and every run is
        // contiguous, without an allocation per list.
        let run = slice(self.items.len(), self.open_items.len() - open);
        self.items.extend(self.open_items.drain(open..));
        Value::List(run)
    }

    /// Closes an object. Its members are the open members from index `open` on.
    fn close_object(&mut self, open: usize) -> Value {
        let run = slice(self.members.len(), self.open_members.len() - open);
        self.members.extend(self.open_members.drain(open..));
        let id = ObjectId(u32_of(self.objects.len()));
        self.objects.push(Object {
            members: run,
            links: 0,
            mark: Cell::default(),
        });
        Value::Object(id)
    }

    /// Copies an object with everything below it. `None` if the copy does not fit. Merged objects are not
    /// copied, so the object must not have any yet.
    pub(crate) fn copy(&mut self, object: ObjectId) -> Option<ObjectId> {
        let (items, members) = self.begin();
        let copied = self.copied(Value::Object(object));
        // A copy that ended early leaves elements open.
        self.open_items.truncate(items);
        self.open_members.truncate(members);
        match copied {
            Some(Value::Object(copied)) => Some(copied),
            _ => None,
        }
    }

    fn copied(&mut self, value: Value) -> Option<Value> {
        let (items, members) = self.begin();
        match value {
            Value::List(list) => {
                self.reserve(list.len)?;
                for index in 0..list.len as usize {
                    let item = self.copied(self.items(list)[index])?;
                    self.push_item(item);
                }
                Some(self.close_list(items))
            }
            Value::Object(object) => {
                let Object {
                    members: run,
                    links,
                    ..
                } = self.objects[object.0 as usize];
                assert_eq!(links, 0, "only what was just received is copied");
                self.reserve(run.len + 1)?;
                for index in run.start..run.start + run.len {
                    let Member { key, value } = self.members[index as usize];
                    let value = self.copied(value)?;
                    self.push_member(key, value);
                }
                Some(self.close_object(members))
            }
            leaf => Some(leaf),
        }
    }

    /// Checks that `values` more values fit in addition to the open ones. `None` if they do not.
    fn reserve(&mut self, values: u32) -> Option<()> {
        let open = self.open_items.len() + self.open_members.len();
        let taken = self.taken().saturating_add(open * VALUE_BYTES);
        let wanted = (values as usize).saturating_mul(VALUE_BYTES);
        if taken.saturating_add(wanted) > self.bytes_max {
            self.is_full = true;
            return None;
        }
        Some(())
    }

    /// Approximate number of bytes in use.
    fn taken(&self) -> usize {
        // An object counts twice: once itself and once as the item or member that holds it. So each counts
        // half of `VALUE_BYTES`.
        let values = self.items.len() + self.members.len() + self.objects.len();
        self.text.len().saturating_add(values * (VALUE_BYTES / 2))
    }

    /// An object without members, the root of a request's data.
    pub(crate) fn empty_object(&mut self) -> ObjectId {
        match self.close_object(self.open_members.len()) {
            Value::Object(id) => id,
            _ => unreachable!("closing an object gives an object"),
        }
    }

    /// Appends a value as JSON.
    pub(crate) fn write(&self, value: Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Number(text) => out.extend_from_slice(self.text(text)),
            Value::String(text) => {
                out.push(b'"');
                out.extend_from_slice(self.text(text));
                out.push(b'"');
            }
            Value::List(list) => {
                out.push(b'[');
                for (index, item) in self.items(list).iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.write(*item, out);
                }
                out.push(b']');
            }
            Value::Object(object) => {
                out.push(b'{');
                self.write_members(object, out);
                out.push(b'}');
            }
        }
    }

    /// Writes each key once, with the value that a search finds for it. A subgraph or two subgraphs can send
    /// a key twice. Every reader must then see the same value.
    fn write_members(&self, object: ObjectId, out: &mut Vec<u8>) {
        let (own, mut merged) = ([object], Vec::new());
        let parts: &[ObjectId] = if self.objects[object.0 as usize].links == 0 {
            &own
        } else {
            self.collect_parts(object, &mut merged);
            &merged
        };
        let mut first = true;
        for part in parts {
            let start = self.objects[part.0 as usize].members.start as usize;
            for (index, member) in self.own_members(*part).iter().enumerate() {
                let key = self.text(member.key);
                if self.find_slot(object, key) != Some((*part, start + index)) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                json::write_key(key, out);
                self.write(member.value, out);
            }
        }
    }

    /// Collects an object and its merged objects, each once, in search order.
    fn collect_parts(&self, object: ObjectId, parts: &mut Vec<ObjectId>) {
        if parts.contains(&object) {
            return;
        }
        parts.push(object);
        for linked in self.linked(object) {
            self.collect_parts(linked, parts);
        }
    }

    /// Converts a value for `serde_json`. The few places that read extensions use it.
    ///
    /// # Errors
    /// `serde_json` is stricter than the store: it refuses lone surrogates, numbers beyond a 64-bit float and
    /// nesting deeper than 127.
    pub(crate) fn to_json(&self, value: Value) -> Result<serde_json::Value, Malformed> {
        let mut text = Vec::new();
        self.write(value, &mut text);
        serde_json::from_slice(&text)
            .map_err(|error| Malformed(format!("`errors` cannot be read: {error}")))
    }
}

/// Creates a range. The caller has checked that the store stays below 4 GiB.
fn slice(start: usize, len: usize) -> Slice {
    Slice {
        start: u32_of(start),
        len: u32_of(len),
    }
}

fn u32_of(count: usize) -> u32 {
    u32::try_from(count)
        .expect("`parse` keeps the text below 4 GiB, and every element takes at least a byte of it")
}

#[cfg(test)]
mod tests;
