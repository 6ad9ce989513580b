//! The data of one request: every subgraph's answer, merged.
//!
//! The one idea: nothing is unescaped, boxed or copied per value. All answers lie one
//! behind the other in a single text; a value is a tag and a range in it; the members of an
//! object are one run in one vector. Merging an entity into an object links the two
//! instead of copying members, so that an entity shared by many list elements is stored
//! once.
//!
//! Absent on purpose: numbers. What a subgraph wrote is what the client reads.

use crate::json;

/// A range of the store's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A JSON value whose text lies in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Slice),
    /// What stands between the quotes, escapes as written.
    String(Slice),
    /// A run of the store's items.
    List(Slice),
    Object(ObjectId),
}

/// Index of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(pub(crate) u32);

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The key, unescaped.
    pub(crate) key: Slice,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, Copy)]
struct Object {
    members: Slice,
    /// Index of the first link plus one; zero means none.
    links: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    object: ObjectId,
    /// Index of the next link plus one; zero means none.
    next: u32,
}

/// The answers of one request.
#[derive(Debug, Default)]
pub(crate) struct Store {
    text: Vec<u8>,
    items: Vec<Value>,
    members: Vec<Member>,
    objects: Vec<Object>,
    links: Vec<Link>,
    open_items: Vec<Value>,
    open_members: Vec<Member>,
}

/// Why a body could not be taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl Store {
    /// Takes in a whole JSON text.
    pub(crate) fn parse(&mut self, body: &[u8]) -> Result<Value, Malformed> {
        let body = std::str::from_utf8(body)
            .map_err(|_| Malformed("the body is not valid UTF-8".to_owned()))?;
        let start = self.text.len();
        let end = start.saturating_add(body.len());
        // Keys with escapes are stored a second time, unescaped and so at most half as long, and
        // rewrites add the plan's texts. Half of what a `Slice` can reach has room for both.
        if end.saturating_mul(2) > u32::MAX as usize {
            return Err(Malformed(
                "the answers of one request exceed 2 GiB".to_owned(),
            ));
        }
        self.text.extend_from_slice(body.as_bytes());
        let outcome = json::parse(self, start, end);
        // A body that ends early leaves elements open; the next body must not close over them.
        self.open_items.clear();
        self.open_members.clear();
        outcome
    }

    pub(crate) fn text(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        &self.text[start..start + slice.len as usize]
    }

    /// The whole text; the parser reads it by position.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.text
    }

    /// Keeps a text that no answer contains as it stands.
    pub(crate) fn keep_text(&mut self, text: &[u8]) -> Slice {
        let slice = slice(self.text.len(), text.len());
        self.text.extend_from_slice(text);
        slice
    }

    pub(crate) fn items(&self, list: Slice) -> &[Value] {
        let start = list.start as usize;
        &self.items[start..start + list.len as usize]
    }

    /// The object's own members, without those of the entities merged into it.
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

    /// Looks a member up, first in the object, then in what was merged into it.
    pub(crate) fn get(&self, object: ObjectId, key: &[u8]) -> Option<Value> {
        let mut position = 0;
        self.get_hinted(object, key, &mut position)
    }

    /// Like [`Store::get`], trying first the member after the one found last: subgraphs
    /// answer in the order they were asked.
    pub(crate) fn get_hinted(
        &self,
        object: ObjectId,
        key: &[u8],
        position: &mut usize,
    ) -> Option<Value> {
        let own = self.own_members(object);
        // The hint covers own members only; merged ones come in an order that the selection does
        // not know.
        if let Some(member) = own.get(*position)
            && self.text(member.key) == key
        {
            *position += 1;
            return Some(member.value);
        }
        for (index, member) in own.iter().enumerate() {
            if self.text(member.key) == key {
                *position = index + 1;
                return Some(member.value);
            }
        }
        self.linked(object).find_map(|linked| self.get(linked, key))
    }

    /// The position of a member in the store, wherever the object has it from.
    fn find_slot(&self, object: ObjectId, key: &[u8]) -> Option<usize> {
        let start = self.objects[object.0 as usize].members.start as usize;
        let own = self.own_members(object);
        if let Some(index) = own.iter().position(|m| self.text(m.key) == key) {
            return Some(start + index);
        }
        self.linked(object)
            .find_map(|linked| self.find_slot(linked, key))
    }

    /// Merges an object of a later answer into one of an earlier answer.
    ///
    /// Objects and lists of equal length merge element by element; of two other values the
    /// later wins, except that null replaces nothing and that a `__typename` gives way only
    /// when it is not `concrete`: an interface object's subgraph knows the name of the
    /// interface alone.
    pub(crate) fn merge(
        &mut self,
        target: ObjectId,
        source: ObjectId,
        concrete: &dyn Fn(&[u8]) -> bool,
    ) {
        // One entity may reach one object by two aliases or two places; linked twice, its members
        // would be written twice.
        if target == source || self.linked(target).any(|linked| linked == source) {
            return;
        }
        let members = self.objects[source.0 as usize].members;
        // By index, because the loop changes `self`; a run never moves within its vector.
        for index in members.start..members.start + members.len {
            let Member { key, value } = self.members[index as usize];
            if value == Value::Null {
                continue;
            }
            let Some(slot) = self.find_slot(target, self.text(key)) else {
                // A member that the target lacks needs no copy: the link below makes it visible.
                continue;
            };
            // Changed where it lies, even in an object merged earlier, because `get` finds that
            // place first.
            let old = self.members[slot].value;
            let is_typename = self.text(key) == b"__typename";
            if is_typename && matches!(old, Value::String(name) if concrete(self.text(name))) {
                continue;
            }
            self.members[slot].value = self.merge_values(old, value, concrete);
        }
        self.link(target, source);
    }

    fn merge_values(&mut self, old: Value, new: Value, concrete: &dyn Fn(&[u8]) -> bool) -> Value {
        match (old, new) {
            (old, Value::Null) => old,
            (Value::Object(target), Value::Object(source)) => {
                self.merge(target, source, concrete);
                old
            }
            (Value::List(target), Value::List(source)) if target.len == source.len => {
                for offset in 0..target.len {
                    let into = (target.start + offset) as usize;
                    let from = (source.start + offset) as usize;
                    // Values are copied out and back (12 bytes each), because two elements of
                    // `items` cannot be borrowed at once.
                    self.items[into] =
                        self.merge_values(self.items[into], self.items[from], concrete);
                }
                old
            }
            (_, new) => new,
        }
    }

    fn link(&mut self, target: ObjectId, source: ObjectId) {
        // Appended at the end, for `linked` promises the oldest first. An object has as many links
        // as fetches brought it: a few.
        self.links.push(Link {
            object: source,
            next: 0,
        });
        let added = u32_of(self.links.len());
        let mut next = self.objects[target.0 as usize].links;
        if next == 0 {
            self.objects[target.0 as usize].links = added;
            return;
        }
        loop {
            let link = &mut self.links[next as usize - 1];
            if link.next == 0 {
                link.next = added;
                return;
            }
            next = link.next;
        }
    }

    /// Gives one member another key.
    pub(crate) fn rename(&mut self, object: ObjectId, from: &[u8], to: Slice) {
        let Some(slot) = self.find_slot(object, from) else {
            return;
        };
        self.members[slot].key = to;
    }

    /// Sets one member to a string.
    pub(crate) fn set_string(&mut self, object: ObjectId, key: &[u8], text: Slice) {
        let Some(slot) = self.find_slot(object, key) else {
            return;
        };
        self.members[slot].value = Value::String(text);
    }

    pub(crate) fn begin(&self) -> (usize, usize) {
        (self.open_items.len(), self.open_members.len())
    }

    pub(crate) fn push_item(&mut self, value: Value) {
        self.open_items.push(value);
    }

    pub(crate) fn push_member(&mut self, key: Slice, value: Value) {
        self.open_members.push(Member { key, value });
    }

    /// Closes a list whose elements are those pushed since there were `open`.
    pub(crate) fn close_list(&mut self, open: usize) -> Value {
        // Open elements wait on a stack of their own, so that a nested list is finished first and
        // every run is contiguous, without an allocation per list.
        let run = slice(self.items.len(), self.open_items.len() - open);
        self.items.extend(self.open_items.drain(open..));
        Value::List(run)
    }

    /// Closes an object whose members are those pushed since there were `open`.
    pub(crate) fn close_object(&mut self, open: usize) -> Value {
        let run = slice(self.members.len(), self.open_members.len() - open);
        self.members.extend(self.open_members.drain(open..));
        let id = ObjectId(u32_of(self.objects.len()));
        self.objects.push(Object {
            members: run,
            links: 0,
        });
        Value::Object(id)
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
                let mut first = true;
                self.write_members(object, &mut first, out);
                out.push(b'}');
            }
        }
    }

    fn write_members(&self, object: ObjectId, first: &mut bool, out: &mut Vec<u8>) {
        for member in self.own_members(object) {
            if !std::mem::take(first) {
                out.push(b',');
            }
            json::write_key(self.text(member.key), out);
            self.write(member.value, out);
        }
        for linked in self.linked(object) {
            self.write_members(linked, first, out);
        }
    }

    /// The value as `serde_json` has it, for the few places that look into extensions.
    ///
    /// # Errors
    /// `serde_json` is stricter than the store: it refuses lone surrogates, numbers beyond a
    /// 64-bit float and nesting deeper than 127.
    pub(crate) fn to_json(&self, value: Value) -> Result<serde_json::Value, Malformed> {
        let mut text = Vec::new();
        self.write(value, &mut text);
        serde_json::from_slice(&text)
            .map_err(|error| Malformed(format!("`errors` cannot be read: {error}")))
    }
}

/// A range; the caller has checked that the store stays below 4 GiB.
pub(crate) fn slice(start: usize, len: usize) -> Slice {
    Slice {
        start: u32_of(start),
        len: u32_of(len),
    }
}

fn u32_of(count: usize) -> u32 {
    u32::try_from(count)
        .expect("`parse` keeps the text below 4 GiB, and every element takes at least a byte of it")
}
