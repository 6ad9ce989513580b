//! The files of generators on their way to the pods.
//!
//! All files become one sequence of bytes: a line of JSON with paths and lengths, then the contents. The
//! sequence is compressed, and cut into parts that fit into one Secret each. The job of a generator has the
//! packing list, which describes the whole sequence. The files are the same in all rounds, so the cluster
//! receives them once for a run.

use std::path::{Path, PathBuf};

use cluster::generators::part_name;
use serde::{Deserialize, Serialize};

use crate::digest::sha256;
use crate::files::{packed, unpacked};

/// Maximum number of bytes in a Secret: the limit of 1 MiB of the cluster minus its other fields.
pub(super) const SECRET_BYTES_MOST: usize = 900 * 1024;
/// Maximum size of all files of a run in bytes, before compression. They become at most 37 Secrets.
pub const FILES_BYTES_MOST: usize = 32 << 20;

/// A file of a lab, with its content.
pub type FileOfLab = (PathBuf, Vec<u8>);

/// The description of the files of a run, for the pods that put them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackingList {
    /// Number of parts. 0 without files.
    parts: u32,
    /// Length of the sequence before compression.
    bytes: usize,
    /// SHA-256 of the sequence before compression.
    sha256: String,
}

/// The files of a run, in parts that fit into one Secret each.
#[derive(Clone, Debug)]
pub struct PackedFiles {
    list: PackingList,
    parts: Vec<Vec<u8>>,
}

/// A file in the first line of the sequence.
#[derive(Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    bytes: usize,
}

/// Refuses files that are too large for a cluster.
///
/// # Errors
/// The reason as a sentence.
pub fn check_files<'f>(
    files: impl IntoIterator<Item = (&'f PathBuf, &'f Vec<u8>)>,
) -> Result<(), String> {
    let sizes = files
        .into_iter()
        .map(|(path, content)| (content.len(), path));
    let sizes: Vec<(usize, &PathBuf)> = sizes.collect();
    let bytes: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    match sizes.iter().max().filter(|_| bytes > FILES_BYTES_MOST) {
        None => Ok(()),
        Some((largest, path)) => Err(format!(
            "expected at most {} MiB of files for the pods of generators, found {bytes} bytes. The largest file is `{}` with {largest} bytes. Shorten it",
            FILES_BYTES_MOST >> 20,
            path.display()
        )),
    }
}

impl PackedFiles {
    /// Packs files.
    ///
    /// # Errors
    /// When they are too large for a cluster, or a path is not Unicode.
    pub fn of<'f>(
        files: impl IntoIterator<Item = (&'f PathBuf, &'f Vec<u8>)>,
    ) -> Result<PackedFiles, String> {
        let files: Vec<(&PathBuf, &Vec<u8>)> = files.into_iter().collect();
        check_files(files.iter().copied())?;
        let mut whole = Vec::new();
        if !files.is_empty() {
            let entries = files.iter().map(|(path, content)| Entry {
                path: (*path).clone(),
                bytes: content.len(),
            });
            let entries: Vec<Entry> = entries.collect();
            whole = serde_json::to_vec(&entries).map_err(|error| error.to_string())?;
            whole.push(b'\n');
            for (_, content) in &files {
                whole.extend_from_slice(content);
            }
        }
        let parts: Vec<Vec<u8>> = match whole.is_empty() {
            true => Vec::new(),
            false => packed(&whole)
                .chunks(SECRET_BYTES_MOST)
                .map(<[u8]>::to_vec)
                .collect(),
        };
        Ok(PackedFiles {
            list: PackingList {
                parts: u32::try_from(parts.len()).map_err(|error| error.to_string())?,
                bytes: whole.len(),
                sha256: sha256(&whole),
            },
            parts,
        })
    }

    /// The description of the files.
    pub fn list(&self) -> &PackingList {
        &self.list
    }

    /// The parts, in their order.
    pub(crate) fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }
}

impl PackingList {
    /// Number of parts.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Puts the files together from the parts in a folder.
    ///
    /// # Errors
    /// When a part is missing or damaged.
    pub(super) fn read(&self, folder: &Path) -> Result<Vec<FileOfLab>, String> {
        let mut compressed = Vec::new();
        for index in 0..self.parts {
            let path = folder.join(part_name(index));
            let part = std::fs::read(&path).map_err(|error| {
                format!(
                    "part {} of {} of the files cannot be read from `{}`: {error}",
                    index + 1,
                    self.parts,
                    path.display()
                )
            })?;
            compressed.extend(part);
        }
        if compressed.is_empty() && self.bytes == 0 {
            return Ok(Vec::new());
        }
        let limit = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        let whole = unpacked(compressed, limit)
            .map_err(|error| format!("the files of the job are damaged: {error}"))?;
        let found = sha256(&whole);
        if whole.len() != self.bytes || found != self.sha256 {
            return Err(format!(
                "the files of the job are damaged: expected {} bytes with the SHA-256 {}, found {} bytes with {found}",
                self.bytes,
                self.sha256,
                whole.len()
            ));
        }
        separated(&whole)
    }
}

/// The files in a sequence.
fn separated(whole: &[u8]) -> Result<Vec<FileOfLab>, String> {
    let wrong = || "the list of the files of the job does not describe them".to_owned();
    let end = whole.iter().position(|byte| *byte == b'\n');
    let (head, mut contents) = whole.split_at(end.ok_or_else(wrong)? + 1);
    let entries: Vec<Entry> = serde_json::from_slice(head).map_err(|_| wrong())?;
    let mut files = Vec::new();
    for Entry { path, bytes } in entries {
        let (content, rest) = contents.split_at_checked(bytes).ok_or_else(wrong)?;
        files.push((path, content.to_vec()));
        contents = rest;
    }
    match contents.is_empty() {
        true => Ok(files),
        false => Err(wrong()),
    }
}

/// Bytes that no compression makes shorter.
#[cfg(test)]
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed_files(files: &[FileOfLab]) -> PackedFiles {
        let files = files.iter().map(|(path, content)| (path, content));
        PackedFiles::of(files).expect("they fit")
    }

    /// Writes the parts as they lie in a pod.
    fn mounted(files: &PackedFiles) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (index, part) in (0..).zip(files.parts()) {
            assert!(part.len() <= SECRET_BYTES_MOST, "{}", part.len());
            std::fs::write(folder.path().join(part_name(index)), part).expect("a file");
        }
        folder
    }

    #[test]
    fn several_mebibytes_arrive_byte_for_byte_in_parts_of_a_secret() {
        let files = vec![
            (PathBuf::from("l/lab.yaml"), b"question: Why?\n".to_vec()),
            (PathBuf::from("l/data.bin"), noise(5 << 20)),
            (PathBuf::from("l/empty"), Vec::new()),
        ];
        let packed = packed_files(&files);
        assert_eq!(packed.list().parts(), 6);
        let folder = mounted(&packed);
        assert_eq!(packed.list().read(folder.path()), Ok(files));
    }

    #[test]
    fn text_is_compressed_before_it_is_cut() {
        let rows: String = (0..200_000)
            .map(|row| format!("user-{row},secret-{row}\n"))
            .collect();
        let files = vec![(PathBuf::from("users.csv"), rows.into_bytes())];
        assert!(files[0].1.len() > 4 << 20);
        let packed = packed_files(&files);
        assert!(packed.list().parts() <= 2, "{}", packed.list().parts());
        let folder = mounted(&packed);
        assert_eq!(packed.list().read(folder.path()), Ok(files));
    }

    #[test]
    fn a_missing_or_changed_part_is_refused_with_its_number() {
        let packed = packed_files(&[(PathBuf::from("a"), noise(2 << 20))]);
        let folder = mounted(&packed);
        let second = folder.path().join(part_name(1));
        let mut part = std::fs::read(&second).expect("a part");
        part[1_000] ^= 1;
        std::fs::write(&second, &part).expect("changed");
        let refused = packed.list().read(folder.path()).expect_err("changed");
        assert!(refused.contains("are damaged"), "{refused}");
        std::fs::remove_file(&second).expect("removed");
        let refused = packed.list().read(folder.path()).expect_err("missing");
        assert!(refused.starts_with("part 2 of 3 of the files"), "{refused}");
    }

    #[test]
    fn a_load_without_files_has_no_parts() {
        let packed = packed_files(&[]);
        assert_eq!(packed.list().parts(), 0);
        let read = packed.list().read(Path::new("/absent"));
        assert_eq!(read, Ok(Vec::new()));
    }

    #[test]
    fn files_beyond_the_limit_are_refused_by_name() {
        let files = [
            (PathBuf::from("l/small.csv"), vec![b'x'; 9]),
            (PathBuf::from("l/big.csv"), vec![b'x'; FILES_BYTES_MOST]),
        ];
        let each = || files.iter().map(|(path, content)| (path, content));
        assert!(check_files(each().skip(1)).is_ok());
        let refused = PackedFiles::of(each()).expect_err("too large");
        assert_eq!(
            refused,
            "expected at most 32 MiB of files for the pods of generators, found 33554441 bytes. \
             The largest file is `l/big.csv` with 33554432 bytes. Shorten it"
        );
    }
}
