//! The variables that a template may see.

use std::borrow::Cow;

use crate::json::Json;
use crate::rendered::Value;
use crate::work::Work;

/// The input of a template: variables by name, including the `$`.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    pub(crate) variables: Vec<(Cow<'a, str>, Value<'a>)>,
    pub(crate) work: &'a Work,
}

impl<'a> Scope<'a> {
    /// Creates a scope without variables. All work of templates with this scope and its copies counts in
    /// `work`.
    #[must_use]
    pub fn new(work: &'a Work) -> Self {
        Self {
            variables: Vec::new(),
            work,
        }
    }

    /// Adds a variable with its value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: &'a Json<'a>) -> Self {
        self.variables
            .push((Cow::Borrowed(name), Cow::Borrowed(value)));
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value<'a>> {
        // From the back, because an inner loop's variable hides an outer variable of this name.
        let mut found = self.variables.iter().rev();
        found.find(|(known, _)| known == name).map(|(_, it)| it)
    }
}
