//! Names of candidates.

/// A name of a candidate within its run: the place in the list of candidates, the baseline first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CandidateId(usize);

impl CandidateId {
    /// Returns the name of the candidate at a place, from 0.
    pub(super) fn at(place: usize) -> CandidateId {
        CandidateId(place)
    }

    /// Returns the place, from 0.
    pub(super) fn place(self) -> usize {
        self.0
    }
}
