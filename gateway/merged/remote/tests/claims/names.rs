//! Tests that renaming in both directions gives the original names.

use std::sync::Arc;

use gateway_remote::Merged;
use proptest::prelude::*;
use serde_json::Value;

use crate::echo::Echo;
use crate::stand::{Functions, ask, config, introspected, options, schema};

const SHOP: &str = "
type Query { product(id: uuid): Product things: [Thing!]! node(wish: Wish): Node }
interface Node { id: uuid! }
type Product implements Node { id: uuid! name: String parts: [Product] kind: Kind }
type Order implements Node { id: uuid! units: Int of: Product }
union Thing = Product | Order
input Wish { id: uuid names: [String!] = [\"a\"] }
scalar uuid
enum Kind { SMALL LARGE }
";

const TYPES: [&str; 7] = ["Node", "Product", "Order", "Thing", "Wish", "uuid", "Kind"];

/// The name changes of a service.
#[derive(Clone, Debug)]
struct Change {
    prefix: String,
    suffix: String,
    mapped: Vec<(usize, String)>,
    fields: (String, String),
}

fn change() -> impl Strategy<Value = Change> {
    let word = "[a-zA-Z]{0,3}_?";
    (
        word,
        word,
        prop::collection::vec((0..TYPES.len(), "M[a-z]{1,4}[0-9]"), 0..3),
        (word, word),
    )
        .prop_map(|(prefix, suffix, mapped, fields)| Change {
            prefix,
            suffix,
            mapped,
            fields,
        })
}

impl Change {
    fn of_type(&self, old: &str) -> String {
        let index = TYPES.iter().position(|it| *it == old);
        let mapped = self.mapped.iter().find(|(known, _)| Some(*known) == index);
        match mapped {
            Some((_, new)) => new.clone(),
            None => format!("{}{old}{}", self.prefix, self.suffix),
        }
    }

    /// The new name of a field of `Product`, `Order` or `Node`.
    fn of_field(&self, old: &str) -> String {
        format!("{}{old}{}", self.fields.0, self.fields.1)
    }

    fn yaml(&self) -> String {
        let mut mapped = String::new();
        let mut known = Vec::new();
        for (index, new) in &self.mapped {
            if !known.contains(index) {
                known.push(*index);
                mapped += &format!("{}: {new}, ", TYPES[*index]);
            }
        }
        let (prefix, suffix) = &self.fields;
        let fields = ["Product", "Order", "Node"]
            .map(|parent| {
                format!("{{parent_type: {parent}, prefix: '{prefix}', suffix: '{suffix}'}}")
            })
            .join(", ");
        format!(
            "remote_schemas: [{{name: shop, url: 'http://h', customization: {{type_names: {{prefix: '{}', suffix: '{}', mapping: {{{mapped}}}}}, field_names: [{fields}]}}}}]\n",
            self.prefix, self.suffix
        )
    }

    /// The query in the new names, and in the service's own names.
    fn query(&self) -> (String, String) {
        let write = |of_type: &dyn Fn(&str) -> String, of_field: &dyn Fn(&str) -> String| {
            let [id, name, parts, units, of, kind] =
                ["id", "name", "parts", "units", "of", "kind"].map(of_field);
            let [node, product, order] = ["Node", "Product", "Order"].map(of_type);
            format!(
                "{{ product(id: \"7\") {{ i: {id} ...P }} things {{ t: __typename ... on {product} {{ n: {name} k: {kind} }} ... on {order} {{ u: {units} o: {of} {{ ...P }} }} }} node(wish: {{names: [\"b\", \"\"]}}) {{ __typename i: {id} ... on {node} {{ j: {id} }} }} }} fragment P on {product} {{ __typename p: {parts} {{ m: {name} w: __typename }} }}"
            )
        };
        let own = |old: &str| old.to_owned();
        let new = write(&|old| self.of_type(old), &|old| self.of_field(old));
        (new, write(&own, &own))
    }

    /// Changes the type names in a response of the service.
    fn renamed(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|it| self.renamed(it)),
            Value::Object(members) => {
                for (key, value) in members {
                    let is_name = matches!(key.as_str(), "__typename" | "t" | "w");
                    match value {
                        Value::String(name) if is_name => *name = self.of_type(name),
                        other => self.renamed(other),
                    }
                }
            }
            _ => {}
        }
    }
}

fn merged(yaml: &str, source: &Arc<gateway_federation::Schema>) -> Merged {
    let told = Arc::new(introspected(source));
    Merged::new(&config(yaml), &[Some(told)], options(), false)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn renamed_there_and_back_is_what_it_was(change in change()) {
        let source = schema(SHOP);
        let renamed = merged(&change.yaml(), &source);
        let mut names: Vec<String> = TYPES.iter().map(|it| change.of_type(it)).collect();
        names.sort();
        names.dedup();
        if names.len() < TYPES.len() {
            prop_assert!(!renamed.inconsistencies().is_empty());
            return Ok(());
        }
        // Built-in names of GraphQL or of the gateway are not possible for a type of the service.
        prop_assume!(renamed.inconsistencies().is_empty());
        let plain = merged("remote_schemas: [{name: shop, url: 'http://h'}]\n", &source);
        let echo = Functions::new(|body: &str| Ok(Echo { schema: source.document() }.respond(body)));
        let (new, old) = change.query();
        let (there, has_errors) = ask(&renamed, &new, &echo);
        prop_assert!(!has_errors, "{} {}", new, there);
        let (own, has_errors) = ask(&plain, &old, &echo);
        prop_assert!(!has_errors, "{}", own);
        // The service received the same operation both times.
        let asked = echo.asked.borrow();
        prop_assert_eq!(&asked[0], &asked[1]);
        let mut own: Value = serde_json::from_str(&own).unwrap();
        change.renamed(&mut own);
        prop_assert_eq!(serde_json::from_str::<Value>(&there).unwrap(), own);
    }
}

#[test]
fn an_interface_must_stay_whole() {
    let source = schema(SHOP);
    let yaml = "remote_schemas: [{name: shop, url: 'http://h', customization: {field_names: [{parent_type: Product, mapping: {id: key}}]}}]\n";
    let merged = merged(yaml, &source);
    let (_, reason) = &merged.inconsistencies()[0];
    assert!(
        reason
            .to_string()
            .contains("repeat the change of `field_names` for `Product`")
            || reason.to_string().contains("`Product` implements `Node`"),
        "{reason}"
    );
}

#[test]
fn the_roots_keep_their_names_and_lead_nowhere_back() {
    let source = schema("type Query { a: A } type A { id: ID query: Query }");
    let merged = merged(
        "remote_schemas: [{name: s, url: 'http://h', customization: {type_names: {prefix: X_}}}]\n",
        &source,
    );
    let text = merged.schema().document().to_string();
    assert!(text.contains("type X_A"), "{text}");
    assert!(!text.contains("query: Query"), "{text}");
    assert!(!text.contains("type Query"), "{text}");
}
