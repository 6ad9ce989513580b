//! Reads `custom_types` of the metadata, which projects without `actions.graphql` have.

use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::Document;
use serde_json::Value as Json;

use crate::{list, word};

/// The types as a document. An unreadable type is left out, and the check of the configuration reports the
/// missing name.
pub(crate) fn document(types: &Json) -> Document<'static, String> {
    let mut document = Document::default();
    let texts = [
        ("scalars", scalar as fn(&Json) -> Option<String>),
        ("enums", enumeration),
        ("input_objects", |it| object("input", it)),
        ("objects", |it| object("type", it)),
    ];
    for (kind, text) in texts {
        for text in list(&types[kind]).filter_map(text) {
            if let Ok(read) = parse_schema::<String>(&text) {
                document.definitions.extend(read.into_static().definitions);
            }
        }
    }
    document
}

fn scalar(of: &Json) -> Option<String> {
    Some(format!(
        "{}scalar {}",
        description(of),
        of["name"].as_str()?
    ))
}

fn enumeration(of: &Json) -> Option<String> {
    let values = list(&of["values"]).map(|it| format!("{}{}", description(it), word(&it["value"])));
    block("enum", of, values.collect())
}

fn object(keyword: &str, of: &Json) -> Option<String> {
    let fields = list(&of["fields"]).map(|it| {
        let (name, kind) = (word(&it["name"]), word(&it["type"]));
        format!("{}{name}{}: {kind}", description(it), arguments(it))
    });
    block(keyword, of, fields.collect())
}

fn arguments(of: &Json) -> String {
    let arguments = list(&of["arguments"]).map(|it| {
        let (name, kind) = (word(&it["name"]), word(&it["type"]));
        format!("{name}: {kind}")
    });
    let arguments: Vec<String> = arguments.collect();
    if arguments.is_empty() {
        return String::new();
    }
    format!("({})", arguments.join(", "))
}

/// A definition with its members. `None` without members: `actions.yaml` next to an `actions.graphql` has only
/// names.
fn block(keyword: &str, of: &Json, members: Vec<String>) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let name = of["name"].as_str()?;
    let members = members.join("\n");
    Some(format!(
        "{}{keyword} {name} {{\n{members}\n}}",
        description(of)
    ))
}

fn description(of: &Json) -> String {
    match of["description"].as_str() {
        // The string format of JSON is a string of GraphQL too.
        Some(text) if !text.is_empty() => format!("{}\n", Json::from(text)),
        _ => String::new(),
    }
}
