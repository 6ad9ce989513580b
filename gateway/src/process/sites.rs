//! The addresses that the gateway listens on, and the endpoints at each.

use gateway_config::{Config, Listen};

/// The endpoints at one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    /// True if the GraphQL endpoint is here. The generation has its path.
    pub(crate) graphql: bool,
    /// The path of the health check.
    pub(crate) health: Option<String>,
    /// The path of the metrics.
    pub(crate) metrics: Option<String>,
    /// The path for requests that invalidate cached responses.
    pub(crate) invalidation: Option<String>,
    /// The path prefix for callbacks of subgraphs.
    pub(crate) callback: Option<String>,
}

/// The sites of a configuration by address, GraphQL first.
pub(crate) fn sites(
    config: &Config,
    listen: Option<&Listen>,
    health_listen: Option<&Listen>,
) -> Vec<(Listen, Site)> {
    let mut sites: Vec<(Listen, Site)> = Vec::new();
    let mut add = |address: &Listen, fill: &dyn Fn(&mut Site)| {
        // Port 0 is a different free port each time, so two of them are never one address.
        let is_free = matches!(address, Listen::Tcp(text) if text.ends_with(":0"));
        let known = sites
            .iter_mut()
            .find(|(known, _)| known == address && !is_free);
        match known {
            Some((_, site)) => fill(site),
            None => {
                let mut site = Site::default();
                fill(&mut site);
                sites.push((address.clone(), site));
            }
        }
    };
    let graphql = listen.unwrap_or(&config.supergraph.listen.0);
    add(graphql, &|site| site.graphql = true);
    let health = health_listen.unwrap_or(&config.health_check.listen.0);
    let prometheus = &config.telemetry.exporters.metrics.prometheus;
    let shows_metrics = prometheus.enabled;
    let metrics = prometheus.listen.as_ref().map(|it| &it.0);
    let metrics_path = || prometheus.path.0.0.clone();
    let is_together = metrics.is_none_or(|metrics| metrics == health);
    if config.health_check.enabled {
        add(health, &|site| {
            site.health = Some(config.health_check.path.0.0.clone());
            if shows_metrics && is_together {
                site.metrics = Some(metrics_path());
            }
        });
    }
    if shows_metrics && !(config.health_check.enabled && is_together) {
        add(metrics.unwrap_or(health), &|site| {
            site.metrics = Some(metrics_path());
        });
    }
    if let Some(endpoint) = config
        .response_cache
        .invalidation
        .as_ref()
        .filter(|_| config.response_cache.enabled)
    {
        add(&endpoint.listen.0, &|site| {
            site.invalidation = Some(endpoint.path.0.0.clone());
        });
    }
    let callback = config.subscriptions();
    if let Some(callback) = callback.and_then(|it| it.mode.callback.as_ref()) {
        let path = Some(callback.path.0.0.clone());
        match &callback.listen {
            Some(listen) => add(&listen.0, &|site| site.callback.clone_from(&path)),
            // GraphQL is the first.
            None => sites[0].1.callback = path,
        }
    }
    sites
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Listen {
        Listen::parse(text).unwrap()
    }

    #[test]
    fn health_and_metrics_share_an_address_and_may_share_graphql_s() {
        let config = Config::default();
        let found = sites(&config, None, None);
        assert_eq!(found.len(), 2);
        assert!(found[0].1.graphql && found[0].1.health.is_none());
        assert_eq!(found[1].0, tcp("127.0.0.1:8088"));
        assert_eq!(found[1].1.metrics.as_deref(), Some("/metrics"));
        let one = tcp("127.0.0.1:4000");
        let found = sites(&config, Some(&one), Some(&one));
        assert_eq!(found.len(), 1);
        assert!(found[0].1.graphql && found[0].1.health.is_some());
    }

    #[test]
    fn free_ports_are_never_shared() {
        let free = tcp("127.0.0.1:0");
        assert_eq!(sites(&Config::default(), Some(&free), Some(&free)).len(), 2);
    }
}
