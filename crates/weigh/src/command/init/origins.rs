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
            let (server, rest) = url.split_at(from + length);
            (Err(server), rest)
        }
    };
    let path = match rest.starts_with('/') {
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

    /// The server with the most requests. If several are equal, the first.
    pub(super) fn most(&self) -> Option<String> {
        // `max_by_key` returns the last of equal items, so the list is reversed.
        let most = self.0.iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(origin, _)| origin.clone())
    }

    /// Records the omission of requests to all other servers.
    pub(super) fn leave_out_others(&self, requests: &mut Requests) {
        let Some(most) = self.most() else {
            return;
        };
        for (origin, count) in self.0.iter().filter(|(origin, _)| *origin != most) {
            let what = match count {
                1 => "1 request".to_owned(),
                many => format!("{many} requests"),
            };
            requests.leave_out_requests(
                usize::try_from(*count).unwrap_or(usize::MAX),
                &what,
                &format!("to {origin}, but most requests go to {most}"),
            );
        }
    }
}

/// Adds the requests to the most frequent server. If one of them uses a captured value of another, they become
/// a scenario.
pub(super) fn add_most(found: Vec<(String, Given)>, requests: &mut Requests) {
    let mut origins = Origins::default();
    for (origin, _) in &found {
        origins.count(origin);
    }
    let most = origins.most();
    let to_most = found
        .into_iter()
        .filter(|(origin, _)| Some(origin) == most.as_ref());
    let sent: Vec<Given> = to_most.map(|(_, given)| given).collect();
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
    origins.leave_out_others(requests);
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
        ] {
            let expected = Located {
                origin: origin.to_owned(),
                path: path.to_owned(),
                has_credentials,
            };
            assert_eq!(located(url), Ok(expected), "{url}");
        }
        assert!(located("ftp://a.example/").is_err());
        assert!(located("https://{{host}}/x").is_err());
    }
}
