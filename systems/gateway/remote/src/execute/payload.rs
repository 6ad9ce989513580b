//! What the handlers of actions are sent, and how much of it one operation may mean.

use gateway_federation::GraphqlError;

use super::Run;
use crate::call::Sources;
use crate::literal::write_members;
use crate::route::{ActionPart, Part};

impl<S: Sources> Run<'_, S> {
    pub(super) fn payload(&self, name: &str, part: &ActionPart) -> Vec<u8> {
        // 256 bytes: room for the fixed parts, a few arguments and session variables.
        let mut out = Vec::with_capacity(256 + self.prepared.query.len());
        self.write_input(name, part, &mut out);
        gateway_template::write_text(&self.prepared.query, &mut out);
        out.push(b'}');
        out
    }

    /// A payload up to the text of the query.
    fn write_input(&self, name: &str, part: &ActionPart, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"action\":{\"name\":");
        gateway_template::write_text(name, out);
        out.extend_from_slice(b"},\"input\":");
        write_members(&part.arguments, self.asking.variables, out);
        out.extend_from_slice(b",\"session_variables\":");
        self.asking.session.write_json(out);
        out.extend_from_slice(b",\"request_query\":");
    }

    /// Refuses an operation whose actions would be sent too much in all. Each payload has the whole
    /// query, and a variable may stand in any number of them, so that what is sent grows with the
    /// square of what the client sends. Before any handler is asked, because a mutation should not end
    /// half way.
    pub(super) fn check_payloads(&self, parts: &[Part]) -> Result<(), GraphqlError> {
        let actions = parts.iter().filter_map(|part| match part {
            Part::Action(part) if self.is_there(part.presence) => Some(part),
            _ => None,
        });
        // One is always sent: it is as long as what the client has sent.
        if actions.clone().nth(1).is_none() {
            return Ok(());
        }
        let mut text = Vec::with_capacity(self.prepared.query.len() + 2);
        gateway_template::write_text(&self.prepared.query, &mut text);
        let after_input = text.len() + b"}".len();
        let most = self.settings.payload_bytes;
        let mut left = most;
        for part in actions {
            text.clear();
            self.write_input(&self.settings.actions[part.action].name, part, &mut text);
            left = left
                .checked_sub(text.len() + after_input)
                .ok_or_else(|| payloads_too_large(most))?;
        }
        Ok(())
    }
}

fn payloads_too_large(most: usize) -> GraphqlError {
    let message = format!(
        "the actions of this operation would be sent more than {most} bytes, as each of them gets the whole query; ask for fewer actions at a time, or move values from the query into variables"
    );
    GraphqlError::new(message, "validation-failed")
}

/// The error in place of a payload of which templates would make too much.
pub(super) fn transformed_too_large(most: usize) -> GraphqlError {
    let message = format!(
        "the templates for requests of this operation's actions may make {most} bytes of what they are sent, and would make more; send less at a time"
    );
    GraphqlError::new(message, "validation-failed")
}
