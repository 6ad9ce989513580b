//! The load generators, and how each is told the same thing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::nginx::Nginx;
use super::{Sample, Setting, is_on_path, process};

/// A load generator with a task.
pub(super) struct Generator {
    pub(super) name: &'static str,
    program: PathBuf,
    /// How it tells its version; empty when it does not.
    version: &'static [&'static str],
    arguments: Box<dyn Fn(Setting) -> Vec<String>>,
    /// What stands before the requests per second in its output.
    label: &'static str,
}

const SMALL: &str = "/small.json";
const LARGE: &str = "/large.json";

/// Every generator that this bench knows. weigh comes first: ratios are to it.
pub(super) fn all(weigh: &Path, nginx: &Nginx) -> Vec<Generator> {
    let small = nginx.url(SMALL);
    let mut list = vec![weigh_at(weigh, nginx, "weigh", SMALL, false)];
    list.push(weigh_at(weigh, nginx, "weigh, body checked", SMALL, true));
    let url = small.clone();
    list.push(generator(
        "wrk",
        &["--version"],
        "Requests/sec:",
        move |setting| {
            words(&format!(
                "-t1 -c{} -d{}s {url}",
                setting.connections, setting.seconds
            ))
        },
    ));
    let url = small.clone();
    list.push(generator(
        "ab",
        &["-V"],
        "Requests per second:",
        move |setting| {
            words(&format!(
                "-k -q -c {} -t {} -n 100000000 {url}",
                setting.connections, setting.seconds
            ))
        },
    ));
    let url = small.clone();
    list.push(generator("hey", &[], "Requests/sec:", move |setting| {
        words(&format!(
            "-cpus 1 -c {} -z {}s {url}",
            setting.connections, setting.seconds
        ))
    }));
    let url = small.clone();
    list.push(generator(
        "oha",
        &["--version"],
        "Requests/sec:",
        move |setting| {
            words(&format!(
                "--no-tui -c {} -z {}s {url}",
                setting.connections, setting.seconds
            ))
        },
    ));
    list.push(generator("k6", &["version"], "http_reqs", move |setting| {
        // k6 reads its script from stdin, which is given by `run`.
        words(&format!(
            "run --quiet --vus {} --duration {}s -e URL={small} -",
            setting.connections, setting.seconds
        ))
    }));
    list.push(weigh_at(weigh, nginx, "weigh, 8 KB", LARGE, false));
    list.push(weigh_at(weigh, nginx, "weigh, 8 KB, checked", LARGE, true));
    let url = nginx.url(LARGE);
    list.push(Generator {
        name: "wrk, 8 KB",
        ..generator("wrk", &["--version"], "Requests/sec:", move |setting| {
            words(&format!(
                "-t1 -c{} -d{}s {url}",
                setting.connections, setting.seconds
            ))
        })
    });
    list
}

/// A script that does what the others do, and checks the status as weigh does.
const K6_SCRIPT: &str = "import http from 'k6/http';\nimport { check } from 'k6';\n\
    export default function () { check(http.get(__ENV.URL), { ok: (r) => r.status === 200 }); }\n";

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn generator(
    name: &'static str,
    version: &'static [&'static str],
    label: &'static str,
    arguments: impl Fn(Setting) -> Vec<String> + 'static,
) -> Generator {
    Generator {
        name,
        program: name.into(),
        version,
        arguments: Box::new(arguments),
        label,
    }
}

fn weigh_at(
    weigh: &Path,
    nginx: &Nginx,
    name: &'static str,
    path: &'static str,
    is_checked: bool,
) -> Generator {
    let url = nginx.url(path);
    let right = nginx.right_body(path).display().to_string();
    let arguments = move |setting: Setting| {
        let mut words = words(&format!(
            "load {url} -c {} -z {}s --format json",
            setting.connections, setting.seconds
        ));
        if is_checked {
            words.extend(["--expect-body".to_owned(), right.clone()]);
        }
        words
    };
    Generator {
        name,
        program: weigh.to_path_buf(),
        version: &["--version"],
        arguments: Box::new(arguments),
        label: "\"requests_per_s_mean\":",
    }
}

impl Generator {
    pub(super) fn is_installed(&self) -> bool {
        is_on_path(&self.program)
    }

    /// The first words of what it says about itself.
    pub(super) fn version(&self) -> String {
        if self.version.is_empty() {
            return "tells none".to_owned();
        }
        let Ok(output) = Command::new(&self.program).args(self.version).output() else {
            return "tells none".to_owned();
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next().unwrap_or_default();
        let words: Vec<&str> = line
            .split(&['[', '<', '('][..])
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        words.join(" ")
    }

    /// One run, pinned to the core beside nginx's.
    pub(super) fn run(&self, setting: Setting, nginx: &Nginx) -> anyhow::Result<Sample> {
        let folder = tempfile::tempdir()?;
        let (script, output) = (folder.path().join("script"), folder.path().join("output"));
        std::fs::write(&script, K6_SCRIPT)?;
        let before = nginx.requests()?;
        let mut child = Command::new("taskset")
            .args(["--cpu-list", "1"])
            .arg(&self.program)
            .args((self.arguments)(setting))
            .stdin(File::open(&script)?)
            .stdout(File::create(&output)?)
            .stderr(Stdio::null())
            .spawn()
            .context("`taskset` starts it")?;
        let limit = Duration::from_secs(u64::from(setting.seconds) + 30);
        let account = process::account(&mut child, limit)?;
        // The question itself is one more.
        let requests = nginx.requests()? - before - 1;
        let text = std::fs::read_to_string(&output)?;
        let requests_per_s = rate_after(&text, self.label)
            .with_context(|| format!("no `{}` in its output:\n{text}", self.label))?;
        if requests == 0 {
            bail!("it sent nothing:\n{text}");
        }
        Ok(Sample {
            requests_per_s,
            cpu_us_per_request: account.cpu_us / requests as f64,
            peak_kib: account.peak_kib,
        })
    }
}

/// The number after `label`; k6 writes the count first and then `1234.5/s`.
fn rate_after(text: &str, label: &str) -> Option<f64> {
    let rest = text.split(label).nth(1)?.lines().next()?;
    let words = || rest.split_whitespace();
    words()
        .find_map(|word| word.strip_suffix("/s"))
        .or_else(|| words().next())
        .and_then(|word| word.trim_end_matches(',').parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_in_every_dialect() {
        let rate = |text, label| rate_after(text, label).unwrap();
        assert_eq!(rate("Requests/sec:  54321.10\n", "Requests/sec:"), 54321.1);
        let ab = "Requests per second:    100.5 [#/sec] (mean)";
        assert_eq!(rate(ab, "Requests per second:"), 100.5);
        let k6 = "http_reqs......................: 5000   999.9/s\n";
        assert_eq!(rate(k6, "http_reqs"), 999.9);
        let weigh = "  \"requests_per_s_mean\": 28050.25,\n";
        assert_eq!(rate(weigh, "\"requests_per_s_mean\":"), 28050.25);
    }
}
