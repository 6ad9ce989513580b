//! Systems that already run: their URL, and the source of their processor time.

use std::path::PathBuf;

use yaml_with_places::{At, Finding, Place};

use crate::container;
use crate::experiment::{Attach, Elsewhere};
use crate::formats::Verbatim;
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::template::Template;
use crate::url_keys::{CLEAR, ENCRYPTED, is_literal};
use crate::wire::{AttachFile, SystemFile};

/// Returns the running system of a variant. `None` if `url` or `attach` is wrong, which is reported.
pub(crate) fn of(
    system: &str,
    file: &SystemFile,
    url_at: &At<Verbatim<Template>>,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Elsewhere> {
    let filling = Filling { system, scope };
    let attach = match &file.attach {
        Some(attach) => Some(filling.attach(attach.place, &attach.value, reading)?),
        None => None,
    };
    let url = filling.text(url_at, reading)?;
    let parsed = match is_literal(&url_at.value.0) {
        true => parse(&url),
        false => Err("it begins with a setting".to_owned()),
    };
    match parsed {
        Ok(parsed) => Some(Elsewhere { attach, ..parsed }),
        Err(wrong) => {
            reading.findings.add(
                Finding::new(
                    url_at.place,
                    format!("`{url}` is not the URL of a system: {wrong}"),
                )
                .help("write a URL such as http://127.0.0.1:8080 or https://api.example.com"),
            );
            None
        }
    }
}

/// The message and the help for a text that needs an address.
const ADDRESS: NoAddress = NoAddress {
    mistake: "this text needs an address that `weigh` assigns",
    help: "a system that already runs has its own address. Write that address, or use a setting",
};

struct Filling<'a> {
    system: &'a str,
    scope: &'a Scope<'a>,
}

impl Filling<'_> {
    /// Returns a text without an address. `None` if it contains an address, or if it is empty because of a
    /// reported mistake.
    fn text(&self, written: &At<Verbatim<Template>>, reading: &mut Reading<'_>) -> Option<String> {
        let scope = self.scope;
        let text = scope.text_without_addresses(self.system, written, &ADDRESS, reading)?;
        (!text.is_empty()).then_some(text)
    }

    fn attach(&self, place: Place, file: &AttachFile, reading: &mut Reading<'_>) -> Option<Attach> {
        let given = match (
            &file.pid,
            &file.cgroup,
            &file.container,
            &file.metrics,
            &file.pods,
        ) {
            (Some(pid), None, None, None, None) => {
                let text = self.text(pid, reading)?;
                let number = text.trim().parse().ok().filter(|pid: &i32| *pid > 0);
                let Some(number) = number else {
                    reading.findings.add(
                        Finding::new(pid.place, format!("`{text}` is not a process id"))
                            .help("write a whole number above 0, as shown by `ps`"),
                    );
                    return None;
                };
                Attach::Pid(number)
            }
            (None, Some(cgroup), None, None, None) => {
                let text = self.text(cgroup, reading)?;
                if !text.starts_with('/') {
                    reading.findings.add(
                        Finding::new(cgroup.place, format!("`{text}` is not the folder of a control group"))
                            .help("write the absolute path, such as /sys/fs/cgroup/system.slice/nginx.service"),
                    );
                    return None;
                }
                Attach::Cgroup(PathBuf::from(text))
            }
            (None, None, Some(name), None, None) => {
                let text = self.text(name, reading)?;
                if !container::is_container_name(&text) {
                    reading.findings.add(
                        Finding::new(
                            name.place,
                            format!("`{text}` is not the name of a container"),
                        )
                        .help("write its name or id, as shown by `docker ps`"),
                    );
                    return None;
                }
                Attach::Container(text)
            }
            (None, None, None, Some(metrics), None) => {
                let text = self.text(metrics, reading)?;
                if !text.starts_with(CLEAR) && !text.starts_with(ENCRYPTED) {
                    reading.findings.add(
                        Finding::new(metrics.place, format!("`{text}` is not a URL"))
                            .help("write a URL such as http://127.0.0.1:9090/metrics"),
                    );
                    return None;
                }
                Attach::Metrics(text)
            }
            (None, None, None, None, Some(pods)) => {
                // The cluster checks its notation.
                Attach::Pods(self.text(pods, reading)?.trim().to_owned())
            }
            _ => {
                reading.findings.add(
                    Finding::new(
                        place,
                        "`attach` needs exactly one of `pid`, `cgroup`, `container`, `metrics` and `pods`",
                    )
                    .help("write one of them, such as `attach: {pid: 4711}`"),
                );
                return None;
            }
        };
        Some(given)
    }
}

/// Returns host and port of a URL.
fn parse(url: &str) -> Result<Elsewhere, String> {
    let (rest, usual) = match (url.strip_prefix(ENCRYPTED), url.strip_prefix(CLEAR)) {
        (Some(rest), _) => (rest, 443),
        (None, Some(rest)) => (rest, 80),
        (None, None) => return Err("it must begin with `http://` or `https://`".to_owned()),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(at) = authority.find(['/', '?', '#']) {
        let path = &authority[at..];
        return Err(format!("write `{path}` in the `path` of requests"));
    }
    if authority.contains('@') {
        return Err("write names and passwords in `headers`".to_owned());
    }
    // The colons of an IPv6 address are in brackets.
    let end_of_host = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[end_of_host..].find(':') {
        None => (authority, usual),
        Some(colon) => {
            let (host, port) = authority.split_at(end_of_host + colon);
            let number = port[1..].parse().ok().filter(|port: &u16| *port > 0);
            let number = number.ok_or_else(|| format!("`{}` is not a port", &port[1..]))?;
            (host, number)
        }
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter);
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(format!("`{host}` is not a host"));
    }
    Ok(Elsewhere {
        host: host.to_ascii_lowercase(),
        port,
        authority: authority.to_owned(),
        attach: None,
        instances: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_and_a_port() {
        for (url, host, port) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://localhost/", "localhost", 80),
            ("https://API.example.com", "api.example.com", 443),
            ("https://[::1]:8443", "[::1]", 8443),
            ("http://[::1]", "[::1]", 80),
        ] {
            let parsed = parse(url).unwrap();
            assert_eq!((parsed.host.as_str(), parsed.port), (host, port), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_system_is_refused_with_the_reason() {
        for (url, reason) in [
            ("ftp://host", "begin with `http://` or `https://`"),
            ("http://", "`` is not a host"),
            ("http://host:0", "`0` is not a port"),
            ("http://host:70000", "`70000` is not a port"),
            ("http://host/graphql", "write `/graphql` in the `path`"),
            ("http://host?a=b", "write `?a=b` in the `path`"),
            ("http://me:secret@host", "names and passwords in `headers`"),
            ("http://ho st", "`ho st` is not a host"),
            ("http://host:1:2", "`1:2` is not a port"),
        ] {
            let wrong = parse(url).unwrap_err();
            assert!(wrong.contains(reason), "{url}: {wrong}");
        }
    }
}
