//! What a client selected of an action's value.

use gateway_federation::{AnswerMember, AnswerShape, Checked, MemberSource};
use gateway_template::Json;

/// Writes the members that a client asked for.
pub(crate) struct Selecting<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) presences: &'a [bool],
}

impl Selecting<'_> {
    /// Appends the value of a member.
    ///
    /// # Errors
    /// What is wrong with the value, as a sentence for the client.
    pub(crate) fn write(
        &self,
        member: AnswerMember<'_>,
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match member.shape() {
            Some(shape) => self.value(shape, (member.is_non_null(), member.field()), value, out),
            None => Ok(()),
        }
    }

    fn value(
        &self,
        shape: AnswerShape<'_>,
        (is_non_null, field): (bool, &str),
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if *value == Json::Null {
            if is_non_null {
                return Err(format!("expecting not null value for field \"{field}\""));
            }
            out.extend_from_slice(b"null");
            return Ok(());
        }
        if let Some((item, item_is_non_null)) = shape.item() {
            let Json::List(items) = value else {
                return Err(format!(
                    "expecting array for action webhook response but got {}",
                    bare_kind(value)
                ));
            };
            out.push(b'[');
            for (position, value) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                self.value(item, (item_is_non_null, field), value, out)?;
            }
            out.push(b']');
            return Ok(());
        }
        if shape.is_object() {
            return self.object(shape, value, out);
        }
        // Leaves are not checked: a handler's scalars pass as they are.
        value.write(out);
        Ok(())
    }

    fn object(
        &self,
        shape: AnswerShape<'_>,
        value: &Json<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if !matches!(value, Json::Object(_)) {
            return Err(format!(
                "expecting object for action webhook response but got {}",
                bare_kind(value)
            ));
        }
        out.push(b'{');
        let mut is_first = true;
        for member in self.checked.members_of(shape) {
            let is_there = member
                .presence()
                .is_none_or(|index| self.presences.get(index).is_some_and(|it| *it));
            if !is_there {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(member.opener());
            match member.source() {
                MemberSource::Typename(text) => out.extend_from_slice(text),
                MemberSource::Introspection => out.extend_from_slice(b"null"),
                // By the field's name: a handler knows nothing of the client's aliases.
                MemberSource::Field => match value.get(member.field()) {
                    Some(value) => self.write(member, value, out)?,
                    None if member.is_non_null() => {
                        return Err(format!(
                            "field \"{}\" expected in webhook response, but not found",
                            member.field()
                        ));
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
