//! Reads `actions.yaml` and `actions.graphql`.

use std::collections::BTreeSet;

use gateway_config::inner_name;
use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::{
    Definition, Document, Field, ScalarType, Type, TypeDefinition, TypeExtension,
};
use serde_json::Value as Json;
use yaml_with_places::{Finding, Findings, Mistakes, Place};

use crate::custom_types;
use crate::text::{Out, expanded};
use crate::{copy, headers, list, source, word};

/// Converts the types to SDL, and the actions to configuration values.
///
/// # Errors
/// Fails if `sdl` is not GraphQL. All actions and types would be missing.
pub(crate) fn import(
    metadata: &Json,
    sdl: &str,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<Out>), Mistakes> {
    let document = if sdl.trim().is_empty() {
        // Old projects and `metadata.json` have the types in the metadata.
        custom_types::document(&metadata["custom_types"])
    } else {
        read(sdl)?
    };
    let roots = Roots::of(&document);
    let actions = list(&metadata["actions"]).filter_map(|action| one(action, &roots, notes));
    let actions = actions.collect();
    for object in list(&metadata["custom_types"]["objects"]) {
        if list(&object["relationships"]).next().is_some() {
            let name = word(&object["name"]);
            notes.push(format!(
                "actions.yaml: the relationships of the type `{name}`"
            ));
        }
    }
    let scalars = scalars(&document, &metadata["actions"]);
    Ok((types(document, &scalars), actions))
}

fn read(sdl: &str) -> Result<Document<'static, String>, Mistakes> {
    let mut findings = Findings::default();
    let document = parse_schema::<String>(sdl).map(Document::into_static);
    if let Err(error) = &document {
        let reason = error.to_string();
        // The parser's message has several lines.
        let reason: Vec<&str> = reason.split_whitespace().collect();
        let message = format!("expected GraphQL types, found: {}", reason.join(" "));
        let help = "correct the file, or export the metadata again with `hasura metadata export`";
        findings.add(Finding::new(Place::default(), message).help(help));
    }
    findings.settle(source("actions.graphql", sdl))?;
    // An unreadable document has already failed.
    Ok(document.unwrap_or_default())
}

/// The scalars that are used but not defined. In Hasura they come from the database.
fn scalars(document: &Document<'static, String>, actions: &Json) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut defined: BTreeSet<&str> = ["Int", "Float", "String", "Boolean", "ID"].into();
    for definition in &document.definitions {
        match definition {
            Definition::TypeDefinition(definition) => {
                defined.insert(name_of(definition));
                use_types(definition, &mut used);
            }
            Definition::TypeExtension(TypeExtension::Object(it)) => {
                it.fields
                    .iter()
                    .for_each(|field| use_field(field, &mut used));
            }
            _ => {}
        }
    }
    // Old projects have the signature in the metadata.
    for action in list(actions) {
        let definition = &action["definition"];
        let arguments = list(&definition["arguments"]).map(|argument| &argument["type"]);
        for text in arguments.chain([&definition["output_type"]]) {
            let name = word(text).trim_matches(|letter| matches!(letter, '[' | ']' | '!'));
            used.insert(name.to_owned());
        }
    }
    used.retain(|name| !name.is_empty() && !defined.contains(name.as_str()));
    // The names of Hasura's database types begin with a small letter, and `_text` is an array of texts. Any
    // other name is a mistake, which the check of the configuration reports.
    used.retain(|name| {
        let name = name.strip_prefix('_').unwrap_or(name);
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
    });
    used
}

fn name_of<'a>(definition: &'a TypeDefinition<'static, String>) -> &'a str {
    match definition {
        TypeDefinition::Scalar(it) => &it.name,
        TypeDefinition::Object(it) => &it.name,
        TypeDefinition::Interface(it) => &it.name,
        TypeDefinition::Union(it) => &it.name,
        TypeDefinition::Enum(it) => &it.name,
        TypeDefinition::InputObject(it) => &it.name,
    }
}

fn use_types(definition: &TypeDefinition<'static, String>, used: &mut BTreeSet<String>) {
    match definition {
        TypeDefinition::Object(it) => it.fields.iter().for_each(|field| use_field(field, used)),
        TypeDefinition::Interface(it) => it.fields.iter().for_each(|field| use_field(field, used)),
        TypeDefinition::InputObject(it) => {
            used.extend(
                it.fields
                    .iter()
                    .map(|field| inner_name(&field.value_type).to_owned()),
            );
        }
        _ => {}
    }
}

fn use_field(field: &Field<'static, String>, used: &mut BTreeSet<String>) {
    used.insert(inner_name(&field.field_type).to_owned());
    used.extend(
        field
            .arguments
            .iter()
            .map(|it| inner_name(&it.value_type).to_owned()),
    );
}

/// The fields of the root types. They may be in several blocks.
struct Roots {
    query: Vec<Field<'static, String>>,
    mutation: Vec<Field<'static, String>>,
}

impl Roots {
    fn of(document: &Document<'static, String>) -> Self {
        let mut roots = Self {
            query: Vec::new(),
            mutation: Vec::new(),
        };
        for definition in &document.definitions {
            let (name, fields) = match definition {
                Definition::TypeDefinition(TypeDefinition::Object(it)) => (&it.name, &it.fields),
                Definition::TypeExtension(TypeExtension::Object(it)) => (&it.name, &it.fields),
                _ => continue,
            };
            match name.as_str() {
                "Query" => roots.query.extend(fields.iter().cloned()),
                "Mutation" => roots.mutation.extend(fields.iter().cloned()),
                _ => {}
            }
        }
        roots
    }

    fn find(&self, name: &str) -> Option<(&'static str, &Field<'static, String>)> {
        let query = self.query.iter().map(|field| ("query", field));
        let mutation = self.mutation.iter().map(|field| ("mutation", field));
        // In Hasura, action names are unique over both roots, so the order does not matter.
        query.chain(mutation).find(|(_, field)| field.name == name)
    }
}

/// The types of the document without its root types, and these scalars.
fn types(mut document: Document<'static, String>, scalars: &BTreeSet<String>) -> String {
    document.definitions.retain(|definition| match definition {
        // `Subscription` is an ordinary name. Hasura's root type for subscriptions has another one.
        Definition::TypeDefinition(TypeDefinition::Object(it)) => {
            !matches!(it.name.as_str(), "Query" | "Mutation")
        }
        Definition::TypeDefinition(_) => true,
        _ => false,
    });
    let scalars = scalars.iter().map(|name| {
        Definition::TypeDefinition(TypeDefinition::Scalar(ScalarType::new(name.clone())))
    });
    document.definitions.extend(scalars);
    let text = document.to_string();
    // Descriptions may contain text that expansion would interpret.
    text.trim().replace("$$", "$$$$").replace("${", "$${")
}

fn one(action: &Json, roots: &Roots, notes: &mut Vec<String>) -> Option<Out> {
    let name = word(&action["name"]);
    let definition = &action["definition"];
    let mut note = |what: &str| notes.push(format!("actions.yaml: {what} `{name}`"));
    // An asynchronous action returns an id and stores its result in a database, which this gateway lacks.
    if definition["kind"] == "asynchronous" {
        note("the asynchronous action");
        return None;
    }
    let mut keys = vec![("name".to_owned(), Out::text(name))];
    match roots.find(name) {
        Some((kind, field)) => field_keys(kind, field, &mut keys),
        // Old projects have the signature in the metadata instead of the SDL.
        None if definition["output_type"].is_string() => written_keys(definition, &mut keys),
        None => {
            note("actions.graphql has no field for the action");
            return None;
        }
    }
    let handler = Out::Text(expanded(word(&definition["handler"])));
    keys.push(("handler".to_owned(), handler));
    if list(&definition["headers"]).next().is_some() {
        keys.push(("headers".to_owned(), headers(&definition["headers"])));
    }
    let forwards = &definition["forward_client_headers"];
    copy(&mut keys, "forward_client_headers", forwards);
    let ignored = &definition["ignored_client_headers"];
    // Hasura writes an empty list for the default.
    if list(ignored).next().is_some() {
        copy(&mut keys, "ignored_client_headers", ignored);
    }
    if let Some(seconds) = definition["timeout"].as_u64() {
        keys.push(("timeout".to_owned(), Out::Plain(format!("{seconds}s"))));
    }
    for key in ["request_transform", "response_transform"] {
        if definition[key].is_object() {
            keys.push((key.to_owned(), transform(&definition[key], key, &mut note)));
        }
    }
    copy(&mut keys, "comment", &action["comment"]);
    // Without permissions, only the administrator may call the action.
    let roles = list(&action["permissions"]).map(|permission| {
        let role = Out::text(word(&permission["role"]));
        Out::Map(vec![("role".to_owned(), role)])
    });
    keys.push(("permissions".to_owned(), Out::List(roles.collect())));
    Some(Out::Map(keys))
}

fn field_keys(kind: &str, field: &Field<'static, String>, keys: &mut Vec<(String, Out)>) {
    keys.push(("type".to_owned(), Out::text(kind)));
    let arguments = field.arguments.iter().map(|argument| {
        let kind: &Type<'_, String> = &argument.value_type;
        Out::Map(vec![
            ("name".to_owned(), Out::text(&argument.name)),
            ("type".to_owned(), Out::Text(kind.to_string())),
        ])
    });
    if !field.arguments.is_empty() {
        keys.push(("arguments".to_owned(), Out::List(arguments.collect())));
    }
    keys.push((
        "output_type".to_owned(),
        Out::Text(field.field_type.to_string()),
    ));
}

fn written_keys(definition: &Json, keys: &mut Vec<(String, Out)>) {
    // Hasura's own default.
    let kind = definition["type"].as_str().unwrap_or("mutation");
    keys.push(("type".to_owned(), Out::text(kind)));
    copy(keys, "arguments", &definition["arguments"]);
    copy(keys, "output_type", &definition["output_type"]);
}

fn transform(of: &Json, key: &str, note: &mut dyn FnMut(&str)) -> Out {
    // Version 1 is converted to version 2, the only version of this gateway.
    let mut keys = vec![("version".to_owned(), Out::Plain("2".to_owned()))];
    copy(&mut keys, "method", &of["method"]);
    copy(&mut keys, "url", &of["url"]);
    copy(&mut keys, "query_params", &of["query_params"]);
    match &of["body"] {
        // In version 1, the value is the template itself.
        Json::String(template) => {
            let body = vec![
                ("action".to_owned(), Out::text("transform")),
                ("template".to_owned(), Out::Text(expanded(template))),
            ];
            keys.push(("body".to_owned(), Out::Map(body)));
        }
        body => copy(&mut keys, "body", body),
    }
    if of["content_type"].is_string() && of["content_type"] != "application/json" {
        note(&format!("the `content_type` in the {key} of"));
    }
    copy(&mut keys, "request_headers", &of["request_headers"]);
    Out::Map(keys)
}
