//! What a template consists of.

use crate::functions::Function;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// The digits as written.
    Number(String),
    /// Pieces that are joined to one text. A piece that is not a [`Node::Plain`] is rendered.
    Text(Vec<Node>),
    /// Text without an expression in it.
    Plain(String),
    List(Vec<Node>),
    /// Keys are text, too.
    Object(Vec<(Node, Node)>),
    /// A variable and the way from it.
    Path {
        variable: String,
        steps: Vec<Step>,
    },
    /// `left ?? right`.
    Default(Box<Node>, Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    If {
        branches: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
    Range {
        index: Option<String>,
        item: Option<String>,
        over: Box<Node>,
        body: Box<Node>,
    },
}

/// One step of a way into a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Whether it is fine that there is nothing: `?.`.
    pub(crate) is_optional: bool,
    pub(crate) to: Target,
}

/// Where a step leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Key(String),
    /// `[n]`, `['key']`, `[i]`.
    Computed(Box<Node>),
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    In,
}

impl Operator {
    /// The operators by how tightly they bind, loosest first.
    pub(crate) const LEVELS: [&'static [(&'static str, Operator)]; 3] = [
        &[("||", Operator::Or)],
        &[("&&", Operator::And)],
        &[
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
            // Before `<` and `>`, which they begin with.
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("in", Operator::In),
        ],
    ];
}
