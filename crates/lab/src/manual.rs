//! The reference of lab files, made from the schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::schema::{SCENARIO_SCHEMA, SCHEMA, required_of_labs};

const INTRODUCTION: &str = include_str!("manual.md");

/// Returns the reference of lab files in Markdown, as committed at `docs/labs.md`.
#[must_use]
pub fn manual() -> String {
    let mut text = INTRODUCTION.to_owned();
    let required: Vec<&str> = required_of_labs().collect();
    section(&mut text, "The lab", &SCHEMA, &required);
    for (key, title) in SECTIONS {
        let schema = &SCHEMA["definitions"][*key];
        let required = words(&schema["required"]);
        section(&mut text, title, schema, &required);
    }
    let required = words(&SCENARIO_SCHEMA["required"]);
    section(&mut text, "Scenario files", &SCENARIO_SCHEMA, &required);
    text
}

/// The parts of a lab in reading order.
const SECTIONS: &[(&str, &str)] = &[
    ("load", "`load`"),
    ("phase", "`load.phases`"),
    ("capacity", "`load.capacity`"),
    ("request", "`load.requests`"),
    ("websocket", "`load.requests.*.websocket`"),
    ("subscribe", "`load.requests.*.websocket.subscribe`"),
    ("message", "`load.requests.*.websocket.messages`"),
    ("step", "`load.scenario`"),
    ("capture", "`load.scenario.*.capture`"),
    ("data", "`load.data`"),
    ("stream", "`load.stream`"),
    ("grpc", "`load.requests.*.grpc`"),
    ("grpc-send", "`load.requests.*.grpc.sends`"),
    ("stream-ends", "`load.stream.ends`"),
    ("tls", "`load.tls`"),
    ("settle", "`settle`"),
    ("system", "`systems`"),
    ("ready", "`systems.*.ready`"),
    ("image-build", "`systems.*.build`"),
    ("limits", "`systems.*.limits`"),
    ("variable", "`systems.*.env`"),
    ("config-file", "`systems.*.files`"),
    ("attach", "`systems.*.attach`"),
    ("compose", "`systems.*.compose`"),
    ("service", "`systems.*.compose.services`"),
    ("manifests", "`systems.*.manifests`"),
    ("workload", "`systems.*.manifests.changes`"),
    ("pods", "`pods`"),
    ("pod", "`pods.generators/systems`"),
    ("baseline", "`baseline`"),
    ("variant", "`variants`"),
    ("sent", "`variants.*.load`"),
    ("expect", "`expect`"),
    ("proof", "`proof`"),
    ("proof-expect", "`proof.*.expect`"),
    ("values", "`proof.*.expect.values`"),
    ("distinct", "`proof.*.expect.distinct`"),
];

fn section(text: &mut String, title: &str, schema: &Value, required: &[&str]) {
    let description = schema["description"].as_str();
    let description = description.expect("every struct of the wire has a doc comment");
    write!(text, "\n## {title}\n\n{description}\n\n").expect("a String takes everything");
    text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let is_required = |key: &&String| required.contains(&key.as_str());
    // Required keys come first. Other keys stay in the order of the schema.
    let first = properties.keys().filter(is_required);
    let rest = properties.keys().filter(|key| !is_required(key));
    for key in first.chain(rest) {
        let property = &properties[key];
        let default = match &property["default"] {
            Value::Null if is_required(&key) => "required".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let meaning = property["description"].as_str();
        let meaning = meaning.expect("every key of the wire has a doc comment");
        // A row of a table has one line.
        let meaning = meaning.replace("\n\n", "<br>");
        let value = value(property);
        writeln!(text, "| `{key}` | {value} | {default} | {meaning} |")
            .expect("a String takes everything");
    }
}

/// Returns the possible values of a key, in a few words.
fn value(property: &Value) -> String {
    if let Some(target) = target(property) {
        return format!("see [`{target}`](#{})", anchor(target));
    }
    // The schema has two branches for "one or many". A reader needs one phrase.
    if let Some([one, many]) = property["anyOf"].as_array().map(Vec::as_slice)
        && many["items"] == *one
    {
        return format!("{}, or a list of such", value(one));
    }
    if let Some(branches) = property["anyOf"].as_array() {
        let branches: Vec<String> = branches.iter().map(value).collect();
        return branches.join(", or ");
    }
    if let Some(choices) = property["enum"].as_array() {
        let choices: Vec<String> = choices
            .iter()
            .filter_map(Value::as_str)
            .map(|choice| format!("`{choice}`"))
            .collect();
        return choices.join(" or ");
    }
    match property["type"].as_str() {
        Some("integer") => match (&property["minimum"], &property["maximum"]) {
            (Value::Number(least), Value::Number(most)) => {
                format!("a whole number from {least} to {most}")
            }
            (Value::Number(least), _) => format!("a whole number from {least}"),
            _ => "a whole number".to_owned(),
        },
        Some("number") => "a number".to_owned(),
        Some("array") => format!("a list of: {}", value(&property["items"])),
        Some("object") => format!(
            "a mapping of names to: {}",
            value(&property["additionalProperties"])
        ),
        _ => match property["format"].as_str() {
            Some(format) => in_words(format),
            None if property["type"].is_string() => "text".to_owned(),
            None => "anything".to_owned(),
        },
    }
}

/// Returns the name of the definition that a schema refers to.
fn target(property: &Value) -> Option<&str> {
    // If a key has its own description, schemars wraps the reference in `allOf`.
    let path = match &property["allOf"][0]["$ref"] {
        Value::Null => &property["$ref"],
        inner => inner,
    };
    path.as_str()?.rsplit('/').next()
}

/// Returns the anchor of a definition's section, as Markdown makes it from the heading.
fn anchor(definition: &str) -> String {
    let title = SECTIONS
        .iter()
        .find(|(key, _)| *key == definition)
        .map_or(definition, |(_, title)| title);
    // Like Markdown renderers of code hosts.
    title
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect::<String>()
        .to_lowercase()
}

fn in_words(format: &str) -> String {
    match format {
        "time-span" | "time-span-above-zero" => "a length of time: `500ms`, `5s`, `2m`",
        "size" => "a size: `64KiB`, `128MiB`, `1GB`",
        "size-or-none" => "a size: `64KiB`, `128MiB`, `1GB`, or `none`",
        "cores-or-none" => "a number of cores: `0.25`, or `none`",
        "rate" | "rate-or-zero" => "a rate: `100/s`, `90/m`",
        "rate-or-auto" => "a rate: `100/s`, `90/m`, or `auto`",
        "until" => "a figure and a width: `p99 ±2%`, `p99 ±0.1ms`; or `gates`",
        "gate" => "a limit: `rhai p99 overhead < 0.2ms`",
        "path-and-query" => "a path: `/graphql`",
        "path-with-places" => "a path: `/items?size={{size}}`",
        "range" => "a range of whole numbers: `1..1000`",
        "pattern" => "a regular expression",
        "pointer" => "a JSON pointer: `/data/id`",
        "method" => "a method: `POST`",
        "header-value" => "the header's value",
        "fraction" => "a share: `1/2`, `1/4`, `1/8`",
        "name" => "a name",
        "file-name" => "a path: `conf.d/site.conf`",
        "template" => "text or a number, with templates",
        "command" => "a command, with templates",
        _ => "text",
    }
    .to_owned()
}

fn words(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_table_has_one_line() {
        let text = manual();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with('|')) {
            assert!(pair[0].ends_with('|'), "{}", pair[0]);
            assert!(
                pair[1].is_empty() || pair[1].starts_with('|'),
                "{}",
                pair[1]
            );
        }
        assert!(text.contains("<br>"), "no key has several paragraphs");
    }

    #[test]
    fn every_part_of_the_schema_has_a_section() {
        let definitions = SCHEMA["definitions"].as_object().unwrap();
        for key in definitions.keys() {
            assert!(SECTIONS.iter().any(|(known, _)| known == key), "{key}");
        }
        assert_eq!(definitions.len(), SECTIONS.len());
    }
}
