//! The part that all jobs of generators have: the build of `weigh`, and the place where the generators meet.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use model::Shard;
use serde::{Deserialize, Serialize};

use super::barrier::{self, BarrierAddress};
use crate::environment;

/// A build of `weigh`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Build {
    /// The version, with the commit of its source code if there is one.
    version: String,
    /// The fingerprint of the source code that sends and records.
    method: String,
}

impl Build {
    /// The build of this process.
    fn own() -> Build {
        Build {
            version: environment::VERSION.to_owned(),
            method: environment::method_fingerprint().to_owned(),
        }
    }

    /// True if both may have the same source code. A build outside of a repository has no commit.
    fn may_be(&self, other: &Build) -> bool {
        let parts = |build: &Build| {
            let (version, commit) = build.version.split_once('+').unzip();
            let version = version.unwrap_or(&build.version).to_owned();
            (version, commit.map(str::to_owned))
        };
        let ((version, commit), (other_version, other_commit)) = (parts(self), parts(other));
        let has_other_commit = commit
            .zip(other_commit)
            .is_some_and(|(own, other)| own != other);
        version == other_version && self.method == other.method && !has_other_commit
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weigh {} with the method {}", self.version, self.method)
    }
}

/// The generators of one job, and the address where they meet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Meeting {
    /// The build of `weigh` that created the job. Another build may read it, send or count differently.
    weigh: Build,
    generators: u32,
    /// Address of the first generator for the other generators.
    barrier: SocketAddr,
    /// A secret that only these generators share.
    token: String,
    /// Time limit of the barrier, in seconds.
    wait_s: u64,
}

impl Meeting {
    /// The meeting of generators with this build of `weigh`. All must connect `within` this time.
    pub fn of(generators: u32, barrier: SocketAddr, token: String, within: Duration) -> Meeting {
        Meeting {
            weigh: Build::own(),
            generators,
            barrier,
            token,
            wait_s: within.as_secs(),
        }
    }

    /// The shard of a generator. `index` counts from 0.
    ///
    /// # Errors
    /// When there is no such part, or the job comes from another build of `weigh`.
    pub fn shard(&self, index: u32) -> Result<Shard, String> {
        let own = Build::own();
        if !self.weigh.may_be(&own) {
            return Err(format!(
                "expected an image of generators with {}, as in the run, found {own}. Make an image of this build: `podman build -t weigh FOLDER` (docs/install.md), or `cargo xtask cluster image localhost/weigh:1 target/release/weigh` for the test cluster. Name it with `--generator-image`",
                self.weigh
            ));
        }
        Shard::new(index.saturating_add(1), self.generators).map_err(|error| error.to_string())
    }

    /// The addresses of the barrier. By default the first generator listens at all addresses of its pod.
    pub fn barrier(&self, listen: Option<SocketAddr>) -> BarrierAddress<'_> {
        BarrierAddress {
            listen: listen.unwrap_or_else(|| barrier::listen(self.barrier)),
            connect: self.barrier,
            token: &self.token,
            within: Duration::from_secs(self.wait_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, method: &str) -> Build {
        Build {
            version: version.to_owned(),
            method: method.to_owned(),
        }
    }

    #[test]
    fn a_generator_of_another_build_refuses() {
        let barrier = SocketAddr::from(([10, 0, 0, 9], 7100));
        let of = |weigh: Build| Meeting {
            weigh,
            ..Meeting::of(2, barrier, "t".to_owned(), Duration::from_secs(90))
        };
        assert!(of(Build::own()).shard(0).is_ok());
        let method = Build::own().method;
        assert_eq!(method.len(), 16, "a fingerprint");
        let other_method = build(environment::VERSION, "0000000000000000");
        for other in [build("0.0.0", &method), other_method] {
            let refused = of(other.clone()).shard(0).expect_err("another build");
            let expected = format!("expected an image of generators with {other}, as in the run");
            assert!(refused.starts_with(&expected), "{refused}");
            let found = format!("found {}. Make an image", Build::own());
            assert!(refused.contains(&found), "{refused}");
        }
    }

    #[test]
    fn another_commit_is_another_build_and_an_unknown_commit_is_not() {
        let own = build("1.0.0+aaaa", "m");
        for (other, is_same) in [
            ("1.0.0+aaaa", true),
            ("1.0.0+bbbb", false),
            ("1.0.1+aaaa", false),
            ("1.0.0", true),
        ] {
            let other = build(other, "m");
            assert_eq!(own.may_be(&other), is_same, "{other}");
            assert_eq!(other.may_be(&own), is_same, "{other}");
        }
        assert!(!own.may_be(&build("1.0.0", "n")));
    }
}
