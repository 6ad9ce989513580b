//! The gates of a run.

use analysis::Summary;
use analysis::gate::Undecided;
use model::Gate;

/// Limits that the variants of a run must keep.
#[derive(Clone, Debug)]
pub struct Gates {
    /// The gates, in the order of the user.
    pub all: Vec<Gate>,
    /// The result of an undecided gate.
    pub undecided: Undecided,
}

impl Gates {
    /// No gates.
    pub fn none() -> Gates {
        Gates {
            all: Vec::new(),
            undecided: Undecided::Fails,
        }
    }

    /// Judges the gates on a summary.
    pub fn judge(&self, summary: Summary) -> Summary {
        summary.judged(&self.all, self.undecided)
    }
}
