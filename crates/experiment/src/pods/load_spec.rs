//! The job of the generators of a single load: the flags of `weigh load`, and the files that they name.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Shard;
use serde::{Deserialize, Serialize};

use super::barrier::{self, BarrierAddress};
use crate::environment;

/// The job of the generators of a single load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadSpec {
    /// The version of `weigh` that created the job. Another version could read the flags differently.
    weigh: String,
    /// The flags of `weigh load`, without the flags that the cluster needs.
    pub flags: Vec<String>,
    /// The files that the flags name, in base64.
    files: BTreeMap<PathBuf, String>,
    generators: u32,
    /// Address of the first generator for the other generators.
    barrier: SocketAddr,
    /// A secret that only the generators of this load share.
    token: String,
    /// Time limit of the barrier, in seconds.
    wait_s: u64,
}

/// The place where the generators of a single load meet.
pub struct Meeting {
    /// Number of generators.
    pub generators: u32,
    /// Address of the first generator for the other generators.
    pub barrier: SocketAddr,
    /// A secret that only the generators share.
    pub token: String,
    /// Time limit for all generators to connect.
    pub within: Duration,
}

impl LoadSpec {
    /// The job of a load with these flags and these files.
    pub fn of(
        flags: Vec<String>,
        files: &BTreeMap<PathBuf, Vec<u8>>,
        meeting: Meeting,
    ) -> LoadSpec {
        let files = files
            .iter()
            .map(|(path, content)| (path.clone(), STANDARD.encode(content)));
        LoadSpec {
            weigh: environment::version().version,
            flags,
            files: files.collect(),
            generators: meeting.generators,
            barrier: meeting.barrier,
            token: meeting.token,
            wait_s: meeting.within.as_secs(),
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

    /// The files that the flags name.
    ///
    /// # Errors
    /// When the job is damaged.
    pub fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
        let files = self.files.iter().map(|(path, content)| {
            let content = STANDARD.decode(content);
            let content = content.map_err(|error| format!("`{}`: {error}", path.display()))?;
            Ok((path.clone(), content))
        });
        files.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LoadSpec {
        let files = BTreeMap::from([(PathBuf::from("q.json"), b"{}".to_vec())]);
        let meeting = Meeting {
            generators: 2,
            barrier: SocketAddr::from(([10, 0, 0, 9], 7100)),
            token: "t".to_owned(),
            within: Duration::from_secs(90),
        };
        LoadSpec::of(vec!["http://web/".to_owned()], &files, meeting)
    }

    #[test]
    fn a_generator_reads_the_same_flags_and_files() {
        let text = serde_json::to_string(&spec()).expect("JSON");
        let read: LoadSpec = serde_json::from_str(&text).expect("the same");
        assert_eq!(read.flags, ["http://web/"]);
        let files = read.files().expect("files");
        assert_eq!(files[&PathBuf::from("q.json")], b"{}");
        assert_eq!(read.shard(1).expect("a shard").to_string(), "2/2");
        assert!(read.shard(2).is_err());
        let within = read.barrier(None).within;
        assert_eq!(within, Duration::from_secs(90));
    }

    #[test]
    fn a_generator_of_another_version_refuses() {
        let spec = LoadSpec {
            weigh: "0.0.0".to_owned(),
            ..spec()
        };
        let refused = spec.shard(0).expect_err("another version");
        assert!(refused.contains("the run has weigh 0.0.0"), "{refused}");
    }
}
