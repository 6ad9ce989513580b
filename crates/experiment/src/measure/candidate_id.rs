//! Ids of candidates.

/// The id of a candidate within its run: the index in the list of candidates, with the baseline first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CandidateId(usize);

impl CandidateId {
    /// Returns the id of the candidate at an index, from 0.
    pub(super) fn at(place: usize) -> CandidateId {
        CandidateId(place)
    }

    /// Returns the index, from 0.
    pub(super) fn place(self) -> usize {
        self.0
    }
}
