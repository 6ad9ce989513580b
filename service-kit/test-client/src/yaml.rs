//! YAML as a list of its scalars, for tests of files that other programs read.

use std::fs;
use std::path::Path;

use granit_parser::{Event, Parser};

/// A parsed file of YAML.
#[derive(Debug)]
pub struct Yaml {
    /// The original text.
    pub text: String,
    /// All scalars, keys included, in order.
    scalars: Vec<String>,
}

impl Yaml {
    /// Reads a file.
    ///
    /// # Panics
    /// Panics if the file is unreadable or is not YAML.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let name = file.display();
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut scalars = Vec::new();
        for event in Parser::new_from_str(&text) {
            let (event, _) = event.unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Event::Scalar(value, ..) = event {
                scalars.push(value.into_owned());
            }
        }
        Self { text, scalars }
    }

    /// True if one of the scalars equals `scalar`.
    #[must_use]
    pub fn has(&self, scalar: &str) -> bool {
        self.scalars.iter().any(|it| it == scalar)
    }

    /// The scalars directly after a key.
    #[must_use]
    pub fn after(&self, key: &str) -> Vec<&str> {
        let pairs = self.scalars.windows(2).filter(|pair| pair[0] == key);
        pairs.map(|pair| pair[1].as_str()).collect()
    }

    /// The kinds of a list of manifests, sorted.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let lines = self.text.lines();
        let mut kinds: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("kind: "))
            .collect();
        kinds.sort_unstable();
        kinds
    }
}
