//! Checks the names of remote schemas, actions and stored operations, and their references.

use std::collections::HashMap;

use graphql_tools::parser::parse_query;
use graphql_tools::parser::parse_schema;
use graphql_tools::parser::query::{Definition as QueryDefinition, OperationDefinition};
use graphql_tools::parser::schema::{Definition, Type, TypeDefinition};
use yaml_with_places::{Finding, Findings, Node, Place, Value, line_and_column};

use crate::actions::{Action, BodyAction, BodyTransform};
use crate::config::Config;
use crate::graphql_text::inner_name;
use crate::input_defaults;
use crate::rest_endpoints::{RestEndpoint, RestMethod};
use crate::written::RestSegment;

/// Reports duplicate names and references without a target.
pub(crate) fn check(config: &Config, tree: &Node, findings: &mut Findings) {
    let at = Places { tree };
    let mut names = |key: &str, names: &mut dyn Iterator<Item = &str>| {
        // A list: configurations have tens of names. A set would not keep the place of the first name either.
        let mut known: Vec<&str> = Vec::new();
        for (index, name) in names.enumerate() {
            if known.contains(&name) {
                let message = format!("the name `{name}` is in `{key}` twice");
                findings.add(Finding::new(at.item(key, index, &["name"]), message));
            }
            known.push(name);
        }
    };
    let remotes = &config.remote_schemas;
    names(
        "remote_schemas",
        &mut remotes.iter().map(|it| it.name.as_str()),
    );
    names(
        "actions",
        &mut config.actions.iter().map(|it| it.name.0.0.as_str()),
    );
    let collections = &config.query_collections;
    names(
        "query_collections",
        &mut collections.iter().map(|it| it.name.as_str()),
    );
    let endpoints = &config.rest_endpoints;
    names(
        "rest_endpoints",
        &mut endpoints.iter().map(|it| it.name.as_str()),
    );
    let types = Types::new(config, &at, findings);
    for (index, action) in config.actions.iter().enumerate() {
        check_action(action, index, &types, &at, findings);
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        check_endpoint(config, endpoint, index, &at, findings);
    }
}

/// A warning for each pair of endpoints that can match one request.
pub(crate) fn warnings(config: &Config, tree: &Node, text: &str) -> Vec<String> {
    let at = Places { tree };
    let endpoints: Vec<&RestEndpoint> = config.rest_endpoints.iter().collect();
    let mut warnings = Vec::new();
    // Each pair is reported once, at the later endpoint, because the earlier one was correct until then.
    for (index, endpoint) in endpoints.iter().enumerate() {
        for other in &endpoints[..index] {
            if overlap(endpoint, other) {
                let place = at.item("rest_endpoints", index, &["url"]);
                let (line, _) = line_and_column(text, place.start);
                let (one, two) = (&endpoint.name, &other.name);
                warnings.push(format!(
                    "line {line}: requests that fit both `{one}` and `{two}` are answered with 500; give them different paths or methods"
                ));
            }
        }
    }
    warnings
}

fn overlap(one: &RestEndpoint, two: &RestEndpoint) -> bool {
    let (a, b) = (&one.url.0.0, &two.url.0.0);
    let is_same = |pair: (&RestSegment, &RestSegment)| match pair {
        (RestSegment::Literal(a), RestSegment::Literal(b)) => a == b,
        // A variable matches any text, including the text of a literal.
        _ => true,
    };
    a.len() == b.len()
        && a.iter().zip(b).all(is_same)
        && one
            .methods
            .iter()
            .any(|method| two.methods.contains(method))
}

/// Finds the places of list items.
struct Places<'a> {
    tree: &'a Node,
}

impl Places<'_> {
    /// The most precise place in the file: the key within the item, otherwise the item, otherwise the list's
    /// key.
    fn item(&self, list: &str, index: usize, keys: &[&str]) -> Place {
        let Some(entry) = self.tree.entry(list) else {
            return self.tree.place;
        };
        let Value::List(items) = &entry.node.value else {
            return entry.key_place;
        };
        let Some(item) = items.get(index) else {
            return entry.key_place;
        };
        // The deepest existing key. A missing part is reported at its parent.
        let found = (1..=keys.len())
            .rev()
            .find_map(|depth| item.at(&keys[..depth]));
        found.map_or(item.place, |entry| entry.node.place)
    }
}

/// The kind of a type in `types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Leaf,
    Object,
    Input,
}

struct Types(HashMap<String, Kind>);

impl Types {
    fn new(config: &Config, at: &Places<'_>, findings: &mut Findings) -> Self {
        let place = at
            .tree
            .entry("types")
            .map_or(at.tree.place, |entry| entry.key_place);
        let mut types = HashMap::new();
        // Built-in GraphQL types.
        for scalar in ["Int", "Float", "String", "Boolean", "ID"] {
            types.insert(scalar.to_owned(), Kind::Leaf);
        }
        // The form of the key has parsed every text in a file. Only the empty default can fail here.
        let Ok(document) = parse_schema::<String>(&config.types.0.0) else {
            return Self(types);
        };
        let definitions = || {
            document.definitions.iter().filter_map(|it| match it {
                Definition::TypeDefinition(it) => Some(it),
                _ => None,
            })
        };
        for definition in definitions() {
            let (name, kind) = match definition {
                TypeDefinition::Scalar(it) => (&it.name, Kind::Leaf),
                TypeDefinition::Enum(it) => (&it.name, Kind::Leaf),
                TypeDefinition::Object(it) => (&it.name, Kind::Object),
                TypeDefinition::InputObject(it) => (&it.name, Kind::Input),
                TypeDefinition::Interface(it) => {
                    let message = format!(
                        "`{}` is an interface, which an action cannot return",
                        it.name
                    );
                    findings.add(Finding::new(place, message).help("write an object"));
                    // Not added to the types, so that its uses are reported as well.
                    continue;
                }
                TypeDefinition::Union(it) => {
                    let message =
                        format!("`{}` is a union, which an action cannot return", it.name);
                    findings.add(Finding::new(place, message).help("write an object"));
                    continue;
                }
            };
            if types.insert(name.clone(), kind).is_some() {
                findings.add(Finding::new(
                    place,
                    format!("the type `{name}` is defined twice"),
                ));
            }
        }
        // A second pass, because a type may use a type that is defined further down.
        let types = Self(types);
        for problem in definitions().flat_map(|it| types.problems_of(it)) {
            findings.add(Finding::new(place, problem));
        }
        if let Some(field) = input_defaults::circular(&document) {
            let message = format!("the default of `{field}` leads back to itself");
            findings.add(Finding::new(place, message).help("leave one of the defaults out"));
        }
        types
    }

    /// Problems of the types that a type uses.
    fn problems_of(&self, definition: &TypeDefinition<'_, String>) -> Vec<String> {
        let (owner, uses): (&str, Vec<(&Type<'_, String>, Kind)>) = match definition {
            TypeDefinition::Object(it) => {
                let fields = it.fields.iter();
                let uses = fields.map(|field| (&field.field_type, Kind::Object));
                (&it.name, uses.collect())
            }
            TypeDefinition::InputObject(it) => {
                let fields = it.fields.iter();
                let uses = fields.map(|field| (&field.value_type, Kind::Input));
                (&it.name, uses.collect())
            }
            _ => return Vec::new(),
        };
        let problems = uses
            .into_iter()
            .filter_map(|(used, role)| self.problem(inner_name(used), role));
        problems
            .map(|problem| format!("the type `{owner}`: {problem}"))
            .collect()
    }

    /// The problem if a type is used in this role. `None` if it fits.
    fn problem(&self, name: &str, role: Kind) -> Option<String> {
        match self.0.get(name) {
            None => Some(format!("`{name}` is not defined in `types`")),
            // Scalars and enums can be arguments as well as results.
            Some(kind) if *kind == Kind::Leaf || *kind == role => None,
            Some(_) if role == Kind::Input => {
                Some(format!("`{name}` is an object; arguments take an `input`"))
            }
            Some(_) => Some(format!("`{name}` is an `input`, which nothing can return")),
        }
    }
}

fn check_action(
    action: &Action,
    index: usize,
    types: &Types,
    at: &Places<'_>,
    findings: &mut Findings,
) {
    if let Some(problem) = types.problem(inner_name(&action.output_type.0.0), Kind::Object) {
        let place = at.item("actions", index, &["output_type"]);
        findings.add(Finding::new(place, problem));
    }
    for argument in &action.arguments {
        if let Some(problem) = types.problem(inner_name(&argument.kind.0.0), Kind::Input) {
            let place = at.item("actions", index, &["arguments"]);
            let name = &argument.name.0.0;
            findings.add(Finding::new(
                place,
                format!("the argument `{name}`: {problem}"),
            ));
        }
    }
    let mut body = |key: &str, body: Option<&BodyTransform>, may_be_form: bool| {
        let Some(body) = body else { return };
        let place = at.item("actions", index, &[key, "body"]);
        let mistake = match body.action {
            BodyAction::Transform if body.template.is_none() => "`transform` needs a `template`",
            BodyAction::XWwwFormUrlencoded if !may_be_form => {
                "an answer cannot become a form: write `transform` or `remove`"
            }
            _ => return,
        };
        findings.add(Finding::new(place, mistake));
    };
    let request = action.request_transform.as_ref();
    body(
        "request_transform",
        request.and_then(|it| it.body.as_ref()),
        true,
    );
    let response = action.response_transform.as_ref();
    body(
        "response_transform",
        response.and_then(|it| it.body.as_ref()),
        false,
    );
}

fn check_endpoint(
    config: &Config,
    endpoint: &RestEndpoint,
    index: usize,
    at: &Places<'_>,
    findings: &mut Findings,
) {
    let wanted = &endpoint.query;
    let mut collections = config.query_collections.iter();
    let Some(collection) = collections.find(|it| it.name == wanted.collection_name) else {
        let place = at.item("rest_endpoints", index, &["query", "collection_name"]);
        let name = &wanted.collection_name;
        findings.add(Finding::new(
            place,
            format!("there is no query collection `{name}`"),
        ));
        return;
    };
    let Some(query) = collection
        .queries
        .iter()
        .find(|it| it.name == wanted.query_name)
    else {
        let place = at.item("rest_endpoints", index, &["query", "query_name"]);
        let known: Vec<&str> = collection
            .queries
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        let name = &wanted.query_name;
        let message = format!("the collection `{}` has no query `{name}`", collection.name);
        let help = format!("its queries are {}", known.join(", "));
        findings.add(Finding::new(place, message).help(help));
        return;
    };
    if endpoint.methods.contains(&RestMethod::Get) && is_mutation(&query.query.0.0) {
        let place = at.item("rest_endpoints", index, &["methods"]);
        let name = &query.name;
        // A link or an image on any page causes a GET request, and caches may repeat it.
        let message = format!("the query `{name}` is a mutation, which GET must not carry out");
        let help = "leave GET out of `methods`, or store a query";
        findings.add(Finding::new(place, message).help(help));
    }
    let declared = variables(&query.query.0.0);
    for segment in &endpoint.url.0.0 {
        if let RestSegment::Variable(name) = segment
            && !declared.contains(name)
        {
            let place = at.item("rest_endpoints", index, &["url"]);
            let message = format!("the query `{}` declares no variable `${name}`", query.name);
            findings.add(Finding::new(place, message));
        }
    }
}

fn is_mutation(query: &str) -> bool {
    let document = parse_query::<String>(query).expect("the form of the key has parsed it");
    let mut definitions = document.definitions.iter();
    definitions.any(|it| {
        matches!(
            it,
            QueryDefinition::Operation(OperationDefinition::Mutation(_))
        )
    })
}

fn variables(query: &str) -> Vec<String> {
    let document = parse_query::<String>(query).expect("the form of the key has parsed it");
    let declared = document.definitions.into_iter().filter_map(|it| match it {
        QueryDefinition::Operation(OperationDefinition::Query(it)) => Some(it.variable_definitions),
        QueryDefinition::Operation(OperationDefinition::Mutation(it)) => {
            Some(it.variable_definitions)
        }
        _ => None,
    });
    declared.flatten().map(|it| it.name).collect()
}
