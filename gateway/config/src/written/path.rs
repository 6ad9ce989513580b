//! Request paths, and paths into request bodies.

use super::Form;

/// The path of the GraphQL endpoint: `/graphql`, `/graphql/*`, `/:tenant/graphql`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphqlPath(pub String);

impl Form for GraphqlPath {
    const NAME: &'static str = "graphql-path";

    fn read(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!(
                "expected a path that starts with `/`, found `{text}`"
            ));
        }
        // In reverse order, because only the last segment may be the star.
        let mut segments = text[1..].split('/').rev();
        let last = segments.next().unwrap_or_default();
        let is_star_inside = last.contains('*') && last != "*";
        if is_star_inside || segments.any(|segment| segment.contains('*')) {
            return Err(format!(
                "`*` can only be the whole last segment of a path, found `{text}`; write `/graphql/*`, or `/:name/graphql` for one segment of any text"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// A path that is compared as text: `/health`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPath(pub String);

impl Form for PlainPath {
    const NAME: &'static str = "plain-path";

    fn read(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && !text.contains(['?', '#', '*', ' ']) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("expected a path such as `/health`, found `{text}`"))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// A path into a JSON value: `.extensions.x[0].y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyPath(pub Vec<PathStep>);

/// One step of a [`BodyPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A member of an object.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

impl Form for BodyPath {
    const NAME: &'static str = "json-path";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a path such as `.operationName` or `.extensions.x[0].y`, found `{text}`"
            )
        };
        let mut steps = Vec::new();
        for part in text.strip_prefix('.').ok_or_else(wrong)?.split('.') {
            let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            // A key with special characters is in quotes.
            let key = key.trim_matches('"');
            if key.is_empty() {
                return Err(wrong());
            }
            steps.push(PathStep::Key(key.to_owned()));
            while !rest.is_empty() {
                let (inside, after) = rest
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'))
                    .ok_or_else(wrong)?;
                match inside.parse() {
                    Ok(index) => steps.push(PathStep::Index(index)),
                    // `["key"]` is a member as well.
                    Err(_) => {
                        steps.push(PathStep::Key(inside.trim_matches(['"', '\'']).to_owned()))
                    }
                }
                rest = after;
            }
        }
        Ok(Self(steps))
    }

    fn write(&self) -> String {
        let steps = self.0.iter().map(|step| match step {
            PathStep::Key(key) => format!(".{key}"),
            PathStep::Index(index) => format!("[{index}]"),
        });
        steps.collect()
    }
}
