//! Rules of a namespace or a cluster that refuse an object, from the messages of the API server.
//!
//! An API server answers 403 both for missing rights and for these rules, and gives no code that separates them.
//! Only a missing right has the form `cannot VERB resource`.

use std::fmt;

/// A rule that refuses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A ResourceQuota is used up.
    Quota,
    /// A ResourceQuota counts a resource, and the pod has no figure for it.
    QuotaOnMissing,
    /// A LimitRange has a smaller maximum, or a larger minimum.
    LimitRange,
    /// The namespace enforces a level of Pod Security.
    PodSecurity,
    /// A policy or a webhook of the cluster.
    Policy,
    /// Any other rule.
    Other,
}

impl Rule {
    /// Returns the rule behind a refusal. `None` if a right is missing.
    #[must_use]
    pub fn of(message: &str) -> Option<Rule> {
        let has = |words: &str| message.contains(words);
        // Pods of Jobs and Deployments are created by the controller. Its messages have the same words.
        let is_right = has("cannot ") && has(" resource \"");
        if is_right {
            return None;
        }
        let rule = if has("exceeded quota") {
            Rule::Quota
        } else if has("failed quota") {
            Rule::QuotaOnMissing
        } else if has("violates PodSecurity") {
            Rule::PodSecurity
        } else if has("admission webhook") || has("ValidatingAdmissionPolicy") {
            Rule::Policy
        } else if has("usage per") || has("limit to request ratio") {
            Rule::LimitRange
        } else {
            Rule::Other
        };
        Some(rule)
    }

    /// Returns the remedy as a sentence without a full stop.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Rule::Quota => {
                "Raise the quota, remove other objects, lower `limits`, `replicas` or `generators` in the lab, or use another namespace (`--namespace`)"
            }
            Rule::QuotaOnMissing => {
                "Give the pod `limits` for these resources, add a LimitRange with defaults to the namespace, or use another namespace (`--namespace`)"
            }
            Rule::LimitRange => {
                "Change `limits` in the lab to fit the LimitRange, or use another namespace (`--namespace`)"
            }
            Rule::PodSecurity => {
                "Change the named fields of the pod, or use a namespace with another level of `pod-security.kubernetes.io/enforce` (`--namespace`)"
            }
            Rule::Policy => {
                "Change the object so that the policy allows it, ask the owner of the policy for an exception, or use another namespace (`--namespace`)"
            }
            Rule::Other => "Change the object, or use another namespace (`--namespace`)",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Quota | Rule::QuotaOnMissing => "a quota of the namespace",
            Rule::LimitRange => "a LimitRange of the namespace",
            Rule::PodSecurity => "the Pod Security level of the namespace",
            Rule::Policy => "an admission policy of the cluster",
            Rule::Other => "a rule of the cluster",
        })
    }
}

/// Returns a controller's message about a pod that it cannot create, with the rule and the remedy.
#[must_use]
pub fn explained(message: &str) -> String {
    let message = message.trim_end_matches('.');
    match Rule::of(message) {
        Some(rule) => format!("{rule} does not allow it: {message}. {}", rule.remedy()),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_no_rule_and_every_rule_has_its_remedy() {
        for (message, rule) in [
            (
                "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\"",
                None,
            ),
            (
                "pods \"p\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0",
                Some(Rule::Quota),
            ),
            (
                "Error creating: pods \"p\" is forbidden: failed quota: small: must specify limits.cpu for: generator",
                Some(Rule::QuotaOnMissing),
            ),
            (
                "pods \"p\" is forbidden: maximum cpu usage per Container is 100m, but limit is 200m",
                Some(Rule::LimitRange),
            ),
            (
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
                Some(Rule::PodSecurity),
            ),
            (
                "jobs.batch \"j\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'all' denied request: only ours",
                Some(Rule::Policy),
            ),
            (
                "admission webhook \"v.example.org\" denied the request: no",
                Some(Rule::Policy),
            ),
            (
                "pods \"p\" is forbidden: error looking up service account n/s: serviceaccount \"s\" not found",
                Some(Rule::Other),
            ),
        ] {
            assert_eq!(Rule::of(message), rule, "{message}");
            let remedy = rule.map_or("", Rule::remedy);
            assert!(explained(message).ends_with(remedy), "{message}");
        }
    }
}
