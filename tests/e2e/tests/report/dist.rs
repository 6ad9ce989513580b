//! What people install: what is in the archive and in the Debian package.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::{Run, weigh, weigh_command};
use tempfile::TempDir;

fn listed(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn archive_and_package_hold_what_one_needs_and_their_sums_are_right() {
    let out = TempDir::new().expect("a temporary folder");
    // The program of the tests: how a static one is built is a matter of toolchains and of minutes.
    let program = out.path().join("program");
    // Without what debuggers need it is a tenth of the size.
    let mut strip = Command::new("strip");
    listed(strip.arg("-o").arg(&program).arg(weigh()));
    let dist = || {
        let mut command = Command::new(weigh().with_file_name("xtask"));
        command.arg("dist").arg("--out").arg(out.path());
        command.arg("--program").arg(&program);
        Run::of(command.output().expect("xtask is built"))
    };
    dist().exits_with(0);
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(out.path());
    assert_eq!(listed(&mut sums).matches(": OK").count(), 3);

    let find = |end: &str| {
        let files = fs::read_dir(out.path()).expect("it is there");
        let mut paths = files.map(|file| file.expect("a file").path());
        paths
            .find(|path| path.to_string_lossy().ends_with(end))
            .expect(end)
    };
    let archive = find(".tar.gz");
    let names = listed(Command::new("tar").arg("tzf").arg(&archive));
    for name in [
        "/weigh\n",
        "/LICENSE\n",
        "/LICENSES-OF-DEPENDENCIES.txt\n",
        "/completions/weigh.bash\n",
        "/completions/_weigh\n",
        "/completions/weigh.fish\n",
        "/man/weigh.1\n",
        "/man/weigh-lab.1\n",
        "/book/index.html\n",
        "/book/docs/labs-load.html\n",
    ] {
        assert!(names.contains(name), "{name}: {names}");
    }
    expect_found_by_binstall(&archive, &names);
    // Nothing in it tells who made it, or when.
    let first = fs::read(&archive).expect("it is there");
    dist().exits_with(0);
    assert!(
        first == fs::read(&archive).expect("it is there"),
        "the same files, other bytes"
    );

    let unpacked = TempDir::new().expect("a temporary folder");
    listed(
        Command::new("dpkg-deb")
            .arg("-x")
            .arg(find(".deb"))
            .arg(unpacked.path()),
    );
    let program = unpacked.path().join("usr/bin/weigh");
    let said = listed(Command::new(&program).arg("--version"));
    assert!(said.starts_with("weigh "), "{said}");
    let index = listed(Command::new(&program).args(["book", "--path"]));
    assert!(
        index.ends_with("usr/share/doc/weigh/book/index.html\n")
            && Path::new(index.trim()).is_file(),
        "{index}"
    );
    let licences = unpacked
        .path()
        .join("usr/share/doc/weigh/LICENSES-OF-DEPENDENCIES.txt");
    let licences = fs::read_to_string(licences).expect("it is packed");
    assert!(licences.contains("clap 4.") && licences.contains("Apache License"));
    // What only tests and builds use is in no program.
    assert!(!licences.contains("insta 1."));
    let page = unpacked.path().join("usr/share/man/man1/weigh-load.1");
    let page = fs::read_to_string(page).expect("it is packed");
    assert!(page.contains("Load one HTTP server"), "{page}");
}

#[test]
fn a_shell_completes_subcommands_and_flags() {
    let mut command = weigh_command();
    command.args(["completions", "bash"]);
    let script = Run::of(command.output().expect("weigh starts"))
        .exits_with(0)
        .answer();
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("weigh.bash");
    fs::write(&path, script).expect("it can be written");
    // Asked as bash asks, without a terminal.
    let complete = |words: &str, last: usize| {
        let text = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={last}; _weigh weigh \"${{COMP_WORDS[{last}]}}\" ''; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        listed(Command::new("bash").arg("-c").arg(text))
    };
    let found = complete("weigh his", 1);
    assert_eq!(found, "history\n");
    assert!(complete("weigh load --ga", 2).contains("--gate\n"));
}

/// The archive has the name, and the program in it the place, that `cargo binstall` looks for.
fn expect_found_by_binstall(archive: &Path, names: &str) {
    let (url, program_in_it) = binstall();
    let file_name = archive.file_name().expect("a file").to_string_lossy();
    assert!(
        url.ends_with(&format!("/{file_name}")),
        "{url}: {file_name}"
    );
    assert!(
        names.lines().any(|name| name == program_in_it),
        "{program_in_it}: {names}"
    );
}

/// Where `cargo binstall` looks for the archive of x86-64, and for the program in it.
fn binstall() -> (String, String) {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/weigh/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("it is there");
    let value = |key: &str| {
        let line = manifest.lines().find(|line| line.starts_with(key));
        let (_, value) = line.expect(key).split_once(" = ").expect("a value");
        let replaced = [
            ("name", "weigh"),
            ("bin", "weigh"),
            ("version", env!("CARGO_PKG_VERSION")),
            ("target", "x86_64-unknown-linux-musl"),
            ("binary-ext", ""),
        ];
        let value = value.trim_matches('"').to_owned();
        replaced.iter().fold(value, |value, (name, by)| {
            value.replace(&format!("{{ {name} }}"), by)
        })
    };
    (value("pkg-url"), value("bin-dir"))
}
