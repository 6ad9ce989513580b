use super::actual::LOOKS;
use super::formula::READS;
use crate::{OperationOptions, Operations, Supergraph};
use std::sync::Arc;

/// Operations on a supergraph with one subgraph that has these types.
fn operations(types: &str, link: &str) -> Operations {
    let sdl = format!(
        r#"schema @link(url: "https://specs.apollo.dev/link/v1.0") @link(url: "https://specs.apollo.dev/join/v0.3", for: EXECUTION) {link} {{ query: Query mutation: Mutation }}
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
directive @cost(weight: Int!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION
scalar join__FieldSet
scalar link__Import
enum link__Purpose {{ SECURITY EXECUTION }}
enum join__Graph {{ A @join__graph(name: "a", url: "http://a") }}
{types}"#
    );
    let supergraph = Supergraph::parse(&sdl).unwrap_or_else(|error| panic!("{error}\n{sdl}"));
    let options = OperationOptions {
        demand_list_size: Some(10),
        ..OperationOptions::default()
    };
    Operations::new(Arc::new(supergraph), options)
}

const COST: &str =
    r#"@link(url: "https://specs.apollo.dev/cost/v0.1", import: ["@cost", "@listSize"])"#;

const TYPES: &str = r#"
type Query @join__type(graph: A) {
  book: Book
  books: [Book]
  names: [String]
  shelf(first: Int, last: Int): [Book] @listSize(slicingArguments: ["first", "last"], requireOneSlicingArgument: false, assumedSize: 7)
  one(first: Int, last: Int): [Book] @listSize(slicingArguments: ["first", "last"])
  page(first: Int): Page @listSize(slicingArguments: ["first"], sizedFields: ["items"])
  five: [Book] @listSize(assumedSize: 5)
  search(filter: Filter, dear: Int @cost(weight: 3)): Book
  heavy: Book @cost(weight: 20)
  gem: Gem
  thing: Thing
}
type Mutation @join__type(graph: A) { add: Book }
type Book @join__type(graph: A) { name: String author: Author dear: Int @cost(weight: 4) }
type Author @join__type(graph: A) { name: String books: [Book] }
type Page @join__type(graph: A) { items: [Book] total: Int }
type Gem @join__type(graph: A) @cost(weight: 9) { name: String }
union Thing @join__type(graph: A) @join__unionMember(graph: A, member: "Book") = Book
directive @join__unionMember(graph: join__Graph!, member: String!) repeatable on UNION
input Filter @join__type(graph: A) { name: String and: [Filter] weighed: Int @cost(weight: 2) }
"#;

fn costs(query: &str, variables: &str) -> Result<f64, String> {
    let operations = operations(TYPES, COST);
    let prepared = operations
        .prepare(query, None)
        .unwrap_or_else(|refusal| panic!("{query}: {:?}", refusal.errors));
    let variables = prepared.coerce(Some(variables.as_bytes())).unwrap();
    prepared.estimate(&variables).unwrap().map_err(|it| it.0)
}

#[test]
fn objects_lists_and_mutations_cost_as_documented() {
    for (query, cost) in [
        ("{ book { name author { name books { name } } } }", 12.0),
        ("{ books { name } }", 10.0),
        ("{ books { author { name } } }", 20.0),
        ("{ names }", 0.0),
        ("{ __typename }", 0.0),
        ("mutation { add { name } }", 11.0),
        ("{ thing { ... on Book { author { name } } } }", 2.0),
        ("{ a: book { name } b: book { name } }", 2.0),
        ("{ ...F } fragment F on Query { book { name } }", 1.0),
    ] {
        assert_eq!(costs(query, "{}"), Ok(cost), "{query}");
    }
}

#[test]
fn weights_of_fields_types_and_arguments_count() {
    for (query, cost) in [
        ("{ heavy { name } }", 20.0),
        ("{ gem { name } }", 9.0),
        ("{ book { dear } }", 5.0),
        ("{ books { dear } }", 50.0),
        ("{ search(dear: 1) { name } }", 4.0),
        ("{ search(filter: {name: \"a\"}) { name } }", 2.0),
        (
            "{ search(filter: {weighed: 1, and: [{name: \"a\"}, {weighed: 2}]}) { name } }",
            8.0,
        ),
    ] {
        assert_eq!(costs(query, "{}"), Ok(cost), "{query}");
    }
    let query = "query($f: Filter, $d: Int) { search(filter: $f, dear: $d) { name } }";
    assert_eq!(costs(query, "{\"f\": {\"and\": [{}, {}]}}"), Ok(4.0));
    assert_eq!(costs(query, "{\"f\": null, \"d\": 5}"), Ok(4.0));
}

#[test]
fn the_size_of_a_list_follows_its_arguments() {
    for (query, cost) in [
        ("{ five { name } }", 5.0),
        ("{ shelf { name } }", 7.0),
        ("{ shelf(first: 3) { name } }", 3.0),
        ("{ shelf(first: 3, last: 4) { name } }", 4.0),
        // A negative size does not predict the length of a list.
        ("{ shelf(first: -3) { name } }", 7.0),
        ("{ shelf(first: 3, last: -4) { name } }", 7.0),
        ("{ shelf(first: 9, last: -4) { name } }", 9.0),
        ("{ one(last: -2) { name } }", 10.0),
        ("{ page(first: -6) { items { name } } }", 11.0),
        ("{ heavy { name } shelf(first: -1000000) { name } }", 27.0),
        ("{ one(last: 2) { name } }", 2.0),
        ("{ page(first: 6) { items { name } total } }", 7.0),
    ] {
        assert_eq!(costs(query, "{}"), Ok(cost), "{query}");
    }
    let query = "query($n: Int = 8) { shelf(first: $n) { name } }";
    assert_eq!(costs(query, "{}"), Ok(8.0));
    assert_eq!(costs(query, "{\"n\": 1000000}"), Ok(1_000_000.0));
    assert_eq!(costs(query, "{\"n\": null}"), Ok(7.0));
    assert_eq!(costs(query, "{\"n\": -1000000}"), Ok(7.0));
    let query = "query($n: Int = -8) { shelf(first: $n) { name } }";
    assert_eq!(costs(query, "{}"), Ok(7.0));
    for query in ["{ one { name } }", "{ one(first: 1, last: 2) { name } }"] {
        let error = costs(query, "{}").unwrap_err();
        assert!(error.starts_with("Exactly one slicing argument"), "{error}");
    }
}

#[test]
fn sizes_beyond_all_numbers_are_costs_beyond_all_limits() {
    let mut query = "{ name }".to_owned();
    for _ in 0..36 {
        query = format!("{{ near(first: 2147483647) {query} }}");
    }
    let types = TYPES.replace(
        "type Book @join__type(graph: A) {",
        "type Book @join__type(graph: A) { near(first: Int): [Book] @listSize(slicingArguments: [\"first\"])",
    );
    let operations = operations(&types, COST);
    let prepared = operations.prepare(&format!("{{ book {query} }}"), None);
    let prepared = prepared.unwrap_or_else(|refusal| panic!("{:?}", refusal.errors));
    let variables = prepared.coerce(None).unwrap();
    assert_eq!(prepared.estimate(&variables), Some(Ok(f64::MAX)));
}

#[test]
fn what_a_condition_leaves_out_costs_nothing() {
    let query = "query($w: Boolean = true, $n: Boolean!) { a: book @include(if: $w) { name } ... @skip(if: $n) { b: book { name } c: book @skip(if: true) { name } } }";
    assert_eq!(costs(query, "{\"n\": false}"), Ok(2.0));
    assert_eq!(costs(query, "{\"n\": true}"), Ok(1.0));
    assert_eq!(costs(query, "{\"n\": true, \"w\": false}"), Ok(0.0));
}

#[test]
fn a_response_costs_the_objects_that_it_has() {
    let operations = operations(TYPES, COST);
    let query = "{ books { name author { name } } page(first: 50) { items { dear } } heavy { name } x: book { name } x: book { author { name } } }";
    let prepared = operations.prepare(query, None).unwrap();
    let variables = prepared.coerce(None).unwrap();
    let actual = |body: &str| prepared.actual_cost(&variables, body.as_bytes()).unwrap();
    let body = r#"{"data":{"books":[{"name":"a","author":{"name":"b"}},null,{"name":"c","author":null}],"page":{"items":[{"dear":3},{"dear":null}]},"heavy":{"name":"d"},"x":{"name":"e","author":{"name":"f"}}},"errors":[{"message":"x","extensions":{"books":[{}]}}]}"#;
    assert_eq!(actual(body), Some(3.0 + 7.0 + 20.0 + 2.0));
    assert_eq!(actual("{\"data\":null}"), Some(0.0));
    assert_eq!(actual("no"), None);
}

#[test]
fn selections_of_one_key_are_one_field_of_a_response() {
    let operations = operations(TYPES, COST);
    let query = "{ books { name } ...F ...G } \
        fragment F on Query { books { author { name } } } \
        fragment G on Query { books { author { books { name } } } }";
    let prepared = operations.prepare(query, None).unwrap();
    let variables = prepared.coerce(None).unwrap();
    let body = r#"{"data":{"books":[{"name":"a","author":{"name":"b","books":[{"name":"c"},{"name":"d"}]}}]}}"#;
    let cost = prepared.actual_cost(&variables, body.as_bytes());
    assert_eq!(cost, Some(Some(1.0 + 1.0 + 2.0)));
}

#[test]
fn a_wide_selection_is_not_gone_through_for_each_key() {
    let operations = operations(TYPES, COST);
    let width = 400;
    let fields: String = (0..width).map(|at| format!("n{at}: name ")).collect();
    let prepared = operations.prepare(&format!("{{ books {{ {fields} }} }}"), None);
    let prepared = prepared.unwrap_or_else(|refusal| panic!("{:?}", refusal.errors));
    let variables = prepared.coerce(None).unwrap();
    let members: Vec<String> = (0..width).map(|at| format!("\"n{at}\":\"x\"")).collect();
    let objects = vec![format!("{{{}}}", members.join(",")); 20].join(",");
    let body = format!("{{\"data\":{{\"books\":[{objects}]}}}}");
    let before = LOOKS.get();
    let cost = prepared.actual_cost(&variables, body.as_bytes());
    let looks = LOOKS.get() - before;
    assert_eq!(cost, Some(Some(20.0)));
    // A binary search among 400 keys takes ten comparisons. A linear search would take 3.2 million in total.
    assert!(looks <= 20 * width * 10 + 10, "{looks}");
}

#[test]
fn a_variable_is_read_once_a_request() {
    let fields: String = (0..90)
        .map(|index| format!("f{index}: search(filter: $f) {{ name }} g{index}: search(filter: {{and: [$f, {{name: $s}}]}}) {{ name }} s{index}: shelf(first: $n) {{ ...B }} "))
        .collect();
    let query = format!(
        "query($f: Filter, $n: Int, $s: String) {{ books {{ ...B author {{ books {{ ...B }} }} }} {fields} }} fragment B on Book {{ like(filter: $f) {{ name }} }}"
    );
    let types = TYPES.replace(
        "type Book @join__type(graph: A) {",
        "type Book @join__type(graph: A) { like(filter: Filter): Book",
    );
    let operations = operations(&types, COST);
    let prepared = operations.prepare(&query, None);
    let prepared = prepared.unwrap_or_else(|refusal| panic!("{:?}", refusal.errors));
    let given = r#"{"f": {"and": [{}, {}]}, "n": 2, "s": "x"}"#;
    let variables = prepared.coerce(Some(given.as_bytes())).unwrap();
    let reads = |work: &dyn Fn() -> f64| {
        let before = READS.get();
        (work(), READS.get() - before)
    };
    let (cost, read) = reads(&|| prepared.estimate(&variables).unwrap().unwrap());
    // One book (1), its `like` (1) and the filter (3).
    let book = 1.0 + 1.0 + 3.0;
    let books = 10.0 * (book + 1.0 + 10.0 * book);
    assert_eq!(cost, books + 90.0 * (4.0 + 6.0 + 2.0 * book));
    assert!(read <= 3, "{read}");
    let list = vec!["{\"like\":{\"name\":\"a\"}}"; 1_000].join(",");
    let body = format!("{{\"data\":{{\"books\":[{list}]}}}}");
    let (cost, read) = reads(&|| {
        prepared
            .actual_cost(&variables, body.as_bytes())
            .unwrap()
            .unwrap()
    });
    assert_eq!(cost, 1_000.0 * (1.0 + 1.0 + 3.0));
    assert!(read <= 3, "{read}");
}

#[test]
fn renamed_directives_count_and_those_of_others_do_not() {
    let link = r#"@link(url: "https://specs.apollo.dev/cost/v0.1", import: [{name: "@cost", as: "@price"}, "@listSize"])"#;
    let types = TYPES.replace("@cost(weight: 20)", "@price(weight: 20)")
        + "\ndirective @price(weight: Int!) on FIELD_DEFINITION";
    let operations = operations(&types, link);
    let cost = |query: &str| {
        let prepared = operations.prepare(query, None).unwrap();
        let variables = prepared.coerce(None).unwrap();
        prepared.estimate(&variables).unwrap().unwrap()
    };
    assert_eq!(cost("{ heavy { name } }"), 20.0);
    // `@cost` now belongs to another specification.
    assert_eq!(cost("{ gem { name } }"), 1.0);
}

#[test]
fn the_largest_operation_that_is_planned_is_estimated_quickly() {
    let operations = operations(TYPES, COST);
    let mut query = "query($f: Filter) {".to_owned();
    for index in 0..190 {
        query.push_str(&format!(
            "f{index}: search(filter: $f) {{ author {{ name }} }}"
        ));
    }
    query.push('}');
    let prepared = operations.prepare(&query, None).unwrap();
    let filter = format!("{{\"f\": {{\"and\": [{}{{}}]}}}}", "{},".repeat(1_000));
    let variables = prepared.coerce(Some(filter.as_bytes())).unwrap();
    let cost = prepared.estimate(&variables).unwrap().unwrap();
    assert_eq!(cost, 190.0 * (1_002.0 + 2.0));
}
