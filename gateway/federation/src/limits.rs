//! Measures a parsed document before any heavy work is done on it.
//!
//! Fragments make a short text large. In a chain of a few dozen fragments, each can spread the next one
//! twice, and the last then counts millions of times. Here, each value is computed once per fragment and
//! combined. So the work stays linear in the length of the text.

mod names;

use std::collections::{HashMap, HashSet};

use graphql_tools::parser::query::{
    Definition, Document, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
};

use crate::error::GraphqlError;

/// Limits on operations. The names are the configuration keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationLimits {
    /// Maximum nesting of fields. `None` by default, without a limit.
    pub max_depth: Option<u32>,
    /// Maximum number of fields, fragments included. Each alias counts. `None` by default, without a limit.
    pub max_height: Option<u32>,
    /// Maximum number of root fields. Each alias counts. `None` by default, without a limit.
    pub max_root_fields: Option<u32>,
    /// Maximum number of aliased fields, fragments included. `None` by default, without a limit.
    pub max_aliases: Option<u32>,
    /// Maximum number of selections of any operation in a document, with fragments expanded. The default is
    /// 4,000, which take the planner about 200 ms. Twice as many take six times as long. Every 64 bytes of a
    /// name count as one more selection. `warn_only` does not affect this limit.
    pub max_selections: u32,
    /// Maximum number of lexical tokens in a document. The default is 15,000.
    pub parser_max_tokens: usize,
    /// Maximum nesting of selection sets, with fragments expanded. The default is 500. The parser itself
    /// accepts at most 50 nested brackets in one definition.
    pub parser_max_recursion: usize,
    /// True if operations may exceed the four limits `max_depth`, `max_height`, `max_root_fields` and
    /// `max_aliases`. [`Prepared::exceeded`](crate::Prepared::exceeded) returns the exceeded limits for the
    /// log.
    pub warn_only: bool,
}

impl Default for OperationLimits {
    fn default() -> Self {
        OperationLimits {
            max_depth: None,
            max_height: None,
            max_root_fields: None,
            max_aliases: None,
            max_selections: 4_000,
            parser_max_tokens: 15_000,
            parser_max_recursion: 500,
            warn_only: false,
        }
    }
}

pub(crate) type QueryDocument = Document<'static, String>;
pub(crate) type Set = SelectionSet<'static, String>;

/// Maximum number of pairs in a document: pairs of fields under one response key, and pairs of fragments in
/// one selection. Validation compares all of these pairs (GraphQL specification, 5.3.2). Without a limit, a
/// few thousand repetitions of one field would take it minutes.
const PAIRS_MAX: u64 = 400_000;

/// Bytes of names that count as one more pair. The error about a conflicting pair contains its names.
const PAIR_NAME_BYTES: u64 = 64;

/// Maximum size in bytes of all messages about the variables of a document. Validation makes one message for
/// each variable of each operation, with the operation's name in it. The number of messages to report is
/// decided only afterwards.
const VARIABLE_MESSAGES_BYTES_MAX: u64 = 32 << 20;

/// Bytes of such a message without the name of the operation.
const VARIABLE_MESSAGE_BYTES: u64 = 128;

/// Measured size of one operation or fragment, with fragments expanded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    pub(crate) selections: u64,
    /// Nesting of fields.
    pub depth: u64,
    /// Number of fields. Fields of one selection under one response key count once.
    pub height: u64,
    /// Number of aliased fields.
    pub aliases: u64,
    /// Number of root fields. Fields of one selection under one response key count once.
    pub root_fields: u64,
    /// Nesting of selection sets, inline fragments and spreads included.
    nesting: u64,
}

/// Reason for refusing a document before validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// A fragment spreads itself, directly or through another fragment.
    Cycle,
    /// The nesting exceeds `parser_max_recursion`.
    Deep,
    /// The document has more selections than this number.
    Large(u64),
    /// The response has more members, counted by object type, than can be compiled.
    Compiled,
    /// The document has more pairs of fields to compare than [`PAIRS_MAX`].
    ManyPairs,
    /// The messages about variables are longer than [`VARIABLE_MESSAGES_BYTES_MAX`].
    ManyVariables,
}

impl TooMuch {
    pub(crate) fn error(self) -> GraphqlError {
        match self {
            TooMuch::Cycle => {
                GraphqlError::new("a fragment contains itself", "GRAPHQL_VALIDATION_FAILED")
            }
            TooMuch::Deep => GraphqlError::new(
                "parsing error: parser recursion limit reached; nest selections and fragments less deeply",
                "PARSING_ERROR",
            ),
            TooMuch::Large(most) => GraphqlError::new(
                format!(
                    "the operation amounts to more than {most} selections with its fragments spread; ask for less at once"
                ),
                "GRAPHQL_VALIDATION_FAILED",
            ),
            TooMuch::Compiled => GraphqlError::new(
                "the operation asks for too many fields of too many types at once; ask for less",
                "GRAPHQL_VALIDATION_FAILED",
            ),
            TooMuch::ManyPairs => GraphqlError::new(
                "too many fields of the operation share their response keys; ask for each once",
                "GRAPHQL_VALIDATION_FAILED",
            ),
            TooMuch::ManyVariables => GraphqlError::new(
                "the document has too many variables for so many operations, or for operations with names so long; send each operation alone, with a shorter name",
                "GRAPHQL_VALIDATION_FAILED",
            ),
        }
    }
}

/// Refuses a document if the messages about its variables would be too long.
pub(crate) fn check_variables(query: &str, document: &QueryDocument) -> Result<(), TooMuch> {
    // An upper bound on the number of variables in all fragments.
    let named = query.bytes().filter(|byte| *byte == b'$').count() as u64;
    let operations = document.definitions.iter().filter_map(|it| match it {
        Definition::Operation(operation) => Some(operation),
        Definition::Fragment(_) => None,
    });
    let bytes = operations.fold(0_u64, |sum, operation| {
        let name = name_of(operation).map_or(0, str::len) as u64;
        let named = match operation {
            // Validation also makes such a message for fields of subscriptions that begin with `__`.
            OperationDefinition::Subscription(_) => named + query.matches("__").count() as u64,
            _ => named,
        };
        sum.saturating_add(named.saturating_mul(name + VARIABLE_MESSAGE_BYTES))
    });
    if bytes > VARIABLE_MESSAGES_BYTES_MAX {
        return Err(TooMuch::ManyVariables);
    }
    Ok(())
}

fn name_of<'a>(operation: &'a OperationDefinition<'static, String>) -> Option<&'a str> {
    match operation {
        OperationDefinition::SelectionSet(_) => None,
        OperationDefinition::Query(it) => it.name.as_deref(),
        OperationDefinition::Mutation(it) => it.name.as_deref(),
        OperationDefinition::Subscription(it) => it.name.as_deref(),
    }
}

/// Measures every operation of a document, in document order.
pub(crate) fn measure(
    document: &QueryDocument,
    limits: &OperationLimits,
) -> Result<Vec<Extent>, TooMuch> {
    let recursion_max = limits.parser_max_recursion;
    let mut measuring = Measuring {
        fragments: fragments(document),
        known: HashMap::new(),
        open: HashSet::new(),
        // A spread takes two levels here and one in `Extent::nesting`. With twice the limit, every document
        // at the limit reaches `within`, which decides.
        nesting_max: recursion_max.saturating_mul(2).saturating_add(2),
    };
    // Validation also reads fragments without a spread.
    let names: Vec<&str> = measuring.fragments.keys().copied().collect();
    for name in names {
        let mut extent = measuring.fragment(name, 0)?;
        extent.selections = extent.selections.saturating_add(names::of(name));
        within(extent, limits)?;
    }
    // In document order, because `choose` pairs operations with extents by position.
    let mut extents = Vec::new();
    for definition in &document.definitions {
        if let Definition::Operation(operation) = definition {
            let mut extent = measuring.set(selection_set(operation), 0)?;
            let names = names::of_operation(operation);
            extent.selections = extent.selections.saturating_add(names);
            within(extent, limits)?;
            extents.push(extent);
        }
    }
    let mut left = PAIRS_MAX;
    for definition in &document.definitions {
        let set = match definition {
            Definition::Operation(operation) => selection_set(operation),
            Definition::Fragment(fragment) => &fragment.selection_set,
        };
        count_pairs(&[set], &measuring.fragments, &mut left)?;
    }
    Ok(extents)
}

/// The fragments of a document by name.
pub type Fragments<'a> = HashMap<&'a str, &'a FragmentDefinition<'static, String>>;

/// Returns the fragments of a document by name.
#[must_use]
pub fn fragments<'a>(document: &'a Document<'static, String>) -> Fragments<'a> {
    let definitions = document.definitions.iter();
    definitions
        .filter_map(|definition| match definition {
            Definition::Fragment(fragment) => Some((fragment.name.as_str(), fragment)),
            Definition::Operation(_) => None,
        })
        .collect()
}

/// Counts the pairs to compare in the selections of one object and below it.
fn count_pairs(sets: &[&Set], fragments: &Fragments<'_>, left: &mut u64) -> Result<(), TooMuch> {
    let mut by_key: HashMap<&str, SameKey<'_>> = HashMap::new();
    let mut spreads = 0_u64;
    let mut open = sets.to_vec();
    // A loop instead of recursion: fragments of one object belong to one selection, and only fields lead to
    // the next object.
    while let Some(set) = open.pop() {
        for selection in &set.items {
            match selection {
                Selection::Field(field) => {
                    let key = field.alias.as_deref().unwrap_or(&field.name);
                    let same = by_key.entry(key).or_default();
                    same.count += 1;
                    same.name_bytes = same.name_bytes.max(key.len().max(field.name.len()) as u64);
                    if !field.selection_set.items.is_empty() {
                        same.below.push(&field.selection_set);
                    }
                }
                Selection::InlineFragment(inline) => open.push(&inline.selection_set),
                Selection::FragmentSpread(spread) => {
                    spreads += 1;
                    // Validation reports unknown fragments.
                    let fragment = fragments.get(spread.fragment_name.as_str());
                    open.extend(fragment.map(|fragment| &fragment.selection_set));
                }
            }
        }
    }
    let counts = by_key
        .values()
        .map(|same| (same.count, 1 + same.name_bytes / PAIR_NAME_BYTES));
    let pairs = counts
        .chain([(spreads, 1)])
        .fold(0_u64, |sum, (count, weight)| {
            sum.saturating_add(count.saturating_mul(count).saturating_mul(weight))
        });
    *left = left.checked_sub(pairs).ok_or(TooMuch::ManyPairs)?;
    // Execution merges the selections under one key and validation compares them. So they are counted
    // together.
    by_key
        .values()
        .filter(|same| !same.below.is_empty())
        .try_for_each(|same| count_pairs(&same.below, fragments, left))
}

/// Fields of one object under one response key.
#[derive(Default)]
struct SameKey<'a> {
    count: u64,
    /// Length of the longest field name or of the key.
    name_bytes: u64,
    /// The selection sets of these fields.
    below: Vec<&'a Set>,
}

fn within(extent: Extent, limits: &OperationLimits) -> Result<(), TooMuch> {
    if extent.nesting > limits.parser_max_recursion as u64 {
        return Err(TooMuch::Deep);
    }
    let most = u64::from(limits.max_selections);
    if extent.selections > most {
        return Err(TooMuch::Large(most));
    }
    Ok(())
}

/// Returns an error for each configured limit that an operation exceeds.
pub(crate) fn exceeded(extent: &Extent, limits: &OperationLimits) -> Vec<GraphqlError> {
    let checks = [
        (limits.max_depth, extent.depth, "depth", "MAX_DEPTH_LIMIT"),
        (
            limits.max_height,
            extent.height,
            "height (field count)",
            "MAX_HEIGHT_LIMIT",
        ),
        (
            limits.max_root_fields,
            extent.root_fields,
            "root fields",
            "MAX_ROOT_FIELDS_LIMIT",
        ),
        (
            limits.max_aliases,
            extent.aliases,
            "aliases",
            "MAX_ALIASES_LIMIT",
        ),
    ];
    checks
        .into_iter()
        .filter(|(limit, found, ..)| limit.is_some_and(|limit| *found > u64::from(limit)))
        .map(|(_, _, what, code)| {
            GraphqlError::new(
                format!("Maximum {what} limit exceeded in this operation"),
                code,
            )
        })
        .collect()
}

pub(crate) fn selection_set<'a>(operation: &'a OperationDefinition<'static, String>) -> &'a Set {
    match operation {
        OperationDefinition::SelectionSet(set) => set,
        OperationDefinition::Query(it) => &it.selection_set,
        OperationDefinition::Mutation(it) => &it.selection_set,
        OperationDefinition::Subscription(it) => &it.selection_set,
    }
}

struct Measuring<'a> {
    fragments: Fragments<'a>,
    known: HashMap<&'a str, Extent>,
    open: HashSet<&'a str>,
    /// Maximum nesting during the measurement. A spread counts twice.
    nesting_max: usize,
}

impl<'a> Measuring<'a> {
    fn fragment(&mut self, name: &'a str, nesting: usize) -> Result<Extent, TooMuch> {
        // A measured fragment is not walked again. So only `within` checks its depth at this place.
        if let Some(extent) = self.known.get(name) {
            return Ok(*extent);
        }
        // Validation reports unknown fragments.
        let Some(fragment) = self.fragments.get(name).copied() else {
            return Ok(Extent::default());
        };
        // `open` contains the fragments that the walk is inside of. A second visit to one of them is a cycle.
        if !self.open.insert(name) {
            return Err(TooMuch::Cycle);
        }
        // After an error the name stays in `open`. This is harmless, because an error ends the measurement.
        let mut extent = self.set(&fragment.selection_set, nesting + 1)?;
        let names = names::of_fragment(fragment);
        extent.selections = extent.selections.saturating_add(names);
        self.open.remove(name);
        self.known.insert(name, extent);
        Ok(extent)
    }

    fn set(&mut self, set: &'a Set, nesting: usize) -> Result<Extent, TooMuch> {
        if nesting > self.nesting_max {
            return Err(TooMuch::Deep);
        }
        let mut total = Extent::default();
        let mut keys = HashSet::new();
        for selection in &set.items {
            // All sums saturate. Fragments that double 64 times exceed any integer, and a saturated total
            // exceeds every limit.
            let own = names::of_selection(selection).saturating_add(1);
            total.selections = total.selections.saturating_add(own);
            let inner = match selection {
                Selection::Field(field) => {
                    total.aliases = total
                        .aliases
                        .saturating_add(u64::from(field.alias.is_some()));
                    // A field under two aliases can have different arguments, so it counts twice.
                    let key = field.alias.as_deref().unwrap_or(&field.name);
                    let is_new = u64::from(keys.insert(key));
                    total.height = total.height.saturating_add(is_new);
                    total.root_fields = total.root_fields.saturating_add(is_new);
                    let mut inner = self.set(&field.selection_set, nesting + 1)?;
                    inner.depth += 1;
                    // Fields below a field are not root fields. Fields of a fragment are, and are added
                    // below.
                    inner.root_fields = 0;
                    inner
                }
                Selection::InlineFragment(inline) => {
                    self.set(&inline.selection_set, nesting + 1)?
                }
                Selection::FragmentSpread(spread) => {
                    self.fragment(&spread.fragment_name, nesting + 1)?
                }
            };
            total.selections = total.selections.saturating_add(inner.selections);
            total.height = total.height.saturating_add(inner.height);
            total.aliases = total.aliases.saturating_add(inner.aliases);
            total.root_fields = total.root_fields.saturating_add(inner.root_fields);
            total.depth = total.depth.max(inner.depth);
            total.nesting = total.nesting.max(inner.nesting.saturating_add(1));
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(query: &str) -> Result<Extent, TooMuch> {
        let document = graphql_tools::parser::parse_query::<String>(query)
            .unwrap()
            .into_static();
        measure(&document, &OperationLimits::default()).map(|extents| extents[0])
    }

    #[test]
    fn fragments_count_where_they_are_spread() {
        let extent = extent("{a{...F x:b} y:a{...F}} fragment F on T{p{q} z:r}").unwrap();
        assert_eq!(extent.depth, 3);
        assert_eq!(extent.root_fields, 2);
        assert_eq!(extent.aliases, 4);
        assert_eq!(extent.height, 9);
    }

    /// The counts of Apollo Router 2.17.0, whose sources have `count` in `spec/operation_limits.rs`.
    #[test]
    fn sizes_are_counted_as_the_original_counts_them() {
        for (query, depth, height, root_fields, aliases) in [
            ("{a}", 1, 1, 1, 0),
            ("{a a}", 1, 1, 1, 0),
            ("{a x:a}", 1, 2, 2, 1),
            ("{a{b{c}}}", 3, 3, 1, 0),
            ("{a{b} a{b}}", 2, 3, 1, 0),
            ("{x:a{y:b}z:a{y:b}}", 2, 4, 2, 4),
        ] {
            let extent = extent(query).unwrap();
            assert_eq!(
                (
                    extent.depth,
                    extent.height,
                    extent.root_fields,
                    extent.aliases
                ),
                (depth, height, root_fields, aliases),
                "{query}"
            );
        }
        // The original counts no root fields inside of fragments, although its documentation says so.
        let extent = extent("{a{b}...on Q{a{b}}}").unwrap();
        assert_eq!((extent.depth, extent.height, extent.root_fields), (2, 4, 2));
    }

    #[test]
    fn doubling_fragments_are_refused_in_no_time() {
        use std::fmt::Write as _;
        let mut query = "{...F0}".to_owned();
        for index in 0..60 {
            let next = index + 1;
            write!(query, " fragment F{index} on Q{{...F{next} ...F{next}}}").unwrap();
        }
        query.push_str(" fragment F60 on Q{a}");
        assert_eq!(extent(&query), Err(TooMuch::Large(4_000)));
    }

    #[test]
    fn repetitions_are_counted_where_they_meet() {
        let repeated = |count: usize| format!("{{a{{{}}}}}", "b ".repeat(count));
        assert!(extent(&repeated(600)).is_ok());
        assert_eq!(extent(&repeated(700)), Err(TooMuch::ManyPairs));
        // 40 fields under one key, each with 40 fields: all of these are compared with each other.
        let nested = format!("{{{}}}", format!("a{{{}}}", "b ".repeat(40)).repeat(40));
        assert_eq!(extent(&nested), Err(TooMuch::ManyPairs));
        let apart: String = (0..40)
            .map(|index| format!("a{index}:a{{{}}}", "b ".repeat(40)))
            .collect();
        assert!(extent(&format!("{{{apart}}}")).is_ok());
    }

    #[test]
    fn every_64_bytes_of_a_name_count_as_a_selection() {
        let selections = |query: &str| extent(query).map(|extent| extent.selections);
        let (usual, long) = ("n".repeat(63), "n".repeat(640));
        for (query, expected) in [
            ("{NAME:a}", 1),
            ("{NAME}", 1),
            ("{...NAME} fragment NAME on Q{a}", 2),
            ("{...F} fragment F on NAME{a}", 2),
            ("{...F} fragment F on Q@NAME{a}", 2),
            ("{...on NAME{a}}", 2),
            ("query NAME{a}", 1),
            ("query($NAME:I){a}", 1),
            ("query($a:[NAME!]){a}", 1),
            ("query($a:I={NAME:1}){a}", 1),
            ("{a(NAME:1)}", 1),
            ("{a(b:[{NAME:1}])}", 1),
            ("{a(b:$NAME)}", 1),
            ("{a(b:NAME)}", 1),
            ("{a@NAME}", 1),
            ("{a@b(c:$NAME)}", 1),
            ("query@NAME{a}", 1),
        ] {
            let with = |name: &str| selections(&query.replace("NAME", name));
            assert_eq!(with(&usual), Ok(expected), "{query}");
            assert_eq!(with(&long), Ok(expected + 10), "{query}");
        }
        assert_eq!(selections(&format!("{{a(b:\"{long}\")}}")), Ok(1));
        let long = "n".repeat(64 * 4_000);
        let unused = format!("{{a}} fragment {long} on Q{{a}}");
        assert_eq!(selections(&unused), Err(TooMuch::Large(4_000)));
        assert_eq!(
            selections(&format!("{{{long}:a}}")),
            Err(TooMuch::Large(4_000))
        );
    }

    #[test]
    fn a_fragment_within_itself_is_a_cycle() {
        let query = "{...A} fragment A on Q{a{...B}} fragment B on Q{...A}";
        assert_eq!(extent(query), Err(TooMuch::Cycle));
    }

    #[test]
    fn a_chain_of_fragments_is_as_deep_as_its_expansion() {
        use std::fmt::Write as _;
        let mut query = "{...F0}".to_owned();
        for index in 0..2000 {
            let next = index + 1;
            write!(query, " fragment F{index} on Q{{a{{...F{next}}}}}").unwrap();
        }
        query.push_str(" fragment F2000 on Q{a}");
        assert_eq!(extent(&query), Err(TooMuch::Deep));
    }
}
