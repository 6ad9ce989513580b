//! Reads the result that `PATH#NAME` selects: its files and their texts.

use std::fs;
use std::path::{Path, PathBuf};

use analysis::compare::{Operand, OperandSource};
use experiment::exit::Failure;

const EXPECTED: &str = "Give a recording folder, a recording.json or a result file of another tool";

/// Reads both operands. Equal names of files become the shortest paths that differ.
///
/// # Errors
///
/// Fails if a file does not exist, or if it cannot be compared.
pub(super) fn both(a: &str, b: &str, unit_us: Option<f64>) -> Result<(Operand, Operand), Failure> {
    let (mut of_a, path_a) = read(a, unit_us)?;
    let (mut of_b, path_b) = read(b, unit_us)?;
    [of_a.label, of_b.label] = labels(&path_a, &path_b);
    Ok((of_a, of_b))
}

/// The shortest ends of two paths that differ: `before/summary.json` and `after/summary.json`.
fn labels(a: &str, b: &str) -> [String; 2] {
    let parts = [a, b].map(|path| {
        let names = path
            .split('/')
            .filter(|name| !name.is_empty() && *name != ".");
        names.collect::<Vec<_>>()
    });
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
    for count in 1..=longest {
        let ends = parts
            .each_ref()
            .map(|names| names[names.len().saturating_sub(count)..].join("/"));
        if ends[0] != ends[1] && ends.iter().all(|end| !end.is_empty()) {
            return ends;
        }
    }
    // The paths are equal, or one of them is the current folder.
    [a, b].map(|path| {
        let name = Path::new(path).file_name();
        name.map_or_else(
            || path.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        )
    })
}

/// Reads `PATH` or `PATH#NAME`, and returns the path too. A path may also contain `#`.
fn read(given: &str, unit_us: Option<f64>) -> Result<(Operand, String), Failure> {
    let splits = given.char_indices().filter(|(_, letter)| *letter == '#');
    let named = splits
        .map(|(at, _)| (&given[..at], Some(&given[at + 1..])))
        .find(|(path, name)| Path::new(path).exists() && name.is_some_and(|name| !name.is_empty()));
    // An existing path has priority, because folders may have `#` in their names.
    let (path, variant) = if Path::new(given).exists() {
        (given, None)
    } else {
        named.unwrap_or((given, None))
    };
    let files = files(Path::new(path))?;
    let shown = path.trim_end_matches('/');
    let source = OperandSource::read_in(&files, unit_us)
        .map_err(|error| Failure::bad_input(format!("`{shown}`: {error}")))?;
    let operand = Operand {
        label: String::new(),
        variant: variant.map(str::to_owned),
        source,
    };
    Ok((operand, shown.to_owned()))
}

/// The files of an operand with their names: the recording of a folder, or all results in it.
fn files(given: &Path) -> Result<Vec<(String, String)>, Failure> {
    if !given.is_dir() {
        return Ok(vec![file(given)?]);
    }
    let recording = given.join("recording.json");
    if recording.is_file() {
        return Ok(vec![file(&recording)?]);
    }
    let shown = given.display();
    let refuse = |error: std::io::Error| {
        Failure::bad_input(format!("`{shown}` cannot be read: {error}. {EXPECTED}"))
    };
    let (mut paths, mut recordings): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(given).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !is_hidden {
            paths.push(path);
        } else if path.join("recording.json").is_file() {
            recordings.push(path);
        }
    }
    if paths.is_empty() {
        recordings.sort();
        return Err(Failure::bad_input(match recordings.last() {
            Some(last) => format!(
                "expected a recording folder, found `{shown}` with {} recordings. Name one of them, such as `{}`",
                recordings.len(),
                last.display()
            ),
            None => format!(
                "expected a recording.json or results of another tool in `{shown}`, found no file"
            ),
        }));
    }
    paths.sort();
    paths.iter().map(|path| file(path)).collect()
}

/// The name and the text of a file.
fn file(path: &Path) -> Result<(String, String), Failure> {
    let shown = path.display();
    let bytes = experiment::files::read_result(path).map_err(|error| {
        Failure::bad_input(format!("`{shown}` cannot be read: {error}. {EXPECTED}"))
    })?;
    let text = text_of(bytes)
        .map_err(|what| Failure::bad_input(format!("`{shown}` is {what}. {EXPECTED}")))?;
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok((name, text))
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, as some shells write redirected output. The error
/// describes the content.
fn text_of(bytes: Vec<u8>) -> Result<String, &'static str> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).map_err(|_| "broken UTF-16")
    };
    let has = |part: &[u8]| bytes.windows(part.len()).any(|found| found == part);
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] if !rest.is_empty() => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] if !rest.is_empty() => wide(rest, u16::from_be_bytes),
        [b'P', b'K', 3 | 5, ..] => Err("a zip archive. Unpack it first"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err("compressed with zstd. Unpack it with `zstd -d` first"),
        [b'B', b'Z', b'h', ..] => Err("compressed with bzip2. Unpack it with bunzip2 first"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err("compressed with xz. Unpack it with unxz first"),
        _ if has(b"Latency") && has(b"Attack") && has(&[0]) => {
            Err("a binary result of vegeta. Convert it with `vegeta report -type=json`")
        }
        // Gatling's log begins with a byte for its version, and then texts with their length in four bytes.
        [0, 0, 0, ..] => Err(
            "binary. If it is the simulation.log of Gatling 3.11 or newer, give the stats.json of its report",
        ),
        _ => String::from_utf8(bytes).map_err(|_| "not text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_encodings_that_shells_write() {
        let wide = [0xff, 0xfe, b'o', 0, b'k', 0];
        assert_eq!(text_of(wide.to_vec()), Ok("ok".to_owned()));
        let wide = [0xfe, 0xff, 0, b'o', 0, b'k'];
        assert_eq!(text_of(wide.to_vec()), Ok("ok".to_owned()));
        assert_eq!(text_of("µs".into()), Ok("µs".to_owned()));
    }

    #[test]
    fn two_files_of_one_name_get_the_shortest_paths_that_differ() {
        let labels = |a, b| labels(a, b).join(" ");
        assert_eq!(
            labels("before/s.json", "after/s.json"),
            "before/s.json after/s.json"
        );
        assert_eq!(
            labels("x/a/out/s.json", "x/b/out/s.json"),
            "a/out/s.json b/out/s.json"
        );
        assert_eq!(labels("one/a.json", "one/b.json"), "a.json b.json");
        assert_eq!(labels("s.json", "old/s.json"), "s.json old/s.json");
        assert_eq!(labels("./r/", "r"), "r r");
        assert_eq!(labels("recordings/x", "recordings/x"), "x x");
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        let gob = [&[0x1d, 0xff][..], b"Result", &[0], b"Attack", b"Latency"].concat();
        assert!(
            text_of(gob)
                .unwrap_err()
                .contains("vegeta report -type=json")
        );
        let zip = text_of(b"PK\x03\x04".to_vec()).unwrap_err();
        assert!(zip.contains("zip archive"));
        let log = text_of(vec![0, 0, 0, 0, 6, b'3']).unwrap_err();
        assert!(log.contains("stats.json"), "{log}");
        assert_eq!(text_of(vec![0xc3, 0x28]), Err("not text"));
    }
}
