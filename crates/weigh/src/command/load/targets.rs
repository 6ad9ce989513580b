//! Lists of requests in vegeta's format, in both of its syntaxes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::address;
use experiment::exit::Failure;
use http::Uri;
use load::{Expectation, Request};
use serde::Deserialize;

/// One line of the JSON syntax.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTarget {
    method: String,
    url: String,
    /// The body, encoded in base64.
    #[serde(default)]
    body: String,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
    /// Number of times it is sent for each request of weight 1. Not part of vegeta's format.
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

/// A target as written in the file.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    /// Line number in the file, from 1.
    line: usize,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Body,
    weight: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Body {
    Bytes(Vec<u8>),
    File(String),
}

/// Reads a file of targets. The path `-` is stdin. A target without a host goes to `base`. `flags` are the
/// headers of the command line.
///
/// # Errors
///
/// Fails if the file or one of its bodies cannot be read, or if the targets have several hosts or ports. Also
/// fails if a URL and the flags both contain credentials.
pub(super) fn read(
    path: &Path,
    base: Option<&Uri>,
    flags: &[(String, String)],
) -> Result<(Uri, Vec<Request>), Failure> {
    let is_stdin = path == Path::new("-");
    let shown = if is_stdin {
        "stdin".to_owned()
    } else {
        path.display().to_string()
    };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map(|_| bytes)
            .map_err(|error| Failure::bad_input(format!("stdin cannot be read: {error}")))?
    } else {
        super::read(path)?
    };
    let refuse = |reason: String| Failure::bad_input(format!("`{shown}`: {reason}"));
    let text = String::from_utf8(bytes).map_err(|error| refuse(error.to_string()))?;
    let written = parse(&text).map_err(refuse)?;
    // Without a URL on the command line, the first target decides the host.
    let first = written.first().map(|target| &target.url);
    let base = match (base, first) {
        (Some(base), _) => base.clone(),
        (None, Some(first)) => address::url(first)
            .map_err(|why| refuse(format!("line {}: `{first}`: {why}", written[0].line)))?,
        (None, None) => {
            return Err(refuse(
                "expected at least one target, found none".to_owned(),
            ));
        }
    };
    let requests = written
        .into_iter()
        .map(|target| {
            let line = target.line;
            request(target, &base, flags).map_err(|why| refuse(format!("line {line}: {why}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if requests.is_empty() {
        return Err(refuse(
            "expected at least one target, found none".to_owned(),
        ));
    }
    Ok((base, requests))
}

fn request(target: Written, base: &Uri, flags: &[(String, String)]) -> Result<Request, String> {
    let mut headers = target.headers;
    let path = if target.url.starts_with('/') {
        address::with_authorization(base, &mut headers, flags)?;
        target.url
    } else {
        let url = address::url(&target.url).map_err(|why| format!("`{}`: {why}", target.url))?;
        if address::is_encrypted(base) != address::is_encrypted(&url) {
            return Err("expected either http or https for all targets, found both".to_owned());
        }
        let (expected, found) = (address::origin(base), address::origin(&url));
        if expected != found {
            return Err(format!(
                "expected a target on `{}:{}` like the first target, found `{}:{}`. One load goes \
                 to one host and port, so run one load for each",
                expected.0, expected.1, found.0, found.1
            ));
        }
        address::with_authorization(&url, &mut headers, flags)?;
        address::path(&url)
    };
    let body = match target.body {
        Body::Bytes(bytes) => bytes,
        Body::File(file) => std::fs::read(&file)
            .map_err(|error| format!("the body `{file}` cannot be read: {error}"))?,
    };
    Ok(Request {
        method: target.method,
        path,
        headers,
        body,
        expect: Expectation::default(),
        websocket: None,
        grpc: None,
        weight: target.weight,
    })
}

/// Reads both syntaxes. The first character decides.
fn parse(text: &str) -> Result<Vec<Written>, String> {
    let text = text.trim_start_matches('\u{feff}');
    match text.trim_start().chars().next() {
        Some('{') => parse_json(text),
        Some('[') => Err(format!(
            "line 1: expected a target, found a list. {ONE_A_LINE} with `jq -c '.[]'`"
        )),
        _ => parse_http(text),
    }
}

const ONE_A_LINE: &str = "Write the JSON of each target on a line of its own, for example";

fn parse_json(text: &str) -> Result<Vec<Written>, String> {
    numbered(text)
        // A file may end with an empty line.
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            let target: JsonTarget = serde_json::from_str(line).map_err(|error| {
                let hint = match error.is_eof() {
                    true => format!(". {ONE_A_LINE} with `jq -c .`"),
                    false => String::new(),
                };
                format!("line {number}: {error}{hint}")
            })?;
            let body = STANDARD
                .decode(&target.body)
                .map_err(|error| format!("line {number}: `body` is not base64: {error}"))?;
            let headers = target.header.into_iter().flat_map(|(name, values)| {
                values.into_iter().map(move |value| (name.clone(), value))
            });
            Ok(Written {
                line: number,
                method: target.method,
                url: target.url,
                headers: headers.collect(),
                body: Body::Bytes(body),
                weight: target.weight,
            })
        })
        .collect()
}

fn parse_http(text: &str) -> Result<Vec<Written>, String> {
    let mut targets: Vec<Written> = Vec::new();
    // True while lines belong to a target. An empty line ends it.
    let mut is_open = false;
    for (number, line) in numbered(text).filter(|(_, line)| !line.starts_with('#')) {
        if line.is_empty() {
            is_open = false;
            continue;
        }
        if let Some((method, url)) = request_line(line) {
            targets.push(Written {
                line: number,
                method: method.to_owned(),
                url: url.to_owned(),
                headers: Vec::new(),
                body: Body::Bytes(Vec::new()),
                weight: 1,
            });
            is_open = true;
            continue;
        }
        let target = targets.last_mut().filter(|_| is_open).ok_or_else(|| {
            let hint = match line.contains("://") && !line.contains(char::is_whitespace) {
                true => format!("Write `GET {line}`"),
                false => "An empty line ends a target".to_owned(),
            };
            format!("line {number}: expected `METHOD URL`, found `{line}`. {hint}")
        })?;
        if let Some(file) = line.strip_prefix('@') {
            target.body = Body::File(file.trim().to_owned());
        } else if let Some((name, value)) = line.split_once(':').filter(|it| is_name(it.0)) {
            let header = (name.trim().to_owned(), value.trim().to_owned());
            target.headers.push(header);
        } else {
            return Err(format!(
                "line {number}: expected `Name: value` or `@FILE`, found `{line}`"
            ));
        }
    }
    Ok(targets)
}

/// True if a text can be the name of a header (RFC 9110, 5.6.2). A method of small letters with a URL is not a name.
fn is_name(text: &str) -> bool {
    http::HeaderName::from_bytes(text.trim().as_bytes()).is_ok()
}

/// Reads `METHOD URL`: capitals, white space, and a URL or a path.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(char::is_whitespace)?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method.then_some((method, url.trim()))
}

/// The lines without surrounding spaces, numbered from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        match parse(text) {
            Ok(targets) => targets.iter().map(|target| format!("{target:?}")).collect(),
            Err(error) => vec![error],
        }
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let http = "# two targets\nPOST http://h:1/a?b=c\nX-Id: 1\nX-Id: 2\n\nGET http://h:1/d\n";
        let json = "{\"method\":\"POST\",\"url\":\"http://h:1/a?b=c\",\"header\":{\"X-Id\":[\"1\",\"2\"]}}\n\
                    \n{\"method\":\"GET\",\"url\":\"http://h:1/d\"}\n";
        let lines = |mut targets: Vec<Written>| {
            for target in &mut targets {
                target.line = 0;
            }
            targets
        };
        let (http, json) = (parse(http).unwrap(), parse(json).unwrap());
        assert_eq!(http.len(), 2);
        assert_eq!(lines(http), lines(json));
    }

    #[test]
    fn a_body_comes_from_a_file_or_from_base64() {
        let http = parse("PUT http://h/\n@some file.json\n").unwrap();
        assert_eq!(http[0].body, Body::File("some file.json".to_owned()));
        let json = parse(r#"{"method":"PUT","url":"http://h/","body":"aGVsbG8="}"#).unwrap();
        assert_eq!(json[0].body, Body::Bytes(b"hello".to_vec()));
    }

    #[test]
    fn a_request_line_begins_a_target_without_an_empty_line() {
        let targets = parse("GET http://h/a\nGET http://h/b\nX: y\n").unwrap();
        assert_eq!(targets[1].headers, [("X".to_owned(), "y".to_owned())]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, words) in [
            ("http://h/", "line 1: expected `METHOD URL`"),
            ("GET http://h/\n\nX: y\n", "line 3: expected `METHOD URL`"),
            (
                "GET http://h/\nwhat\n",
                "line 2: expected `Name: value` or `@FILE`",
            ),
            (r#"{"method":"GET"}"#, "line 1: missing field `url`"),
            (
                r#"{"method":"GET","url":"http://h/","body":"%"}"#,
                "line 1: `body` is not base64",
            ),
        ] {
            let shown = shown(text);
            assert!(shown[0].contains(words), "{text}: {shown:?}");
        }
    }

    /// Reads a file as users bring it: `METHOD PATH` of each request, or the refusal.
    fn of_file(text: &str) -> Result<Vec<Request>, String> {
        let written = parse(text)?;
        let base = address::url(&written[0].url)?;
        let of = |target: Written| {
            let line = target.line;
            request(target, &base, &[]).map_err(|why| format!("line {line}: {why}"))
        };
        written.into_iter().map(of).collect()
    }

    fn read_file(text: &str) -> Vec<String> {
        match of_file(text) {
            Ok(requests) => requests
                .iter()
                .map(|it| format!("{} {}", it.method, it.path))
                .collect(),
            Err(error) => vec![error],
        }
    }

    #[test]
    fn files_as_users_bring_them_are_read_or_refused_by_line() {
        for (text, expected) in [
            (
                "GET http://127.0.0.1:18080/a\r\n\r\nGET http://127.0.0.1:18080/b\r\n",
                ["GET /a", "GET /b"],
            ),
            (
                include_str!("targets_cases/lines.json"),
                ["GET /a", "POST /b"],
            ),
            (
                include_str!("targets_cases/spaces.txt"),
                ["GET /a", "POST /b"],
            ),
        ] {
            assert_eq!(read_file(text), expected, "{text}");
        }
        let body = of_file(include_str!("targets_cases/lines.json")).unwrap();
        assert_eq!(body[1].body, b"{\"n\":1}");
        let plain = parse(include_str!("targets_cases/plain.txt")).unwrap();
        assert_eq!(plain.len(), 3);
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(plain[0].headers, [own("Accept", "application/json")]);
        let headers = [
            own("Content-Type", "application/json"),
            own("Host", "other.example"),
        ];
        assert_eq!(plain[1].headers, headers);
        assert_eq!(plain[1].body, Body::File("body.json".to_owned()));
        for (text, words) in [
            (
                include_str!("targets_cases/array.json"),
                "line 1: expected a target, found a list",
            ),
            (
                include_str!("targets_cases/body.json"),
                "line 1: unknown field `n`",
            ),
            (
                include_str!("targets_cases/header-text.json"),
                "line 1: invalid type: string \"a/b\"",
            ),
            (
                include_str!("targets_cases/headers-key.json"),
                "line 1: unknown field `headers`",
            ),
            (
                include_str!("targets_cases/hosts.txt"),
                "line 3: expected a target on `127.0.0.1:18080`",
            ),
            (
                include_str!("targets_cases/no-method.json"),
                "line 1: missing field `method`",
            ),
            (
                include_str!("targets_cases/odd.txt"),
                "line 4: `http://127.0.0.1:18080/b # not a comment in vegeta`: character",
            ),
            (include_str!("targets_cases/pretty.json"), "with `jq -c .`"),
            (
                include_str!("targets_cases/urls.txt"),
                "Write `GET http://127.0.0.1:18080/a`",
            ),
            (
                "GET http://h/\nget http://h/b\n",
                "line 2: expected `Name: value`",
            ),
        ] {
            let found = read_file(text);
            assert!(found[0].contains(words), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_name_and_password_become_a_header_and_no_part_of_the_host() {
        let text = include_str!("targets_cases/odd.txt")
            .lines()
            .next()
            .unwrap();
        let requests = of_file(text).unwrap();
        assert_eq!(requests[0].path, "/a?x=1&y={z}");
        // base64 of `user:secret`.
        let basic = (
            "Authorization".to_owned(),
            "Basic dXNlcjpzZWNyZXQ=".to_owned(),
        );
        assert_eq!(requests[0].headers, [basic]);
    }

    #[test]
    fn another_host_is_refused() {
        let base = address::url("http://h:1/").unwrap();
        let targets = parse("GET http://H:1/a\n\nGET /b\n\nGET http://other:1/c\n").unwrap();
        let requests: Vec<Result<String, String>> = targets
            .into_iter()
            .map(|target| request(target, &base, &[]).map(|request| request.path))
            .collect();
        assert_eq!(requests[..2], [Ok("/a".to_owned()), Ok("/b".to_owned())]);
        let error = requests[2].as_ref().unwrap_err();
        assert!(error.contains("found `other:1`"), "{error}");
    }
}
