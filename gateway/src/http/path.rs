//! Matches request paths against the path of the GraphQL endpoint.

/// The rule of `supergraph.path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathRule {
    /// A path without placeholders.
    Exact(String),
    /// Path segments. `None` matches any segment. With a star at the end, more segments may follow.
    Segments {
        segments: Vec<Option<String>>,
        anything_follows: bool,
    },
}

impl PathRule {
    pub(crate) fn new(path: &str) -> Self {
        // In the usual case, a request costs one text comparison.
        if !path.contains(['*', ':']) {
            return Self::Exact(path.to_owned());
        }
        let (path, anything_follows) = match path.strip_suffix("/*") {
            Some(before) => (before, true),
            None => (path, false),
        };
        let segments = path.split('/').skip(1);
        Self::Segments {
            segments: segments
                .map(|segment| (!segment.starts_with(':')).then(|| segment.to_owned()))
                .collect(),
            anything_follows,
        }
    }

    /// True if the path belongs to the endpoint.
    pub(crate) fn fits(&self, path: &str) -> bool {
        match self {
            Self::Exact(own) => own == path,
            Self::Segments {
                segments,
                anything_follows,
            } => {
                let mut found = path.split('/').skip(1);
                let fits = segments.iter().all(|segment| {
                    found.next().is_some_and(|found| match segment {
                        Some(segment) => segment == found,
                        None => !found.is_empty(),
                    })
                });
                fits && (*anything_follows || found.next().is_none())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fits_its_rule() {
        for (rule, path, fits) in [
            ("/", "/", true),
            ("/", "/graphql", false),
            ("/graphql", "/graphql", true),
            ("/graphql", "/graphql/", false),
            ("/graphql/*", "/graphql/a/b", true),
            ("/graphql/*", "/graphql", true),
            ("/graphql/*", "/graphqls", false),
            ("/*", "/anything", true),
            ("/:tenant/graphql", "/a/graphql", true),
            ("/:tenant/graphql", "//graphql", false),
            ("/:tenant/graphql", "/a/graphql/b", false),
        ] {
            assert_eq!(PathRule::new(rule).fits(path), fits, "{rule} and {path}");
        }
    }
}
