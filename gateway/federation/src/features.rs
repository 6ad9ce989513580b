//! The specifications that a supergraph links to (`@link`, or `@core` in old supergraphs), and the versions
//! that this gateway supports.
//!
//! A feature can have a purpose (`for`). Then the link specification requires the gateway to refuse the
//! schema if it does not support the feature. Otherwise everybody would receive data that `SECURITY`
//! protects, and responses would be wrong for features with `EXECUTION`.

use graphql_tools::parser::schema::{Definition, Document, Value};

use crate::cost::CostNames;
use crate::schema::type_name;
use crate::sdl::{self, Applied, argument, member};
use crate::supergraph_error::SupergraphError;

type Sdl = Document<'static, String>;

/// URL prefix of the specifications below.
const APOLLO: &str = "https://specs.apollo.dev/";

/// Names and versions of the supported specifications. Minor versions of major version 0 can be incompatible,
/// so each is listed.
const KNOWN: &[(&str, &[&str])] = &[
    ("link", &["v1.0"]),
    ("core", &["v0.1", "v0.2"]),
    ("join", &["v0.1", "v0.2", "v0.3", "v0.4", "v0.5"]),
    ("tag", &["v0.1", "v0.2", "v0.3"]),
    ("inaccessible", &["v0.1", "v0.2"]),
    ("cost", &["v0.1"]),
    // The gateway refuses arguments from contexts at the argument. A context without a reader needs no
    // support.
    ("context", &["v0.1"]),
    // The gateway invalidates responses by subgraph and type.
    ("cacheTag", &["v0.1"]),
    ("authenticated", &["v0.1"]),
    ("requiresScopes", &["v0.1"]),
    ("policy", &["v0.1"]),
];

/// Specifications that are checked even without `for`. The gateway must never treat a supergraph with them as
/// one without them.
const ALWAYS_CHECKED: &[&str] = &["inaccessible", "authenticated", "requiresScopes", "policy"];

/// Specifications for calls of REST services instead of subgraphs.
const CONNECTORS: &[&str] = &["connect", "source"];

/// GraphQL's own directives and `@defer`. Clients see them even if a link has the same name.
const ALWAYS_SHOWN: &[&str] = &[
    "skip",
    "include",
    "deprecated",
    "specifiedBy",
    "oneOf",
    "defer",
];

/// A link of a supergraph to a specification.
#[derive(Debug)]
struct Link<'a> {
    /// The URL as written in the supergraph.
    url: &'a str,
    /// The URL without the version.
    identity: &'a str,
    version: Option<&'a str>,
    /// The purpose from the argument `for`.
    purpose: Option<String>,
    directive: &'a Applied,
}

impl<'a> Link<'a> {
    fn read(directive: &'a Applied) -> Option<Self> {
        // `@link` itself can be renamed. So each schema directive with such an argument counts as a link.
        let url = sdl::text(directive, "url").or_else(|| sdl::text(directive, "feature"))?;
        let trimmed = url.trim_end_matches('/');
        let (identity, version) = match trimmed.rsplit_once('/') {
            Some((identity, version)) if is_version(version) => (identity, Some(version)),
            _ => (trimmed, None),
        };
        let purpose = match argument(directive, "for") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        Some(Self {
            url,
            identity,
            version,
            purpose,
            directive,
        })
    }

    /// The name of the specification, if it is one of Apollo's.
    fn name(&self) -> Option<&'a str> {
        self.identity.strip_prefix(APOLLO)
    }

    /// The reason why the gateway cannot follow this link. `None` if the specification is supported or
    /// optional.
    fn fault(&self) -> Option<String> {
        let name = self.name();
        let must_be_known =
            self.purpose.is_some() || name.is_some_and(|it| ALWAYS_CHECKED.contains(&it));
        if !must_be_known {
            return None;
        }
        let purpose = match &self.purpose {
            Some(purpose) => format!(" (for: {purpose})"),
            None => String::new(),
        };
        let url = self.url;
        let known = KNOWN.iter().find(|(known, _)| Some(*known) == name);
        let Some((_, versions)) = known else {
            return Some(format!("`{url}`{purpose} is not known"));
        };
        if !self.version.is_some_and(|it| versions.contains(&it)) {
            let versions = versions.join(", ");
            return Some(format!("`{url}`{purpose} is known in {versions} only"));
        }
        // The planner's crate finds this directive by its usual name only. Under another name, clients would
        // see hidden fields.
        if name == Some("inaccessible") && self.is_renamed("inaccessible") {
            return Some(format!("`{url}`{purpose} is known under its own name only"));
        }
        None
    }

    /// True if this link defines a directive of this name.
    fn brings(&self, name: &str) -> bool {
        let is_named = |text: &str| text.strip_prefix('@') == Some(name);
        let imported = match argument(self.directive, "import") {
            Some(Value::List(imports)) => imports.iter().any(|it| match it {
                Value::String(text) => is_named(text),
                Value::Object(entry) => match member(entry, "as") {
                    Some(Value::String(text)) => is_named(text),
                    _ => {
                        matches!(member(entry, "name"), Some(Value::String(text)) if is_named(text))
                    }
                },
                _ => false,
            }),
            _ => false,
        };
        imported || self.name_of(self.own_name()) == name
    }

    /// True if a directive belongs to the specification, imported or not.
    fn owns(&self, name: &str) -> bool {
        self.brings(name) || self.has_namespace_of(name)
    }

    /// True if a name begins with the name of the specification and two underscores.
    fn has_namespace_of(&self, name: &str) -> bool {
        let own = sdl::text(self.directive, "as").unwrap_or(self.own_name());
        let rest = name.strip_prefix(own).filter(|_| !own.is_empty());
        rest.is_some_and(|rest| rest.starts_with("__"))
    }

    /// The last part of the URL without the version.
    fn own_name(&self) -> &'a str {
        self.identity.rsplit('/').next().unwrap_or_default()
    }

    /// True if this link renames the directive that is named like the specification.
    fn is_renamed(&self, name: &str) -> bool {
        self.name_of(name) != name
    }

    /// Name of a directive in this supergraph: the imported name, or the name with the namespace prefix.
    fn directive_name(&self, usual: &str) -> String {
        let imported = match argument(self.directive, "import") {
            Some(Value::List(imports)) => imports.iter().any(|it| match it {
                Value::String(text) => text.strip_prefix('@') == Some(usual),
                Value::Object(entry) => {
                    matches!(member(entry, "name"), Some(Value::String(text)) if text.strip_prefix('@') == Some(usual))
                }
                _ => false,
            }),
            _ => false,
        };
        if imported || usual == self.own_name() {
            return self.name_of(usual);
        }
        let own = sdl::text(self.directive, "as").unwrap_or(self.own_name());
        format!("{own}__{usual}")
    }

    /// Name in this supergraph of the directive that is named like the specification.
    fn name_of(&self, name: &str) -> String {
        let imported = match argument(self.directive, "import") {
            Some(Value::List(imports)) => imports.iter().find_map(|it| match it {
                Value::String(text) => (text.strip_prefix('@')? == name).then(|| name.to_owned()),
                Value::Object(entry) => {
                    let text = |key| match member(entry, key) {
                        Some(Value::String(text)) => text.strip_prefix('@'),
                        _ => None,
                    };
                    (text("name")? == name).then(|| text("as").unwrap_or(name).to_owned())
                }
                _ => None,
            }),
            _ => None,
        };
        imported.unwrap_or_else(|| sdl::text(self.directive, "as").unwrap_or(name).to_owned())
    }
}

/// `v`, a number, a dot, a number.
fn is_version(text: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = text.strip_prefix('v').and_then(|it| it.split_once('.'));
    numbers.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Names of the directives of the specification `cost` in a supergraph.
pub(crate) fn cost_names(document: &Sdl) -> CostNames {
    let mut links = links(document);
    let link = links.find(|link| link.name() == Some("cost"));
    let name = |usual: &str| match &link {
        Some(link) => link.directive_name(usual),
        None => usual.to_owned(),
    };
    CostNames {
        cost: name("cost"),
        list_size: name("listSize"),
    }
}

/// Names of the authorization directives in a supergraph.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) authenticated: Vec<String>,
    pub(crate) requires_scopes: Vec<String>,
    pub(crate) policy: Vec<String>,
}

impl Names {
    /// Collects the names from the links. A usual name also counts unless another specification uses it, so
    /// that a directive without a link protects its field or type.
    pub(crate) fn of(document: &Sdl) -> Names {
        let links: Vec<Link<'_>> = links(document).collect();
        let names = |spec: &str| {
            let own = links.iter().filter(|link| link.name() == Some(spec));
            let mut names: Vec<String> = own.map(|link| link.name_of(spec)).collect();
            let others = links.iter().filter(|link| link.name() != Some(spec));
            let is_taken = others.into_iter().any(|link| link.brings(spec));
            if !is_taken && !names.iter().any(|name| name == spec) {
                names.push(spec.to_owned());
            }
            names
        };
        Names {
            authenticated: names("authenticated"),
            requires_scopes: names("requiresScopes"),
            policy: names("policy"),
        }
    }

    pub(crate) fn contain(&self, name: &str) -> bool {
        let mut all = [&self.authenticated, &self.requires_scopes, &self.policy].into_iter();
        all.any(|names| names.iter().any(|it| it == name))
    }
}

/// Refuses a supergraph that needs an unsupported feature.
pub(crate) fn check(document: &Sdl) -> Result<(), SupergraphError> {
    // Checked before the features. A connector's link is also an unknown feature, but this error is more
    // specific.
    if uses_connectors(document) {
        return Err(SupergraphError::Connectors);
    }
    let faults: Vec<String> = links(document).filter_map(|link| link.fault()).collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(SupergraphError::UnknownFeatures {
        features: faults.join("; "),
    })
}

/// Removes the directives and types of specifications from the client's schema. Names of such types begin
/// with the name of the specification (`context__ContextFieldValue`).
pub(crate) fn hide(client: &mut Sdl, supergraph: &Sdl, names: &Names) {
    let links: Vec<Link<'_>> = links(supergraph).collect();
    client.definitions.retain(|it| match it {
        Definition::DirectiveDefinition(it) => {
            let is_linked = links.iter().any(|link| link.owns(&it.name));
            ALWAYS_SHOWN.contains(&it.name.as_str()) || !(is_linked || names.contain(&it.name))
        }
        Definition::TypeDefinition(it) => {
            let name = type_name(it);
            !links.iter().any(|link| link.has_namespace_of(name))
        }
        _ => true,
    });
}

fn links(document: &Sdl) -> impl Iterator<Item = Link<'_>> {
    document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::SchemaDefinition(schema) => Some(&schema.directives),
            _ => None,
        })
        .flatten()
        .filter_map(Link::read)
}

/// True if some fields come from REST services that the router must call itself.
fn uses_connectors(document: &Sdl) -> bool {
    let is_connector = |url: &str| {
        let name = url.strip_prefix(APOLLO).and_then(|it| it.split('/').next());
        name.is_some_and(|name| CONNECTORS.contains(&name))
    };
    links(document).any(|link| is_connector(link.url))
        || directives(document).any(|directive| {
            if directive.name != "join__directive" {
                return false;
            }
            let Some(name) = sdl::text(directive, "name") else {
                return false;
            };
            // Composition copies a subgraph's `@link` to the connectors into `join__directive`.
            let url = match argument(directive, "args") {
                Some(Value::Object(entries)) => member(entries, "url"),
                _ => None,
            };
            CONNECTORS.contains(&name)
                || matches!(url, Some(Value::String(url)) if name == "link" && is_connector(url))
        })
}

/// The directives of the schema, of its types and of their fields.
fn directives(document: &Sdl) -> impl Iterator<Item = &Applied> {
    document.definitions.iter().flat_map(|definition| {
        let (own, fields) = match (definition, sdl::composite(definition)) {
            (Definition::SchemaDefinition(it), _) => (&it.directives[..], &[][..]),
            (_, Some(it)) => (it.directives, it.fields),
            (_, None) => (&[][..], &[][..]),
        };
        let fields = fields.iter().flat_map(|field| &field.directives);
        own.iter().chain(fields)
    })
}
