//! Requests of an `.http` or `.rest` file, as editors send them.

mod parse;

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::origins::{add_chosen, located};
use super::placeholders::{Filling, Meaning, Meanings, dynamic, json_pointer, word};
use super::requests::{Captured, CapturedFrom, Given, Requests};
use super::scripts::Script;
use super::tree;
use super::values::plain;
use parse::{Written, requests as written};

/// The files with environments, next to the file. The second has values that are not shared.
const ENVIRONMENTS: [&str; 2] = ["http-client.env.json", "http-client.private.env.json"];

/// Methods of other protocols.
const OTHERS: [&str; 5] = ["WEBSOCKET", "GRPC", "RSOCKET", "GRAPHQLRS", "WSS"];

/// Reads the requests of a file.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(
    path: &Path,
    text: &str,
    environment: Option<&str>,
    host: Option<&str>,
) -> Result<Requests, String> {
    let source = super::file_name(path);
    let file = written(text);
    if file.requests.is_empty() {
        return Err(
            "expected requests such as `GET http://localhost:8080/`, found none".to_owned(),
        );
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut requests = Requests::of(&source);
    let mut names = Names {
        variables: file.variables,
        environment: environment_of(folder, environment)?,
        captured: Vec::new(),
        references: Vec::new(),
        unknown: file.prompted,
    };
    names.references = references(text, &names, &mut requests);
    let mut found: Vec<(String, Given)> = Vec::new();
    for request in &file.requests {
        if request.is_curl() {
            let before = found.len();
            let read = super::curl::add(&request.url, folder, &mut found, &mut requests);
            if let Err(why) = read {
                requests.leave_out_request(Some(request.line), "curl", &why);
            }
            for (_, given) in &mut found[before..] {
                given.line = Some(request.line);
            }
            continue;
        }
        let script = Script::of(&request.handler);
        names.know(Script::of(&request.before));
        match names.given(request, &script, folder, &mut requests) {
            Ok(sent) => {
                let kept = script
                    .captures
                    .into_iter()
                    .map(|(name, it)| (name, it.name));
                names.captured.extend(kept);
                found.push(sent);
            }
            Err(why) => {
                for (name, _) in script.captures {
                    let why = format!("`{name}` comes from a request that was left out");
                    names.unknown.push((name, why));
                }
                let what = format!("{} {}", request.method, request.url);
                requests.leave_out_request(Some(request.line), &what, &why);
            }
        }
        names.know(Script {
            captures: Vec::new(),
            ..script
        });
    }
    add_chosen(found, host, &mut requests)?;
    Ok(requests)
}

/// The values of an environment, from the files next to the requests.
fn environment_of(folder: &Path, name: Option<&str>) -> Result<Map<String, Value>, String> {
    let Some(name) = name else {
        return Ok(Map::new());
    };
    let (mut values, mut known) = (Map::new(), Vec::new());
    let mut is_there = false;
    for file in ENVIRONMENTS {
        let Ok(text) = fs::read_to_string(folder.join(file)) else {
            continue;
        };
        let root = tree::json(&text).map_err(|why| format!("`{file}`: {why}"))?;
        let members = root.as_object().cloned().unwrap_or_default();
        known.extend(members.keys().filter(|key| !key.starts_with('$')).cloned());
        for key in ["$shared", name] {
            let Some(Value::Object(own)) = members.get(key) else {
                continue;
            };
            is_there |= key == name;
            values.extend(own.clone());
        }
    }
    match is_there {
        true => Ok(values),
        false => Err(format!(
            "expected an environment of `{}` in `--http-env`, found `{name}`. The environments there \
             are: {}",
            ENVIRONMENTS[0],
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        )),
    }
}

/// A value of an answer that other requests refer to by the name of its request.
struct Reference {
    /// The text in braces: `login.response.body.$.token`.
    text: String,
    /// The name of the request.
    of: String,
    captured: Captured,
}

/// All references to answers in a file.
fn references(text: &str, names: &Names, requests: &mut Requests) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((inside, after)) = after.split_once("}}") else {
            break;
        };
        rest = after;
        let inside = inside.trim();
        let Some((of, place)) = inside.split_once(".response.") else {
            continue;
        };
        if found.iter().any(|known| known.text == inside) || names.value(inside).is_some() {
            continue;
        }
        let from = match place.split_once('.') {
            Some(("body", path)) => json_pointer(path).map(CapturedFrom::Json),
            Some(("headers", name)) => Some(CapturedFrom::Header(name.to_owned())),
            _ => None,
        };
        match from {
            Some(from) => found.push(Reference {
                text: inside.to_owned(),
                of: of.to_owned(),
                captured: Captured {
                    name: word(&named(of, place)),
                    from,
                    regex: None,
                },
            }),
            None => requests.leave_out(inside, "a lab cannot capture this part of an answer"),
        }
    }
    found
}

/// The lab's name for a part of an answer: `login-body-token`.
fn named(of: &str, place: &str) -> String {
    let parts = place
        .split(['$', '.', '[', ']'])
        .filter(|part| !part.is_empty());
    std::iter::once(of)
        .chain(parts)
        .collect::<Vec<_>>()
        .join("-")
}

/// The meanings of placeholders at one request.
struct Names {
    variables: Vec<(String, String)>,
    environment: Map<String, Value>,
    /// Values kept by scripts: the name in the file, and the name in the lab.
    captured: Vec<(String, String)>,
    references: Vec<Reference>,
    /// Names with a value only at run time, and the reason.
    unknown: Vec<(String, String)>,
}

impl Names {
    /// Remembers the constants and the unknown values of a script.
    fn know(&mut self, script: Script) {
        self.variables.extend(script.constants);
        for name in script.unknown {
            let why = format!("`{name}` is made by a script");
            self.unknown.push((name, why));
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        let written = self.variables.iter().rev().find(|(known, _)| known == name);
        written
            .map(|(_, value)| value.clone())
            .or_else(|| self.environment.get(name).map(plain))
    }

    /// The meaning of a name. Its value may have placeholders too.
    fn nested(&self, name: &str, depth: usize) -> Result<Meaning, String> {
        if let Some(reference) = self.references.iter().find(|it| it.text == name) {
            return Ok(Meaning::Later(reference.captured.name.clone()));
        }
        if let Some((_, word)) = self.captured.iter().rev().find(|(known, _)| known == name) {
            return Ok(Meaning::Later(word.clone()));
        }
        if let Some((_, why)) = self.unknown.iter().find(|(known, _)| known == name) {
            return Err(why.clone());
        }
        let Some(value) = self.value(name) else {
            return match dynamic(name) {
                Some(text) => Ok(Meaning::Later(text)),
                None if name.starts_with('$') => Err(format!("`{name}` is made for each request")),
                None => Err(format!(
                    "`{name}` has no value in the file. `--http-env NAME` reads an environment"
                )),
            };
        };
        let alone = value
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        match alone {
            Some(other) if depth < 8 => self.nested(other.trim(), depth + 1),
            _ if depth >= 8 => Err(format!("`{name}` refers to itself")),
            _ => Meaning::of(&value, &|inner: &str| self.nested(inner, depth + 1)),
        }
    }

    fn given(
        &self,
        written: &Written,
        script: &Script,
        folder: &Path,
        requests: &mut Requests,
    ) -> Result<(String, Given), String> {
        if OTHERS.contains(&written.method.as_str()) {
            return Err("it is not HTTP".to_owned());
        }
        let mut filling = Filling {
            meanings: self,
            places: Vec::new(),
        };
        let is_graphql = written.method == "GRAPHQL"
            || written
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("x-request-type"));
        let mut given = Given {
            line: Some(written.line),
            name: written.name.clone(),
            method: match written.method.as_str() {
                "GRAPHQL" => "POST".to_owned(),
                method => method.to_owned(),
            },
            ..Given::default()
        };
        for (name, value) in &written.headers {
            match filling.text(value) {
                _ if name.eq_ignore_ascii_case("x-request-type") => {}
                Ok(value) => given.headers.push((name.clone(), value)),
                // A credential is left out in any case, so its value may be unknown.
                Err(_) if experiment::secrets::is_secret(name) => requests.hide(name),
                Err(why) => return Err(why),
            }
        }
        let host = given
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let mut url = filling.text_of_url(&written.url)?;
        if let (true, Some((_, host))) = (url.starts_with('/'), host) {
            url = format!("http://{host}{url}");
        }
        let located = located(&url)?;
        if located.has_credentials {
            requests.hide("Authorization");
        }
        given.path = located.path;
        self.add_body(&mut given, written, is_graphql, folder, &mut filling)?;
        given.places = filling.places;
        let is_own = |place: &String| {
            self.captured.iter().any(|(_, word)| word == place)
                || self.references.iter().any(|it| it.captured.name == *place)
        };
        if given.method == "DELETE" && !given.places.iter().any(is_own) {
            return Err("the next request would not find the deleted object".to_owned());
        }
        self.add_script(&mut given, written, script);
        Ok((located.origin, given))
    }

    /// Adds the effects of the script after the answer, and notes about the others.
    fn add_script(&self, given: &mut Given, written: &Written, script: &Script) {
        given.status.clone_from(&script.status);
        given.captures = script.captures.iter().map(|(_, it)| it.clone()).collect();
        let named = self.references.iter().filter(|it| it.of == written.name);
        given.captures.extend(named.map(|it| it.captured.clone()));
        if written.has_script {
            let note = "without the script before it";
            given.notes.push(note.to_owned());
        }
        if script.has_more {
            let note = "without the rest of the script after it";
            given.notes.push(note.to_owned());
        }
    }

    fn add_body(
        &self,
        given: &mut Given,
        written: &Written,
        is_graphql: bool,
        folder: &Path,
        filling: &mut Filling<'_>,
    ) -> Result<(), String> {
        let has = |name: &str, part: &str| {
            let is_it = |(known, value): &&(String, String)| {
                known.eq_ignore_ascii_case(name) && value.to_ascii_lowercase().contains(part)
            };
            given.headers.iter().any(|header| is_it(&header))
        };
        let is_multipart = has("content-type", "multipart/");
        let is_form = has("content-type", "x-www-form-urlencoded");
        let mut body: Vec<u8> = Vec::new();
        let mut lines = written.body.iter().peekable();
        while let Some(line) = lines.next() {
            match parse::file_of(line) {
                Some((file, has_places)) => {
                    let file = filling.text(file)?;
                    let bytes = fs::read(folder.join(&file))
                        .map_err(|error| format!("its file `{file}` cannot be read: {error}"))?;
                    match (has_places, String::from_utf8(bytes)) {
                        (true, Ok(text)) => body.extend(filling.text(&text)?.into_bytes()),
                        (_, Ok(text)) => body.extend(text.into_bytes()),
                        (_, Err(binary)) => body.extend(binary.into_bytes()),
                    }
                }
                // The lines of a form are one line.
                None if is_form => body.extend(filling.text(line.trim())?.into_bytes()),
                None => body.extend(filling.text(line)?.into_bytes()),
            }
            if lines.peek().is_some() && !is_form {
                body.extend(if is_multipart { &b"\r\n"[..] } else { b"\n" });
            }
        }
        if is_multipart && !body.is_empty() {
            body.extend(b"\r\n");
        }
        if body.is_empty() {
            return Ok(());
        }
        if is_graphql {
            body = graphql(&body)?;
            if !has("content-type", "") {
                let kind = ("Content-Type".to_owned(), "application/json".to_owned());
                given.headers.push(kind);
            }
        }
        given.body = Some(body);
        Ok(())
    }
}

impl Meanings for Names {
    fn meaning(&self, name: &str) -> Result<Meaning, String> {
        self.nested(name, 0)
    }
}

/// The body of a GraphQL request: a query, an empty line and its variables become JSON.
fn graphql(body: &[u8]) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(body).into_owned();
    let (query, variables) = match text.rsplit_once("\n\n") {
        Some((query, variables)) if variables.trim_start().starts_with('{') => (query, variables),
        _ => (text.as_str(), ""),
    };
    let query = Value::from(query.trim()).to_string();
    Ok(match variables.trim() {
        "" => format!("{{\"query\":{query}}}"),
        variables => {
            tree::json(variables).map_err(|_| "its variables are no JSON".to_owned())?;
            format!("{{\"query\":{query},\"variables\":{variables}}}")
        }
    }
    .into_bytes())
}

#[cfg(test)]
mod tests;
