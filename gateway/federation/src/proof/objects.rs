//! The objects in a trial of a plan without data.

use std::collections::BTreeMap;

use hive_router_query_planner::ast::selection_set::FieldSelection;

use super::{ProofError, proof_error};
use crate::plan::{Change, PathStep, Rewrite, RewriteStep};

/// Index into [`Objects`].
pub(super) type Id = usize;

/// All objects. Objects that were merged into other objects stay in the list.
#[derive(Default)]
pub(super) struct Objects<'a>(Vec<Object<'a>>);

/// Represents all objects of one type at one place.
struct Object<'a> {
    /// The object type in the supergraph.
    real: &'a str,
    /// The received `__typename`. `None` if no fetch selected it.
    name: Option<&'a str>,
    /// The members, by key in the data.
    members: BTreeMap<Vec<u8>, Member<'a>>,
}

/// Source of an object's member.
#[derive(Clone)]
pub(super) struct Member<'a> {
    field: &'a FieldSelection,
    /// One object for each possible type of the value.
    pub(super) below: Vec<Id>,
}

impl<'a> Member<'a> {
    /// Creates a member from a field of a subgraph's operation.
    pub(super) fn of(field: &'a FieldSelection) -> Member<'a> {
        Member {
            field,
            below: Vec::new(),
        }
    }

    /// True if the member comes from an equal field with equal arguments.
    pub(super) fn is_of(&self, field: &FieldSelection) -> bool {
        self.field.name == field.name && self.field.arguments() == field.arguments()
    }
}

impl<'a> Objects<'a> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, real: &'a str) -> Id {
        self.0.push(Object {
            real,
            name: None,
            members: BTreeMap::new(),
        });
        self.0.len() - 1
    }

    pub(super) fn real(&self, object: Id) -> &'a str {
        self.0[object].real
    }

    pub(super) fn name(&self, object: Id) -> Option<&'a str> {
        self.0[object].name
    }

    pub(super) fn member(&self, object: Id, key: &[u8]) -> Option<&Member<'a>> {
        self.0[object].members.get(key)
    }

    /// Records a `__typename`. The name of the object type replaces the name of an interface.
    pub(super) fn name_it(&mut self, object: Id, name: &'a str) {
        let object = &mut self.0[object];
        if object.name != Some(object.real) {
            object.name = Some(name);
        }
    }

    /// Adds a member. An existing member must come from an equal field.
    pub(super) fn set(
        &mut self,
        object: Id,
        key: &str,
        member: Member<'a>,
    ) -> Result<(), ProofError> {
        self.put(object, key.as_bytes().to_vec(), member, None)
    }

    /// Adds a member. With `replaced`, it replaces a member of another field, and its key is recorded there.
    fn put(
        &mut self,
        object: Id,
        key: Vec<u8>,
        member: Member<'a>,
        replaced: Option<&mut Vec<Vec<u8>>>,
    ) -> Result<(), ProofError> {
        let Some(known) = self.0[object].members.get(&key) else {
            self.0[object].members.insert(key, member);
            return Ok(());
        };
        if !known.is_of(member.field) {
            if let Some(replaced) = replaced {
                if !replaced.contains(&key) {
                    replaced.push(key.clone());
                }
                self.0[object].members.insert(key, member);
                return Ok(());
            }
            let key = String::from_utf8_lossy(&key);
            let real = self.0[object].real;
            return Err(proof_error(format!(
                "`{key}` of `{real}` is two fields at once"
            )));
        }
        let known = known.below.clone();
        let mut added = Vec::new();
        for below in member.below {
            let same = known.iter().find(|it| self.real(**it) == self.real(below));
            match same {
                Some(same) => self.merge(*same, below, None)?,
                None => added.push(below),
            }
        }
        if let Some(known) = self.0[object].members.get_mut(&key) {
            known.below.extend(added);
        }
        Ok(())
    }

    /// Merges the object of a later response into an object of an earlier response. See [`Objects::put`].
    pub(super) fn merge(
        &mut self,
        target: Id,
        source: Id,
        mut replaced: Option<&mut Vec<Vec<u8>>>,
    ) -> Result<(), ProofError> {
        if let Some(name) = self.0[source].name {
            self.name_it(target, name);
        }
        let members = std::mem::take(&mut self.0[source].members);
        for (key, member) in members {
            self.put(target, key, member, replaced.as_deref_mut())?;
        }
        Ok(())
    }

    /// The objects at the end of a path, found in the same way as in the executor.
    pub(super) fn at(&self, root: Id, path: &[PathStep]) -> Vec<Id> {
        let mut found = vec![root];
        for step in path {
            found = match step {
                PathStep::List => found,
                PathStep::Key(key) => {
                    let members = found.iter().filter_map(|object| self.member(*object, key));
                    members.flat_map(|it| it.below.iter().copied()).collect()
                }
                PathStep::Types(types) => {
                    let has = |object: &Id| {
                        let name = self.name(*object);
                        name.is_none_or(|name| types.contains(name.as_bytes()))
                    };
                    found.into_iter().filter(has).collect()
                }
            };
        }
        found
    }

    /// The keys on the path from the root, the first object, to an object.
    pub(super) fn path_to(&self, object: Id) -> Option<Vec<Vec<u8>>> {
        let mut open = vec![(0, Vec::new())];
        while let Some((at, path)) = open.pop() {
            if at == object {
                return Some(path);
            }
            for (key, member) in &self.0.get(at)?.members {
                let below = [path.as_slice(), std::slice::from_ref(key)].concat();
                open.extend(member.below.iter().map(|it| (*it, below.clone())));
            }
        }
        None
    }

    /// Applies the plan's changes to a subgraph response.
    pub(super) fn rewrite(&mut self, answer: Id, rewrites: &'a [Rewrite]) {
        for rewrite in rewrites {
            self.rewrite_at(answer, &rewrite.path, &rewrite.change);
        }
    }

    fn rewrite_at(&mut self, object: Id, path: &'a [RewriteStep], change: &'a Change) {
        match path {
            [RewriteStep::Types(types), rest @ ..] => {
                let name = self.name(object);
                if name.is_none_or(|name| types.contains(name.as_bytes())) {
                    self.rewrite_at(object, rest, change);
                }
            }
            [RewriteStep::Key(key)] => match change {
                Change::Rename(to) => {
                    let members = &mut self.0[object].members;
                    if let Some(member) = members.remove(key) {
                        members.insert(to.clone(), member);
                    }
                }
                Change::Set(text) if key == b"__typename" => {
                    self.0[object].name = std::str::from_utf8(text).ok();
                }
                Change::Set(_) => {}
            },
            [RewriteStep::Key(key), rest @ ..] => {
                let below = self.member(object, key).map(|it| it.below.clone());
                for below in below.into_iter().flatten() {
                    self.rewrite_at(below, rest, change);
                }
            }
            [] => {}
        }
    }
}
