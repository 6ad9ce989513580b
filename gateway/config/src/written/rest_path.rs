//! The path of a REST endpoint.

use super::Form;

/// A path below `/api/rest/`: `product/:id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestPath(pub Vec<RestSegment>);

/// One segment of a [`RestPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestSegment {
    /// A segment that must match exactly.
    Literal(String),
    /// Any non-empty text, which becomes the value of this variable.
    Variable(String),
}

impl Form for RestPath {
    const NAME: &'static str = "rest-path";

    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("expected a path such as `product/:id`, found `{text}`: {why}");
        let path = text.strip_prefix('/').unwrap_or(text);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Err(wrong("it is empty"));
        }
        if path.contains(['?', '#', ' ', '*']) {
            return Err(wrong("it has one of `?`, `#`, `*` or a space"));
        }
        let mut segments: Vec<RestSegment> = Vec::new();
        for segment in path.split('/') {
            let segment = match segment.strip_prefix(':') {
                Some("") => return Err(wrong("a variable has no name")),
                Some(name) => RestSegment::Variable(name.to_owned()),
                None if segment.is_empty() => return Err(wrong("a segment is empty")),
                None => RestSegment::Literal(segment.to_owned()),
            };
            // Two segments with one name would give the operation's variable two values.
            if matches!(segment, RestSegment::Variable(_)) && segments.contains(&segment) {
                return Err(wrong("a variable is there twice"));
            }
            segments.push(segment);
        }
        Ok(Self(segments))
    }

    fn write(&self) -> String {
        let segments = self.0.iter().map(|segment| match segment {
            RestSegment::Literal(text) => text.clone(),
            RestSegment::Variable(name) => format!(":{name}"),
        });
        segments.collect::<Vec<_>>().join("/")
    }
}

impl RestPath {
    /// The path as written in the file, without slashes at its ends.
    #[must_use]
    pub fn text(&self) -> String {
        self.write()
    }
}
