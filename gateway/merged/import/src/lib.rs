//! Converts the metadata folder of Hasura 2 to a configuration of this gateway.
//!
//! Parts without a counterpart here are not dropped silently. Each one becomes a note.

mod actions;
mod custom_types;
mod metadata_file;
mod text;

use serde_json::Value as Json;
use yaml_with_places::{Document, Findings, Mistakes, Source};

pub use metadata_file::MetadataFile;
use text::{Out, expanded};

/// A configuration that was converted from a metadata folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The text of the configuration file.
    pub yaml: String,
    /// Notes about parts that could not be converted, as sentences.
    pub notes: Vec<String>,
    /// Notes about missing restrictions. The configuration permits requests that Hasura refuses.
    pub lost_restrictions: Vec<String>,
}

/// Files about restrictions that this gateway does not have, with the note for each.
const RESTRICTIONS: [(&str, &str); 3] = [
    ("allow_list.yaml", "the allow list"),
    ("api_limits.yaml", "API limits"),
    ("graphql_schema_introspection.yaml", "introspection by role"),
];

/// Files about other parts of Hasura, with the note for each.
const OTHERS: [(&str, &str); 7] = [
    (
        "databases/databases.yaml",
        "databases, their tables and permissions",
    ),
    ("cron_triggers.yaml", "cron triggers"),
    ("inherited_roles.yaml", "inherited roles"),
    ("network.yaml", "TLS exceptions"),
    ("opentelemetry.yaml", "OpenTelemetry"),
    ("metrics_config.yaml", "settings of metrics"),
    ("backend_configs.yaml", "settings of backends"),
];

/// Help text for a file with a second document.
const ONE_DOCUMENT: &str = "remove the `---`";

/// Converts a metadata folder. `read` returns the text of a file in the folder by its name.
///
/// # Errors
/// Fails if a file is not YAML, or `actions.graphql` is not GraphQL.
pub fn import(read: &dyn Fn(&str) -> Option<String>) -> Result<Import, Mistakes> {
    let mut importing = Importing::default();
    // A list keeps the order, because users will read and edit the file.
    let mut keys: Vec<(String, Out)> = Vec::new();
    let remotes = file(read, "remote_schemas.yaml")?;
    let remotes: Vec<Out> = list(&remotes).map(|it| importing.remote(it)).collect();
    add(&mut keys, "remote_schemas", remotes);
    let metadata = file(read, "actions.yaml")?;
    let sdl = read("actions.graphql").unwrap_or_default();
    let (types, actions) = actions::import(&metadata, &sdl, &mut importing.notes)?;
    if !types.is_empty() {
        keys.push(("types".to_owned(), Out::Text(types)));
    }
    add(&mut keys, "actions", actions);
    let collections = file(read, "query_collections.yaml")?;
    let collections: Vec<Out> = list(&collections).map(collection).collect();
    add(&mut keys, "query_collections", collections);
    let endpoints = file(read, "rest_endpoints.yaml")?;
    let endpoints: Vec<Out> = list(&endpoints).map(endpoint).collect();
    add(&mut keys, "rest_endpoints", endpoints);
    importing.notes.extend(missing(read, &OTHERS)?);
    let restrictions = missing(read, &RESTRICTIONS)?;
    importing.lost_restrictions.extend(restrictions);
    // First in the file, because readers look for it there.
    keys.insert(0, ("supergraph".to_owned(), endpoint_of_hasura()));
    let mut yaml = String::new();
    Out::Map(keys).write(0, &mut yaml);
    Ok(Import {
        yaml,
        notes: importing.notes,
        lost_restrictions: importing.lost_restrictions,
    })
}

/// The notes about the `files` with content.
fn missing(
    read: &dyn Fn(&str) -> Option<String>,
    files: &[(&str, &str)],
) -> Result<Vec<String>, Mistakes> {
    let mut notes = Vec::new();
    for (name, what) in files {
        // Hasura's export writes all files, even if they are empty.
        let is_empty = match file(read, name)? {
            Json::Array(items) => items.is_empty(),
            Json::Object(members) => members.is_empty(),
            other => other.is_null(),
        };
        if !is_empty {
            notes.push(format!("{name}: {what}"));
        }
    }
    Ok(notes)
}

/// The listen address and path of Hasura's GraphQL endpoint.
fn endpoint_of_hasura() -> Out {
    Out::Map(vec![
        ("listen".to_owned(), Out::text("0.0.0.0:8080")),
        ("path".to_owned(), Out::text("/v1/graphql")),
        ("introspection".to_owned(), Out::Plain("true".to_owned())),
    ])
}

fn add(keys: &mut Vec<(String, Out)>, key: &str, items: Vec<Out>) {
    if !items.is_empty() {
        keys.push((key.to_owned(), Out::List(items)));
    }
}

fn file(read: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<Json, Mistakes> {
    // Projects of older versions lack some files. They count as empty.
    let Some(text) = read(name) else {
        return Ok(Json::Null);
    };
    let mut findings = Findings::default();
    let document = yaml_with_places::read(0, &text, ONE_DOCUMENT, &mut findings);
    findings.settle(source(name, &text))?;
    Ok(match document {
        Document::Tree(tree) => tree.json(),
        // Parsing has already failed for an unreadable document, with its mistakes.
        Document::Empty | Document::Unreadable => Json::Null,
    })
}

/// The file as the only source of its mistakes.
fn source(name: &str, text: &str) -> Vec<Source> {
    vec![Source {
        path: name.into(),
        text: text.to_owned(),
    }]
}

fn list(of: &Json) -> impl Iterator<Item = &Json> {
    of.as_array().into_iter().flatten()
}

fn word(of: &Json) -> &str {
    // A missing word stays empty. The check of the resulting configuration reports it.
    of.as_str().unwrap_or_default()
}

/// Copies a member if it exists.
fn copy(keys: &mut Vec<(String, Out)>, key: &str, value: &Json) {
    if !value.is_null() {
        keys.push((key.to_owned(), Out::of(value)));
    }
}

/// The `headers` key, with environment values in this gateway's format.
fn headers(of: &Json) -> Out {
    let headers = list(of).map(|header| {
        let value = match header["value_from_env"].as_str() {
            Some(variable) => format!("${{env.{variable}}}"),
            None => expanded(word(&header["value"])),
        };
        Out::Map(vec![
            ("name".to_owned(), Out::text(word(&header["name"]))),
            ("value".to_owned(), Out::Text(value)),
        ])
    });
    Out::List(headers.collect())
}

#[derive(Default)]
struct Importing {
    notes: Vec<String>,
    lost_restrictions: Vec<String>,
}

impl Importing {
    fn remote(&mut self, remote: &Json) -> Out {
        let definition = &remote["definition"];
        let name = word(&remote["name"]);
        let url = match definition["url_from_env"].as_str() {
            Some(variable) => format!("${{env.{variable}}}"),
            None => expanded(word(&definition["url"])),
        };
        let mut keys = vec![
            ("name".to_owned(), Out::text(name)),
            ("url".to_owned(), Out::Text(url)),
        ];
        if list(&definition["headers"]).next().is_some() {
            keys.push(("headers".to_owned(), headers(&definition["headers"])));
        }
        copy(
            &mut keys,
            "forward_client_headers",
            &definition["forward_client_headers"],
        );
        if let Some(seconds) = definition["timeout_seconds"].as_u64() {
            keys.push(("timeout".to_owned(), Out::Plain(format!("{seconds}s"))));
        }
        copy(&mut keys, "customization", &definition["customization"]);
        copy(&mut keys, "comment", &remote["comment"]);
        let note = |key: &str| format!("remote_schemas.yaml: the `{key}` of `{name}`");
        let has = |key: &str| list(&remote[key]).next().is_some();
        if has("permissions") {
            self.lost_restrictions.push(note("permissions"));
        }
        if has("remote_relationships") {
            self.notes.push(note("remote_relationships"));
        }
        Out::Map(keys)
    }
}

fn collection(of: &Json) -> Out {
    let queries = list(&of["definition"]["queries"]).map(|query| {
        Out::Map(vec![
            ("name".to_owned(), Out::text(word(&query["name"]))),
            (
                "query".to_owned(),
                // Trimmed, because otherwise the text could not be a block. Space around a query has no
                // meaning.
                Out::Text(expanded(word(&query["query"]).trim())),
            ),
        ])
    });
    let mut keys = vec![
        ("name".to_owned(), Out::text(word(&of["name"]))),
        ("queries".to_owned(), Out::List(queries.collect())),
    ];
    copy(&mut keys, "comment", &of["comment"]);
    Out::Map(keys)
}

fn endpoint(of: &Json) -> Out {
    let mut keys = Vec::new();
    copy(&mut keys, "name", &of["name"]);
    copy(&mut keys, "url", &of["url"]);
    copy(&mut keys, "methods", &of["methods"]);
    copy(&mut keys, "query", &of["definition"]["query"]);
    copy(&mut keys, "comment", &of["comment"]);
    Out::Map(keys)
}

#[cfg(test)]
mod tests;
