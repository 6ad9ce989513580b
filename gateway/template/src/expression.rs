//! The syntax tree of a template.

/// A node of the syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// A number with its digits as written.
    Number(String),
    /// Parts that are joined to one string. Every part except [`Node::Plain`] is rendered.
    Text(Vec<Node>),
    /// A string without expressions.
    Plain(String),
    List(Vec<Node>),
    /// The members of an object. Keys can contain expressions, too.
    Object(Vec<(Node, Node)>),
    /// A variable and a path into its value.
    Path {
        variable: String,
        /// True if a missing variable is null, as in `$name?`.
        may_be_missing: bool,
        steps: Vec<Step>,
    },
    /// The operator `??`, as in `left ?? right`.
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

/// One step of a path into a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// True if the value may be missing, as in `?.`.
    pub(crate) is_optional: bool,
    pub(crate) to: Target,
}

/// The key or index of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Key(String),
    /// An expression in brackets: `[n]`, `['key']` or `[i]`.
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
    /// The operators by precedence, from the loosest to the tightest.
    pub(crate) const LEVELS: [&'static [(&'static str, Operator)]; 3] = [
        &[("||", Operator::Or)],
        &[("&&", Operator::And)],
        &[
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
            // Before `<` and `>`, because these are prefixes of them.
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
    ToPairs,
    FromPairs,
    Concat,
    GetSessionVariable,
}

/// The functions by their names.
const NAMES: [(&str, Function); 16] = [
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
    ("toPairs", Function::ToPairs),
    ("fromPairs", Function::FromPairs),
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

    /// The minimum and maximum number of arguments.
    pub(crate) fn arity(self) -> (usize, usize) {
        match self {
            Self::GetSessionVariable => (1, 2),
            _ => (1, 1),
        }
    }
}
