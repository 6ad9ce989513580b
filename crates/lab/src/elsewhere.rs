//! Systems that run already: their URL, and where their processor time can be read.

use std::path::PathBuf;

use yaml_with_places::{At, Finding, Place};

use crate::container;
use crate::experiment::{Attach, Elsewhere};
use crate::formats::Verbatim;
use crate::reading::Reading;
use crate::scope::Scope;
use crate::template::Template;
use crate::url_keys::{CLEAR, ENCRYPTED, is_literal};
use crate::wire::{AttachFile, SystemFile};

/// What a variant makes of `url` and `attach`; `None` where that is wrong, which is reported.
pub(crate) fn of(
    (system, file, url_at): (&str, &SystemFile, &At<Verbatim<Template>>),
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
        false => Err("its beginning is a setting".to_owned()),
    };
    match parsed {
        Ok(parsed) => Some(Elsewhere { attach, ..parsed }),
        Err(wrong) => {
            reading.findings.add(
                Finding::new(
                    url_at.place,
                    format!("`{url}` is no URL of a system: {wrong}"),
                )
                .help("write it as http://127.0.0.1:8080 or https://api.example.com"),
            );
            None
        }
    }
}

/// What is said of a text that needs an address.
const ADDRESS: (&str, &str) = (
    "this needs an address that `weigh` gives out",
    "a system that runs already has its own address; write it down, or take a setting",
);

struct Filling<'a> {
    system: &'a str,
    scope: &'a Scope<'a>,
}

impl Filling<'_> {
    /// A text that holds no address; `None` where it does, or where it is empty, as what was wrong
    /// before is.
    fn text(&self, written: &At<Verbatim<Template>>, reading: &mut Reading<'_>) -> Option<String> {
        let scope = self.scope;
        let text = scope.text_without_addresses(self.system, written, ADDRESS, reading)?;
        (!text.is_empty()).then_some(text)
    }

    fn attach(&self, place: Place, file: &AttachFile, reading: &mut Reading<'_>) -> Option<Attach> {
        let given = match (&file.pid, &file.cgroup, &file.container, &file.metrics) {
            (Some(pid), None, None, None) => {
                let text = self.text(pid, reading)?;
                let number = text.trim().parse().ok().filter(|pid: &i32| *pid > 0);
                let Some(number) = number else {
                    reading.findings.add(
                        Finding::new(pid.place, format!("`{text}` is no number of a process"))
                            .help("write it as `ps` shows it: a whole number above 0"),
                    );
                    return None;
                };
                Attach::Pid(number)
            }
            (None, Some(cgroup), None, None) => {
                let text = self.text(cgroup, reading)?;
                if !text.starts_with('/') {
                    reading.findings.add(
                        Finding::new(cgroup.place, format!("`{text}` is no folder of a control group"))
                            .help("write the whole path, such as /sys/fs/cgroup/system.slice/nginx.service"),
                    );
                    return None;
                }
                Attach::Cgroup(PathBuf::from(text))
            }
            (None, None, Some(name), None) => {
                let text = self.text(name, reading)?;
                if !container::is_container_name(&text) {
                    reading.findings.add(
                        Finding::new(name.place, format!("`{text}` is no name of a container"))
                            .help("write its name or id, as `docker ps` shows it"),
                    );
                    return None;
                }
                Attach::Container(text)
            }
            (None, None, None, Some(metrics)) => {
                let text = self.text(metrics, reading)?;
                if !text.starts_with(CLEAR) && !text.starts_with(ENCRYPTED) {
                    reading.findings.add(
                        Finding::new(metrics.place, format!("`{text}` is no URL"))
                            .help("write it as http://127.0.0.1:9090/metrics"),
                    );
                    return None;
                }
                Attach::Metrics(text)
            }
            _ => {
                reading.findings.add(
                    Finding::new(
                        place,
                        "`attach` wants exactly one of `pid`, `cgroup`, `container` and `metrics`",
                    )
                    .help("one of them says all: `attach: {pid: 4711}`"),
                );
                return None;
            }
        };
        Some(given)
    }
}

/// Host and port of a URL.
fn parse(url: &str) -> Result<Elsewhere, String> {
    let (rest, usual) = match (url.strip_prefix(ENCRYPTED), url.strip_prefix(CLEAR)) {
        (Some(rest), _) => (rest, 443),
        (None, Some(rest)) => (rest, 80),
        (None, None) => return Err("it begins with neither `http://` nor `https://`".to_owned()),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(at) = authority.find(['/', '?', '#']) {
        let path = &authority[at..];
        return Err(format!("`{path}` belongs into the `path` of requests"));
    }
    if authority.contains('@') {
        return Err("names and passwords belong into `headers`".to_owned());
    }
    // The colons of an IPv6 address are in brackets.
    let end_of_host = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[end_of_host..].find(':') {
        None => (authority, usual),
        Some(colon) => {
            let (host, port) = authority.split_at(end_of_host + colon);
            let number = port[1..].parse().ok().filter(|port: &u16| *port > 0);
            let number = number.ok_or_else(|| format!("`{}` is no port", &port[1..]))?;
            (host, number)
        }
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter);
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(format!("`{host}` is no host"));
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
            ("ftp://host", "neither `http://` nor `https://`"),
            ("http://", "`` is no host"),
            ("http://host:0", "`0` is no port"),
            ("http://host:70000", "`70000` is no port"),
            ("http://host/graphql", "`/graphql` belongs into the `path`"),
            ("http://host?a=b", "`?a=b` belongs into the `path`"),
            ("http://me:secret@host", "belong into `headers`"),
            ("http://ho st", "`ho st` is no host"),
            ("http://host:1:2", "`1:2` is no port"),
        ] {
            let wrong = parse(url).unwrap_err();
            assert!(wrong.contains(reason), "{url}: {wrong}");
        }
    }
}
