//! The DNS domain of a cluster, which the host names of Services end with.

use lab::{Lab, Variant};

/// The file of a pod that names the domain.
pub const RESOLVER: &str = "/etc/resolv.conf";

/// The DNS domain of a cluster: of the lab, of the pod of this process, or the usual domain. `resolver` is the
/// text of [`RESOLVER`].
pub(super) fn expected(lab: &Lab, resolver: Option<&str>) -> String {
    let own = lab.pods.cluster_domain.clone();
    let found = || resolver.and_then(of_pod);
    own.or_else(found)
        .unwrap_or_else(|| "cluster.local".to_owned())
}

/// Refuses a domain that is not the domain of this pod's cluster. With another one, the pods of manifests would find
/// Services of the namespace by their full names, and not the Services of their own copy. `resolver` is the text of
/// [`RESOLVER`].
///
/// # Errors
/// The reason as a sentence.
pub(super) fn check(expected: &str, resolver: &str) -> Result<(), String> {
    match of_pod(resolver) {
        Some(found) if found != expected => Err(format!(
            "the pods of `manifests` would find other Services by names that end with `.svc.{found}`, because weigh \
             expected the cluster domain `{expected}`. Write `pods: {{cluster-domain: {found}}}` into the lab"
        )),
        _ => Ok(()),
    }
}

/// True if a lab has pods that find Services by names with the domain.
pub(super) fn matters_to(lab: &Lab) -> bool {
    let mut systems = lab.all().flat_map(Variant::systems);
    systems.any(|setup| setup.manifests().is_some())
}

/// The domain in the text of a pod. It searches `svc.DOMAIN` after `NAMESPACE.svc.DOMAIN`.
fn of_pod(resolver: &str) -> Option<String> {
    let lines = resolver.lines().map(str::trim);
    let mut names = lines
        .filter_map(|line| line.strip_prefix("search"))
        .flat_map(str::split_whitespace);
    let domain = names.find_map(|name| name.strip_prefix("svc."))?;
    let domain = domain.trim_end_matches('.');
    (!domain.is_empty()).then(|| domain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "search space.svc.corp.internal svc.corp.internal corp.internal\nnameserver 10.96.0.10\noptions ndots:5\n";
    const MACHINE: &str = "search example.com\nnameserver 192.0.2.1\n";

    #[test]
    fn a_pod_knows_the_domain_of_its_cluster_and_a_machine_does_not() {
        assert_eq!(of_pod(POD).as_deref(), Some("corp.internal"));
        assert_eq!(of_pod(MACHINE), None);
    }

    #[test]
    fn another_domain_than_that_of_the_cluster_is_refused_with_the_key_to_write() {
        assert_eq!(check("corp.internal", POD), Ok(()));
        assert_eq!(check("cluster.local", MACHINE), Ok(()));
        let refused = check("cluster.local", POD).expect_err("another domain");
        assert!(
            refused.contains("expected the cluster domain `cluster.local`")
                && refused.contains("`pods: {cluster-domain: corp.internal}`"),
            "{refused}"
        );
    }
}
