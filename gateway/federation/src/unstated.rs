//! Members of unions, interfaces of types and root types, if the composition does not state their subgraphs.
//!
//! `join__unionMember` exists since version 0.3 of the join specification, so supergraphs of Federation 2.0 to 2.2
//! do not have it. Without the directive, the planner would find no member in any subgraph.

use std::collections::{BTreeSet, HashMap};

use graphql_tools::parser::Pos;
use graphql_tools::parser::schema::{
    Definition, Directive, Document, ObjectType, TypeDefinition, Value,
};

use crate::sdl::{self, Applied};

const MEMBER: &str = "join__unionMember";
const IMPLEMENTS: &str = "join__implements";

/// States the subgraphs of all members and interfaces without a statement. They are in each subgraph that defines
/// both types, as in Apollo Router.
pub(crate) fn state(document: &mut Document<'static, String>) {
    let graphs = Graphs::of(document);
    let roots = sdl::roots(document);
    for definition in &mut document.definitions {
        let Definition::TypeDefinition(definition) = definition else {
            continue;
        };
        match definition {
            // One statement states all members. The union may have fewer members in some subgraphs.
            TypeDefinition::Union(it) if it.directives.iter().all(|it| it.name != MEMBER) => {
                let pairs = graphs.common(&it.name, &it.types);
                let added = pairs.map(|(graph, member)| applied(MEMBER, graph, "member", member));
                it.directives.extend(added);
            }
            TypeDefinition::Object(it) => {
                if roots.iter().flatten().any(|root| *root == it.name) {
                    state_root(it);
                }
                graphs.state_interfaces(&it.name, &it.implements_interfaces, &mut it.directives);
            }
            TypeDefinition::Interface(it) => {
                graphs.state_interfaces(&it.name, &it.implements_interfaces, &mut it.directives);
            }
            _ => {}
        }
    }
}

/// States the subgraphs of a root type that only its fields state.
fn state_root(root: &mut ObjectType<'static, String>) {
    if root.directives.iter().any(|it| it.name == "join__type") {
        return;
    }
    let fields = root.fields.iter().flat_map(|field| &field.directives);
    let fields = fields.filter(|it| it.name == "join__field");
    let graphs: BTreeSet<String> = fields.filter_map(sdl::graph).map(str::to_owned).collect();
    let added = graphs.into_iter().map(|graph| Directive {
        position: Pos::default(),
        name: "join__type".to_owned(),
        arguments: vec![("graph".to_owned(), Value::Enum(graph))],
    });
    root.directives.extend(added);
}

/// The interfaces that no directive mentions.
fn unstated(directives: &[Applied], interfaces: &[String]) -> Vec<String> {
    let is_stated = |name: &str| {
        let mut statements = directives.iter().filter(|it| it.name == IMPLEMENTS);
        statements.any(|it| sdl::text(it, "interface") == Some(name))
    };
    let missing = interfaces.iter().filter(|name| !is_stated(name));
    missing.cloned().collect()
}

fn applied(directive: &str, graph: &str, argument: &str, name: &str) -> Applied {
    Directive {
        position: Pos::default(),
        name: directive.to_owned(),
        arguments: vec![
            ("graph".to_owned(), Value::Enum(graph.to_owned())),
            (argument.to_owned(), Value::String(name.to_owned())),
        ],
    }
}

/// The subgraphs that define each type.
struct Graphs(HashMap<String, BTreeSet<String>>);

impl Graphs {
    fn of(document: &Document<'static, String>) -> Self {
        let mut graphs: HashMap<String, BTreeSet<String>> = HashMap::new();
        for definition in &document.definitions {
            let (name, directives) = match definition {
                Definition::TypeDefinition(TypeDefinition::Object(it)) => {
                    (&it.name, &it.directives)
                }
                Definition::TypeDefinition(TypeDefinition::Interface(it)) => {
                    (&it.name, &it.directives)
                }
                Definition::TypeDefinition(TypeDefinition::Union(it)) => (&it.name, &it.directives),
                _ => continue,
            };
            let types = directives.iter().filter(|it| it.name == "join__type");
            // An interface object is an object type in its subgraph, without objects of its own.
            let is_object = |it: &&Applied| {
                sdl::argument(it, "isInterfaceObject") != Some(&Value::Boolean(true))
            };
            let found = types.filter(is_object).filter_map(sdl::graph);
            graphs.insert(name.clone(), found.map(str::to_owned).collect());
        }
        Self(graphs)
    }

    /// States the interfaces of the type `name` that no directive mentions.
    fn state_interfaces(&self, name: &str, interfaces: &[String], directives: &mut Vec<Applied>) {
        let missing = unstated(directives, interfaces);
        let pairs = self.common(name, &missing);
        let added = pairs.map(|(graph, name)| applied(IMPLEMENTS, graph, "interface", name));
        directives.extend(added);
    }

    /// The pairs of a subgraph and one of `others` where the subgraph also defines `name`.
    fn common<'a>(
        &'a self,
        name: &str,
        others: &[String],
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let pairs = self.0.get(name).into_iter().flat_map(|graphs| {
            let others = others
                .iter()
                .filter_map(|other| self.0.get_key_value(other));
            let pairs = others.flat_map(move |(other, in_graphs)| {
                graphs
                    .intersection(in_graphs)
                    .map(move |graph| (graph.as_str(), other.as_str()))
            });
            pairs.collect::<Vec<_>>()
        });
        pairs.collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use graphql_tools::parser::parse_schema;

    use super::state;

    /// The definition of `name` after the statements are added.
    fn stated(sdl: &'static str, name: &str) -> String {
        let mut document = parse_schema::<String>(sdl).expect("SDL").into_static();
        state(&mut document);
        let text = document.to_string();
        let lines = text.lines().filter(|line| line.contains(name));
        lines.collect::<Vec<_>>().join("\n")
    }

    const UNION: &str = "union U @join__type(graph: A) @join__type(graph: B) = X | Y
        type X @join__type(graph: A) @join__type(graph: B) { id: ID }
        type Y @join__type(graph: B) @join__type(graph: C) { id: ID }";

    #[test]
    fn a_union_without_statements_has_its_members_where_both_are() {
        assert_eq!(
            stated(UNION, "union U"),
            "union U @join__type(graph: A) @join__type(graph: B) \
             @join__unionMember(graph: A, member: \"X\") @join__unionMember(graph: B, member: \"X\") \
             @join__unionMember(graph: B, member: \"Y\") = X | Y"
        );
    }

    #[test]
    fn a_stated_union_stays_as_it_is() {
        let union =
            "union U @join__type(graph: A) @join__unionMember(graph: A, member: \"X\") = X | Y
            type X @join__type(graph: A) { id: ID } type Y @join__type(graph: A) { id: ID }";
        let found = stated(union, "union U");
        assert_eq!(found.matches("join__unionMember").count(), 1, "{found}");
    }

    #[test]
    fn a_root_type_is_where_its_fields_are() {
        let sdl = "schema { query: Start } type Start {
            a: Int @join__field(graph: B) b: Int @join__field(graph: A) c: Int @join__field(graph: B) }
            type Other { a: Int @join__field(graph: B) }";
        assert_eq!(
            stated(sdl, "type Start"),
            "type Start @join__type(graph: A) @join__type(graph: B) {"
        );
        assert_eq!(stated(sdl, "type Other"), "type Other {");
    }

    #[test]
    fn an_interface_object_gets_no_implementation() {
        let sdl = "interface I @join__type(graph: A) @join__type(graph: B, isInterfaceObject: true) { id: ID }
            type X implements I @join__type(graph: A) @join__type(graph: B) { id: ID }";
        let found = stated(sdl, "type X");
        assert!(
            found.contains("@join__implements(graph: A, interface: \"I\")"),
            "{found}"
        );
        assert_eq!(found.matches("join__implements").count(), 1, "{found}");
    }
}
