//! Kriti templates: JSON with `{{ … }}` in it.
//!
//! A [`Template`] is read once and rendered for each request. Values are [`Json`], a tree whose
//! numbers and plain strings stay slices of the text they came from, so that `{{$body.product}}`
//! copies nothing and a number keeps its digits.
//!
//! Absent on purpose: files, clocks, the network; a template can only see what it is given, its loops
//! are as long as the lists it is given, and what it makes of them is bounded ([`Work`]).

mod expression;
mod functions;
mod json;
mod number;
mod parse;
mod render;
mod rendered;
mod scope;
mod work;

pub use json::{Json, JsonError, write_text};
pub use parse::TemplateError;
pub use rendered::RenderError;
pub use scope::Scope;
pub use work::Work;

use expression::Node;

/// A template that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    node: Node,
}

impl Template {
    /// Reads a template that makes a JSON value: `{"id": {{$body.input.id}}}`.
    ///
    /// # Errors
    /// With the place where it stops being a template.
    pub fn json(text: &str) -> Result<Self, TemplateError> {
        parse::json(text).map(|node| Self { node })
    }

    /// Reads a template that makes text: `{{$base_url}}/product/{{$body.input.id}}`. When it is
    /// one expression and nothing else, it makes the expression's value.
    ///
    /// # Errors
    /// With the place where it stops being a template.
    pub fn text(text: &str) -> Result<Self, TemplateError> {
        parse::text(text).map(|node| Self { node })
    }
}
