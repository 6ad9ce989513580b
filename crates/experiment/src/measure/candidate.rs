//! The variants of a lab, with their state from the build to the number.

use std::collections::BTreeSet;

use lab::{Lab, Variant};
use model::InvalidKind;
use recording::{Proof, SystemRecord, VariantRecord, VariantStatus};

use super::candidate_id::CandidateId;
use super::footprint::Footprint;
use super::groups::{CoresUsed, Member};
use super::trial::Trial;
use crate::invalid::Invalid;
use crate::prove::Proven;
use crate::record;

/// A variant, with its state from the build to the number.
pub(super) struct Candidate<'a> {
    pub(super) variant: &'a Variant,
    /// The baseline that it is compared with. `None` for a baseline.
    against: Option<CandidateId>,
    /// The resource needs seen at the first start of its systems.
    pub(super) footprint: Footprint,
    /// The systems in the form of a recording, in start order.
    pub(super) systems: Vec<SystemRecord>,
    /// The proven responses. `None` before its proof.
    proven: Option<Proven>,
    /// The proof by another generator, if this process did not prove the variant.
    proof_elsewhere: Option<Proof>,
    /// The results of two short loads after its proof, if they were sent.
    pub(super) trial: Option<Trial>,
    /// The reason why it has no number. `None` while it may get one.
    invalid: Option<Invalid>,
}

/// All candidates of a run, the baseline first.
pub(super) struct Candidates<'a>(Vec<Candidate<'a>>);

impl<'a> Candidate<'a> {
    fn new(lab: &'a Lab, variant: &'a Variant) -> Candidate<'a> {
        let against = variant.against.as_ref().map(|name| {
            let position = lab.all().position(|other| other.name == *name);
            CandidateId::at(position.expect("a lab compares its variants with variants it has"))
        });
        Candidate {
            variant,
            against,
            systems: variant.systems().iter().map(record::system).collect(),
            footprint: Footprint::default(),
            proven: None,
            proof_elsewhere: None,
            trial: None,
            invalid: variant.absent.clone().map(|reason| {
                let kind = match variant.is_quick {
                    true => InvalidKind::Absent,
                    // The variant exists, but a quick run leaves it out.
                    false => InvalidKind::NotNeeded,
                };
                Invalid::new(kind, reason)
            }),
        }
    }

    pub(super) fn name(&self) -> &'a str {
        &self.variant.name
    }

    pub(super) fn invalid(&self) -> Option<&Invalid> {
        self.invalid.as_ref()
    }

    /// The proven responses. Every remaining candidate was proven before the first round.
    pub(super) fn proven(&self) -> &Proven {
        self.proven
            .as_ref()
            .expect("a candidate that is still in has been proven")
    }

    pub(super) fn is_proven(&self) -> bool {
        self.proven.is_some()
    }

    pub(super) fn set_proven(&mut self, proven: Proven) {
        assert!(self.proven.is_none(), "a candidate is proven once a run");
        self.proven = Some(proven);
    }

    /// Stores the proof by another generator. The first stored proof stays.
    pub(super) fn set_proof_elsewhere(&mut self, proof: Option<Proof>) {
        self.proof_elsewhere = self.proof_elsewhere.take().or(proof);
    }

    /// Rejects the candidate. The first reason stays, because later reasons follow from it.
    pub(super) fn reject(&mut self, invalid: Invalid) {
        assert!(
            self.invalid.is_none(),
            "a candidate that is out has no further turn"
        );
        self.invalid = Some(invalid);
    }

    fn record(&self, lab: &Lab, invalid: Option<Invalid>) -> VariantRecord {
        VariantRecord {
            name: self.name().to_owned(),
            baseline: record::baseline_of(lab, self.variant),
            requests: record::own_requests(lab, self.variant),
            prepared: record::prepared(self.variant),
            protocol: record::own_protocol(lab, self.variant),
            with: record::differences(lab, self.variant),
            systems: self.systems.clone(),
            proof: self
                .proven
                .as_ref()
                .map(|proven| proven.proof.clone())
                .or_else(|| self.proof_elsewhere.clone()),
            status: invalid.map_or(VariantStatus::Measured, |invalid| VariantStatus::Invalid {
                kind: invalid.kind,
                reason: invalid.reason,
            }),
        }
    }
}

impl<'a> Candidates<'a> {
    pub(super) fn of(lab: &'a Lab) -> Candidates<'a> {
        let candidates = lab.all().map(|variant| Candidate::new(lab, variant));
        Candidates(candidates.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of the report. Does not borrow the candidates, so that each can be changed.
    pub(super) fn ids(&self) -> impl Iterator<Item = CandidateId> + use<> {
        (0..self.0.len()).map(CandidateId::at)
    }

    /// The candidate at a position in the order of the report.
    pub(super) fn at(&self, position: usize) -> CandidateId {
        assert!(position < self.0.len(), "positions come from this lab");
        CandidateId::at(position)
    }

    pub(super) fn get(&self, id: CandidateId) -> &Candidate<'a> {
        &self.0[id.place()]
    }

    pub(super) fn get_mut(&mut self, id: CandidateId) -> &mut Candidate<'a> {
        &mut self.0[id.place()]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate<'a>> {
        self.0.iter()
    }

    /// The baseline that it is compared with. `None` for a baseline.
    pub(super) fn baseline_of(&self, id: CandidateId) -> Option<&Candidate<'a>> {
        self.get(id).against.map(|baseline| self.get(baseline))
    }

    /// The id of the baseline that it is compared with. `None` for a baseline.
    pub(super) fn against(&self, id: CandidateId) -> Option<CandidateId> {
        self.get(id).against
    }

    /// True if no comparison is possible: the baseline or all variants are rejected.
    pub(super) fn is_hopeless(&self) -> bool {
        self.ids().all(|id| self.is_needless(id))
    }

    /// True if it is rejected or has no remaining comparison.
    pub(super) fn is_needless(&self, id: CandidateId) -> bool {
        let candidate = self.get(id);
        let is_compared = || {
            self.iter()
                .any(|other| other.against == Some(id) && other.invalid.is_none())
        };
        candidate.invalid.is_some()
            || self.has_lost_baseline(id)
            || (candidate.against.is_none() && !is_compared())
    }

    /// Like [`Candidates::is_needless`], in a group of these variants and their baselines.
    pub(super) fn is_needless_in(&self, id: CandidateId, variants: &[CandidateId]) -> bool {
        let is_compared = || {
            variants.iter().any(|other| {
                let other = self.get(*other);
                other.against == Some(id) && other.invalid.is_none()
            })
        };
        let is_member = variants.contains(&id) || is_compared();
        !is_member || self.is_needless(id)
    }

    /// These variants and their baselines, in the order of the report.
    pub(super) fn with_baselines(&self, variants: &[CandidateId]) -> Vec<CandidateId> {
        let baselines = variants.iter().filter_map(|id| self.get(*id).against);
        let all: BTreeSet<CandidateId> = variants.iter().copied().chain(baselines).collect();
        all.into_iter().collect()
    }

    /// Every variant that is compared with a baseline.
    pub(super) fn compared(&self) -> Vec<CandidateId> {
        let ids = self.ids();
        ids.filter(|id| self.get(*id).against.is_some()).collect()
    }

    /// The variants with these names, group by group. A name that the run leaves out is skipped.
    pub(super) fn grouped(&self, names: &[Vec<String>]) -> Vec<Vec<CandidateId>> {
        let id_of = |name: &String| {
            let mut compared = self.compared().into_iter();
            compared.find(|id| self.get(*id).name() == name)
        };
        let groups = names
            .iter()
            .map(|group| group.iter().filter_map(id_of).collect());
        groups.filter(|group: &Vec<_>| !group.is_empty()).collect()
    }

    /// A candidate as a member of a group.
    pub(super) fn member(&self, id: CandidateId, used: Option<CoresUsed>) -> Member {
        let candidate = self.get(id);
        Member {
            id,
            name: candidate.name().to_owned(),
            baseline: candidate.against,
            used,
        }
    }

    pub(super) fn has_lost_baseline(&self, id: CandidateId) -> bool {
        self.lost_baseline(id).is_some()
    }

    /// The first rejected candidate in its chain of comparisons. `None` if none is rejected.
    fn lost_baseline(&self, id: CandidateId) -> Option<&Candidate<'a>> {
        let mut next = self.get(id).against;
        while let Some(baseline) = next.map(|id| self.get(id)) {
            if baseline.invalid.is_some() {
                return Some(baseline);
            }
            next = baseline.against;
        }
        None
    }

    /// Names of the remaining variants, without the lab's baseline.
    pub(super) fn names_compared(&self) -> Vec<&'a str> {
        // The first candidate is the baseline of the lab. It always exists.
        let compared = self.0[1..].iter();
        compared
            .filter(|candidate| candidate.invalid.is_none())
            .map(Candidate::name)
            .collect()
    }

    /// The cores without a pinned system, for the generator. `None` if a system is not pinned or no core is
    /// left. The generator may then run on every core.
    pub(super) fn free_cpus(&self, online: usize) -> Option<Vec<usize>> {
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        let setups = self.iter().flat_map(|one| one.variant.systems());
        for setup in setups {
            // A system without a pin may run on every core, so no core is free.
            taken.extend(setup.pin.as_ref()?);
        }
        let free: Vec<usize> = (0..online).filter(|cpu| !taken.contains(cpu)).collect();
        (!free.is_empty()).then_some(free)
    }

    /// The reason why a variant without a fault was not measured.
    pub(super) fn why_unmeasured(&self, id: CandidateId, ending: Option<&Invalid>) -> Invalid {
        match (ending, self.lost_baseline(id)) {
            // Checked first, because without the end of the run the variant might have been measured.
            (Some(ending), _) => ending.clone(),
            (None, Some(baseline)) => Invalid::new(
                InvalidKind::NotNeeded,
                format!("its baseline `{}` has no number", baseline.name()),
            ),
            (None, None) => Invalid::new(
                InvalidKind::NotNeeded,
                "not measured, because no variant is left for a comparison",
            ),
        }
    }

    /// The rows of the recording. `measured` contains the names of the measured variants, and `ending` the reason
    /// if the run ended before its last round.
    pub(super) fn records(
        &self,
        lab: &Lab,
        measured: &BTreeSet<&str>,
        ending: Option<&Invalid>,
    ) -> Vec<VariantRecord> {
        self.ids()
            .map(|id| {
                let candidate = self.get(id);
                let is_measured = measured.contains(candidate.name());
                let invalid = candidate.invalid.clone();
                let invalid =
                    invalid.or_else(|| (!is_measured).then(|| self.why_unmeasured(id, ending)));
                candidate.record(lab, invalid)
            })
            .collect()
    }
}
