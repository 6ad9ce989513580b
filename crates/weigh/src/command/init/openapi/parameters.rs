//! The texts of parameters, in the styles of OpenAPI.

use serde_json::Value;

use crate::command::init::placeholders::flat;
use crate::command::init::tree::json_text;
use crate::command::init::values::{encoded, url_text};

/// The text of a parameter. For a query it contains the names.
///
/// # Errors
/// A sentence, if the style is not known or does not fit the value.
pub(super) fn written(
    parameter: &Value,
    place: &str,
    name: &str,
    value: &Value,
) -> Result<String, String> {
    let is_reserved = parameter.get("allowReserved") == Some(&Value::Bool(true));
    let encode = |text: &str| match place {
        // A header is not percent-encoded.
        "header" => text.to_owned(),
        "query" if is_reserved => url_text(&text.replace('#', "%23")),
        _ => encoded(text),
    };
    if parameter.get("content").is_some() {
        let text = match value {
            Value::String(text) => text.clone(),
            other => json_text(other),
        };
        return Ok(match place {
            "query" => format!("{}={}", encoded(name), encoded(&text)),
            _ => encode(&text),
        });
    }
    let usual = if place == "query" { "form" } else { "simple" };
    let style = parameter
        .get("style")
        .and_then(Value::as_str)
        .unwrap_or(usual);
    let explode = parameter.get("explode").and_then(Value::as_bool);
    let is_exploded = explode.unwrap_or(style == "form");
    let content = Content::of(value, &encode);
    let unknown =
        || format!("its parameter `{name}` has the style `{style}`, which is not known here");
    let key = encoded(name);
    Ok(match (place, style) {
        ("path" | "header", "simple") => content.joined(",", ",", "=", is_exploded),
        ("path", "label") => {
            let separator = if is_exploded { "." } else { "," };
            format!(
                ".{}",
                content.joined(separator, separator, "=", is_exploded)
            )
        }
        ("path", "matrix") => match (&content, is_exploded) {
            (Content::Scalar(text), _) => format!(";{key}={text}"),
            (Content::List(items), true) => {
                items.iter().map(|item| format!(";{key}={item}")).collect()
            }
            (Content::Members(members), true) => members
                .iter()
                .map(|(name, value)| format!(";{name}={value}"))
                .collect(),
            _ => format!(";{key}={}", content.joined(",", ",", "=", false)),
        },
        ("query", _) => in_query(&key, style, is_exploded, &content).ok_or_else(unknown)?,
        _ => return Err(unknown()),
    })
}

/// The text of a parameter in a query, with its name. `None` for an unknown style.
fn in_query(key: &str, style: &str, is_exploded: bool, content: &Content) -> Option<String> {
    let separator = match style {
        "form" => ",",
        "spaceDelimited" => "%20",
        "pipeDelimited" => "%7C",
        "tabDelimited" => "%09",
        "deepObject" => "",
        _ => return None,
    };
    let parts: Vec<String> = match (content, style, is_exploded) {
        (Content::Members(members), "deepObject", _) => members
            .iter()
            .map(|(name, value)| format!("{key}%5B{name}%5D={value}"))
            .collect(),
        (_, "deepObject", _) => return None,
        (Content::List(items), _, true) => {
            items.iter().map(|item| format!("{key}={item}")).collect()
        }
        (Content::Members(members), _, true) => members
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
        _ => {
            let text = content.joined(separator, separator, "=", false);
            vec![format!("{key}={text}")]
        }
    };
    Some(parts.join("&"))
}

/// A value in its encoded parts.
enum Content {
    Scalar(String),
    List(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Content {
    fn of(value: &Value, encode: &dyn Fn(&str) -> String) -> Content {
        match value {
            Value::Array(items) => {
                Content::List(items.iter().map(|it| encode(&flat(it))).collect())
            }
            Value::Object(members) => Content::Members(
                members
                    .iter()
                    .map(|(name, value)| (encode(name), encode(&flat(value))))
                    .collect(),
            ),
            scalar => Content::Scalar(encode(&flat(scalar))),
        }
    }

    /// The parts with separators. Members are `name=value` if they are exploded, or else `name,value`.
    fn joined(&self, items: &str, members: &str, equals: &str, is_exploded: bool) -> String {
        match self {
            Content::Scalar(text) => text.clone(),
            Content::List(parts) => parts.join(items),
            Content::Members(pairs) => {
                let between = if is_exploded { equals } else { members };
                let pairs = pairs
                    .iter()
                    .map(|(name, value)| format!("{name}{between}{value}"));
                pairs.collect::<Vec<_>>().join(members)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn styles_are_those_of_the_specification() {
        let (text, list, object) = (
            json!("a b"),
            json!(["blue", "black"]),
            json!({"B": 150, "R": 100}),
        );
        for (place, style, explode, value, expected) in [
            ("path", "simple", false, &text, "a%20b"),
            ("path", "simple", false, &list, "blue,black"),
            ("path", "simple", false, &object, "B,150,R,100"),
            ("path", "simple", true, &object, "B=150,R=100"),
            ("path", "label", false, &text, ".a%20b"),
            ("path", "label", false, &list, ".blue,black"),
            ("path", "label", true, &list, ".blue.black"),
            ("path", "label", true, &object, ".B=150.R=100"),
            ("path", "matrix", false, &text, ";c=a%20b"),
            ("path", "matrix", false, &list, ";c=blue,black"),
            ("path", "matrix", true, &list, ";c=blue;c=black"),
            ("path", "matrix", false, &object, ";c=B,150,R,100"),
            ("path", "matrix", true, &object, ";B=150;R=100"),
            ("query", "form", true, &text, "c=a%20b"),
            ("query", "form", false, &list, "c=blue,black"),
            ("query", "form", true, &list, "c=blue&c=black"),
            ("query", "form", false, &object, "c=B,150,R,100"),
            ("query", "form", true, &object, "B=150&R=100"),
            ("query", "spaceDelimited", false, &list, "c=blue%20black"),
            ("query", "pipeDelimited", false, &list, "c=blue%7Cblack"),
            (
                "query",
                "deepObject",
                true,
                &object,
                "c%5BB%5D=150&c%5BR%5D=100",
            ),
            ("header", "simple", false, &list, "blue,black"),
            ("header", "simple", false, &text, "a b"),
        ] {
            let parameter = json!({"style": style, "explode": explode});
            let found = written(&parameter, place, "c", value);
            assert_eq!(found.as_deref(), Ok(expected), "{place} {style} {explode}");
        }
        let usual = written(&json!({}), "query", "c", &list);
        assert_eq!(usual.as_deref(), Ok("c=blue&c=black"));
        let content = json!({"content": {"application/json": {}}});
        let json = written(&content, "query", "c", &json!({"a": 1}));
        assert_eq!(json.as_deref(), Ok("c=%7B%22a%22%3A1%7D"));
        let reserved = json!({"allowReserved": true});
        let open = written(&reserved, "query", "c", &json!("a/b:c d"));
        assert_eq!(open.as_deref(), Ok("c=a/b:c%20d"));
        let odd = written(&json!({"style": "odd"}), "query", "c", &text);
        assert!(odd.unwrap_err().contains("`odd`"));
    }
}
