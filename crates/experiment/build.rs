//! Puts the commit into `weigh --version`, so that a recording contains the version that created it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/refs/heads");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|text| text.trim().to_owned())
        .unwrap_or_default();
    println!("cargo::rustc-env=WEIGH_COMMIT={commit}");
    let version = std::env!("CARGO_PKG_VERSION");
    match commit.is_empty() {
        true => println!("cargo::rustc-env=WEIGH_VERSION={version}"),
        false => println!("cargo::rustc-env=WEIGH_VERSION={version}+{commit}"),
    }
}
