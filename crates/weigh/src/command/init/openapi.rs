//! Requests from the examples of an OpenAPI description.
//!
//! Values are never invented. A request is only created if the description has a value for each required
//! part. The value may be an example, a default, a constant or the first item of an enumeration.

mod example;

use serde_json::{Map, Value};

use super::requests::{Given, Requests};
use super::tree::Tree;
use super::values::{encoded, plain};
use example::Description;

/// The supported methods. `delete` is missing, because it deletes objects that other requests need.
const METHODS: [&str; 6] = ["get", "head", "options", "post", "put", "patch"];

/// The reasons for leaving out operations with other methods.
const OTHERS: [(&str, &str); 2] = [
    (
        "delete",
        "the next request would not find the deleted object",
    ),
    ("trace", "it answers with the request"),
];

/// Reads the operations of a description in JSON or YAML.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(source: &str, text: &str, color: bool) -> Result<Requests, String> {
    let root = Tree::read(source, text, color)?.root;
    let version = root.get("openapi").map(plain).unwrap_or_default();
    if !version.starts_with("3.") {
        let found = match root.get("swagger").map(plain) {
            Some(version) => format!("`swagger: {version}`. Convert it to OpenAPI 3"),
            None => "none".to_owned(),
        };
        return Err(format!(
            "expected an OpenAPI description with `openapi: 3.…`, found {found}"
        ));
    }
    let Some(paths) = root.get("paths").and_then(Value::as_object) else {
        return Err("expected `paths` in the OpenAPI description, found none".to_owned());
    };
    let description = Description { root: &root };
    let prefix = prefix(&root);
    let mut requests = Requests::of(source);
    for (path, item) in paths {
        let Some(item) = description.resolve(item).and_then(Value::as_object) else {
            requests.leave_out(path, "it refers to an object outside of this file");
            continue;
        };
        for method in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let what = format!("{} {path}", method.to_ascii_uppercase());
            let operation = Operation {
                description: &description,
                item,
                operation,
            };
            match operation.request(&format!("{prefix}{path}"), method, &mut requests) {
                Ok(given) => requests.add(given),
                Err(why) => requests.leave_out_request(None, &what, &why),
            }
        }
        for (method, why) in OTHERS {
            if item.contains_key(method) {
                let what = format!("{} {path}", method.to_ascii_uppercase());
                requests.leave_out_request(None, &what, why);
            }
        }
    }
    Ok(requests)
}

/// The prefix of every path: the path of the first server.
fn prefix(root: &Value) -> String {
    let Some(server) = root.pointer("/servers/0") else {
        return String::new();
    };
    let mut url = server.get("url").map(plain).unwrap_or_default();
    let variables = server.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable.get("default").map(plain).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), &value);
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |begin| &rest[begin..]),
        None => url.as_str(),
    };
    path.trim_end_matches('/').to_owned()
}

/// One operation of one path.
struct Operation<'a> {
    description: &'a Description<'a>,
    item: &'a Map<String, Value>,
    operation: &'a Value,
}

impl Operation<'_> {
    /// The request with the values of the examples, or the missing part.
    fn request(&self, path: &str, method: &str, requests: &mut Requests) -> Result<Given, String> {
        let mut given = Given {
            method: method.to_ascii_uppercase(),
            path: path.to_owned(),
            ..Given::default()
        };
        let (mut query, mut optional) = (Vec::new(), Vec::new());
        for parameter in self.parameters()? {
            let place = parameter.get("in").map(plain).unwrap_or_default();
            let name = parameter.get("name").map(plain).unwrap_or_default();
            let is_required = parameter.get("required") == Some(&Value::Bool(true));
            if place == "cookie" || (place == "header" && experiment::secrets::is_secret(&name)) {
                requests.hide(&name);
                continue;
            }
            if !is_required && place != "path" {
                optional.push(name);
                continue;
            }
            let values = self
                .description
                .of_parameter(parameter)
                .and_then(|value| texts(&value))
                .ok_or_else(|| format!("its parameter `{name}` in the {place} has no example"))?;
            match place.as_str() {
                "path" => {
                    let value = encoded(&values.join(","));
                    given.path = given.path.replace(&format!("{{{name}}}"), &value);
                }
                "query" => query.extend(
                    values
                        .iter()
                        .map(|value| format!("{}={}", encoded(&name), encoded(value))),
                ),
                _ => given.headers.push((name, values.join(","))),
            }
        }
        if given.path.contains(['{', '}']) {
            return Err("a parameter of its path is not described".to_owned());
        }
        if !query.is_empty() {
            given.path = format!("{}?{}", given.path, query.join("&"));
        }
        if !optional.is_empty() {
            given.notes.push(format!(
                "without optional parameters: {}",
                optional.join(", ")
            ));
        }
        self.add_body(&mut given)?;
        for name in self.credentials() {
            requests.hide(&name);
        }
        Ok(given)
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

    /// Adds the example of the body.
    fn add_body(&self, given: &mut Given) -> Result<(), String> {
        let Some(body) = self.operation.get("requestBody") else {
            return Ok(());
        };
        let body = self
            .description
            .resolve(body)
            .ok_or("its body refers to an object outside of this file")?;
        let content = body.get("content").and_then(Value::as_object);
        let is_json = |kind: &str| kind == "application/json" || kind.ends_with("+json");
        let found = content
            .into_iter()
            .flatten()
            .find(|(kind, _)| is_json(kind))
            .and_then(|(kind, media)| Some((kind, self.description.of_parameter(media)?)));
        match found {
            Some((kind, example)) => {
                given
                    .headers
                    .push(("Content-Type".to_owned(), kind.clone()));
                given.body = Some(match example {
                    // Some descriptions contain the text of a body as its example.
                    Value::String(text) if text.starts_with(['{', '[']) => text.into_bytes(),
                    value => value.to_string().into_bytes(),
                });
            }
            None if body.get("required") == Some(&Value::Bool(true)) => {
                return Err("its body has no example in JSON".to_owned());
            }
            None => given
                .notes
                .push("without its body, which is optional and has no example in JSON".to_owned()),
        }
        Ok(())
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

/// The values of a parameter as texts. A list has several. `None` for a mapping.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(|item| texts(item)?.pop()).collect(),
        Value::Object(_) | Value::Null => None,
        scalar => Some(vec![plain(scalar)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "\
openapi: 3.0.3
servers: [{url: 'https://{host}/v1', variables: {host: {default: shop.example}}}]
security: [{token: []}]
paths:
  /items:
    get:
      parameters:
        - {name: kind, in: query, required: true, schema: {type: string, enum: ['a b', c]}}
        - {name: page, in: query, schema: {type: integer}}
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}
  /items/{id}:
    parameters: [{$ref: '#/components/parameters/Id'}]
    get: {}
    delete: {}
  /orders/{order}:
    get: {parameters: [{name: order, in: path, required: true, schema: {type: string}}]}
components:
  parameters:
    Id: {name: id, in: path, required: true, example: 7}
  schemas:
    Item:
      required: [name]
      properties:
        id: {type: integer, readOnly: true, example: 1}
        name: {type: string, example: Tea}
        parts: {type: array, items: {$ref: '#/components/schemas/Item'}}
        tags: {type: array, items: {type: string, default: hot}}
        note: {type: string}
  securitySchemes:
    token: {type: http, scheme: bearer}
";

    #[test]
    fn operations_with_examples_become_requests_and_the_others_are_named() {
        let requests = read("shop.yaml", SHOP, false).expect("a description");
        insta::assert_snapshot!(requests.load(), @r#"
        # Omitted because they may be secret: Authorization.
        # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
        #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
        # From shop.yaml, in rotation.
        requests:
          # without optional parameters: page
          - name: "GET /v1/items?kind=a%20b"
            method: "GET"
            path: "/v1/items?kind=a%20b"
          - name: "POST /v1/items"
            method: "POST"
            path: "/v1/items"
            headers:
              "Content-Type": "application/json"
            body: "requests/2.json"
          - name: "GET /v1/items/7"
            method: "GET"
            path: "/v1/items/7"
          # Left out:
          # - DELETE /items/{id}: the next request would not find the deleted object
          # - GET /orders/{order}: its parameter `order` in the path has no example
        "#);
        let bodies: Vec<_> = requests.files().map(|(_, body)| body).collect();
        assert_eq!(bodies.len(), 1);
        insta::assert_snapshot!(String::from_utf8_lossy(&bodies[0]), @r#"{"name":"Tea","tags":["hot"]}"#);
    }

    #[test]
    fn another_file_is_refused_with_what_it_is() {
        let refused = |text: &str| read("x", text, false).map(|_| ()).unwrap_err();
        assert!(refused("swagger: '2.0'").contains("Convert it to OpenAPI 3"));
        assert!(refused("a: [").contains("it has mistakes"));
        assert!(refused("{").contains("found a mistake"));
        assert!(refused("{\"openapi\": \"3.1.0\"}").contains("expected `paths`"));
    }
}
