//! What a configuration file must look like, by the JSON Schema made from the structs.

use yaml_with_places::{Blank, Findings, Misspelling, Node, Structure};

use crate::schema::schema;
use crate::written;

/// Reports every part that does not match the schema, and returns the rest.
pub(crate) fn check(root: Node, findings: &mut Findings) -> Node {
    let structure = Structure {
        schema: &schema(),
        formats,
        // Apollo Router's files have keys without values, which mean the default.
        blank: Blank::LeftOut,
    };
    structure.check(root, findings)
}

fn formats(form: &str, text: &str) -> Option<Result<(), Misspelling>> {
    let checked = written::check(form, text)?;
    Some(checked.map_err(|message| Misspelling {
        message,
        help: None,
    }))
}
