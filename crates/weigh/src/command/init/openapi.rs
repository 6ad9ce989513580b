//! Requests from the examples of an OpenAPI description, or of a Swagger 2.0 description.
//!
//! Each value is an example, a default, a constant or the first item of an enumeration. Other values are only
//! invented if the user asks for it, and the lab names them.

mod body;
mod example;
mod parameters;
mod servers;
mod swagger2;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::requests::{Given, Requests};
use super::tree::Tree;
use super::values::plain;
use example::Description;
use servers::Server;

/// The supported methods. `delete` is missing, because it deletes objects that other requests need.
const METHODS: [&str; 6] = ["get", "head", "options", "post", "put", "patch"];

/// The reasons for leaving out operations with other methods.
const OTHERS: [(&str, &str); 4] = [
    (
        "delete",
        "the next request would not find the deleted object",
    ),
    ("trace", "it answers with the request"),
    ("query", "its method QUERY is not known here"),
    ("additionalOperations", "its methods are not known here"),
];

/// True for a member of a path that is an operation.
fn is_method(name: &str) -> bool {
    METHODS.contains(&name) || OTHERS.iter().any(|(method, _)| *method == name)
}

/// Reads the operations of a description in JSON or YAML.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(
    source: &str,
    text: &str,
    is_inventing: bool,
    host: Option<&str>,
    color: bool,
) -> Result<Requests, String> {
    let tree = Tree::read(source, text, color)?;
    let root = described(&tree.root)?;
    let Some(paths) = root.get("paths").and_then(Value::as_object) else {
        return Err(match root.get("webhooks") {
            Some(_) => {
                "expected `paths` in the OpenAPI description, found only `webhooks`, which the \
                 server sends"
                    .to_owned()
            }
            None => "expected `paths` in the OpenAPI description, found none".to_owned(),
        });
    };
    let description = Description {
        root: &root,
        is_inventing,
    };
    let mut requests = Requests::of(source);
    let home = servers::home(&description, host, &mut requests)?;
    for (path, item) in paths.iter().filter(|(path, _)| path.starts_with('/')) {
        let Some(item) = description.resolve(item).and_then(Value::as_object) else {
            let why = "it refers to an object outside of this file";
            requests.leave_out_request(None, path, why);
            continue;
        };
        let pointer = format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"));
        for method in METHODS {
            let Some(operation) = item.get(method).filter(|it| it.is_object()) else {
                continue;
            };
            let what = format!("{} {path}", method.to_ascii_uppercase());
            let line = tree.line(&format!("{pointer}/{method}"));
            let operation = Operation {
                description: &description,
                item,
                operation,
            };
            let given = operation.prefix(&home).and_then(|prefix| {
                operation.request(&format!("{prefix}{path}"), method, &mut requests)
            });
            if operation.operation.get("callbacks").is_some() {
                requests.leave_out(&format!("callbacks of {what}"), "the server sends them");
            }
            match given {
                Ok(given) => requests.add(Given { line, ..given }),
                Err(why) => requests.leave_out_request(line, &what, &why),
            }
        }
        for (method, why) in OTHERS {
            if item.contains_key(method) {
                let what = format!("{} {path}", method.to_ascii_uppercase());
                let line = tree.line(&format!("{pointer}/{method}"));
                requests.leave_out_request(line, &what, why);
            }
        }
    }
    if root.get("webhooks").is_some() {
        requests.leave_out("webhooks", "the server sends them");
    }
    Ok(requests)
}

/// The description in the form of OpenAPI 3.
fn described(root: &Value) -> Result<Cow<'_, Value>, String> {
    let version = root.get("openapi").map(plain).unwrap_or_default();
    if version.starts_with("3.") {
        return Ok(Cow::Borrowed(root));
    }
    let swagger = root.get("swagger").map(plain);
    match swagger.as_deref() {
        // YAML without quotes has a number here.
        Some("2.0" | "2") => Ok(Cow::Owned(swagger2::converted(root))),
        found => Err(format!(
            "expected an OpenAPI description with `openapi: 3.…` or `swagger: 2.0`, found {}",
            match (found, version.as_str()) {
                (Some(version), _) => format!("`swagger: {version}`"),
                (None, "") => "none".to_owned(),
                (None, version) => format!("`openapi: {version}`"),
            }
        )),
    }
}

/// One operation of one path.
struct Operation<'a> {
    description: &'a Description<'a>,
    item: &'a Map<String, Value>,
    operation: &'a Value,
}

impl Operation<'_> {
    /// The path of the operation's server. An error if it differs from the server of the lab.
    fn prefix(&self, home: &Server) -> Result<String, String> {
        let own = servers::of_operation(self.description.root, self.item, self.operation);
        let Some(first) = own.first() else {
            return Ok(home.prefix.clone());
        };
        let same = own.iter().find(|server| *server == home);
        match same.or_else(|| own.iter().find(|server| server.is_at(home))) {
            Some(server) => Ok(server.prefix.clone()),
            None => Err(format!(
                "its server is {first}, but the lab takes {home}. Choose a server with `--host`"
            )),
        }
    }

    /// The request with the values of the examples, or the missing part.
    fn request(&self, path: &str, method: &str, requests: &mut Requests) -> Result<Given, String> {
        let mut given = Given {
            method: method.to_ascii_uppercase(),
            path: path.to_owned(),
            ..Given::default()
        };
        let mut invented = Vec::new();
        self.add_parameters(&mut given, &mut invented, requests)?;
        self.add_body(&mut given, &mut invented)?;
        if !invented.is_empty() {
            given
                .notes
                .push(format!("with invented values: {}", invented.join(", ")));
        }
        given.status = self.status();
        for name in self.credentials() {
            requests.hide(&name);
        }
        Ok(given)
    }

    fn add_parameters(
        &self,
        given: &mut Given,
        invented: &mut Vec<String>,
        requests: &mut Requests,
    ) -> Result<(), String> {
        let (mut query, mut optional) = (Vec::new(), Vec::new());
        for parameter in self.parameters()? {
            let place = parameter.get("in").map(plain).unwrap_or_default();
            let name = parameter.get("name").map(plain).unwrap_or_default();
            let is_required = parameter.get("required") == Some(&Value::Bool(true));
            if place == "cookie" || (place == "header" && experiment::secrets::is_secret(&name)) {
                requests.hide(&name);
                continue;
            }
            // OpenAPI ignores parameters with these names.
            let is_of_body = ["accept", "content-type", "authorization"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it));
            if place == "header" && is_of_body {
                continue;
            }
            if !is_required && place != "path" {
                optional.push(name);
                continue;
            }
            let value = self
                .description
                .value_of(parameter, &name, invented)
                .ok_or_else(|| format!("its parameter `{name}` in the {place} has no example"))?;
            let written = parameters::written(parameter, &place, &name, &value)?;
            match place.as_str() {
                "path" => {
                    given.path = given.path.replace(&format!("{{{name}}}"), &written);
                }
                "query" => query.push(written),
                _ => given.headers.push((name, written)),
            }
        }
        if given.path.contains(['{', '}']) {
            return Err("a parameter of its path is not described".to_owned());
        }
        query.retain(|part| !part.is_empty());
        if !query.is_empty() {
            given.path = format!("{}?{}", given.path, query.join("&"));
        }
        if !optional.is_empty() {
            given.notes.push(format!(
                "without optional parameters: {}",
                optional.join(", ")
            ));
        }
        Ok(())
    }

    /// The parameters of the operation, and the parameters of its path that it does not redefine.
    fn parameters(&self) -> Result<Vec<&Value>, String> {
        let mut all: Vec<&Value> = Vec::new();
        let key = |it: &Value| (it.get("in").map(plain), it.get("name").map(plain));
        let own = self.operation.get("parameters");
        for list in [own, self.item.get("parameters")] {
            for written in list.and_then(Value::as_array).into_iter().flatten() {
                let parameter = self
                    .description
                    .resolve(written)
                    .ok_or("one of its parameters refers to an object outside of this file")?;
                if !all.iter().any(|known| key(known) == key(parameter)) {
                    all.push(parameter);
                }
            }
        }
        Ok(all)
    }

    /// Adds the body with its media type.
    fn add_body(&self, given: &mut Given, invented: &mut Vec<String>) -> Result<(), String> {
        let Some(body) = self.operation.get("requestBody").filter(|it| !it.is_null()) else {
            return Ok(());
        };
        let body = self
            .description
            .resolve(body)
            .ok_or("its body refers to an object outside of this file")?;
        let is_required = body.get("required") == Some(&Value::Bool(true));
        match body::written(self.description, body, invented) {
            Ok((kind, bytes)) => {
                given.headers.push(("Content-Type".to_owned(), kind));
                given.body = Some(bytes);
                Ok(())
            }
            Err(why) if is_required => Err(why),
            Err(_) => {
                given
                    .notes
                    .push("without its body, which is optional and has no example".to_owned());
                Ok(())
            }
        }
    }

    /// The status of a right answer, if the description has no answer with success.
    fn status(&self) -> Vec<String> {
        let responses = self.operation.get("responses").and_then(Value::as_object);
        let codes = || responses.into_iter().flat_map(Map::keys);
        if codes().any(|code| code.starts_with('2') || code == "default") {
            return Vec::new();
        }
        let redirect = codes()
            .find(|code| code.starts_with('3') && code.parse::<u16>().is_ok_and(|code| code < 400));
        redirect.cloned().into_iter().collect()
    }

    /// The headers and parameters of the required credentials.
    fn credentials(&self) -> Vec<String> {
        let root = self.description.root;
        let asked = self
            .operation
            .get("security")
            .or_else(|| root.get("security"));
        // The first of several alternatives.
        let schemes = asked.and_then(|it| it.get(0)).and_then(Value::as_object);
        let names = schemes.into_iter().flatten().map(|(name, _)| name);
        names
            .filter_map(|name| {
                let scheme = root.pointer("/components/securitySchemes")?.get(name)?;
                let scheme = self.description.resolve(scheme)?;
                match scheme.get("type").map(plain)?.as_str() {
                    "apiKey" => scheme.get("name").map(plain),
                    _ => Some("Authorization".to_owned()),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
