//! The words of commands of systems.

use lab::{Endpoint, Text};

/// Returns the words of a command with all addresses inserted.
///
/// # Errors
/// Fails with the reason if a word names a system without an address.
pub(crate) fn render_all(
    words: &[Text],
    find: &dyn Fn(&str) -> Option<Endpoint>,
) -> Result<Vec<String>, String> {
    words.iter().map(|word| word.render(find)).collect()
}
