//! Addresses of files for browsers and terminals.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::environment::current_folder;

/// The characters of a path that an address spells with `%`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The address of a file. It has no spaces, so a terminal makes the whole address a link.
pub fn file_url(file: &Path) -> String {
    // Without a current folder, the path stays as it is.
    let whole = current_folder().map_or_else(|| file.to_owned(), |folder| folder.join(file));
    let path = percent_encode(whole.as_os_str().as_bytes(), ENCODED);
    format!("file://{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_whole_path_and_no_space() {
        assert_eq!(
            file_url(Path::new("/home/a b/100%/report.html")),
            "file:///home/a%20b/100%25/report.html"
        );
        let relative = file_url(Path::new("recordings/x/report.html"));
        assert!(relative.starts_with("file:///"), "{relative}");
        assert!(
            relative.ends_with("/recordings/x/report.html"),
            "{relative}"
        );
    }
}
