//! The servers of the requests in a file. A lab loads one of them.

use experiment::address;
use http::Uri;

use super::requests::{Given, Requests};
use super::values::url_text;

/// The server of a URL, always with a port.
pub(super) fn origin(url: &Uri) -> String {
    let (host, port) = address::origin(url);
    format!("{host}:{port}")
}

/// A URL of a file, as a server and a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) origin: String,
    /// Path and query, with encoded characters.
    pub(super) path: String,
    /// True if the URL has a name and a password before its host.
    pub(super) has_credentials: bool,
}

/// Reads a URL. Characters that a path cannot contain are encoded.
///
/// # Errors
/// A sentence, if it is no URL of HTTP.
pub(super) fn located(url: &str) -> Result<Located, String> {
    if url.chars().any(char::is_control) {
        return Err("its URL contains a control character".to_owned());
    }
    // The server may be a placeholder of the other tool without a known value.
    let (server, rest) = match url
        .strip_prefix("{{")
        .and_then(|rest| rest.split_once("}}"))
    {
        Some((name, rest)) if rest.is_empty() || rest.starts_with(['/', '?', '#']) => {
            (Ok(format!("the server of `{{{{{name}}}}}`")), rest)
        }
        _ => {
            let from = url.find("://").map_or(0, |at| at + 3);
            let length = url[from..]
                .find(['/', '?', '#'])
                .unwrap_or(url.len() - from);
            // A value of an answer after the server, which has the slash of the path.
            let value = url[from..from + length].find("{{").filter(|at| {
                let (host, value) = url[from..from + length].split_at(*at);
                !host.is_empty()
                    && host.ends_with(|it: char| it.is_ascii_alphanumeric() || it == ']')
                    && value.find("}}") == Some(value.len() - 2)
                    && !url[from + length..].starts_with('/')
            });
            let (server, rest) = url.split_at(from + value.unwrap_or(length));
            (Err(server), rest)
        }
    };
    let path = match rest.starts_with('/') || rest.starts_with("{{") {
        true => url_text(rest),
        false => format!("/{}", url_text(rest)),
    };
    let (origin, has_credentials) = match server {
        Ok(named) => (named, false),
        Err(text) if text.contains("{{") => {
            return Err("its server is known only at run time".to_owned());
        }
        Err(text) => {
            let with_protocol = match text.contains("://") {
                true => text.to_owned(),
                false => format!("http://{text}"),
            };
            let url = address::url(&with_protocol).map_err(|why| format!("its URL: {why}"))?;
            (origin(&url), address::authorization(&url).is_some())
        }
    };
    Ok(Located {
        origin,
        path,
        has_credentials,
    })
}

/// Number of requests to each server.
#[derive(Debug, Default)]
pub(super) struct Origins(Vec<(String, u32)>);

impl Origins {
    /// Counts a request to that server.
    pub(super) fn count(&mut self, origin: &str) {
        match self.0.iter_mut().find(|(known, _)| known == origin) {
            Some((_, count)) => *count += 1,
            None => self.0.push((origin.to_owned(), 1)),
        }
    }

    /// The server of the lab: the choice of the user, or the server with the most requests. If several are
    /// equal, the first. `None` without a request.
    ///
    /// # Errors
    /// No request goes to the server that the user chose.
    pub(super) fn chosen(&self, host: Option<&str>) -> Result<Option<String>, String> {
        let Some(host) = host else {
            // `max_by_key` returns the last of equal items, so the list is reversed.
            let most = self.0.iter().rev().max_by_key(|(_, count)| *count);
            return Ok(most.map(|(origin, _)| origin.clone()));
        };
        let found = self.0.iter().find(|(origin, _)| is_named(origin, host));
        match found {
            Some((origin, _)) => Ok(Some(origin.clone())),
            None => Err(unknown_host(
                host,
                self.0.iter().map(|(origin, _)| origin.as_str()),
            )),
        }
    }

    /// Records the omission of requests to all servers except one.
    pub(super) fn leave_out_others(&self, taken: &str, requests: &mut Requests) {
        let others = || self.0.iter().filter(|(origin, _)| origin != taken);
        for (origin, count) in others() {
            let what = match count {
                1 => "1 request".to_owned(),
                many => format!("{many} requests"),
            };
            requests.leave_out_requests(
                usize::try_from(*count).unwrap_or(usize::MAX),
                &what,
                &format!("to {origin}, but the lab takes {taken}"),
            );
        }
        let names: Vec<String> = others()
            .map(|(origin, count)| format!("{origin} ({count})"))
            .collect();
        if !names.is_empty() {
            requests.remark(&format!(
                "Servers that the lab does not take: {}. Choose a server with `--host`.",
                shortened(&names)
            ));
        }
    }
}

/// True if a user means this server with a host, or with a host and a port.
pub(super) fn is_named(origin: &str, host: &str) -> bool {
    let bare = origin.rsplit_once(':').map_or(origin, |(bare, _)| bare);
    let is_placeholder = origin.contains(&format!("`{host}`"));
    origin.eq_ignore_ascii_case(host) || bare.eq_ignore_ascii_case(host) || is_placeholder
}

/// The sentence about a server of the user that the file does not have.
pub(super) fn unknown_host<'a>(host: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<String> = known.map(str::to_owned).collect();
    if known.is_empty() {
        return format!(
            "expected a server of the file in `--host`, found `{host}`. The file names no server"
        );
    }
    format!(
        "expected a server of the file in `--host`, found `{host}`. Its servers are {}",
        shortened(&known)
    )
}

/// The first names of a list.
pub(super) fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let first = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Adds the requests to the server of the user, or to the most frequent server. If one of them uses a captured
/// value of another, they become a scenario.
///
/// # Errors
/// No request goes to the server of the user.
pub(super) fn add_chosen(
    found: Vec<(String, Given)>,
    host: Option<&str>,
    requests: &mut Requests,
) -> Result<(), String> {
    let mut origins = Origins::default();
    for (origin, _) in &found {
        origins.count(origin);
    }
    let Some(taken) = origins.chosen(host)? else {
        return Ok(());
    };
    let to_taken = found.into_iter().filter(|(origin, _)| *origin == taken);
    let sent: Vec<Given> = to_taken.map(|(_, given)| given).collect();
    let captured = |place: &String| {
        let mut captures = sent.iter().flat_map(|given| &given.captures);
        captures.any(|captured| captured.name == *place)
    };
    let is_scenario = sent.iter().flat_map(|given| &given.places).any(captured);
    if is_scenario {
        requests.follow_each_other();
    }
    for mut given in sent {
        if !is_scenario {
            given.captures.clear();
        }
        requests.add(given);
    }
    origins.leave_out_others(&taken, requests);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_server_and_a_path() {
        for (url, origin, path, has_credentials) in [
            ("http://a.example", "a.example:80", "/", false),
            (
                "https://ann:pw@a.example/x?y=a b#z",
                "a.example:443",
                "/x?y=a%20b",
                true,
            ),
            ("localhost:8080/{{id}}", "localhost:8080", "/{{id}}", false),
            (
                "{{base}}/x?y=1",
                "the server of `{{base}}`",
                "/x?y=1",
                false,
            ),
            ("{{base}}", "the server of `{{base}}`", "/", false),
            ("http://a.example?b=1", "a.example:80", "/?b=1", false),
            ("http://a.example{{to}}", "a.example:80", "{{to}}", false),
            ("http://[::1]:80{{to}}?b=1", "[::1]:80", "{{to}}?b=1", false),
        ] {
            let expected = Located {
                origin: origin.to_owned(),
                path: path.to_owned(),
                has_credentials,
            };
            assert_eq!(located(url), Ok(expected), "{url}");
        }
        assert!(located("ftp://a.example/").is_err());
        for url in [
            "https://{{host}}/x",
            "http://a.{{tld}}",
            "http://a:{{port}}",
            "http://a{{n}}/x",
        ] {
            assert!(located(url).is_err(), "{url}");
        }
    }
    #[test]
    fn a_user_can_choose_another_server_than_the_most_frequent() {
        let mut origins = Origins::default();
        for origin in [
            "a.example:80",
            "b.example:443",
            "b.example:443",
            "the server of `{{base}}`",
        ] {
            origins.count(origin);
        }
        let chosen = |host: Option<&str>| origins.chosen(host);
        assert_eq!(chosen(None), Ok(Some("b.example:443".to_owned())));
        assert_eq!(
            chosen(Some("A.example")),
            Ok(Some("a.example:80".to_owned()))
        );
        assert_eq!(chosen(Some("b.example:443")), chosen(None));
        assert_eq!(
            chosen(Some("{{base}}")),
            Ok(Some("the server of `{{base}}`".to_owned()))
        );
        assert_eq!(
            chosen(Some("c.example")),
            Err(
                "expected a server of the file in `--host`, found `c.example`. Its servers are \
                 a.example:80, b.example:443, the server of `{{base}}`"
                    .to_owned()
            )
        );
        let mut requests = Requests::of("x");
        origins.leave_out_others("b.example:443", &mut requests);
        assert_eq!(
            requests.summary(),
            "Took no request of x, left out all 2 requests:\n  \
             1 request: to a.example:80, but the lab takes b.example:443\n  \
             1 request: to the server of `{{base}}`, but the lab takes b.example:443\n\
             Servers that the lab does not take: a.example:80 (1), the server of `{{base}}` (1). Choose a server with `--host`.\n"
        );
        let names: Vec<String> = (0..7).map(|it| it.to_string()).collect();
        assert_eq!(shortened(&names), "0, 1, 2, 3, 4 and 2 more");
    }
}
