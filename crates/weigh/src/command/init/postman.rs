//! Requests of a Postman collection (v2.0 and v2.1).

mod body;
mod parts;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use experiment::secrets::is_secret;
use serde_json::Value;

use super::json_lines::lines;
use super::origins::{add_chosen, located};
use super::placeholders::{Filling, Meaning, Meanings, dynamic};
use super::requests::{Given, Requests};
use super::scripts::Script;
use super::tree;
use super::values::{encoded, plain};
use parts::{Address, enabled, headers, member, pairs, script, url};

/// Maximum depth of folders.
const DEPTH_MAX: usize = 32;

/// Methods that Postman sends without their body by default.
const WITHOUT_BODY: [&str; 7] = ["GET", "HEAD", "COPY", "PURGE", "UNLOCK", "VIEW", "LINK"];

/// Reads the requests of a collection, with the values of an environment.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(
    path: &Path,
    text: &str,
    environment: Option<&Path>,
    host: Option<&str>,
) -> Result<Requests, String> {
    let source = super::file_name(path);
    let text = text.trim_start_matches('\u{feff}');
    let root = tree::json(text)?;
    let (root, pointer) = match root.get("collection") {
        Some(inner) => (inner, "/collection/item"),
        None => (&root, "/item"),
    };
    if root.get("requests").is_some() {
        return Err(
            "expected a collection of Postman in the form v2.1, found v1. Export it again as \
             Collection v2.1"
                .to_owned(),
        );
    }
    let Some(items) = root.get("item").and_then(Value::as_array) else {
        return Err("expected a collection of Postman with `item`, found none".to_owned());
    };
    let mut variables = Vec::new();
    add_variables(root.get("variable"), &mut variables);
    if let Some(file) = environment {
        let shown = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| format!("the environment `{shown}` cannot be read: {error}"))?;
        let values =
            tree::json(&text).map_err(|why| format!("the environment `{shown}`: {why}"))?;
        if !values.get("values").is_some_and(Value::is_array) {
            return Err(format!(
                "expected an environment of Postman with `values` in `{shown}`, found none"
            ));
        }
        // Later values win.
        add_variables(values.get("values"), &mut variables);
    }
    let mut collection = Collection {
        folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        variables,
        captured: Vec::new(),
        unknown: Vec::new(),
        found: Vec::new(),
        lines: lines(text, 2 * DEPTH_MAX + 2),
        requests: Requests::of(&source),
    };
    let level = Level {
        name: String::new(),
        pointer: pointer.to_owned(),
        auth: root.get("auth"),
        depth: 0,
    };
    collection.scripts_of(root, "the collection");
    collection.items(items, &level);
    let Collection {
        found,
        mut requests,
        ..
    } = collection;
    add_chosen(found, host, &mut requests)?;
    Ok(requests)
}

/// Adds the enabled variables of a list.
fn add_variables(list: Option<&Value>, variables: &mut Vec<(String, String)>) {
    for variable in list.and_then(Value::as_array).into_iter().flatten() {
        let is_off = variable.get("enabled") == Some(&Value::Bool(false));
        let name = member(variable, "key").or_else(|| member(variable, "id"));
        if let (Some(name), false, true) = (name, is_off, enabled(variable)) {
            variables.push((name, member(variable, "value").unwrap_or_default()));
        }
    }
}

/// The place of an item in its folders.
struct Level<'a> {
    /// The names of the folders, each with a slash.
    name: String,
    /// The JSON pointer of its list of items.
    pointer: String,
    auth: Option<&'a Value>,
    depth: usize,
}

/// The walk through a collection.
struct Collection {
    folder: std::path::PathBuf,
    variables: Vec<(String, String)>,
    /// Captured values: the name in the collection, and the name in the lab.
    captured: Vec<(String, String)>,
    /// Names with a value only at run time, and the reason.
    unknown: Vec<(String, String)>,
    found: Vec<(String, Given)>,
    /// The lines of objects by their JSON pointers.
    lines: HashMap<String, usize>,
    requests: Requests,
}

impl Meanings for Collection {
    fn meaning(&self, name: &str) -> Result<Meaning, String> {
        self.nested(name, 0)
    }
}

impl Collection {
    fn nested(&self, name: &str, depth: usize) -> Result<Meaning, String> {
        if depth > 8 {
            return Err(format!("`{name}` refers to itself"));
        }
        if let Some((_, word)) = self.captured.iter().rev().find(|(known, _)| known == name) {
            return Ok(Meaning::Later(word.clone()));
        }
        if let Some((_, why)) = self.unknown.iter().find(|(known, _)| known == name) {
            return Err(why.clone());
        }
        let value = self.variables.iter().rev().find(|(known, _)| known == name);
        match value {
            Some((_, value)) if !value.is_empty() => {
                Meaning::of(value, &|inner: &str| self.nested(inner, depth + 1))
            }
            _ => match dynamic(name) {
                Some(text) => Ok(Meaning::Later(text)),
                None if name.starts_with('$') => Err(format!("`{name}` is made for each request")),
                None => Err(format!(
                    "`{name}` has no value. `--postman-env FILE` reads an environment"
                )),
            },
        }
    }

    fn items(&mut self, items: &[Value], level: &Level<'_>) {
        for (index, item) in items.iter().enumerate() {
            let pointer = format!("{}/{index}", level.pointer);
            let name = member(item, "name").unwrap_or_default();
            if let Some(inner) = item.get("item").and_then(Value::as_array) {
                if level.depth == DEPTH_MAX {
                    self.requests
                        .leave_out_requests(inner.len(), &name, "it is nested too deeply");
                    continue;
                }
                self.scripts_of(item, &format!("the folder {name}"));
                let inner_level = Level {
                    name: format!("{}{name} / ", level.name),
                    pointer: format!("{pointer}/item"),
                    auth: item.get("auth").filter(|it| !it.is_null()).or(level.auth),
                    depth: level.depth + 1,
                };
                self.items(inner, &inner_level);
            } else if let Some(request) = item.get("request") {
                let line = self.lines.get(&pointer).copied();
                self.request(
                    item,
                    request,
                    &format!("{}{name}", level.name),
                    level.auth,
                    line,
                );
            } else {
                self.requests
                    .leave_out(&format!("{}{name}", level.name), "it has no request");
            }
        }
    }

    /// The scripts of a folder or of the collection, which run for each request in it.
    fn scripts_of(&mut self, item: &Value, what: &str) {
        let before = script(item, "prerequest");
        let after = script(item, "test");
        if before.trim().is_empty() && after.trim().is_empty() {
            return;
        }
        self.know(&Script::of(&before));
        self.know(&Script::of(&after));
        self.requests.leave_out(what, "its scripts do not run");
    }

    /// Remembers the constants and the unknown values of a script.
    fn know(&mut self, script: &Script) {
        for (name, value) in &script.constants {
            self.variables.push((name.clone(), value.clone()));
        }
        for name in &script.unknown {
            let why = format!("`{name}` is made by a script");
            self.unknown.push((name.clone(), why));
        }
    }

    fn request(
        &mut self,
        item: &Value,
        request: &Value,
        name: &str,
        auth: Option<&Value>,
        line: Option<usize>,
    ) {
        let before = script(item, "prerequest");
        let own = Script::of(&before);
        self.know(&own);
        let after = Script::of(&script(item, "test"));
        match self.given(item, request, auth) {
            Ok((origin, mut given)) => {
                name.clone_into(&mut given.name);
                given.line = line;
                if !before.trim().is_empty() && (own.has_more || !own.unknown.is_empty()) {
                    given
                        .notes
                        .push("without its pre-request script".to_owned());
                }
                if after.has_more {
                    given
                        .notes
                        .push("without the rest of its test script".to_owned());
                }
                if !after.status.is_empty() {
                    given.status.clone_from(&after.status);
                }
                given.captures = after.captures.iter().map(|(_, it)| it.clone()).collect();
                let kept = after
                    .captures
                    .iter()
                    .map(|(name, it)| (name.clone(), it.name.clone()));
                self.captured.extend(kept);
                self.found.push((origin, given));
            }
            Err(why) => {
                for (kept, _) in &after.captures {
                    let why = format!("`{kept}` comes from `{name}`, which was left out");
                    self.unknown.push((kept.clone(), why));
                }
                self.requests.leave_out_request(line, name, &why);
            }
        }
        self.know(&after);
    }

    fn given(
        &mut self,
        item: &Value,
        request: &Value,
        inherited: Option<&Value>,
    ) -> Result<(String, Given), String> {
        let mut given = Given {
            method: member(request, "method")
                .unwrap_or_else(|| "GET".to_owned())
                .to_ascii_uppercase(),
            ..Given::default()
        };
        // A request may be only its URL.
        let written = match request.is_string() {
            true => Some(request),
            false => request.get("url"),
        };
        let mut filling = Filling {
            meanings: self,
            places: Vec::new(),
        };
        let mut hidden = Vec::new();
        let located = located(&target(&url(written)?, &mut filling, &mut hidden)?)?;
        if located.has_credentials {
            hidden.push("Authorization".to_owned());
        }
        given.path = located.path;
        for (name, value) in headers(request.get("header")) {
            match filling.text(&value) {
                Ok(value) => given.headers.push((name, value)),
                Err(_) if is_secret(&name) => hidden.push(name),
                Err(why) => return Err(why),
            }
        }
        let auth = request.get("auth").filter(|it| !it.is_null()).or(inherited);
        add_auth(auth, &mut given, &mut filling, &mut hidden);
        let behavior = item.get("protocolProfileBehavior");
        let is_kept =
            behavior.and_then(|it| it.get("disableBodyPruning")) == Some(&Value::Bool(true));
        if let Some(body) = request
            .get("body")
            .filter(|body| !body.is_null() && enabled(body))
        {
            match WITHOUT_BODY.contains(&given.method.as_str()) && !is_kept {
                false => body::add(&mut given, body, &self.folder, &mut filling)?,
                true if body::is_empty(body) => {}
                true => given
                    .notes
                    .push("without its body, which Postman does not send".to_owned()),
            }
        }
        given.places = filling.places;
        let is_own = |place: &String| self.captured.iter().any(|(_, word)| word == place);
        if given.method == "DELETE" && !given.places.iter().any(is_own) {
            return Err("the next request would not find the deleted object".to_owned());
        }
        given.status = example_statuses(item.get("response"));
        hidden.iter().for_each(|name| self.requests.hide(name));
        Ok((located.origin, given))
    }
}

/// The URL of a request with its values. Credentials in its query are hidden.
fn target(
    address: &Address,
    filling: &mut Filling<'_>,
    hidden: &mut Vec<String>,
) -> Result<String, String> {
    let mut target = filling.text_of_url(&address.base)?;
    for (name, value) in &address.path_variables {
        let value = filling.text(value)?;
        if value.is_empty() {
            return Err(format!("its path variable `:{name}` has no value"));
        }
        target = parts::with_path_variable(&target, name, &encoded(&value));
    }
    if let Some(name) = parts::open_path_variable(&target) {
        return Err(format!("its path variable `:{name}` has no value"));
    }
    let mut query = Vec::new();
    for (name, value) in &address.query {
        if is_secret(name) && !value.contains("{{") {
            hidden.push(format!("?{name}="));
            continue;
        }
        match filling.text(value) {
            Ok(value) => query.push(format!("{}={}", filling.text(name)?, value)),
            Err(_) if is_secret(name) => hidden.push(format!("?{name}=")),
            Err(why) => return Err(why),
        }
    }
    Ok(match query.is_empty() {
        true => target,
        false => format!("{target}?{}", query.join("&")),
    })
}

/// Adds the credentials of a request, if they are values of the lab. Others are hidden.
fn add_auth(
    auth: Option<&Value>,
    given: &mut Given,
    filling: &mut Filling<'_>,
    hidden: &mut Vec<String>,
) {
    let Some(auth) = auth else { return };
    let kind = member(auth, "type").unwrap_or_default();
    let settings = pairs(auth.get(&kind));
    let setting = |name: &str| {
        let found = settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    match kind.as_str() {
        "" | "noauth" => {}
        "bearer" => {
            let before = filling.places.len();
            match filling.text(&setting("token")) {
                Ok(token) if filling.places.len() > before => {
                    let header = ("Authorization".to_owned(), format!("Bearer {token}"));
                    given.headers.push(header);
                }
                _ => hidden.push("Authorization".to_owned()),
            }
        }
        "apikey" => {
            let name = match setting("key") {
                name if name.is_empty() || name.contains("{{") => "X-Api-Key".to_owned(),
                name => name,
            };
            hidden.push(match setting("in").as_str() {
                "query" => format!("?{name}="),
                _ => name,
            });
        }
        _ => hidden.push("Authorization".to_owned()),
    }
}

/// The statuses of saved examples. Empty if one of them is a success, because a lab requires success by default.
fn example_statuses(responses: Option<&Value>) -> Vec<String> {
    let examples = responses.and_then(Value::as_array).into_iter().flatten();
    let codes: Vec<u64> = examples
        .filter_map(|example| example.get("code").map(plain)?.parse().ok())
        .filter(|code| (100..600).contains(code))
        .collect();
    match codes.iter().any(|code| (200..300).contains(code)) {
        true => Vec::new(),
        false => codes.first().map(u64::to_string).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests;
