//! The GraphQL operations of a service.

use serde_json::json;

/// The names in a service's schema with which attacks are written.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    /// A field of the root with its arguments.
    pub(super) root: &'static str,
    /// The longest list that a field of the root gives of the same type.
    pub(super) longest: &'static str,
    /// The type of what they give.
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

    pub(super) fn wide(&self, count: usize) -> String {
        let leaf = self.leaf;
        let fields: String = (0..count).map(|it| format!("b{it}:{leaf} ")).collect();
        query(&format!("{{{}{{{fields}}}}}", self.root))
    }

    pub(super) fn aliases(&self, count: usize) -> String {
        let (root, leaf) = (self.root, self.leaf);
        let fields: String = (0..count)
            .map(|it| format!("a{it}:{root}{{{leaf}}}"))
            .collect();
        query(&format!("{{{fields}}}"))
    }

    /// So many aliases of a field of the root over a fragment of so many fields.
    pub(super) fn multiplied(&self, root: &str, roots: usize, fields: usize) -> String {
        let (kind, leaf) = (self.kind, self.leaf);
        let roots: String = (0..roots)
            .map(|it| format!("a{it}:{root}{{...F}}"))
            .collect();
        let fields: String = (0..fields).map(|it| format!("b{it}:{leaf} ")).collect();
        query(&format!("{{{roots}}}fragment F on {kind}{{{fields}}}"))
    }

    /// A long name that differs from all others, where it is repeated most and where it is alone.
    pub(super) fn long_name(&self, number: usize) -> String {
        let (root, longest, leaf) = (self.root, self.longest, self.leaf);
        let length = [90_000, 300_000][number / 3 % 2];
        let name = format!("n{number}{}", "x".repeat(length));
        match number % 3 {
            0 => query(&format!("{{{longest}{{{name}:{leaf}}}}}")),
            1 => query(&format!("{{{root}{{{name}:{leaf}}}}}")),
            _ => query(&format!("query {name}{{{root}{{{leaf}}}}}")),
        }
    }

    /// What an ordinary client asks by this number: one of [`KNOWN`] operations, every second of them
    /// with variables, and each [`NEW`]th time one that was never asked before.
    pub(super) fn ordinary(&self, number: usize) -> String {
        let (root, leaf) = (self.root, self.leaf);
        let plain = |name: &str| format!("query {name}{{{name}:{root}{{{leaf}}}}}");
        if number.is_multiple_of(NEW) {
            return query(&plain(&format!("new{number}")));
        }
        let name = format!("known{}", number % KNOWN);
        if (number % KNOWN).is_multiple_of(2) {
            return query(&plain(&name));
        }
        let (operation, variables) = self.with_variables;
        let operation = json!(operation.replacen("query", &format!("query {name}"), 1));
        format!(r#"{{"query":{operation},"variables":{{{variables}}}}}"#)
    }
}

/// Operations that ordinary clients ask again and again. Has no divisor in common with [`NEW`], so that
/// all have their turn.
pub(super) const KNOWN: usize = 25;

/// Of so many ordinary requests one is new.
pub(super) const NEW: usize = 8;

/// Returns the body of a request for an operation.
pub(super) fn query(text: &str) -> String {
    json!({ "query": text }).to_string()
}
