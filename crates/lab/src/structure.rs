//! The structural checks of a lab file: the JSON Schema, and the keys that are only required after includes
//! are merged.

use serde_json::Value as Schema;
use yaml_with_places::{Blank, Finding, Findings, Node, Structure, Value, missing};

use crate::readers;
use crate::reading::Reading;
use crate::schema::{SCENARIO_SCHEMA, SCHEMA, required_of_labs};
use crate::wire::LAB_ONLY;

/// The role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The lab itself.
    Lab,
    /// A file that the lab includes.
    Included,
    /// A scenario, which is no part of a lab.
    Scenario,
}

impl Role {
    fn schema(self) -> &'static Schema {
        match self {
            Role::Lab | Role::Included => &SCHEMA,
            Role::Scenario => &SCENARIO_SCHEMA,
        }
    }
}

/// Checks the values of one file. Keys that may come from another file are not required yet, see
/// [`check_complete`].
pub(crate) fn check(root: Node, role: Role, findings: &mut Findings) -> Node {
    let root = match role {
        Role::Lab | Role::Scenario => root,
        Role::Included => without_lab_keys(root, findings),
    };
    let structure = Structure {
        schema: role.schema(),
        formats: readers::read,
        // A key without a value is a mistake in a lab, because each optional key can be left out.
        blank: Blank::Null,
    };
    structure.check(root, findings)
}

/// Checks that a lab has all required keys after its includes are merged.
pub(crate) fn check_complete(root: &Node, reading: &mut Reading<'_>) {
    // A file that could not be read may have the key.
    if reading.has_gaps {
        return;
    }
    for key in required_of_labs() {
        if root.entry(key).is_none() {
            let description = SCHEMA["properties"][key]["description"].as_str();
            reading.findings.add(missing(key, root.place, description));
        }
    }
}

fn without_lab_keys(mut root: Node, findings: &mut Findings) -> Node {
    if let Value::Map(entries) = &mut root.value {
        // Also removed, because after the merge it would replace a key that the lab lacks.
        entries.retain(|entry| {
            let belongs = !LAB_ONLY.contains(&entry.key.as_str());
            if !belongs {
                findings.add(
                    Finding::new(
                        entry.key_place,
                        format!("an included file cannot have `{}`", entry.key),
                    )
                    .help("move it to the lab. Included files contain only keys that several labs can share"),
                );
            }
            belongs
        });
    }
    root
}
