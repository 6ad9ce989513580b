//! Paths into the data or the errors of a response, in the notation of JSONPath.

use super::Form;

/// A path into a JSON value: `$`, `$.user.name`, `$[0].extensions.code`, `$.items[*].id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPath(pub Vec<DataStep>);

/// One step of a [`DataPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataStep {
    /// A member of an object.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
    /// All items of a list, or all members of an object.
    Every,
}

impl Form for DataPath {
    const NAME: &'static str = "data-path";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a path such as `$`, `$.user.name`, `$[0].extensions.code` or `$.items[*].id`, found `{text}`"
            )
        };
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            // Examples of the original have a dot before a bracket.
            let bracket = rest.strip_prefix('.').unwrap_or(rest).strip_prefix('[');
            let (step, after) = match rest.strip_prefix('.') {
                Some(rest) if bracket.is_none() => {
                    let end = rest.find(['.', '[']).unwrap_or(rest.len());
                    rest.split_at(end)
                }
                _ => {
                    let inside = bracket.ok_or_else(wrong)?;
                    inside.split_once(']').ok_or_else(wrong)?
                }
            };
            steps.push(step_of(step, bracket.is_some()).ok_or_else(wrong)?);
            rest = after;
        }
        Ok(Self(steps))
    }

    fn write(&self) -> String {
        let steps = self.0.iter().map(|step| match step {
            DataStep::Key(key) => format!("['{key}']"),
            DataStep::Index(index) => format!("[{index}]"),
            DataStep::Every => "[*]".to_owned(),
        });
        format!("${}", steps.collect::<String>())
    }
}

/// Reads one step. Filters, slices and negative indexes are not supported.
fn step_of(text: &str, is_bracket: bool) -> Option<DataStep> {
    if text == "*" {
        return Some(DataStep::Every);
    }
    if !is_bracket {
        let is_name = !text.is_empty() && !text.contains([']', '*', '?', '(', '\'', '"']);
        return is_name.then(|| DataStep::Key(text.to_owned()));
    }
    if let Ok(index) = text.parse() {
        return Some(DataStep::Index(index));
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let key = quoted('\'').or_else(|| quoted('"'))?;
    Some(DataStep::Key(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_the_root() {
        let shown = |text| DataPath::read(text).map(|it| it.write());
        for (text, expected) in [
            ("$", "$"),
            ("$.a.b", "$['a']['b']"),
            ("$[0].extensions.code", "$[0]['extensions']['code']"),
            ("$.a[*].b", "$['a'][*]['b']"),
            ("$.*", "$[*]"),
            ("$.[0].message", "$[0]['message']"),
            (r#"$["a b"]['c']"#, "$['a b']['c']"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            ".a",
            "a",
            "$a",
            "$..a",
            "$[",
            "$[-1]",
            "$[?(@.a)]",
            "$[1:2]",
            "$.a.",
            "$..[0]",
        ] {
            assert!(shown(text).unwrap_err().contains("such as `$`"), "{text}");
        }
    }
}
