//! Checks the host names in requests to a service on this machine.
//!
//! A web page can point its own host name to 127.0.0.1 (DNS rebinding). The browser then treats a local
//! service as part of the page's origin. The page can send and read anything, without CORS checks. The `Host`
//! header still has the page's name, so the service can detect it.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{HOST, HeaderMap};

/// The flag of a service that has such a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct HostFlags {
    /// Host names of requests that a service on loopback accepts in addition to localhost and IP
    /// addresses. `*` allows all names.
    #[arg(long, env, value_name = "NAME,NAME", value_delimiter = ',')]
    pub allowed_hosts: Vec<String>,
}

/// The host name of a request does not belong to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a header `Host` with `localhost` or an IP address, because this service is for this \
     machine; allow other names with --allowed-hosts"
)]
pub struct ForeignHost;

impl ForeignHost {
    /// The status of the response: Misdirected Request.
    pub const STATUS: hyper::StatusCode = hyper::StatusCode::MISDIRECTED_REQUEST;
}

/// The host names that a service accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Any,
    /// Names of this machine, and these additional names.
    Local(Arc<[String]>),
}

impl Hosts {
    /// The rule of a service that listens on `address`. If other machines can reach it, every name is
    /// allowed.
    #[must_use]
    pub fn of(address: IpAddr, flags: &HostFlags) -> Self {
        let names = flags.allowed_hosts.iter().map(|name| name.trim());
        let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        if !address.to_canonical().is_loopback() || names.contains(&"*") {
            return Self(Rule::Any);
        }
        Self(Rule::Local(names.into_iter().map(str::to_owned).collect()))
    }

    /// Checks the host names in the head of a request.
    ///
    /// # Errors
    /// Fails if a name neither belongs to this machine nor is allowed.
    pub fn check(&self, headers: &HeaderMap, target: &Uri) -> Result<(), ForeignHost> {
        let Rule::Local(allowed) = &self.0 else {
            return Ok(());
        };
        let lines = headers.get_all(HOST).iter();
        let lines = lines.map(|line| line.to_str().unwrap_or_default());
        // HTTP/2 uses the target instead of the header, and HTTP/1.1 may use it too.
        let target = target.authority().map(|it| it.as_str());
        // A request without `Host` is HTTP/1.0, which no browser sends.
        let is_allowed = |host: &str| {
            let name = without_port(host);
            is_local(name) || allowed.iter().any(|it| it.eq_ignore_ascii_case(name))
        };
        lines
            .chain(target)
            .all(is_allowed)
            .then_some(())
            .ok_or(ForeignHost)
    }
}

/// True if the name always belongs to this machine, so that no DNS server can point it here.
fn is_local(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn without_port(host: &str) -> &str {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn is_refused(address: &str, allowed: &[&str], hosts: &[&str], target: &str) -> bool {
        let allowed_hosts = allowed.iter().map(|it| (*it).to_owned()).collect();
        let hosts_of = Hosts::of(address.parse().unwrap(), &HostFlags { allowed_hosts });
        let values = hosts
            .iter()
            .map(|host| HeaderValue::from_bytes(host.as_bytes()));
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HOST, value.unwrap());
        }
        hosts_of.check(&headers, &target.parse().unwrap()).is_err()
    }

    #[test]
    fn a_service_on_loopback_has_names_of_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:7080",
            "[::1]:7080",
            "10.0.0.1",
        ] {
            for address in ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"] {
                assert!(!is_refused(address, &[], &[host], "/"), "{host}");
            }
        }
        assert!(!is_refused("::1", &[], &[], "/"));
        for host in ["evil.example:7080", "localhost.evil.example", "", "[", "ö"] {
            assert!(is_refused("127.0.0.1", &[], &[host], "/"), "{host}");
        }
    }

    #[test]
    fn no_name_hides_behind_another() {
        let two = ["localhost", "evil.example"];
        assert!(is_refused("127.0.0.1", &[], &two, "/"));
        let target = "http://evil.example/graphql";
        assert!(is_refused("127.0.0.1", &[], &["localhost"], target));
        assert!(is_refused("127.0.0.1", &[], &[], target));
    }

    #[test]
    fn other_names_are_allowed_by_the_flag_or_where_all_may_ask() {
        let own = ["shop.example:80"];
        assert!(!is_refused("127.0.0.1", &["Shop.example"], &own, "/"));
        assert!(is_refused("127.0.0.1", &["other.example"], &own, "/"));
        assert!(!is_refused("127.0.0.1", &["*"], &own, "/"));
        assert!(!is_refused("0.0.0.0", &[], &own, "/"));
    }
}
