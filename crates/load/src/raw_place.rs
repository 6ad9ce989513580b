//! Values that stand unchanged in a path.

/// The place of a raw value in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RawPlace {
    /// Behind the begin of the path.
    Inside,
    /// At the begin of the path, so the value has the first slash.
    Start,
}

impl RawPlace {
    /// The reason why a value cannot stand there. It would split the request line, or another server would
    /// receive another path.
    pub(crate) fn problem(self, text: &str) -> Option<String> {
        // The characters of a target in the carriers of this program (RFC 3986, section 3.3, and more).
        let is_open = |it: &char| it.is_ascii_graphic() && !"\"#<>`".contains(*it);
        if let Some(bad) = text.chars().find(|it| !is_open(it)) {
            return Some(format!(
                "`{}`, and a path cannot contain {bad:?}",
                text.escape_debug()
            ));
        }
        let has_slash = self == RawPlace::Inside || text.starts_with('/');
        (!has_slash).then(|| format!("`{text}`, and a path begins with `/`"))
    }
}
