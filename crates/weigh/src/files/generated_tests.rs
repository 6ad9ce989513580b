//! Common code of the tests of generated files.

use std::fs;
use std::path::Path;

/// Compares a committed file with its generated text. Writes the file if `UPDATE_SCHEMAS` is set. `file` is
/// relative to the root of the repository.
#[expect(clippy::disallowed_methods, reason = "the switch that writes the file")]
pub(crate) fn assert_generated(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = |(new, old): &(&str, &str)| new != old;
    let first = text.lines().zip(committed.lines()).find(differs);
    assert!(
        committed == text,
        "{file} is out of date (first difference: {first:?}); run `cargo xtask schema`"
    );
}
