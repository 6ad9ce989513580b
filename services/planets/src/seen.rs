//! Counts the requests to the subgraphs, and the values of configured headers.
//!
//! Every worker counts in its own shard. Its lock is contended only while `/seen` is read, so counting costs
//! about ten nanoseconds per request.
//!
//! Absent on purpose: bodies. The gateway's log contains the queries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use telemetry::metrics;

use crate::subgraph::Name;

/// Maximum number of different values of one header that are counted separately. Further values are counted
/// together. A client may send any value, so without a limit it could fill the memory.
const VALUES_MAX: usize = 64;

/// The counts of one worker since the start or the last reset.
#[derive(Debug, Default)]
pub(crate) struct Shard(Mutex<[Counts; Name::ALL.len()]>);

#[derive(Debug, Clone, Default)]
struct Counts {
    requests: u64,
    headers: Vec<Values>,
}

/// The values of one header.
#[derive(Debug, Clone, Default)]
struct Values {
    known: Vec<(HeaderValue, u64)>,
    others: u64,
    absent: u64,
}

/// The shards of all workers, and the counted headers.
#[derive(Debug)]
pub(crate) struct Seen {
    headers: Vec<HeaderName>,
    shards: Mutex<Vec<Arc<Shard>>>,
}

/// The counts of one subgraph, as `/seen` reports them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SubgraphSeen {
    /// Requests that reached the subgraph, including failed ones.
    pub(crate) requests: u64,
    /// Counts by the name of the header.
    pub(crate) headers: BTreeMap<String, HeaderSeen>,
}

/// The counts of one header. They add up to the number of requests.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct HeaderSeen {
    /// Requests by value. If a request has the header several times, its values are joined by `, `.
    pub(crate) values: BTreeMap<String, u64>,
    /// Requests with a value beyond the first [`VALUES_MAX`] different ones.
    pub(crate) other_values: u64,
    /// Requests without the header.
    pub(crate) absent: u64,
}

/// Counts by the name of the subgraph.
pub(crate) type AllSeen = BTreeMap<&'static str, SubgraphSeen>;

impl Seen {
    /// Starts at zero. `headers` are counted from now on.
    pub(crate) fn new(headers: Vec<HeaderName>) -> Self {
        let shards = Mutex::default();
        Self { headers, shards }
    }

    /// Creates a shard for one more worker.
    pub(crate) fn shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard::default());
        lock(&self.shards).push(Arc::clone(&shard));
        shard
    }

    /// Counts one request to a subgraph.
    pub(crate) fn count(&self, shard: &Shard, name: Name, headers: &HeaderMap) {
        let mut all = lock(&shard.0);
        let counts = &mut all[name as usize];
        counts.requests += 1;
        counts
            .headers
            // The list is empty at first and after a reset. Otherwise this has no effect.
            .resize_with(self.headers.len(), Values::default);
        for (values, header) in counts.headers.iter_mut().zip(&self.headers) {
            values.count(headers, header);
        }
    }

    /// The counts since the start or the last reset.
    pub(crate) fn look(&self) -> AllSeen {
        self.gather(|counts| counts.clone())
    }

    /// Returns the counts and resets them to zero. No request is lost in between.
    pub(crate) fn reset(&self) -> AllSeen {
        self.gather(std::mem::take)
    }

    fn gather(&self, take: impl Fn(&mut Counts) -> Counts) -> AllSeen {
        let mut sights: AllSeen = Name::ALL
            .map(|name| (name.text(), SubgraphSeen::default()))
            .into();
        for sight in sights.values_mut() {
            // All names, even with zero counts: a lab compares them with its sent requests.
            let names = self.headers.iter().map(|name| name.as_str().to_owned());
            sight.headers = names.map(|name| (name, HeaderSeen::default())).collect();
        }
        for shard in lock(&self.shards).iter() {
            let mut all = lock(&shard.0);
            for name in Name::ALL {
                // Read and cleared under one lock, so that a request counts either before or after
                // a reset.
                let counts = take(&mut all[name as usize]);
                let sight = sights.entry(name.text()).or_default();
                sight.requests += counts.requests;
                for (values, header) in counts.headers.iter().zip(&self.headers) {
                    let header = header.as_str().to_owned();
                    values.add_to(sight.headers.entry(header).or_default());
                }
            }
        }
        sights
    }
}

impl metrics::Counts for Seen {
    fn tell(&self, scrape: &mut metrics::Scrape<'_>) -> std::fmt::Result {
        let sights = self.look();
        let samples = sights.iter();
        let samples = samples.map(|(subgraph, sight)| ([("subgraph", *subgraph)], sight.requests));
        let samples: Vec<_> = samples.collect();
        scrape.counters(
            "planets_requests",
            "Requests to a subgraph",
            samples.iter().map(|(labels, count)| (&labels[..], *count)),
        )
    }
}

impl Values {
    fn count(&mut self, headers: &HeaderMap, name: &HeaderName) {
        let mut lines = headers.get_all(name).iter();
        let Some(first) = lines.next() else {
            self.absent += 1;
            return;
        };
        match lines.next() {
            None => self.count_value(first),
            Some(second) => {
                let bytes: Vec<&[u8]> = [first, second]
                    .into_iter()
                    .chain(lines)
                    .map(HeaderValue::as_bytes)
                    .collect();
                let joined = HeaderValue::from_bytes(&bytes.join(&b", "[..]));
                self.count_value(&joined.expect("parts of header values are one when joined"));
            }
        }
    }

    fn count_value(&mut self, value: &HeaderValue) {
        // A list and not a table: a lab sends a handful of values, and comparing them costs less than a hash.
        if let Some((_, count)) = self.known.iter_mut().find(|(known, _)| known == value) {
            *count += 1;
        } else if self.known.len() < VALUES_MAX {
            self.known.push((value.clone(), 1));
        } else {
            self.others += 1;
        }
    }

    fn add_to(&self, sight: &mut HeaderSeen) {
        sight.absent += self.absent;
        sight.other_values += self.others;
        for (value, count) in &self.known {
            // Header values need not be UTF-8. Values with an equal text are added up.
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            *sight.values.entry(text).or_default() += count;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The counters are valid after any panic, because each is changed by one addition.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn workers_add_up_and_every_request_is_in_one_number_of_a_header() {
        let seen = Seen::new(vec!["source".parse().unwrap()]);
        let (one, other) = (seen.shard(), seen.shard());
        seen.count(&one, Name::Reviews, &request(&[("source", "rhai")]));
        seen.count(
            &other,
            Name::Reviews,
            &request(&[("source", "rhai"), ("x", "y")]),
        );
        seen.count(
            &other,
            Name::Reviews,
            &request(&[("source", "a"), ("source", "b")]),
        );
        seen.count(&other, Name::Reviews, &request(&[]));
        let json = serde_json::to_value(seen.look()).unwrap();
        let none = serde_json::json!({"requests": 0, "headers": {
            "source": {"values": {}, "other_values": 0, "absent": 0}}});
        assert_eq!(json["locations"], none);
        let some = serde_json::json!({"requests": 4, "headers": {
            "source": {"values": {"rhai": 2, "a, b": 1}, "other_values": 0, "absent": 1}}});
        assert_eq!(json["reviews"], some);
    }

    #[test]
    fn reset_tells_what_was_and_starts_over() {
        let seen = Seen::new(Vec::new());
        let shard = seen.shard();
        seen.count(&shard, Name::Locations, &request(&[]));
        assert_eq!(seen.reset()["locations"].requests, 1);
        assert_eq!(seen.look()["locations"].requests, 0);
    }

    #[test]
    fn endless_values_take_bounded_memory() {
        let seen = Seen::new(vec!["id".parse().unwrap()]);
        let shard = seen.shard();
        for number in 0..1000 {
            let headers = request(&[("id", &number.to_string())]);
            seen.count(&shard, Name::Locations, &headers);
        }
        let sights = seen.look();
        let sight = &sights["locations"].headers["id"];
        assert_eq!(sight.values.len(), VALUES_MAX);
        assert_eq!(sight.other_values, 1000 - 64);
    }
}
