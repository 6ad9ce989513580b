//! Entries that stages share with each other during one client request.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

/// Context key for the claims of a verified token.
pub const JWT_CLAIMS: &str = "apollo::authentication::jwt_claims";
/// Context key for a flag: true if the operation requires claims.
pub const AUTHENTICATION_REQUIRED: &str = "apollo::authorization::authentication_required";
/// Context key for the scopes that the operation requires.
pub const REQUIRED_SCOPES: &str = "apollo::authorization::required_scopes";
/// Context key for the policies that the operation requires, with the decisions of the stages.
pub const REQUIRED_POLICIES: &str = "apollo::authorization::required_policies";
/// Context key for the kind of the operation: `query`, `mutation` or `subscription`.
pub const OPERATION_KIND: &str = "apollo::supergraph::operation_kind";
/// Context key for the name of the operation. `null` if it is anonymous.
pub const OPERATION_NAME: &str = "apollo::supergraph::operation_name";
/// Context key for the id of the operation: the digest of its signature.
pub const OPERATION_ID: &str = "apollo::supergraph::operation_id";
/// Context key for the client's name.
pub const CLIENT_NAME: &str = "apollo::telemetry::client_name";
/// Context key for the client's version.
pub const CLIENT_VERSION: &str = "apollo::telemetry::client_version";

/// Context key for the `@override` labels that are active for the request.
pub const LABELS_TO_OVERRIDE: &str = "apollo::progressive_override::labels_to_override";
/// Context key for the `@override` labels that only a stage can activate.
pub const UNRESOLVED_LABELS: &str = "apollo::progressive_override::unresolved_labels";

/// The entries of one request's context. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Context(Rc<RefCell<Map<String, Value>>>);

impl Context {
    /// A deep copy. Changes to it do not affect the original.
    pub(crate) fn apart(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// A copy of the entry under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.borrow().get(key).cloned()
    }

    /// The entry under `key`, if it is a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.0.borrow().get(key)?.as_str().map(str::to_owned)
    }

    /// Calls `look` with the entry under `key`, without copying it.
    pub fn with<T>(&self, key: &str, look: impl FnOnce(Option<&Value>) -> T) -> T {
        look(self.0.borrow().get(key))
    }

    /// Sets an entry, and replaces an existing one.
    pub fn insert(&self, key: impl Into<String>, value: Value) {
        self.0.borrow_mut().insert(key.into(), value);
    }

    /// Deletes an entry, if it exists.
    pub fn remove(&self, key: &str) {
        self.0.borrow_mut().remove(key);
    }

    /// True if there is an entry under `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.0.borrow().contains_key(key)
    }

    /// Replaces all entries by the entries of another context.
    pub(crate) fn replace(&self, other: &Context) {
        if !Rc::ptr_eq(&self.0, &other.0) {
            // Cloned before this map is borrowed mutably, because a script may assign a context that shares
            // entries with this context.
            let entries = other.0.borrow().clone();
            *self.0.borrow_mut() = entries;
        }
    }

    /// All entries as the text of a JSON object.
    pub(crate) fn json(&mut self) -> String {
        self.entries(|entries| Value::from(entries.clone()).to_string())
    }

    /// Calls `look` with all entries.
    pub fn entries<T>(&self, look: impl FnOnce(&Map<String, Value>) -> T) -> T {
        look(&self.0.borrow())
    }
}

/// Key names of version 1 and version 2. Some coprocessors still use version 1.
const RENAMED: &[(&str, &str)] = &[
    ("apollo_authentication::JWT::claims", JWT_CLAIMS),
    (
        "apollo_authorization::authenticated::required",
        AUTHENTICATION_REQUIRED,
    ),
    (
        "apollo_authorization::policies::required",
        REQUIRED_POLICIES,
    ),
    ("apollo_authorization::scopes::required", REQUIRED_SCOPES),
    ("apollo_operation_id", OPERATION_ID),
    ("apollo_override::labels_to_override", LABELS_TO_OVERRIDE),
    ("apollo_override::unresolved_labels", UNRESOLVED_LABELS),
    (
        "apollo_router::supergraph::first_event",
        "apollo::supergraph::first_event",
    ),
    ("apollo_telemetry::client_name", CLIENT_NAME),
    ("apollo_telemetry::client_version", CLIENT_VERSION),
    (
        "apollo_telemetry::studio::exclude",
        "apollo::telemetry::studio_exclude",
    ),
    (
        "apollo_telemetry::subgraph_ftv1",
        "apollo::telemetry::subgraph_ftv1",
    ),
    ("cost.actual", "apollo::demand_control::actual_cost"),
    ("cost.estimated", "apollo::demand_control::estimated_cost"),
    ("cost.result", "apollo::demand_control::result"),
    ("cost.strategy", "apollo::demand_control::strategy"),
    ("operation_kind", OPERATION_KIND),
    ("operation_name", OPERATION_NAME),
    ("persisted_query_hit", "apollo::apq::cache_hit"),
    ("persisted_query_register", "apollo::apq::registered"),
];

/// The name of `key` in version 1.
pub(crate) fn old_name(key: &str) -> &str {
    RENAMED
        .iter()
        .find_map(|(old, new)| (*new == key).then_some(*old))
        .unwrap_or(key)
}

/// The name of `key` in version 2.
pub(crate) fn new_name(key: &str) -> &str {
    RENAMED
        .iter()
        .find_map(|(old, new)| (*old == key).then_some(*new))
        .unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_name_leads_to_a_new_one_and_back() {
        for (old, new) in RENAMED {
            assert_eq!(new_name(old), *new);
            assert_eq!(old_name(new), *old);
        }
        assert_eq!(new_name("mine"), "mine");
        assert_eq!(old_name("mine"), "mine");
    }

    #[test]
    fn clones_share_their_entries() {
        let one = Context::default();
        one.clone().insert("a", Value::from("b"));
        assert_eq!(one.text("a").as_deref(), Some("b"));
        one.remove("a");
        assert!(!one.contains("a"));
    }
}
