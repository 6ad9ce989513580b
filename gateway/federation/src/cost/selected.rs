//! The selections of an operation, by response key.

/// All selections of one key at one place of a response.
#[derive(Debug)]
pub(super) struct Selected {
    /// The response key, unique among its siblings.
    pub(super) key: Box<str>,
    /// The cost of one value without its selections.
    pub(super) own: f64,
    /// The position of the arguments, as in [`Node::arguments`](super::formula::Node::arguments).
    pub(super) arguments: Option<usize>,
    /// The selections below it, by key.
    pub(super) fields: Vec<Selected>,
}

impl Selected {
    /// Approximate size of the selections in bytes.
    pub(super) fn weight(all: &[Selected]) -> usize {
        let all = all.iter();
        all.map(|it| size_of::<Selected>() + it.key.len() + Selected::weight(&it.fields))
            .sum()
    }
}
