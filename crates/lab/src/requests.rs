//! What is sent: files, globs and requests written in the lab, with the lab's defaults filled in.

use std::path::{Path, PathBuf};

use crate::experiment::{Expect, LabRequest};
use crate::fields::{At, quote};
use crate::formats::{HeaderName, HeaderValue, Method, Title, UrlPath, Verbatim, Written};
use crate::include::{Reading, tidy};
use crate::mistake::{Finding, Place};
use crate::wire::{
    ExpectFile, GraphqlFile, Headers, LoadFile, RequestEntry, RequestFile, SameAsFile, default,
};

/// A request with the place to point at.
type Found = (LabRequest, Place);

/// Every request of a lab, in the order they are sent.
pub(crate) fn check(load: &LoadFile, at: Place, reading: &mut Reading<'_>) -> Vec<LabRequest> {
    check_headers(&load.headers, reading);
    let mut found: Vec<Found> = Vec::new();
    for entry in &load.requests.0 {
        match &entry.value {
            RequestEntry::Files(pattern) => files(pattern, entry.place, load, reading, &mut found),
            RequestEntry::Inline(request) => {
                found.extend(inline(request, entry.place, load, reading));
            }
        }
    }
    if load.requests.0.is_empty() {
        found.push((finish(&RequestFile::default(), None, load), at));
    }
    for (index, (request, place)) in found.iter().enumerate() {
        let first = found[..index]
            .iter()
            .find(|(it, _)| it.name == request.name);
        if let Some((_, first)) = first {
            reading.findings.add(
                Finding::new(*place, format!("two requests are named `{}`", request.name))
                    .related(*first, "the first is given here")
                    .help(
                        "give each a `name` of its own; to send one more often, give it a `weight`",
                    ),
            );
        }
    }
    found.into_iter().map(|(request, _)| request).collect()
}

/// The requests of the files that a pattern matches, by name.
fn files(
    pattern: &str,
    place: Place,
    load: &LoadFile,
    reading: &mut Reading<'_>,
    found: &mut Vec<Found>,
) {
    let before = reading.findings.count();
    let paths = if pattern.contains('*') {
        glob(pattern, place, reading)
    } else {
        vec![reading.resolve(pattern, place)]
    };
    if paths.is_empty() && reading.findings.count() == before {
        let path = reading.resolve(pattern, place);
        reading.findings.add(
            Finding::new(place, format!("no file matches `{}`", path.display()))
                .help("paths are relative to the file they are written in"),
        );
    }
    for path in paths {
        if let Some(body) = file_body(&path, place, reading) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = At {
                place,
                value: Verbatim(Title(name.into_owned())),
            };
            let request = RequestFile {
                name: Some(name),
                ..RequestFile::default()
            };
            found.push((finish(&request, Some(body), load), place));
        }
    }
}

/// The files whose names match a pattern, in the order of their names.
fn glob(pattern: &str, place: Place, reading: &mut Reading<'_>) -> Vec<PathBuf> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    if folder.contains('*') {
        reading.findings.add(
            Finding::new(
                place,
                format!("`{pattern}` has a `*` in the name of a folder"),
            )
            .help("the `*` stands in the name of the file only: `queries/*.json`"),
        );
        return Vec::new();
    }
    let folder = reading.resolve(folder, place);
    let listed = match reading.files.list(&folder) {
        Ok(listed) => listed,
        Err(why) => {
            let message = format!("cannot look into `{}`: {why}", folder.display());
            reading.findings.add(
                Finding::new(place, message)
                    .help("paths are relative to the file they are written in"),
            );
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = listed
        .iter()
        .filter(|path| {
            path.file_name()
                .is_some_and(|it| matches(name, &it.to_string_lossy()))
        })
        .map(|path| tidy(path))
        .collect();
    paths.sort();
    paths
}

/// Whether a file name matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let (first, last) = (pieces.next().unwrap_or_default(), pieces.next_back());
    let Some(last) = last else {
        return pattern == name;
    };
    // A leading dot marks files that are not meant to be seen.
    let middle = name
        .strip_prefix(first)
        .filter(|_| !name.starts_with('.') || first.starts_with('.'))
        .and_then(|rest| rest.strip_suffix(last));
    let Some(mut rest) = middle else {
        return false;
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

/// A body, and the media type it has unless a header says otherwise.
struct Body {
    bytes: Vec<u8>,
    is_json: bool,
}

/// The body that a file of requests stands for.
fn file_body(path: &Path, place: Place, reading: &mut Reading<'_>) -> Option<Body> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    if !matches!(extension.as_ref(), "json" | "graphql") {
        reading.findings.add(
            Finding::new(place, format!("`{}` is not a request", path.display())).help(
                "requests are `.json` (a body) or `.graphql` (a query); any other body is given as \
                 `{body: file, headers: {Content-Type: …}}`",
            ),
        );
        return None;
    }
    let text = match reading.text(path) {
        Ok(text) => text,
        Err(why) => {
            reading.findings.add(
                Finding::new(place, why).help("paths are relative to the file they are written in"),
            );
            return None;
        }
    };
    let bytes = if extension == "graphql" {
        graphql_body(&text, None)
    } else {
        check_json(path, &text, place, reading)?;
        text.into_bytes()
    };
    Some(Body {
        bytes,
        is_json: true,
    })
}

/// Points into the file where it stops being JSON.
fn check_json(path: &Path, text: &str, asked_for: Place, reading: &mut Reading<'_>) -> Option<()> {
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else {
        return Some(());
    };
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let column = error.column().saturating_sub(1);
    let message = error.to_string();
    let why = message.split(" at line ").next().unwrap_or_default();
    let source = reading.source(path, text.to_owned());
    let start = (line_start + column).min(text.len().saturating_sub(1));
    let place = Place {
        start,
        end: start + 1,
        ..source
    };
    reading.findings.add(
        Finding::new(place, format!("this is not JSON: {why}"))
            .related(asked_for, "the file is asked for here"),
    );
    None
}

fn graphql_body(query: &str, variables: Option<&str>) -> Vec<u8> {
    let query = quote(query);
    match variables {
        Some(variables) => format!(r#"{{"query":{query},"variables":{variables}}}"#),
        None => format!(r#"{{"query":{query}}}"#),
    }
    .into_bytes()
}

/// A request written in the lab.
fn inline(
    request: &RequestFile,
    at: Place,
    load: &LoadFile,
    reading: &mut Reading<'_>,
) -> Option<Found> {
    check_headers(&request.headers, reading);
    let bodies = [
        request.body.as_ref().map(|it| ("body", it.place)),
        request.json.as_ref().map(|it| ("json", it.place)),
        request.query.as_ref().map(|it| ("query", it.place)),
    ];
    let mut given = bodies.into_iter().flatten();
    let first = given.next();
    if let (Some((first, first_place)), Some((second, place))) = (first, given.next()) {
        reading.findings.add(
            Finding::new(
                place,
                format!("`{first}` and `{second}` exclude each other"),
            )
            .related(first_place, format!("`{first}` is given here"))
            .help("a request has one body"),
        );
        return None;
    }
    if let (Some(variables), None) = (&request.variables, &request.query) {
        reading.findings.add(
            Finding::new(variables.place, "`variables` without `query`")
                .help("for a body of your own give `json`"),
        );
    }
    let body = if let Some(file) = &request.body {
        let path = reading.resolve(&file.value, file.place);
        Some(Body {
            is_json: path.extension().is_some_and(|it| it == "json"),
            bytes: bytes(&path, file.place, reading)?,
        })
    } else if let Some(json) = &request.json {
        Some(Body {
            bytes: json.value.0.clone().into_bytes(),
            is_json: true,
        })
    } else {
        request.query.as_ref().map(|query| Body {
            bytes: graphql_body(
                &query.value,
                request.variables.as_ref().map(|it| it.value.0.as_str()),
            ),
            is_json: true,
        })
    };
    let place = request.name.as_ref().map_or(at, |name| name.place);
    Some((finish(request, body, load), place))
}

fn bytes(path: &Path, place: Place, reading: &mut Reading<'_>) -> Option<Vec<u8>> {
    reading
        .files
        .read(path)
        .map_err(|why| {
            reading.findings.add(
                Finding::new(place, format!("cannot read `{}`: {why}", path.display()))
                    .help("paths are relative to the file they are written in"),
            );
        })
        .ok()
}

/// A request with the lab's defaults filled in.
fn finish(request: &RequestFile, body: Option<Body>, load: &LoadFile) -> LabRequest {
    let usual_method = if body.is_some() { "POST" } else { "GET" };
    let method = request.method.as_ref().or(load.method.as_ref());
    let path = request.path.as_ref().or(load.path.as_ref());
    let path = path.map_or(default::PATH, |Written(UrlPath(path))| path);
    let mut headers = Vec::new();
    add_headers(&load.headers, &mut headers);
    add_headers(&request.headers, &mut headers);
    let has_type = headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if body.as_ref().is_some_and(|body| body.is_json) && !has_type {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    LabRequest {
        name: request
            .name
            .as_ref()
            .map_or(path, |At { value, .. }| &value.0.0)
            .to_owned(),
        method: method
            .map_or(usual_method, |Written(Method(method))| method)
            .to_owned(),
        path: path.to_owned(),
        headers,
        body: body.map(|body| body.bytes).unwrap_or_default(),
        weight: request.weight.unwrap_or(default::WEIGHT),
    }
}

/// Adds header lines; a later one replaces an earlier one of the same name.
fn add_headers(headers: &Headers, lines: &mut Vec<(String, String)>) {
    for (At { value: name, .. }, At { value, .. }) in &headers.0 {
        let (HeaderName(name), Verbatim(HeaderValue(value))) = (name, value);
        lines.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        lines.push((name.clone(), value.clone()));
    }
}

fn check_headers(headers: &Headers, reading: &mut Reading<'_>) {
    for (name, _) in headers.0.iter().filter(|(name, _)| name.value.is_own()) {
        reading.findings.add(
            Finding::new(
                name.place,
                format!("`{}` is written by the generator itself", name.value.0),
            )
            .help("remove it; `keep-alive: off` opens a connection for every request"),
        );
    }
}

/// What every answer must look like.
pub(crate) fn expect(file: &ExpectFile, reading: &mut Reading<'_>) -> Expect {
    let mut headers = Vec::new();
    add_headers(&file.headers, &mut headers);
    let body = file.body.as_ref().and_then(|body| {
        let path = reading.resolve(&body.value, body.place);
        bytes(&path, body.place, reading)
    });
    Expect {
        status: file.status,
        graphql_no_errors: file.graphql == Some(GraphqlFile::NoErrors),
        same_as_baseline: file.same_as == Some(SameAsFile::Baseline),
        headers,
        body,
        ignore: file.ignore.0.iter().map(|it| it.0.0.clone()).collect(),
    }
}
