//! Collections of runtimes that report them without an agent: Go by `GODEBUG=gctrace=1` in the log of a
//! system, and the JVM by the file with its performance counters.
//!
//! Node.js and Python report no collections without an agent or a change of the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::systems::SystemProcesses;

/// The variable that makes a Go program report its collections, with the separator of its values.
pub(crate) const GO: (&str, &str, char) = ("GODEBUG", "gctrace=1", ',');

/// Counters since the start, by name.
pub(crate) type Counters = BTreeMap<&'static str, f64>;

/// The counters of one system. Empty if no runtime reports any.
pub(crate) fn read(system: &SystemProcesses) -> Counters {
    let mut counters = Counters::new();
    for log in &system.logs {
        // A log may contain bytes that are no text.
        let text = fs::read(log).unwrap_or_default();
        add(&mut counters, of_go(&String::from_utf8_lossy(&text)));
    }
    for pid in &system.pids {
        for file in jvm_files(*pid) {
            let bytes = fs::read(file).unwrap_or_default();
            add(&mut counters, of_jvm(&bytes).unwrap_or_default());
        }
    }
    counters
}

/// The growth of each counter.
pub(crate) fn since(before: &Counters, after: &Counters) -> Counters {
    let growth = after.iter().map(|(name, now)| {
        let earlier = before.get(name).copied().unwrap_or(0.0);
        // A lower value belongs to a process that has started later.
        (*name, (now - earlier).max(0.0))
    });
    growth.collect()
}

fn add(sum: &mut Counters, more: Counters) {
    for (name, value) in more {
        *sum.entry(name).or_default() += value;
    }
}

/// The counters of all lines such as
/// `gc 3 @0.1s 2%: 0.01+0.30+0.02 ms clock, 0.02+0.1/0.2/0+0.05 ms cpu, 4->5->1 MB, 5 MB goal, 2 P`.
fn of_go(log: &str) -> Counters {
    let mut counters = Counters::new();
    let mut live_mb = 0.0;
    for line in log.lines().filter(|line| line.starts_with("gc ")) {
        let Some((time_ms, start_mb, end_mb)) = go_line(line) else {
            continue;
        };
        let mut count = |name, value| *counters.entry(name).or_default() += value;
        count("go_collections", 1.0);
        count("go_collection_us", time_ms * 1e3);
        // The heap at the start of a collection, without the live rest of the collection before it.
        count(
            "go_allocated_bytes",
            (start_mb - live_mb).max(0.0) * 1_048_576.0,
        );
        live_mb = end_mb;
    }
    counters
}

/// Time in milliseconds, heap at the start, and live heap at the end in MiB.
fn go_line(line: &str) -> Option<(f64, f64, f64)> {
    let (_, rest) = line.split_once("%: ")?;
    let (clock, rest) = rest.split_once(" ms clock, ")?;
    let times: Option<Vec<f64>> = clock.split('+').map(|part| part.parse().ok()).collect();
    let (_, rest) = rest.split_once(" ms cpu, ")?;
    let (heap, _) = rest.split_once(" MB")?;
    let mut sizes = heap.split("->").map(|size| size.parse().ok());
    let start = sizes.next()??;
    let end = sizes.nth(1)??;
    Some((times?.iter().sum(), start, end))
}

/// The files with counters of a process, if it is a JVM. A process in a container has its own `/tmp` and its
/// own number.
fn jvm_files(pid: i32) -> Vec<PathBuf> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("NSpid:"));
    let Some(number) = line.and_then(|line| line.split_ascii_whitespace().next_back()) else {
        return Vec::new();
    };
    let folder = PathBuf::from(format!("/proc/{pid}/root")).join("tmp");
    let users = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_jvm = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("hsperfdata_"))
    };
    let folders = users.map(|entry| entry.path()).filter(|path| is_jvm(path));
    let files = folders.map(|folder| folder.join(number));
    files.filter(|file| file.exists()).collect()
}

/// Reads the counters of `hsperfdata` (version 2 of `PerfMemory` in HotSpot). `None` for other bytes.
fn of_jvm(bytes: &[u8]) -> Option<Counters> {
    const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
    let data = JvmData {
        bytes,
        is_little: bytes.get(4)? == &1,
    };
    if bytes.get(..4)? != MAGIC {
        return None;
    }
    let (mut place, entries) = (data.number(24)?, data.number(28)?);
    let mut longs: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..entries {
        let length = data.number(place)?;
        let name = data.text(place + data.number(place + 4)?)?;
        // `J` is a number of 64 bits.
        if bytes.get(place + 12)? == &b'J' {
            let value = data.long(place + data.number(place + 16)?)?;
            longs.insert(name, value);
        }
        // An entry without length would repeat itself.
        place += (length > 0).then_some(length)?;
    }
    let ticks_per_s = longs.get("sun.os.hrt.frequency").copied()?;
    let sum = |end: &str| -> f64 {
        let own = longs
            .iter()
            .filter(|(name, _)| name.starts_with("sun.gc.collector.") && name.ends_with(end));
        own.map(|(_, value)| value).sum()
    };
    let time_us = sum(".time") / ticks_per_s.max(1.0) * 1e6;
    Some(Counters::from([
        ("jvm_collections", sum(".invocations")),
        ("jvm_collection_us", time_us),
    ]))
}

struct JvmData<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl JvmData<'_> {
    fn number(&self, at: usize) -> Option<usize> {
        let four: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let number = match self.is_little {
            true => u32::from_le_bytes(four),
            false => u32::from_be_bytes(four),
        };
        usize::try_from(number).ok()
    }

    fn long(&self, at: usize) -> Option<f64> {
        let eight: [u8; 8] = self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(recording::float(match self.is_little {
            true => u64::from_le_bytes(eight),
            false => u64::from_be_bytes(eight),
        }))
    }

    fn text(&self, at: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_go_are_added_up_and_other_lines_are_not() {
        let log = "listening\n\
            gc 1 @0.012s 2%: 0.01+0.30+0.02 ms clock, 0.02+0.1/0.2/0+0.05 ms cpu, 4->5->1 MB, 5 MB goal, 2 P\n\
            gc is mentioned here\n\
            gc 2 @0.020s 2%: 0.01+0.60+0.02 ms clock, 0.02+0.1/0.2/0+0.05 ms cpu, 7->7->2 MB, 8 MB goal, 2 P\n";
        let counters = of_go(log);
        assert_eq!(counters["go_collections"], 2.0);
        assert!((counters["go_collection_us"] - 960.0).abs() < 1e-6);
        assert_eq!(counters["go_allocated_bytes"], 10.0 * 1_048_576.0);
        assert!(of_go("gc 1 @").is_empty());
    }

    /// A file with these counters.
    fn hsperfdata(counters: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        bytes[..5].copy_from_slice(&[0xca, 0xfe, 0xc0, 0xc0, 1]);
        bytes[24..28].copy_from_slice(&32_u32.to_le_bytes());
        let count = u32::try_from(counters.len()).unwrap();
        bytes[28..32].copy_from_slice(&count.to_le_bytes());
        for (name, value) in counters {
            let data_at = 20 + (name.len() + 1).next_multiple_of(8);
            let number = |at: usize| u32::try_from(at).unwrap().to_le_bytes();
            let mut entry = [number(data_at + 8), number(20), number(0)].concat();
            entry.extend([b'J', 0, 1, 1]);
            entry.extend(number(data_at));
            entry.extend(name.as_bytes());
            entry.resize(data_at, 0);
            entry.extend(value.to_le_bytes());
            bytes.extend(entry);
        }
        bytes
    }

    #[test]
    fn counters_of_a_jvm_are_added_over_its_collectors() {
        let bytes = hsperfdata(&[
            ("sun.gc.collector.0.invocations", 7),
            ("sun.gc.collector.0.time", 3_000),
            ("sun.gc.collector.1.invocations", 2),
            ("sun.gc.collector.1.time", 1_000),
            ("sun.os.hrt.frequency", 1_000_000),
        ]);
        let expected = Counters::from([("jvm_collections", 9.0), ("jvm_collection_us", 4_000.0)]);
        assert_eq!(of_jvm(&bytes), Some(expected));
        assert_eq!(of_jvm(&bytes[..60]), None, "a file that is cut off");
        assert_eq!(of_jvm(b"not a JVM"), None);
    }

    #[test]
    fn a_counter_that_fell_belongs_to_another_process() {
        let before = Counters::from([("go_collections", 5.0)]);
        let after = Counters::from([("go_collections", 2.0), ("jvm_collections", 3.0)]);
        let expected = Counters::from([("go_collections", 0.0), ("jvm_collections", 3.0)]);
        assert_eq!(since(&before, &after), expected);
    }
}
