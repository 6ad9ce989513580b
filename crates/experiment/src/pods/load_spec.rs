//! The job of the generators of a single load: the flags of `weigh load`, and the files that they name.

use serde::{Deserialize, Serialize};

use super::meeting::Meeting;
use super::packed_files::PackingList;

/// The job of the generators of a single load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadSpec {
    pub meeting: Meeting,
    /// The flags of `weigh load`, without the flags that the cluster needs.
    pub flags: Vec<String>,
    /// The files that the flags name, which come separately.
    pub(super) files: PackingList,
}

impl LoadSpec {
    /// The job of a load with these flags and these files.
    pub fn of(flags: Vec<String>, files: &PackingList, meeting: Meeting) -> LoadSpec {
        LoadSpec {
            meeting,
            flags,
            files: files.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::pods::packed_files::PackedFiles;

    fn spec() -> LoadSpec {
        let files = PackedFiles::of([]).expect("no files");
        let barrier = SocketAddr::from(([10, 0, 0, 9], 7100));
        let meeting = Meeting::of(2, barrier, "t".to_owned(), Duration::from_secs(90));
        LoadSpec::of(vec!["http://web/".to_owned()], files.list(), meeting)
    }

    #[test]
    fn a_generator_reads_the_same_flags_and_meets_the_others() {
        let text = serde_json::to_string(&spec()).expect("JSON");
        let read: LoadSpec = serde_json::from_str(&text).expect("the same");
        assert_eq!(read.flags, ["http://web/"]);
        assert_eq!(read.files, spec().files);
        assert_eq!(read.meeting.shard(1).expect("a shard").to_string(), "2/2");
        assert!(read.meeting.shard(2).is_err());
        let within = read.meeting.barrier(None).within;
        assert_eq!(within, Duration::from_secs(90));
    }
}
