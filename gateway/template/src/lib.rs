//! Kriti templates: JSON with `{{ … }}` in it.
//!
//! A [`Template`] is read once and rendered for each request. Values are [`Json`], a tree. Its numbers and
//! plain strings are slices of the source text. So `{{$body.product}}` copies no data, and a number keeps its
//! digits.
//!
//! Templates deliberately have no access to files, clocks and the network. A template reads only its input,
//! its loops end with their lists, and its output is limited ([`Work`]).

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

/// A parsed template, ready to be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    node: Node,
}

impl Template {
    /// Reads a template that makes a JSON value: `{"id": {{$body.input.id}}}`.
    ///
    /// # Errors
    /// The place of the first syntax error.
    pub fn json(text: &str) -> Result<Self, TemplateError> {
        parse::json(text).map(|node| Self { node })
    }

    /// Reads a template that makes text: `{{$base_url}}/product/{{$body.input.id}}`. If it consists of a
    /// single expression, it makes the expression's value.
    ///
    /// # Errors
    /// The place of the first syntax error.
    pub fn text(text: &str) -> Result<Self, TemplateError> {
        parse::text(text).map(|node| Self { node })
    }
}
