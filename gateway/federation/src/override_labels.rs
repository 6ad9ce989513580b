//! `@override` with a label: fields that move to another subgraph. They move for a percentage of the
//! requests, or if a stage of the gateway activates the label.
//!
//! Each request draws one random number for all percentages. So an operation with `k` different percentages
//! has at most `k + 1` plans instead of a power of two.

use std::collections::{HashMap, HashSet};

use graphql_tools::parser::query::{Definition, Selection};
use graphql_tools::parser::schema;
use hive_router_query_planner::graph::{PERCENTAGE_SCALE_FACTOR, PlannerOverrideContext};

use crate::limits::{QueryDocument, Set, selection_set};
use crate::sdl::{self, Applied};

/// The labels of a supergraph, or only the labels that matter to one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideLabels {
    /// Percentages in the planner's unit, ascending, without duplicates.
    percentages: Vec<u64>,
    /// Other labels, ascending, without duplicates.
    custom: Vec<String>,
}

/// The active labels of one request. Their fields come from the new subgraph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Random number below 100 %. Labels with a higher percentage are active.
    percentage: u64,
    /// Active labels without a percentage, ascending.
    custom: Vec<String>,
}

impl OverrideLabels {
    /// The labels without a percentage. Only a stage can activate them.
    #[must_use]
    pub fn custom(&self) -> &[String] {
        &self.custom
    }

    /// Chooses the active labels for one request. `random` is any evenly distributed number.
    #[must_use]
    pub fn draw(&self, random: u64, is_active: impl Fn(&str) -> bool) -> Overrides {
        let custom = self.custom.iter().filter(|label| is_active(label));
        Overrides {
            // A remainder favors small numbers, but the bias is negligible among 2^64 values.
            percentage: random % (100 * PERCENTAGE_SCALE_FACTOR),
            custom: custom.cloned().collect(),
        }
    }

    /// The active labels, as written in the supergraph.
    #[must_use]
    pub fn active(&self, drawn: &Overrides) -> Vec<String> {
        let percentages = self.percentages.iter().filter(|it| drawn.percentage < **it);
        // The conversion is exact, because the number is below 2^53.
        let unit = PERCENTAGE_SCALE_FACTOR as f64;
        let percentages = percentages.map(|it| format!("percent({})", *it as f64 / unit));
        percentages.chain(drawn.custom.iter().cloned()).collect()
    }

    /// A text that is equal for all requests with the same plan. Empty if there is only one plan.
    pub(crate) fn variant(&self, drawn: &Overrides) -> String {
        if *self == OverrideLabels::default() {
            return String::new();
        }
        let bucket = self
            .percentages
            .partition_point(|it| *it <= drawn.percentage);
        let mut variant = bucket.to_string();
        // Other labels must not create further plans of the operation.
        for label in drawn.custom.iter().filter(|it| self.custom.contains(it)) {
            // Labels contain no control characters, so this separator is unique.
            variant.push('\n');
            variant.push_str(label);
        }
        variant
    }

    pub(crate) fn weight(&self) -> usize {
        let custom = self.custom.iter().map(|it| it.len() + size_of::<String>());
        size_of::<Self>() + 8 * self.percentages.len() + custom.sum::<usize>()
    }

    fn add(&mut self, label: &str) {
        match percentage(label) {
            Some(percentage) => self.percentages.push(percentage),
            None => self.custom.push(label.to_owned()),
        }
    }

    fn sorted(mut self) -> Self {
        self.percentages.sort_unstable();
        self.percentages.dedup();
        self.custom.sort_unstable();
        self.custom.dedup();
        self
    }
}

impl Overrides {
    pub(crate) fn for_planner(&self) -> PlannerOverrideContext {
        let custom = self.custom.iter().cloned().collect();
        PlannerOverrideContext::new(custom, self.percentage)
    }
}

/// Parses a percentage like the planner, which refuses a supergraph with an invalid number.
fn percentage(label: &str) -> Option<u64> {
    let number = label.strip_prefix("percent(")?.strip_suffix(')')?;
    let number: f64 = number.parse().ok()?;
    // The cast is the planner's own, so that both compare equally.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 100, as the planner has checked"
    )]
    Some((number * PERCENTAGE_SCALE_FACTOR as f64) as u64)
}

/// The labels of a supergraph by field.
#[derive(Debug, Default)]
pub(crate) struct Labelled {
    pub(crate) all: OverrideLabels,
    /// Labels by field name, for all types.
    by_field: HashMap<String, Vec<String>>,
    /// Names of fields that the planner may add to an operation.
    implied: HashSet<String>,
}

impl Labelled {
    /// Collects the labels. `None` if the supergraph has no label.
    pub(crate) fn of(supergraph: &schema::Document<'static, String>) -> Option<Labelled> {
        let mut found = Labelled::default();
        for definition in &supergraph.definitions {
            let Some(composite) = sdl::composite(definition) else {
                continue;
            };
            for directive in composite.directives {
                found.imply(directive, "join__type", "key");
            }
            for field in composite.fields {
                for directive in &field.directives {
                    found.imply(directive, "join__field", "requires");
                    if let Some(label) = argument(directive, "join__field", "overrideLabel") {
                        found.all.add(label);
                        let labels = found.by_field.entry(field.name.clone()).or_default();
                        labels.push(label.to_owned());
                    }
                }
            }
        }
        found.all = found.all.sorted();
        (!found.by_field.is_empty()).then_some(found)
    }

    fn imply(&mut self, directive: &Applied, name: &str, argument: &str) {
        let selection = self::argument(directive, name, argument).unwrap_or_default();
        let words = selection.split(|it: char| it != '_' && !it.is_ascii_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        self.implied.extend(words.map(str::to_owned));
    }

    /// The labels that can affect the plans of a document. These are the labels of fields that the document
    /// names, and of fields in keys or requirements.
    pub(crate) fn relevant(&self, document: &QueryDocument) -> OverrideLabels {
        let mut names = HashSet::new();
        for definition in &document.definitions {
            let set = match definition {
                Definition::Operation(operation) => selection_set(operation),
                Definition::Fragment(fragment) => &fragment.selection_set,
            };
            collect_names(set, &mut names);
        }
        let mut relevant = OverrideLabels::default();
        for (field, labels) in &self.by_field {
            if names.contains(field.as_str()) || self.implied.contains(field) {
                for label in labels {
                    relevant.add(label);
                }
            }
        }
        relevant.sorted()
    }
}

fn collect_names<'a>(set: &'a Set, names: &mut HashSet<&'a str>) {
    for selection in &set.items {
        match selection {
            Selection::Field(field) => {
                names.insert(&field.name);
                collect_names(&field.selection_set, names);
            }
            Selection::InlineFragment(inline) => collect_names(&inline.selection_set, names),
            // The definition of each fragment is visited separately.
            Selection::FragmentSpread(_) => {}
        }
    }
}

/// The text of an argument of a directive.
fn argument<'a>(directive: &'a Applied, name: &str, argument: &str) -> Option<&'a str> {
    if directive.name != name {
        return None;
    }
    sdl::text(directive, argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> OverrideLabels {
        let mut labels = OverrideLabels::default();
        for text in texts {
            labels.add(text);
        }
        labels.sorted()
    }

    #[test]
    fn requests_of_one_bucket_share_a_variant() {
        let labels = labels(&["percent(50)", "percent(0.5)", "beta", "alpha"]);
        let unit = PERCENTAGE_SCALE_FACTOR;
        let variant = |percent: u64, active: &[&str]| {
            labels.variant(&labels.draw(percent * unit, |it| active.contains(&it)))
        };
        assert_eq!(variant(0, &[]), "0");
        assert_eq!(variant(1, &[]), "1");
        assert_eq!(variant(49, &[]), "1");
        assert_eq!(variant(50, &["beta", "alpha", "other"]), "2\nalpha\nbeta");
        assert_eq!(OverrideLabels::default().variant(&Overrides::default()), "");
    }

    #[test]
    fn active_labels_are_told_as_they_are_written() {
        let labels = labels(&["percent(50)", "percent(0.01)", "percent(100)", "beta"]);
        let drawn = labels.draw(10 * PERCENTAGE_SCALE_FACTOR, |it| it == "beta");
        assert_eq!(
            labels.active(&drawn),
            ["percent(50)", "percent(100)", "beta"]
        );
        let drawn = labels.draw(0, |_| false);
        assert_eq!(
            labels.active(&drawn),
            ["percent(0.01)", "percent(50)", "percent(100)"]
        );
    }

    #[test]
    fn labels_matter_to_documents_that_name_their_fields_and_to_all_when_keys_do() {
        let found = |more: &str, query: &str| {
            let text = format!(
                r#"type Query @join__type(graph: A{more}) {{
                    plain: Int
                    moving: Int @join__field(graph: A, overrideLabel: "percent(5)")
                    keyed: Int @join__field(graph: A, overrideLabel: "beta")
                }}"#
            );
            let schema = graphql_tools::parser::parse_schema::<String>(&text).unwrap();
            let document = graphql_tools::parser::parse_query::<String>(query).unwrap();
            let labelled = Labelled::of(&schema.into_static()).unwrap();
            labelled.relevant(&document.into_static())
        };
        assert_eq!(found("", "{plain}"), OverrideLabels::default());
        assert_eq!(
            found("", "{a:moving ...F} fragment F on Query{keyed}"),
            labels(&["percent(5)", "beta"])
        );
        let key = r#", key: "id place { keyed }""#;
        assert_eq!(found(key, "{plain}"), labels(&["beta"]));
        let none = graphql_tools::parser::parse_schema::<String>("type Query { a: Int }").unwrap();
        assert!(Labelled::of(&none.into_static()).is_none());
    }
}
