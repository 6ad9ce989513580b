//! The proxy between this machine and an API server, by the rules of `kubectl`.
//!
//! A `proxy-url` of the kubeconfig always counts. Otherwise `HTTPS_PROXY` counts, unless `NO_PROXY` names the API
//! server or the server is on this machine. The library reads `NO_PROXY` too, but compares it with the proxy.

use std::net::IpAddr;

use http::Uri;
use kube::config::Kubeconfig;

/// The variables of the environment that choose a proxy.
pub(crate) struct ProxyVariables {
    /// The value of `HTTPS_PROXY`.
    proxy: Option<String>,
    /// The value of `NO_PROXY`.
    exceptions: String,
}

impl ProxyVariables {
    /// Reads the environment.
    pub(crate) fn read() -> ProxyVariables {
        ProxyVariables {
            proxy: variable("HTTPS_PROXY", "https_proxy"),
            exceptions: variable("NO_PROXY", "no_proxy").unwrap_or_default(),
        }
    }

    /// Returns the proxy for an API server. `given` is the `proxy-url` of the kubeconfig.
    ///
    /// # Errors
    /// If the address of the proxy is invalid, as a sentence.
    pub(crate) fn proxy_for(
        &self,
        given: Option<&str>,
        server: &Uri,
    ) -> Result<Option<Uri>, String> {
        let (source, proxy) = match (given, &self.proxy) {
            (Some(given), _) => ("`proxy-url` of the kubeconfig", given),
            (None, Some(proxy)) if self.applies_to(server) => ("HTTPS_PROXY", proxy.as_str()),
            (None, _) => return Ok(None),
        };
        let with_scheme = match proxy.contains("://") {
            true => proxy.to_owned(),
            false => format!("http://{proxy}"),
        };
        let parsed: Result<Uri, _> = with_scheme.parse();
        let proxy = parsed
            .ok()
            .filter(|uri| uri.host().is_some())
            .ok_or_else(|| format!("expected the URL of a proxy in {source}, found `{proxy}`"))?;
        Ok(Some(proxy))
    }

    fn applies_to(&self, server: &Uri) -> bool {
        let host = server.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let ip: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || ip.is_some_and(|ip| ip.is_loopback());
        let port = server.port_u16().unwrap_or(443);
        let mut exceptions = self.exceptions.split(',').map(str::trim);
        let is_excepted = exceptions.any(|one| excepts(one, host, ip, port));
        server.scheme_str() == Some("https") && !is_here && !is_excepted
    }
}

/// True if an entry of `NO_PROXY` names this server.
fn excepts(entry: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let network: Option<IpAddr> = network.parse().ok();
        let bits: Option<u32> = bits.parse().ok();
        return match (network, bits, ip) {
            (Some(network), Some(bits), Some(ip)) => is_within(ip, network, bits),
            _ => false,
        };
    }
    if let Ok(own) = entry.parse::<IpAddr>() {
        return Some(own) == ip;
    }
    let (name, own_port) = match entry.rsplit_once(':') {
        Some((name, own_port)) => (name, own_port.parse().ok()),
        None => (entry, Some(port)),
    };
    if name.is_empty() || own_port != Some(port) {
        return false;
    }
    if let Ok(own) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(own) == ip;
    }
    let (host, name) = (host.to_ascii_lowercase(), name.to_ascii_lowercase());
    let domain = name.trim_start_matches('*').trim_start_matches('.');
    let is_below = host.ends_with(&format!(".{domain}"));
    is_below || (domain == name && host == domain)
}

fn is_within(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    let same = |ip: u128, network: u128, width: u32| {
        let shift = width.saturating_sub(bits);
        ip.checked_shr(shift).unwrap_or(0) == network.checked_shr(shift).unwrap_or(0)
    };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            same(ip.to_bits().into(), network.to_bits().into(), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => same(ip.to_bits(), network.to_bits(), 128),
        _ => false,
    }
}

/// Returns the `proxy-url` of the cluster of a context. `None` for the current context.
pub(crate) fn proxy_url_of(file: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(file.current_context.as_deref())?;
    let mut contexts = file.contexts.iter();
    let cluster = &contexts
        .find(|it| it.name == context)?
        .context
        .as_ref()?
        .cluster;
    let mut clusters = file.clusters.iter();
    let cluster = clusters.find(|it| it.name == *cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library reads the same variables, and this is the one place that corrects it"
)]
fn variable(name: &str, small: &str) -> Option<String> {
    let read = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    read(name).or_else(|| read(small))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(given: Option<&str>, exceptions: &str, server: &str) -> Option<String> {
        let variables = ProxyVariables {
            proxy: Some("proxy.example.org:3128".to_owned()),
            exceptions: exceptions.to_owned(),
        };
        let server = server.parse().expect("a URL");
        let proxy = variables.proxy_for(given, &server).expect("a proxy");
        proxy.map(|uri| uri.to_string())
    }

    #[test]
    fn no_proxy_names_the_api_server_as_for_kubectl() {
        for (exceptions, server, is_direct) in [
            ("", "https://api.example.org:6443", false),
            ("", "http://api.example.org:6443", true),
            ("", "https://127.0.0.1:6443", true),
            ("", "https://localhost:6443", true),
            ("*", "https://api.example.org:6443", true),
            (
                "other.org, api.example.org",
                "https://api.example.org:6443",
                true,
            ),
            ("example.org", "https://api.example.org", true),
            (".example.org", "https://api.example.org", true),
            ("*.example.org", "https://api.example.org", true),
            (".example.org", "https://example.org", false),
            ("ample.org", "https://api.example.org", false),
            ("api.example.org:443", "https://api.example.org:6443", false),
            ("api.example.org:6443", "https://api.example.org:6443", true),
            ("10.199.0.2", "https://10.199.0.2:6443", true),
            ("10.199.0.0/16", "https://10.199.0.2:6443", true),
            ("10.0.0.0/16", "https://10.199.0.2:6443", false),
            ("fd00::/8", "https://[fd00::1]:6443", true),
            ("0.0.0.0/0", "https://10.199.0.2:6443", true),
        ] {
            let found = proxy(None, exceptions, server);
            assert_eq!(found.is_none(), is_direct, "{exceptions} {server}");
        }
    }

    #[test]
    fn a_proxy_of_the_kubeconfig_always_counts() {
        let given = Some("socks5://127.0.0.1:1080");
        let found = proxy(given, "*", "https://api.example.org");
        assert_eq!(found.as_deref(), Some("socks5://127.0.0.1:1080/"));
        let file = "{clusters: [{name: c, cluster: {server: 'https://a', proxy-url: 'http://p:1'}}, \
            {name: d, cluster: {server: 'https://b'}}], current-context: x, \
            contexts: [{name: x, context: {cluster: c}}, {name: y, context: {cluster: d}}]}";
        let file = Kubeconfig::from_yaml(file).expect("a kubeconfig");
        assert_eq!(proxy_url_of(&file, None).as_deref(), Some("http://p:1"));
        assert_eq!(proxy_url_of(&file, Some("y")), None);
        let variables = ProxyVariables {
            proxy: Some("http://".to_owned()),
            exceptions: String::new(),
        };
        let server = "https://a".parse().expect("a URL");
        let refused = variables.proxy_for(None, &server).expect_err("no host");
        assert_eq!(
            refused,
            "expected the URL of a proxy in HTTPS_PROXY, found `http://`"
        );
    }
}
