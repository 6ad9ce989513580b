//! The payloads for handlers of actions, and their size limit for one operation.

use gateway_federation::GraphqlError;

use super::Run;
use crate::call::Sources;
use crate::literal::Writer;
use crate::route::{ActionPart, Part};

impl<S: Sources> Run<'_, S> {
    pub(super) fn payload(&self, name: &str, part: &ActionPart) -> Vec<u8> {
        // 256 bytes are enough for the fixed parts, a few arguments and session variables.
        let mut out = Vec::with_capacity(256 + self.prepared.query.len());
        self.write_input(name, part, &mut out);
        gateway_template::write_text(&self.prepared.query, &mut out);
        out.push(b'}');
        out
    }

    /// Writes a payload up to the text of the query.
    fn write_input(&self, name: &str, part: &ActionPart, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"action\":{\"name\":");
        gateway_template::write_text(name, out);
        out.extend_from_slice(b"},\"input\":");
        let writer = Writer {
            variables: self.asking.variables,
            schema: &self.prepared.merged.schema,
        };
        writer.members(&part.arguments, out);
        out.extend_from_slice(b",\"session_variables\":");
        self.asking.session.write_json(out);
        out.extend_from_slice(b",\"request_query\":");
    }

    /// Refuses an operation with too large payloads in total. Each payload contains the whole query, and
    /// several payloads can contain the same variable. The payloads thus grow with the square of the client's
    /// request. The check runs before any request to a handler, because a mutation should not stop half way.
    pub(super) fn check_payloads(&self, parts: &[Part]) -> Result<(), GraphqlError> {
        let actions = parts.iter().filter_map(|part| match part {
            Part::Action(part) if self.is_there(part.presence) => Some(part),
            _ => None,
        });
        // A single payload is always sent: it is about as long as the client's request.
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

/// The error that replaces a payload if templates would make it too large.
pub(super) fn transformed_too_large(most: usize) -> GraphqlError {
    let message = format!(
        "the templates for requests of this operation's actions may make {most} bytes of what they are sent, and would make more; send less at a time"
    );
    GraphqlError::new(message, "validation-failed")
}
