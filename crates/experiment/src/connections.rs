//! The number of TCP connections that systems have opened, from `/proc/PID/net/snmp` of their network
//! namespaces. The kernel counts per namespace and not per process.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The counter of each network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenedConnections {
    by_namespace: BTreeMap<PathBuf, u64>,
    /// The namespace of the generator.
    own: Option<PathBuf>,
}

impl OpenedConnections {
    /// Reads the counters of the namespaces of these processes.
    pub(crate) fn read(pids: &[i32]) -> OpenedConnections {
        let mut found = OpenedConnections {
            own: namespace("self"),
            ..OpenedConnections::default()
        };
        for pid in pids {
            let Some(namespace) = namespace(&pid.to_string()) else {
                continue;
            };
            if found.by_namespace.contains_key(&namespace) {
                continue;
            }
            let text = fs::read_to_string(format!("/proc/{pid}/net/snmp"));
            let opened = text.ok().and_then(|text| active_opens(&text));
            found
                .by_namespace
                .extend(opened.map(|opened| (namespace, opened)));
        }
        found
    }

    /// The connections of systems since `before`, without the connections of the generator. `None` if no
    /// namespace could be read twice.
    pub(crate) fn since(&self, before: &OpenedConnections, of_generator: u64) -> Option<u64> {
        let both = self.by_namespace.iter().filter_map(|(namespace, now)| {
            Some((namespace, now, before.by_namespace.get(namespace)?))
        });
        let mut sum = None;
        let mut has_own = false;
        for (namespace, now, earlier) in both {
            has_own |= Some(namespace) == self.own.as_ref();
            sum = Some(sum.unwrap_or(0) + now.saturating_sub(*earlier));
        }
        let of_generator = if has_own { of_generator } else { 0 };
        sum.map(|sum: u64| sum.saturating_sub(of_generator))
    }
}

fn namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// The number after `ActiveOpens` (RFC 4022). A line of names precedes the line of numbers.
fn active_opens(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let index = names.split(' ').position(|name| name == "ActiveOpens")?;
    numbers.split(' ').nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens PassiveOpens\n\
        Tcp: 1 120 80\n";

    #[test]
    fn the_number_is_found_below_its_name() {
        assert_eq!(active_opens(SNMP), Some(120));
        assert_eq!(active_opens("Tcp: RtoAlgorithm\nTcp: 1\n"), None);
        assert_eq!(active_opens(""), None);
    }

    fn counters(own: &str, counts: &[(&str, u64)]) -> OpenedConnections {
        OpenedConnections {
            by_namespace: counts
                .iter()
                .map(|(name, count)| (PathBuf::from(name), *count))
                .collect(),
            own: Some(PathBuf::from(own)),
        }
    }

    #[test]
    fn the_generator_counts_only_in_its_own_namespace() {
        let before = counters("a", &[("a", 10), ("b", 5)]);
        let after = counters("a", &[("a", 30), ("b", 6)]);
        assert_eq!(after.since(&before, 8), Some(13));
        let other = counters("b", &[("a", 10)]);
        assert_eq!(counters("b", &[("a", 30)]).since(&other, 8), Some(20));
        assert_eq!(after.since(&OpenedConnections::default(), 8), None);
    }
}
