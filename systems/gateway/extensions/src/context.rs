//! The notes that stages leave for each other while one request is answered.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

/// Context key of the claims of a checked token.
pub const JWT_CLAIMS: &str = "apollo::authentication::jwt_claims";
/// Context key of whether an operation demands claims.
pub const AUTHENTICATION_REQUIRED: &str = "apollo::authorization::authentication_required";
/// Context key of the scopes that an operation demands.
pub const REQUIRED_SCOPES: &str = "apollo::authorization::required_scopes";
/// Context key of the policies that an operation demands, with the answers of the stages.
pub const REQUIRED_POLICIES: &str = "apollo::authorization::required_policies";
/// Context key of the client's name.
pub const CLIENT_NAME: &str = "apollo::telemetry::client_name";
/// Context key of the client's version.
pub const CLIENT_VERSION: &str = "apollo::telemetry::client_version";

/// Context key of the labels of `@override` that are active for the request.
pub const LABELS_TO_OVERRIDE: &str = "apollo::progressive_override::labels_to_override";
/// Context key of the labels of `@override` that only a stage can activate.
pub const UNRESOLVED_LABELS: &str = "apollo::progressive_override::unresolved_labels";

/// The entries of one request's context. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Context(Rc<RefCell<Map<String, Value>>>);

impl Context {
    /// A copy of the entries that shares none.
    pub(crate) fn apart(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// The entry under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.borrow().get(key).cloned()
    }

    /// The entry under `key`, when it is a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.0.borrow().get(key)?.as_str().map(str::to_owned)
    }

    /// Calls `look` with the entry under `key`, without copying it.
    pub fn with<T>(&self, key: &str, look: impl FnOnce(Option<&Value>) -> T) -> T {
        look(self.0.borrow().get(key))
    }

    /// Sets an entry.
    pub fn insert(&self, key: impl Into<String>, value: Value) {
        self.0.borrow_mut().insert(key.into(), value);
    }

    /// Deletes an entry.
    pub fn remove(&self, key: &str) {
        self.0.borrow_mut().remove(key);
    }

    /// Whether there is such an entry.
    pub fn contains(&self, key: &str) -> bool {
        self.0.borrow().contains_key(key)
    }

    /// Takes over the entries of another context.
    pub(crate) fn replace(&self, other: &Context) {
        if !Rc::ptr_eq(&self.0, &other.0) {
            // Cloned before the other is borrowed mutably: a script may assign a context that
            // shares entries with this one.
            let entries = other.0.borrow().clone();
            *self.0.borrow_mut() = entries;
        }
    }

    /// Calls `look` with all entries.
    pub fn entries<T>(&self, look: impl FnOnce(&Map<String, Value>) -> T) -> T {
        look(&self.0.borrow())
    }
}

/// Key names of version 1 and version 2, for coprocessors that still use the first.
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
    ("apollo_operation_id", "apollo::supergraph::operation_id"),
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
    ("operation_kind", "apollo::supergraph::operation_kind"),
    ("operation_name", "apollo::supergraph::operation_name"),
    ("persisted_query_hit", "apollo::apq::cache_hit"),
    ("persisted_query_register", "apollo::apq::registered"),
];

/// The name that version 1 had for `key`.
pub(crate) fn old_name(key: &str) -> &str {
    RENAMED
        .iter()
        .find_map(|(old, new)| (*new == key).then_some(*old))
        .unwrap_or(key)
}

/// The name that version 2 has for `key`.
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
