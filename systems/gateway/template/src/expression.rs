//! What a template consists of.

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

/// A function that templates may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Not,
    EscapeUri,
    Empty,
    Size,
    Inverse,
    Head,
    Tail,
    ToLower,
    ToUpper,
    ToCaseFold,
    ToTitle,
    RemoveNulls,
    Concat,
    GetSessionVariable,
}

/// The functions by their names.
const NAMES: [(&str, Function); 14] = [
    ("not", Function::Not),
    ("escapeUri", Function::EscapeUri),
    ("empty", Function::Empty),
    ("size", Function::Size),
    ("inverse", Function::Inverse),
    ("head", Function::Head),
    ("tail", Function::Tail),
    ("toLower", Function::ToLower),
    ("toUpper", Function::ToUpper),
    ("toCaseFold", Function::ToCaseFold),
    ("toTitle", Function::ToTitle),
    ("removeNulls", Function::RemoveNulls),
    ("concat", Function::Concat),
    ("getSessionVariable", Function::GetSessionVariable),
];

impl Function {
    pub(crate) fn named(word: &str) -> Option<Self> {
        let mut names = NAMES.iter();
        names.find(|(name, _)| *name == word).map(|(_, it)| *it)
    }

    pub(crate) fn name(self) -> &'static str {
        let mut names = NAMES.iter();
        let found = names.find(|(_, function)| *function == self);
        found.expect("`NAMES` lists every function").0
    }

    /// The least and the most arguments.
    pub(crate) fn arity(self) -> (usize, usize) {
        match self {
            Self::GetSessionVariable => (1, 2),
            _ => (1, 1),
        }
    }
}
