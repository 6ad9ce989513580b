//! Placeholders `{{name}}` of other tools: values of the file, or placeholders of the lab.

use serde_json::Value;

use super::tree::{json_text, without_mark};

/// The content of a placeholder.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A value of the file.
    Known(Value),
    /// A value that the lab fills in. It is the content of the lab's placeholder.
    Later(String),
    /// A text with placeholders of the lab, and their contents.
    Mixed(String, Vec<String>),
}

impl Meaning {
    /// The meaning of a text with placeholders.
    pub(super) fn of(text: &str, meanings: &dyn Meanings) -> Result<Meaning, String> {
        let mut filling = Filling {
            meanings,
            places: Vec::new(),
        };
        let text = filling.text(text)?;
        Ok(match filling.places.is_empty() {
            true => Meaning::Known(Value::String(text)),
            false => Meaning::Mixed(text, filling.places),
        })
    }
}

/// The names that placeholders of a file can contain.
pub(super) trait Meanings {
    /// The meaning of a name, or the reason why a lab cannot have it.
    fn meaning(&self, name: &str) -> Result<Meaning, String>;
}

/// A function is enough for the names within the value of another name.
impl<F: Fn(&str) -> Result<Meaning, String>> Meanings for F {
    fn meaning(&self, name: &str) -> Result<Meaning, String> {
        self(name)
    }
}

/// Texts of a file with their placeholders replaced.
pub(super) struct Filling<'a> {
    pub(super) meanings: &'a dyn Meanings,
    /// The contents of the lab's placeholders in all texts.
    pub(super) places: Vec<String>,
}

impl Filling<'_> {
    /// The text with all placeholders replaced.
    pub(super) fn text(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("a `{{` is not closed")?;
            // Some tools have placeholders in three braces for values without escapes.
            let is_triple = name.starts_with('{') && after.starts_with('}');
            let name = name.trim_start_matches('{').trim();
            out.push_str(before);
            let identifier = identifier(name);
            if let Some((fixed, _)) = identifier {
                out.push_str(fixed);
            }
            let meaning = match identifier {
                Some((_, random)) => Meaning::Later(random.to_owned()),
                None => self.meanings.meaning(name)?,
            };
            match meaning {
                Meaning::Known(value) => out.push_str(&flat(&value)),
                Meaning::Later(word) => {
                    out.push_str(&format!("{{{{{word}}}}}"));
                    self.places.push(word);
                }
                Meaning::Mixed(text, places) => {
                    out.push_str(&text);
                    self.places.extend(places);
                }
            }
            rest = if is_triple { &after[1..] } else { after };
        }
        Ok(out + rest)
    }

    /// A URL with all placeholders replaced. A placeholder without a value at its beginning stays, because it is
    /// the server.
    pub(super) fn text_of_url(&mut self, url: &str) -> Result<String, String> {
        let first = url
            .strip_prefix("{{")
            .and_then(|rest| rest.split_once("}}"));
        if let Some((name, rest)) = first
            && (rest.is_empty() || rest.starts_with(['/', '?']))
            && self.meanings.meaning(name.trim()).is_err()
        {
            return Ok(format!("{{{{{}}}}}{}", name.trim(), self.text(rest)?));
        }
        self.text(url)
    }

    /// The value with the placeholders of each text replaced, so that no value can break the JSON around it. A
    /// text that is only one placeholder becomes the value itself.
    pub(super) fn value(&mut self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => {
                let alone = text
                    .strip_prefix("{{")
                    .and_then(|rest| rest.strip_suffix("}}"))
                    .filter(|name| !name.contains(['{', '}']));
                let alone = alone
                    .map(str::trim)
                    .filter(|name| identifier(name).is_none());
                match alone.map(|name| self.meanings.meaning(name)).transpose()? {
                    Some(Meaning::Known(value)) => value,
                    _ => Value::String(self.text(text)?),
                }
            }
            Value::Array(items) => {
                let items: Result<_, String> = items.iter().map(|it| self.value(it)).collect();
                Value::Array(items?)
            }
            Value::Object(members) => {
                let mut filled = serde_json::Map::new();
                for (name, member) in members {
                    filled.insert(self.text(name)?, self.value(member)?);
                }
                Value::Object(filled)
            }
            other => other.clone(),
        })
    }
}

/// The lab's placeholder for a value that other tools make for each request: a random number, or an identifier
/// with random digits at its end.
pub(super) fn dynamic(name: &str) -> Option<String> {
    let mut words = name
        .split([' ', '(', ',', ')'])
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let numbers: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
    match (first, numbers.as_slice()) {
        // Digits, because a lab draws numbers only.
        ("$randomString" | "$random.alphanumeric" | "$random.numeric", []) => digits(10),
        ("$randomString" | "$random.alphanumeric" | "$random.numeric", [length]) => digits(*length),
        ("$randomInt", []) => Some("random:0..1000".to_owned()),
        // The largest number is not drawn.
        ("$randomInt" | "$random.integer", [from, to]) if (0..*to).contains(from) => {
            Some(format!("random:{from}..{}", to - 1))
        }
        _ => None,
    }
}

/// The lab's placeholder for a random text of digits. A number of the load has at most 18 digits.
fn digits(length: i64) -> Option<String> {
    let length = u32::try_from(length)
        .ok()
        .filter(|length| (1..=18).contains(length))?;
    let least = 10_u64.pow(length - 1);
    Some(format!("random:{least}..{}", least * 10 - 1))
}

/// The text with a random number instead of an identifier: `$guid`, `$uuid` and similar names. `None` for
/// another name.
pub(super) fn identifier(name: &str) -> Option<(&'static str, &'static str)> {
    ["$guid", "$uuid", "$randomUUID", "$random.uuid"]
        .contains(&name)
        .then_some((
            "7b2a4c10-5d3e-4f6a-8b9c-",
            "random:100000000000..999999999999",
        ))
}

/// A value within a text. Lists and mappings are JSON.
pub(super) fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => without_mark(text).to_owned(),
        other => json_text(other),
    }
}

/// The name of a value as a word of labs: letters, digits, `-` and `_`. Words with a meaning of their own get
/// an ending.
pub(super) fn word(name: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut word: String = name
        .chars()
        .map(|c| if is_of_word(c) { c } else { '-' })
        .collect();
    if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        word.insert_str(0, "v-");
    }
    let reserved = [
        "addr", "port", "url", "socket", "name", "instance", "files", "index", "weigh", "lab",
    ];
    if reserved.contains(&word.as_str()) {
        word.push_str("-value");
    }
    word
}

/// The JSON pointer of a simple JSONPath: `$.data[0].id` is `/data/0/id`. `None` for a path that can select
/// several values.
pub(super) fn json_pointer(path: &str) -> Option<String> {
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    let mut pointer = String::new();
    let mut is_first = true;
    while !rest.is_empty() {
        let name;
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = match inner.chars().next()? {
                quote @ ('"' | '\'') => {
                    let (inside, after) = inner[1..].split_once(quote)?;
                    (inside, after.strip_prefix(']')?)
                }
                _ => {
                    let (inside, after) = inner.split_once(']')?;
                    inside.parse::<usize>().ok()?;
                    (inside, after)
                }
            };
            (name, rest) = (inside, after);
        } else {
            let plain = match rest.strip_prefix('.') {
                Some(plain) => plain,
                None if is_first => rest,
                None => return None,
            };
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            (name, rest) = plain.split_at(end);
            let is_of_name =
                |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | ' ' | '@' | ':');
            if name.is_empty() || !name.chars().all(is_of_name) {
                return None;
            }
        }
        is_first = false;
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    (!pointer.is_empty()).then_some(pointer)
}

/// A regular expression of another tool that selects the group of a number, in the form of labs: the first
/// group, or the whole match without a group. `None` if labs cannot read it.
pub(super) fn selecting(pattern: &str, group: usize) -> Option<String> {
    let mut selecting = String::new();
    let (mut number, mut is_escaped, mut is_in_class) = (0, false, false);
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        selecting.push(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class && characters.peek() != Some(&'?') => {
                number += 1;
                if number != group {
                    selecting.push_str("?:");
                }
            }
            _ => {}
        }
    }
    // Rust has no look-around and no backreference.
    let is_read = regex::Regex::new(&selecting).is_ok();
    (is_read && number >= group).then_some(selecting)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Names;

    impl Meanings for Names {
        fn meaning(&self, name: &str) -> Result<Meaning, String> {
            match name {
                "five" => Ok(Meaning::Known(json!(5))),
                "list" => Ok(Meaning::Known(json!([1, "a"]))),
                "token" => Ok(Meaning::Later("token".to_owned())),
                _ => Err(format!("`{name}` is unknown")),
            }
        }
    }

    #[test]
    fn a_placeholder_alone_keeps_its_type() {
        let mut filling = Filling {
            meanings: &Names,
            places: Vec::new(),
        };
        let value = json!({"a": "{{ five }}", "b": ["n {{five}}", "{{list}}"], "c": "{{ token }}", "{{five}}": null});
        assert_eq!(
            filling.value(&value),
            Ok(json!({"a": 5, "b": ["n 5", [1, "a"]], "c": "{{token}}", "5": null}))
        );
        assert_eq!(filling.places, ["token"]);
        assert_eq!(
            filling.text("{{{five}}}/{{list}}"),
            Ok("5/[1,\"a\"]".to_owned())
        );
        assert_eq!(
            Meaning::of("a {{token}}", &Names),
            Ok(Meaning::Mixed(
                "a {{token}}".to_owned(),
                vec!["token".to_owned()]
            ))
        );
        assert_eq!(filling.text("{{x}}"), Err("`x` is unknown".to_owned()));
        assert!(filling.text("{{five").is_err());
    }

    #[test]
    fn random_values_are_drawn_by_the_lab() {
        for (name, expected) in [
            ("$randomInt", Some("random:0..1000")),
            ("$randomInt 5 10", Some("random:5..9")),
            ("$random.integer(1, 3)", Some("random:1..2")),
            ("$randomString(3)", Some("random:100..999")),
            ("$randomString()", Some("random:1000000000..9999999999")),
            ("$randomString(99)", None),
            ("$timestamp", None),
        ] {
            assert_eq!(dynamic(name).as_deref(), expected, "{name}");
        }
        let mut filling = Filling {
            meanings: &Names,
            places: Vec::new(),
        };
        let text = filling.text("{{$guid}}").expect("an identifier");
        assert_eq!(
            text,
            "7b2a4c10-5d3e-4f6a-8b9c-{{random:100000000000..999999999999}}"
        );
        assert_eq!(filling.places, ["random:100000000000..999999999999"]);
    }

    #[test]
    fn simple_paths_are_pointers() {
        for (path, pointer) in [
            ("$.token", Some("/token")),
            ("token", Some("/token")),
            ("$['a/b'][0].c", Some("/a~1b/0/c")),
            ("$.data.items[2]", Some("/data/items/2")),
            ("data[0]", Some("/data/0")),
            ("$[0].id", Some("/0/id")),
            ("$..id", None),
            ("$.items[*].id", None),
            ("$.items[?(@.a)]", None),
            ("$.a.length()", None),
            ("$", None),
        ] {
            assert_eq!(json_pointer(path).as_deref(), pointer, "{path}");
        }
    }

    #[test]
    fn words_are_names_of_labs() {
        for (name, expected) in [
            ("token", "token"),
            ("user.id", "user-id"),
            ("name", "name-value"),
            ("1st", "v-1st"),
            ("$x", "v--x"),
        ] {
            assert_eq!(word(name), expected);
        }
    }

    #[test]
    fn the_wanted_group_is_the_only_group() {
        assert_eq!(selecting("id=(a)(b)", 0).as_deref(), Some("id=(?:a)(?:b)"));
        assert_eq!(
            selecting(r"\((a)[(](b)", 2).as_deref(),
            Some(r"\((?:a)[(](b)")
        );
        assert_eq!(selecting("(a)", 2), None);
        assert_eq!(selecting("(?=a)b", 0), None);
    }
}
