//! Policies for subgraph errors in client responses (`include_subgraph_errors`).

use crate::error::GraphqlError;
use crate::supergraph::Supergraph;

/// Selects the entries of `extensions` that the client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionFilter {
    /// Keeps only entries with these names.
    Allow(Vec<String>),
    /// Keeps all entries except these names.
    Deny(Vec<String>),
}

/// Policy for the errors of one subgraph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ErrorPolicy {
    /// Shows only the existence of an error and its path.
    #[default]
    Redact,
    /// Shows the complete error.
    Include,
    /// Shows some of the extensions, with or without the message.
    Filter {
        /// The entries of `extensions` that stay.
        extensions: ExtensionFilter,
        /// True if the gateway replaces the message.
        redact_message: bool,
    },
}

/// One policy for each subgraph.
#[derive(Debug, Clone, Default)]
pub struct ErrorPolicies(Vec<ErrorPolicy>);

const REDACTED: &str = "Subgraph errors redacted";

impl ErrorPolicies {
    /// Calls the function for each subgraph, to get its policy.
    pub fn new(
        supergraph: &Supergraph,
        mut policy_of: impl FnMut(&str) -> ErrorPolicy,
    ) -> ErrorPolicies {
        let subgraphs = supergraph.subgraphs().iter();
        ErrorPolicies(subgraphs.map(|it| policy_of(&it.name)).collect())
    }

    /// Applies a subgraph's policy to one of its errors.
    pub(crate) fn apply(&self, subgraph: usize, name: &str, error: &mut GraphqlError) {
        // `ErrorPolicies::default` is an empty list, which redacts every subgraph.
        match self.0.get(subgraph).unwrap_or(&ErrorPolicy::Redact) {
            ErrorPolicy::Redact => {
                REDACTED.clone_into(&mut error.message);
                error.extensions.clear();
            }
            ErrorPolicy::Include => add_service(name, error),
            ErrorPolicy::Filter {
                extensions,
                redact_message,
            } => {
                add_service(name, error);
                // `service` was added before. So an allow list without `service` removes it, too.
                error.extensions.retain(|key, _| match extensions {
                    ExtensionFilter::Allow(keys) => keys.iter().any(|allowed| allowed == key),
                    ExtensionFilter::Deny(keys) => !keys.iter().any(|denied| denied == key),
                });
                if *redact_message {
                    REDACTED.clone_into(&mut error.message);
                }
            }
        }
    }
}

fn add_service(name: &str, error: &mut GraphqlError) {
    error
        .extensions
        .entry("service")
        .or_insert_with(|| name.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(policy: ErrorPolicy) -> String {
        let mut error = GraphqlError::new("boom", "X").with("detail", 1);
        ErrorPolicies(vec![policy]).apply(0, "a", &mut error);
        let mut out = Vec::new();
        error.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn redaction_keeps_nothing_but_the_count() {
        insta::assert_snapshot!(applied(ErrorPolicy::Redact), @r#"{"message":"Subgraph errors redacted"}"#);
    }

    #[test]
    fn inclusion_names_the_service() {
        insta::assert_snapshot!(applied(ErrorPolicy::Include), @r#"{"message":"boom","extensions":{"code":"X","detail":1,"service":"a"}}"#);
    }

    #[test]
    fn filters_see_the_service_too() {
        let allow = ExtensionFilter::Allow(vec!["service".to_owned()]);
        let policy = ErrorPolicy::Filter {
            extensions: allow,
            redact_message: true,
        };
        insta::assert_snapshot!(applied(policy), @r#"{"message":"Subgraph errors redacted","extensions":{"service":"a"}}"#);
        let deny = ExtensionFilter::Deny(vec!["service".to_owned(), "code".to_owned()]);
        let policy = ErrorPolicy::Filter {
            extensions: deny,
            redact_message: false,
        };
        insta::assert_snapshot!(applied(policy), @r#"{"message":"boom","extensions":{"detail":1}}"#);
    }
}
