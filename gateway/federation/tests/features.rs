//! Supergraphs that the gateway refuses because of their required features.

use gateway_federation::{Supergraph, SupergraphError};

const SDL: &str = include_str!("supergraph.graphql");
const JOIN: &str = r#"@link(url: "https://specs.apollo.dev/join/v0.3", for: EXECUTION)"#;

/// The supergraph of these tests, with these links instead of the link to the join specification.
fn linked(links: &str) -> String {
    assert!(SDL.contains(JOIN));
    SDL.replace(JOIN, links)
}

fn refusal(sdl: &str) -> String {
    match Supergraph::parse(sdl) {
        Ok(_) => panic!("accepted:\n{}", &sdl[..sdl.len().min(600)]),
        Err(error) => error.to_string(),
    }
}

#[test]
fn features_that_are_not_known_are_refused_by_name() {
    for (links, named) in [
        (
            r#"@link(url: "https://specs.apollo.dev/join/v0.9", for: EXECUTION)"#,
            "`https://specs.apollo.dev/join/v0.9` (for: EXECUTION) is known in v0.1, v0.2, v0.3, v0.4, v0.5 only",
        ),
        (
            r#"@link(url: "https://specs.apollo.dev/join", for: EXECUTION)"#,
            "`https://specs.apollo.dev/join` (for: EXECUTION) is known in",
        ),
        (
            &format!(r#"{JOIN} @link(url: "https://example.com/seal/v1.2/", for: SECURITY)"#),
            "`https://example.com/seal/v1.2/` (for: SECURITY) is not known",
        ),
        // Another URL is another specification.
        (
            &format!(r#"{JOIN} @link(url: "https://example.com/join/v0.3", for: EXECUTION)"#),
            "`https://example.com/join/v0.3` (for: EXECUTION) is not known",
        ),
        // An unknown purpose is also a purpose.
        (
            &format!(r#"{JOIN} @link(url: "https://example.com/a/v1.0", for: BILLING)"#),
            "(for: BILLING)",
        ),
        (
            &format!(
                r#"{JOIN} @link(url: "https://specs.apollo.dev/inaccessible/v0.2", as: "hidden", for: SECURITY)"#
            ),
            "under its own name only",
        ),
        (
            &format!(r#"{JOIN} @core(feature: "https://example.com/a/v1.0", for: SECURITY)"#),
            "`https://example.com/a/v1.0`",
        ),
    ] {
        let reason = refusal(&linked(links));
        assert!(reason.contains(named), "{reason}");
    }
    // All errors in one message.
    let both = r#"@link(url: "https://example.com/a/v1.0", for: SECURITY) @link(url: "https://example.com/b/v1.0", for: SECURITY)"#;
    let reason = refusal(&linked(&format!("{JOIN} {both}")));
    assert!(
        reason.contains("/a/v1.0") && reason.contains("/b/v1.0"),
        "{reason}"
    );
}

#[test]
fn features_that_are_known_or_optional_are_accepted() {
    for links in [
        JOIN.replace("v0.3", "v0.1"),
        JOIN.replace("v0.3", "v0.5"),
        format!(r#"{JOIN} @link(url: "https://example.com/note/v3.1")"#),
        format!(r#"{JOIN} @link(url: "https://example.com/note/v3.1", for: null)"#),
        format!(r#"{JOIN} @link(url: "https://specs.apollo.dev/tag/v0.3")"#),
        format!(r#"{JOIN} @link(url: "https://specs.apollo.dev/context/v0.1", for: SECURITY)"#),
        format!(r#"{JOIN} @link(url: "https://specs.apollo.dev/cacheTag/v0.1", for: EXECUTION)"#),
    ] {
        let parsed = Supergraph::parse(&linked(&links));
        assert!(parsed.is_ok(), "{links}: {parsed:?}");
    }
}

#[test]
fn connectors_are_refused() {
    for links in [
        format!(r#"{JOIN} @link(url: "https://specs.apollo.dev/connect/v0.2", for: EXECUTION)"#),
        format!(
            r#"{JOIN} @join__directive(graphs: [PLACES], name: "link", args: {{url: "https://specs.apollo.dev/connect/v0.1", import: ["@connect"]}})"#
        ),
        format!(
            r#"{JOIN} @join__directive(graphs: [PLACES], name: "source", args: {{name: "v2"}})"#
        ),
    ] {
        let refused = Supergraph::parse(&linked(&links));
        assert!(
            matches!(refused, Err(SupergraphError::Connectors)),
            "{links}: {refused:?}"
        );
    }
    let field = SDL.replace(
        "type Query",
        r#"type Rest @join__type(graph: PLACES) { a: Int @join__directive(graphs: [PLACES], name: "connect", args: {http: {GET: "/a"}}) }
        type Query"#,
    );
    assert!(refusal(&field).contains("connectors"));
}

#[test]
fn a_cost_that_cannot_be_planned_with_is_named_with_its_place() {
    for (cost, place, found) in [
        ("a: Int @cost(weight: -1)", "Rest.a", "`-1`"),
        ("a: Int @cost(weight: 1.5)", "Rest.a", "`1.5`"),
        (
            r#"a(b: Int @cost(weight: "2")): Int"#,
            "Rest.a(b:)",
            r#"`"2"`"#,
        ),
        ("a: Int @cost", "Rest.a", "none"),
    ] {
        let rest = format!("type Rest @join__type(graph: PLACES) {{ {cost} }}\ntype Query");
        let reason = refusal(&SDL.replace("type Query", &rest));
        let expected = format!(
            "`@cost` of `{place}` cannot be used: expected a `weight` that is a whole number and not negative, found {found}; correct it in the subgraph and compose again"
        );
        assert_eq!(reason, expected);
    }
}

#[test]
fn directives_of_authorization_are_known_in_their_version_only() {
    for name in ["authenticated", "requiresScopes", "policy"] {
        for purpose in ["", ", for: SECURITY"] {
            let link = |version: &str| {
                let url = format!("https://specs.apollo.dev/{name}/{version}");
                linked(&format!("{JOIN} @link(url: \"{url}\"{purpose})"))
            };
            assert!(Supergraph::parse(&link("v0.1")).is_ok());
            let reason = refusal(&link("v0.2"));
            assert!(reason.contains(name), "{reason}");
        }
    }
}

#[test]
fn a_graph_that_is_not_one_of_the_supergraph_is_no_subgraph() {
    // With a graph that the enum does not contain.
    let interface = "interface Lost @join__type(graph: NOWHERE, key: \"id\", isInterfaceObject: true) { id: ID! }\n";
    let refused = Supergraph::parse(&format!("{SDL}\n{interface}"));
    if let Err(error) = refused {
        assert!(!error.to_string().contains("gave up"), "{error}");
    }
    // Plans refer to subgraphs by position. So no subgraph may be left out.
    let unnamed = SDL.replace("enum join__Graph {", "enum join__Graph {\n  UNNAMED");
    assert_ne!(unnamed, SDL);
    let reason = refusal(&unnamed);
    assert!(
        reason.contains("the value `UNNAMED` of `join__Graph`"),
        "{reason}"
    );
}

/// A description of the schema is valid since the specification of October 2021.
#[test]
fn a_supergraph_with_a_description_is_read() {
    let sdl = include_str!("described.graphql");
    assert!(sdl.starts_with("\"\"\""));
    let supergraph = Supergraph::parse(sdl).expect("a supergraph");
    assert_eq!(supergraph.sdl(), sdl);
    assert_eq!(supergraph.subgraphs().len(), 2);
    // Errors name the line of the text, because the description leaves its lines.
    let wrong = sdl.replacen("query: Query", "query Query", 1);
    let reason = refusal(&wrong);
    let line = 1 + wrong
        .lines()
        .position(|line| line.contains("query Query"))
        .expect("it is there");
    assert!(reason.contains(&format!("{line}:")), "{reason}");
}

/// A hand-written supergraph may provide `__typename`, which every object has anyway.
#[test]
fn a_field_may_provide_the_name_of_a_type() {
    let sdl = include_str!("../../audit/corpus/provides/supergraph.graphql");
    for (set, with_typename) in [
        ("\"name\"", "\"__typename name\""),
        ("\"name\"", "\"__typename\""),
        (
            "author{name address{city}}",
            "author{__typename name address{__typename city}}",
        ),
        ("... on Post { views }", "... on Post { __typename views }"),
    ] {
        let changed = sdl.replacen(set, with_typename, 1);
        assert_ne!(changed, sdl);
        if let Err(error) = Supergraph::parse(&changed) {
            panic!("{with_typename}: {error}");
        }
    }
}
