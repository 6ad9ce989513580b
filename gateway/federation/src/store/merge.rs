//! Merges the responses about one object. The later object is linked to the earlier object, and only their
//! common members are compared.

use super::{Link, Member, ObjectId, Store, Value, u32_of};

impl Store {
    /// Merges an object of a later response into an object of an earlier response.
    ///
    /// Objects and lists of equal length merge element by element. Of two other values, the later one stays,
    /// with two exceptions. Null does not replace a value. A `__typename` is replaced only if it is not
    /// `concrete`, because the subgraph of an interface object returns only the name of the interface.
    pub(crate) fn merge(
        &mut self,
        target: ObjectId,
        source: ObjectId,
        concrete: &dyn Fn(&[u8]) -> bool,
    ) {
        self.merge_replacing(target, source, &[], concrete);
    }

    /// Like [`Store::merge`]. The keys in `replaced` contain another field in the later response, so its
    /// value always replaces the earlier one.
    pub(crate) fn merge_replacing(
        &mut self,
        target: ObjectId,
        source: ObjectId,
        replaced: &[Vec<u8>],
        concrete: &dyn Fn(&[u8]) -> bool,
    ) {
        // One entity can reach one object through two aliases or two places. If it were linked twice, its
        // members would be written twice.
        if target == source || self.linked(target).any(|linked| linked == source) {
            return;
        }
        let members = self.objects[source.0 as usize].members;
        // By index, because the loop changes `self`. A run never moves within its vector.
        for index in members.start..members.start + members.len {
            let Member { key, value } = self.members[index as usize];
            let is_replaced = replaced.iter().any(|it| it == self.text(key));
            if value == Value::Null && !is_replaced {
                continue;
            }
            let Some((_, slot)) = self.find_slot(target, self.text(key)) else {
                // A member that the target lacks needs no copy, because the link below makes it visible.
                continue;
            };
            // Changed in its place, even in an object that was merged earlier, because `get` finds that place
            // first.
            if is_replaced {
                self.members[slot].value = value;
                continue;
            }
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
                    // Values are copied out and back (12 bytes each), because two elements of `items` cannot
                    // be borrowed at the same time.
                    self.items[into] =
                        self.merge_values(self.items[into], self.items[from], concrete);
                }
                old
            }
            (_, new) => new,
        }
    }

    fn link(&mut self, target: ObjectId, source: ObjectId) {
        // Appended at the end, because `linked` returns the oldest first. An object has one link for each
        // fetch that returned it, so only a few.
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
}
