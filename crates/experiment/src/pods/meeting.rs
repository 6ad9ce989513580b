//! The part that all jobs of generators have: the version of `weigh`, and the place where the generators meet.

use std::net::SocketAddr;
use std::time::Duration;

use model::Shard;
use serde::{Deserialize, Serialize};

use super::barrier::{self, BarrierAddress};
use crate::environment;

/// The generators of one job, and the address where they meet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Meeting {
    /// The version of `weigh` that created the job. Another version would read it differently.
    weigh: String,
    generators: u32,
    /// Address of the first generator for the other generators.
    barrier: SocketAddr,
    /// A secret that only these generators share.
    token: String,
    /// Time limit of the barrier, in seconds.
    wait_s: u64,
}

impl Meeting {
    /// The meeting of generators with this version of `weigh`. All must connect `within` this time.
    pub fn of(generators: u32, barrier: SocketAddr, token: String, within: Duration) -> Meeting {
        Meeting {
            weigh: environment::version().version,
            generators,
            barrier,
            token,
            wait_s: within.as_secs(),
        }
    }

    /// The shard of a generator. `index` counts from 0.
    ///
    /// # Errors
    /// When there is no such part, or the job comes from another version of `weigh`.
    pub fn shard(&self, index: u32) -> Result<Shard, String> {
        let own = environment::version().version;
        if self.weigh != own {
            return Err(format!(
                "the image has weigh {own}, but the run has weigh {}. Use the image of the same version",
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

    #[test]
    fn a_generator_of_another_version_refuses() {
        let barrier = SocketAddr::from(([10, 0, 0, 9], 7100));
        let meeting = Meeting {
            weigh: "0.0.0".to_owned(),
            ..Meeting::of(2, barrier, "t".to_owned(), Duration::from_secs(90))
        };
        let refused = meeting.shard(0).expect_err("another version");
        assert!(refused.contains("the run has weigh 0.0.0"), "{refused}");
    }
}
