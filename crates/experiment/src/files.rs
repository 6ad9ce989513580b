//! File access for labs, and for result files of other tools.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::environment;

/// Reads lab files and the files that they name from the disk.
pub struct Disk;

impl lab::Files for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| error.to_string())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        // The order of a folder's files is arbitrary, and labs are measured in the order of their names.
        paths.sort();
        Ok(paths)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        Disk::absolute(path)
    }

    fn program(&self) -> PathBuf {
        // Without its own path, the program is found by its name.
        environment::own_path().unwrap_or_else(|_| PathBuf::from("weigh"))
    }
}

/// Places of this machine, for templates.
impl Disk {
    fn absolute(path: &Path) -> PathBuf {
        // An empty path is the current folder.
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // Without `.` at the end.
        absolute.components().collect()
    }
}

/// A lab with its files that are not on the disk yet: paths and contents.
#[derive(Debug)]
pub struct Unwritten(pub Vec<(PathBuf, Vec<u8>)>);

impl lab::Files for Unwritten {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|(known, _)| known == path);
        let (_, content) = found.ok_or_else(|| "the file does not exist".to_owned())?;
        Ok(content.clone())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let paths = self.0.iter().map(|(path, _)| path);
        let inside = paths.filter(|path| path.parent() == Some(folder));
        Ok(inside.cloned().collect())
    }
}

/// Reads from the disk and keeps the contents, so that another machine can read the same files.
#[derive(Default)]
pub struct Kept(RefCell<BTreeMap<PathBuf, Vec<u8>>>);

impl Kept {
    /// Every file that was read, by its path.
    pub fn files(self) -> Vec<(PathBuf, Vec<u8>)> {
        self.0.into_inner().into_iter().collect()
    }
}

impl lab::Files for Kept {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let content = Disk.read(path)?;
        self.0.borrow_mut().insert(path.to_owned(), content.clone());
        Ok(content)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        Disk.list(folder)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        Disk::absolute(path)
    }

    fn program(&self) -> PathBuf {
        Disk.program()
    }
}

/// Maximum size of a result file in bytes. Recordings are much smaller, at some megabytes.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Reads a recording or another tool's result, and unpacks gzip. The file may be untrusted, and it may be a
/// device.
pub fn read_result(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = read_at_most(fs::File::open(path)?, RESULT_BYTES_MAX)?;
    unpacked(bytes, RESULT_BYTES_MAX)
}

/// Compresses bytes with gzip.
pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes all bytes")
}

/// The content of a file that may be compressed with gzip. The limit also holds for the content.
pub(crate) fn unpacked(bytes: Vec<u8>, limit: u64) -> io::Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    // Several files that were compressed one after the other are one stream.
    read_at_most(MultiGzDecoder::new(bytes.as_slice()), limit).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => error,
        kind => io::Error::new(kind, format!("its gzip is cut short or broken ({error})")),
    })
}

/// Reads a recording or another tool's result as text.
pub fn read_result_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_result(path)?).map_err(io::Error::other)
}

fn read_at_most(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit, to distinguish a longer file from one at the limit.
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("it is longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_is_unpacked_up_to_the_limit() {
        // `printf abc | gzip -n`
        let gz = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 6, 0, 0xc2, 0x41, 0x24, 0x35, 3,
            0, 0, 0,
        ];
        assert_eq!(unpacked(gz.to_vec(), 9).unwrap(), b"abc");
        assert_eq!(unpacked([gz, gz].concat(), 9).unwrap(), b"abcabc");
        let error = unpacked(gz.to_vec(), 2).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 2 bytes");
        let error = unpacked(gz[..20].to_vec(), 9).unwrap_err().to_string();
        assert!(error.contains("its gzip is cut short or broken"), "{error}");
        assert_eq!(unpacked(b"abc".to_vec(), 9).unwrap(), b"abc");
    }

    #[test]
    fn a_file_without_an_end_is_not_read_to_it() {
        assert_eq!(read_at_most(&b"abc"[..], 3).unwrap(), b"abc");
        let error = read_at_most(io::repeat(b'a'), 3).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 3 bytes");
    }
}
