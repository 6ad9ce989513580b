//! Writes the client's selection of an action's value.
//!
//! A client may select a list a hundred times under different aliases, so the output has a size limit.

use std::cell::Cell;

use gateway_federation::{AnswerMember, AnswerShape, Checked, MemberSource};
use gateway_template::Json;

/// Writes the members that a client selected.
pub(crate) struct Selecting<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) presences: &'a [bool],
    /// Bytes that the operation may still write. A left-out member counts as one byte, because checking it
    /// costs time.
    pub(crate) left: &'a Cell<usize>,
}

/// The reason why a value was not written completely.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// Error of the value, as a sentence for the client.
    Wrong(String),
    /// The output would exceed the limit.
    TooLarge,
}

impl Selecting<'_> {
    /// Appends the value of a member.
    ///
    /// # Errors
    /// Fails if the value is invalid or too large.
    pub(crate) fn write(
        &self,
        member: AnswerMember<'_>,
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritten> {
        match member.shape() {
            Some(shape) => self.value(shape, member.is_non_null(), member.field(), value, out),
            None => Ok(()),
        }
    }

    fn spend(&self, bytes: usize) -> Result<(), Unwritten> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or(Unwritten::TooLarge)?);
        Ok(())
    }

    fn value(
        &self,
        shape: AnswerShape<'_>,
        is_non_null: bool,
        field: &str,
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritten> {
        if *value == Json::Null {
            if is_non_null {
                let reason = format!("expecting not null value for field \"{field}\"");
                return Err(Unwritten::Wrong(reason));
            }
            out.extend_from_slice(b"null");
            return self.spend(b"null".len());
        }
        if let Some((item, item_is_non_null)) = shape.item() {
            let Json::List(items) = value else {
                return Err(Unwritten::Wrong(format!(
                    "expecting array for action webhook response but got {}",
                    bare_kind(value)
                )));
            };
            out.push(b'[');
            for (position, value) in items.iter().enumerate() {
                self.spend(1)?;
                if position > 0 {
                    out.push(b',');
                }
                self.value(item, item_is_non_null, field, value, out)?;
            }
            out.push(b']');
            return Ok(());
        }
        if shape.is_object() {
            return self.object(shape, value, out);
        }
        // Leaves are not checked: a handler's scalars are passed on unchanged.
        let before = out.len();
        value.write(out);
        self.spend(out.len() - before)
    }

    fn object(
        &self,
        shape: AnswerShape<'_>,
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unwritten> {
        if !matches!(value, Json::Object(_)) {
            return Err(Unwritten::Wrong(format!(
                "expecting object for action webhook response but got {}",
                bare_kind(value)
            )));
        }
        out.push(b'{');
        let mut is_first = true;
        for member in self.checked.members_of(shape) {
            let is_there = member
                .presence()
                .is_none_or(|index| self.presences.get(index).is_some_and(|it| *it));
            if !is_there {
                self.spend(1)?;
                continue;
            }
            self.spend(1 + member.opener().len())?;
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(member.opener());
            match member.source() {
                MemberSource::Typename(text) => out.extend_from_slice(text),
                MemberSource::Introspection => out.extend_from_slice(b"null"),
                // By the field's name, because a handler receives no aliases.
                MemberSource::Field => match value.get(member.field()) {
                    Some(value) => self.write(member, value, out)?,
                    None if member.is_non_null() => {
                        return Err(Unwritten::Wrong(format!(
                            "field \"{}\" expected in webhook response, but not found",
                            member.field()
                        )));
                    }
                    None => out.extend_from_slice(b"null"),
                },
            }
        }
        out.push(b'}');
        Ok(())
    }
}

fn bare_kind(value: &Json<'_>) -> &'static str {
    let kind = value.kind();
    kind.split_once(' ').map_or(kind, |(_, kind)| kind)
}
