//! Packs one folder of files as an archive and as a Debian package.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::repository::root;

/// The shells, with the file name that each requires.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "weigh.bash"),
    ("zsh", "_weigh"),
    ("fish", "weigh.fish"),
];
/// The maintainer for Debian's tools.
const MAINTAINER: &str = "The Weighbridge authors <weighbridge@localhost>";

/// The inputs of a package.
pub(crate) struct Contents<'a> {
    pub(crate) version: &'a str,
    pub(crate) target: &'a str,
    pub(crate) debian: &'a str,
    pub(crate) program: &'a Path,
    /// The same program for this machine. It prints the flags for the manual pages.
    pub(crate) describer: &'a Path,
    /// Folder of the built book.
    pub(crate) book: &'a Path,
    /// The licences of the crates in it.
    pub(crate) licences: String,
}

impl Contents<'_> {
    /// Puts all files into one folder below `work`.
    pub(crate) fn gather(&self, work: &Path) -> anyhow::Result<PathBuf> {
        let folder = work.join(format!("weigh-{}-{}", self.version, self.target));
        let completions = folder.join("completions");
        fs::create_dir_all(&completions)?;
        install(self.program, &folder.join("weigh"), 0o755)?;
        install(&root().join("LICENSE"), &folder.join("LICENSE"), 0o644)?;
        fs::write(folder.join("LICENSES-OF-DEPENDENCIES.txt"), &self.licences)?;
        fs::write(folder.join("INSTALL.md"), INSTALL)?;
        for (shell, name) in SHELLS {
            let output = Command::new(self.describer)
                .args(["completions", shell])
                .output()?;
            ensure!(
                output.status.success() && !output.stdout.is_empty(),
                "no completions for {shell}"
            );
            fs::write(completions.join(name), output.stdout)?;
        }
        let pages = Command::new(self.describer)
            .arg("man-pages")
            .arg(folder.join("man"))
            .status()?;
        ensure!(pages.success(), "no manual pages");
        copy_tree(self.book, &folder.join("book"))?;
        Ok(folder)
    }
}

const INSTALL: &str = "\
# weigh

A static program: it needs no other file, and runs on every Linux.

    ./weigh demo                  # finds a delay that it planted itself, in 12 s
    install weigh /usr/local/bin/

`./weigh book` opens the documentation, `book/index.html`.
`completions/` is for shells (`weigh completions --help` says where each looks), `man/` for `man -l man/weigh.1`.
";

/// Creates a compressed archive of the folder, with the same bytes for the same files.
pub(crate) fn archive(folder: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = out.join(format!("{name}.tar.gz"));
    let status = Command::new("tar")
        .args([
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .args([
            "--use-compress-program=gzip --no-name",
            "--create",
            "--file",
        ])
        .arg(&path)
        .arg("--directory")
        .arg(folder.parent().unwrap_or(folder))
        .arg(&*name)
        .status()?;
    ensure!(status.success(), "tar cannot pack {}", folder.display());
    Ok(path)
}

/// Creates a Debian package of the same files, at Debian's usual paths.
pub(crate) fn debian(
    contents: &Contents<'_>,
    folder: &Path,
    work: &Path,
    out: &Path,
) -> anyhow::Result<PathBuf> {
    let tree = work.join(format!("debian-{}", contents.debian));
    let place = |path: &str| -> anyhow::Result<PathBuf> {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&tree))?;
        Ok(path)
    };
    install(contents.program, &place("usr/bin/weigh")?, 0o755)?;
    let documents = "usr/share/doc/weigh";
    install(
        &folder.join("LICENSE"),
        &place(&format!("{documents}/copyright"))?,
        0o644,
    )?;
    let licences = "LICENSES-OF-DEPENDENCIES.txt";
    install(
        &folder.join(licences),
        &place(&format!("{documents}/{licences}"))?,
        0o644,
    )?;
    let completions = [
        ("weigh.bash", "usr/share/bash-completion/completions/weigh"),
        ("_weigh", "usr/share/zsh/vendor-completions/_weigh"),
        (
            "weigh.fish",
            "usr/share/fish/vendor_completions.d/weigh.fish",
        ),
    ];
    for (name, path) in completions {
        install(&folder.join("completions").join(name), &place(path)?, 0o644)?;
    }
    for page in fs::read_dir(folder.join("man"))? {
        let page = page?;
        let path = format!("usr/share/man/man1/{}", page.file_name().to_string_lossy());
        install(&page.path(), &place(&path)?, 0o644)?;
    }
    copy_tree(&folder.join("book"), &place(&format!("{documents}/book"))?)?;
    fs::write(
        place("DEBIAN/control")?,
        format!(
            "Package: weigh\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nSection: utils\n\
             Priority: optional\nDescription: tells what a layer of an API stack costs\n \
             Starts a system with and without the layer, proves that both work, sends the\n same requests to \
             both side by side, and reports the difference with an error bar.\n",
            contents.version, contents.debian
        ),
    )?;
    let path = out.join(format!(
        "weigh_{}_{}.deb",
        contents.version, contents.debian
    ));
    let status = Command::new("dpkg-deb")
        .args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(&path)
        .status()?;
    ensure!(status.success(), "dpkg-deb cannot build {}", path.display());
    Ok(path)
}

/// Copies a folder with all that it contains. Every file becomes readable by all.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy_tree(&path, &copy)?,
            false => install(&path, &copy, 0o644)?,
        }
    }
    Ok(())
}

fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}
