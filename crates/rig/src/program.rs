//! Search for programs, with the rules of a shell.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Returns the executable file of `name`. A name with a slash is relative to `folder`. Any other name is
/// searched in the folders of `path` (the value of `PATH`, with relative folders relative to `folder`).
/// `None` if no file there can be executed.
#[must_use]
pub fn find_program(name: &str, folder: &Path, path: &OsStr) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let is_executable = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    let absolute = |file: PathBuf| std::path::absolute(file).ok();
    if name.contains('/') {
        return absolute(folder.join(name)).filter(is_executable);
    }
    env::split_paths(path)
        .filter_map(|dir| absolute(folder.join(dir).join(name)))
        .find(is_executable)
}

/// The `PATH` of a system with these additional variables. This is the only place of the rig that reads the
/// environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place in the rig that reads the environment"
)]
pub(crate) fn path_of(env: &[(String, String)]) -> OsString {
    env.iter()
        // The last of several values wins, as in the environment of the system.
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.into())
        .or_else(|| env::var_os("PATH"))
        // Without `PATH` no program is found by name, and the error shows the empty list.
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_an_executable_file_by_path_or_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir_all(bin.join("dir")).unwrap();
        fs::write(bin.join("plain"), "").unwrap();
        fs::write(bin.join("tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(bin.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = OsStr::new("/nowhere:bin");
        let find = |name| find_program(name, folder.path(), path);
        assert_eq!(find("tool"), Some(bin.join("tool")));
        assert_eq!(find("bin/tool"), Some(bin.join("tool")));
        assert_eq!(find("./tool"), None, "a slash turns the search off");
        assert_eq!(find("plain"), None, "not executable");
        assert_eq!(find("dir"), None, "a folder");
        assert_eq!(find(""), None);
    }

    #[test]
    fn the_last_path_given_to_a_system_counts() {
        let env = [("PATH", "/a"), ("HOME", "/h"), ("PATH", "/b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(path_of(&env), "/b");
    }
}
