//! The build context of an image in the form that the engine requires: one tar, without the files that
//! `.dockerignore` lists.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{Stream, stream};
use globset::{GlobBuilder, GlobMatcher};

/// Bytes of the tar that are sent at a time.
const CHUNK: usize = 256 << 10;

/// One line of a `.dockerignore`.
struct Pattern {
    matcher: GlobMatcher,
    /// True for a line with `!`. Files that match it are sent after all.
    is_exception: bool,
}

/// Packs a folder. The Dockerfile is included even if a pattern matches it.
pub(crate) fn pack(folder: &Path, dockerfile: &str) -> Result<File, String> {
    let patterns = match fs::read_to_string(folder.join(".dockerignore")) {
        Ok(text) => patterns(&text)?,
        Err(_) => Vec::new(),
    };
    let told = |error: std::io::Error| format!("`{}` cannot be packed: {error}", folder.display());
    let file = tempfile::tempfile().map_err(told)?;
    let mut tar = tar::Builder::new(file);
    tar.follow_symlinks(false);
    let mut files = Vec::new();
    list(folder, Path::new(""), &patterns, &mut files).map_err(told)?;
    if !files.iter().any(|file| file == Path::new(dockerfile)) {
        files.push(PathBuf::from(dockerfile));
    }
    files.sort();
    for path in files {
        let full = folder.join(&path);
        tar.append_path_with_name(&full, &path)
            .map_err(|error| format!("`{}` cannot be packed: {error}", full.display()))?;
    }
    let mut file = tar.into_inner().map_err(told)?;
    file.seek(SeekFrom::Start(0)).map_err(told)?;
    Ok(file)
}

/// Splits a packed folder into pieces.
pub(crate) fn chunks(
    tar: File,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let next = |mut tar: File| async move {
        let mut chunk = vec![0; CHUNK];
        match tar.read(&mut chunk) {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(Bytes::from(chunk)), tar))
            }
            Err(error) => Some((Err(error), tar)),
        }
    };
    stream::unfold(tar, next)
}

/// Lists the files and empty folders of a folder that are sent. Sockets and devices are not sent.
fn list(
    root: &Path,
    below: &Path,
    patterns: &[Pattern],
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // An ignored folder is read too, because an exception may name a file in it.
            let is_sent = !is_ignored(&path, patterns);
            let has_exceptions = patterns.iter().any(|pattern| pattern.is_exception);
            if is_sent {
                files.push(path.clone());
            }
            if is_sent || has_exceptions {
                list(root, &path, patterns, files)?;
            }
        } else if (kind.is_file() || kind.is_symlink()) && !is_ignored(&path, patterns) {
            files.push(path);
        }
    }
    Ok(())
}

fn patterns(text: &str) -> Result<Vec<Pattern>, String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (rest, is_exception) = match line.strip_prefix('!') {
                Some(rest) => (rest.trim(), true),
                None => (line, false),
            };
            let rest = rest.trim_start_matches("./").trim_matches('/');
            let glob = GlobBuilder::new(rest).literal_separator(true).build();
            let glob = glob.map_err(|error| format!("`{line}` of `.dockerignore`: {error}"))?;
            Ok(Pattern {
                matcher: glob.compile_matcher(),
                is_exception,
            })
        })
        .collect()
}

/// True if the path is ignored. The last line that matches the path, or a folder above it, decides.
fn is_ignored(path: &Path, patterns: &[Pattern]) -> bool {
    let names = |pattern: &&Pattern| {
        let mut above = path.ancestors().filter(|it| !it.as_os_str().is_empty());
        above.any(|it| pattern.matcher.is_match(it))
    };
    let last = patterns.iter().rev().find(names);
    last.is_some_and(|pattern| !pattern.is_exception)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_not_sent_and_the_dockerfile_always_is() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            ".dockerignore",
            "# heavy\ntarget\n**/*.log\n!keep/this.log\nDockerfile\n",
        );
        for path in [
            "Dockerfile",
            "app",
            "target/debug/app",
            "a/b.log",
            "keep/this.log",
            "a/c",
        ] {
            write(path, path);
        }
        let tar = pack(folder.path(), "Dockerfile").unwrap();
        let mut archive = tar::Archive::new(tar);
        let sent: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let expected = [
            ".dockerignore",
            "Dockerfile",
            "a",
            "a/c",
            "app",
            "keep",
            "keep/this.log",
        ];
        let sent: Vec<&str> = sent.iter().map(|path| path.trim_end_matches('/')).collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_star_stays_within_its_folder_and_the_last_line_wins() {
        let patterns = patterns("*.txt\n!a.txt\nb\n").unwrap();
        let ignored = |path: &str| is_ignored(Path::new(path), &patterns);
        assert!(ignored("x.txt") && !ignored("a.txt"));
        assert!(!ignored("c/x.txt"), "as `docker build` has it");
        assert!(ignored("b/c/d"));
    }
}
