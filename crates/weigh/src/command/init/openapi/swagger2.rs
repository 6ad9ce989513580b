//! Swagger 2.0 in the form of OpenAPI 3.
//!
//! Only the parts that requests need are converted. Definitions stay where they are, so references to them
//! remain valid.

use serde_json::{Map, Value, json};

use crate::command::init::values::plain;

/// Keys of a parameter that describe its value.
const OF_SCHEMA: [&str; 18] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "example",
    "x-example",
];

/// The description with paths, servers and security schemes of OpenAPI 3.
pub(super) fn converted(root: &Value) -> Value {
    let mut converted = root.clone();
    converted["openapi"] = json!("3.0.3");
    converted["servers"] = json!([{ "url": server(root) }]);
    if let Some(schemes) = root.get("securityDefinitions") {
        converted["components"] = json!({ "securitySchemes": schemes });
    }
    let Some(paths) = root.get("paths").and_then(Value::as_object) else {
        return converted;
    };
    let mut new_paths = Map::new();
    for (path, item) in paths {
        let mut new_item = item.clone();
        let Some(members) = new_item.as_object_mut() else {
            continue;
        };
        let shared = members.remove("parameters");
        for (key, operation) in members.iter_mut() {
            let is_extension = key.starts_with("x-") || key == "$ref";
            if let (false, Some(operation)) = (is_extension, operation.as_object_mut()) {
                convert(root, operation, shared.as_ref());
            }
        }
        new_paths.insert(path.clone(), new_item);
    }
    converted["paths"] = Value::Object(new_paths);
    converted
}

/// The URL of the server.
fn server(root: &Value) -> String {
    let base = root.get("basePath").map(plain).unwrap_or_default();
    let host = root.get("host").map(plain).unwrap_or_default();
    if host.is_empty() {
        return base;
    }
    let schemes = root.get("schemes").and_then(Value::as_array);
    let mut schemes = schemes.into_iter().flatten().map(plain);
    let scheme = schemes.find(|it| ["http", "https"].contains(&it.as_str()));
    let scheme = scheme.unwrap_or_else(|| "http".to_owned());
    format!("{scheme}://{host}{base}")
}

/// Converts the parameters of an operation and of its path.
fn convert(root: &Value, operation: &mut Map<String, Value>, shared: Option<&Value>) {
    let own = operation.remove("parameters");
    let resolved = |written: &Value| -> Value {
        let reference = written.get("$ref").map(plain);
        let target = reference.as_deref().and_then(|it| it.strip_prefix('#'));
        let target = target.and_then(|pointer| root.pointer(pointer));
        target.unwrap_or(written).clone()
    };
    let mut parameters: Vec<Value> = Vec::new();
    let key = |it: &Value| (it.get("in").map(plain), it.get("name").map(plain));
    for list in [own.as_ref(), shared] {
        for written in list.and_then(Value::as_array).into_iter().flatten() {
            let parameter = resolved(written);
            let is_known = parameters.iter().any(|known| {
                let is_body = |it: &Value| it.get("in") == Some(&json!("body"));
                key(known) == key(&parameter) || (is_body(known) && is_body(&parameter))
            });
            if !is_known {
                parameters.push(parameter);
            }
        }
    }
    let consumes = operation.get("consumes").or_else(|| root.get("consumes"));
    let consumes = consumes.and_then(Value::as_array).into_iter().flatten();
    let consumes: Vec<String> = consumes.map(plain).collect();
    let (mut others, mut fields) = (Vec::new(), Vec::new());
    for parameter in parameters {
        match parameter.get("in").map(plain).as_deref() {
            Some("body") => {
                let body = body(&parameter, &consumes);
                operation.insert("requestBody".to_owned(), body);
            }
            Some("formData") => fields.push(parameter),
            _ => others.push(plain_parameter(&parameter)),
        }
    }
    if !fields.is_empty() {
        operation.insert("requestBody".to_owned(), form(&fields, &consumes));
    }
    operation.insert("parameters".to_owned(), Value::Array(others));
}

/// The body of `in: body`.
fn body(parameter: &Value, consumes: &[String]) -> Value {
    let mut media = Map::new();
    if let Some(schema) = parameter.get("schema") {
        media.insert("schema".to_owned(), schema.clone());
    }
    let examples = parameter.get("x-examples").and_then(Value::as_object);
    if let Some((_, example)) = examples.and_then(|it| it.iter().next()) {
        media.insert("example".to_owned(), example.clone());
    } else if let Some(example) = parameter
        .get("x-example")
        .or_else(|| parameter.get("example"))
    {
        media.insert("example".to_owned(), example.clone());
    }
    let kinds = match consumes {
        [] => vec!["application/json".to_owned()],
        kinds => kinds.to_vec(),
    };
    let content: Map<String, Value> = kinds
        .into_iter()
        .map(|kind| (kind, Value::Object(media.clone())))
        .collect();
    let is_required = parameter
        .get("required")
        .cloned()
        .unwrap_or(Value::Bool(false));
    json!({ "required": is_required, "content": content })
}

/// The body of all `in: formData`.
fn form(fields: &[Value], consumes: &[String]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut has_file = false;
    for field in fields {
        let Some(name) = field.get("name").map(plain) else {
            continue;
        };
        let mut schema = schema(field);
        if field.get("type") == Some(&json!("file")) {
            has_file = true;
            schema = json!({ "type": "string", "format": "binary" });
        }
        if field.get("required") == Some(&Value::Bool(true)) {
            required.push(Value::String(name.clone()));
        }
        properties.insert(name, schema);
    }
    let is_multipart = has_file || consumes.iter().any(|kind| kind == "multipart/form-data");
    let is_form = consumes
        .iter()
        .any(|kind| kind == "application/x-www-form-urlencoded");
    let kind = match is_multipart && (has_file || !is_form) {
        true => "multipart/form-data",
        false => "application/x-www-form-urlencoded",
    };
    json!({
        "required": !required.is_empty(),
        "content": { kind: { "schema": {
            "type": "object", "properties": properties, "required": required,
        } } },
    })
}

/// The value of a parameter as a schema.
fn schema(parameter: &Value) -> Value {
    let members = parameter.as_object().into_iter().flatten();
    let mut schema: Map<String, Value> = members
        .filter(|(key, _)| OF_SCHEMA.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(example) = schema.remove("x-example") {
        schema.insert("example".to_owned(), example);
    }
    Value::Object(schema)
}

/// A parameter in the path, the query or a header.
fn plain_parameter(parameter: &Value) -> Value {
    let mut new = json!({
        "name": parameter.get("name"),
        "in": parameter.get("in"),
        "required": parameter.get("required").cloned().unwrap_or(Value::Bool(false)),
        "schema": schema(parameter),
    });
    let is_query = parameter.get("in") == Some(&json!("query"));
    let format = parameter
        .get("collectionFormat")
        .map(plain)
        .unwrap_or_default();
    let (style, explode) = match format.as_str() {
        "multi" => ("form", true),
        "ssv" => ("spaceDelimited", false),
        "pipes" => ("pipeDelimited", false),
        "tsv" => ("tabDelimited", false),
        _ => ("form", false),
    };
    if is_query {
        new["style"] = json!(style);
        new["explode"] = json!(explode);
    } else if !["", "csv"].contains(&format.as_str()) {
        new["style"] = json!(style);
    }
    new
}
