//! The variables that a template may see.

use std::borrow::Cow;

use crate::json::Json;
use crate::rendered::Value;
use crate::work::Work;

/// What a template may see: variables by name, with their `$`.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    pub(crate) variables: Vec<(Cow<'a, str>, Value<'a>)>,
    pub(crate) work: &'a Work,
}

impl<'a> Scope<'a> {
    /// No variables so far. All that templates do with this scope and its copies counts as `work`.
    #[must_use]
    pub fn new(work: &'a Work) -> Self {
        Self {
            variables: Vec::new(),
            work,
        }
    }

    /// Lets templates see a value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: &'a Json<'a>) -> Self {
        self.variables
            .push((Cow::Borrowed(name), Cow::Borrowed(value)));
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value<'a>> {
        // From the back: an inner loop's variable hides an outer one of the same name.
        let mut found = self.variables.iter().rev();
        found.find(|(known, _)| known == name).map(|(_, it)| it)
    }
}
