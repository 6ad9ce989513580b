//! The parts of all generators as one measurement of each variant.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::state::PodState;
use model::InvalidKind;
use recording::{Recording, RoundRecord, SystemUsage, VariantStatus};

use super::Generated;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::measure::Experiment;
use crate::measure::candidate_id::CandidateId;
use crate::measure::in_turn::in_round;
use crate::measure::pod_attached::AttachedPods;
use crate::measure::pod_systems::wanted_each;
use crate::measure::pod_usage::{moments, used};
use crate::measure::round::Round;
use crate::pods::stage::Stage;

/// The parts of each variant in a round. Each attempt has one part per generator.
pub(super) type Parts = BTreeMap<String, Vec<Vec<RoundRecord>>>;

/// The pods of systems in a round.
pub(super) struct SeenPods<'p, 'c> {
    pub(super) stage: &'p Stage<'c>,
    /// The pods that this run has started.
    pub(super) pods: &'p [PodState],
    /// The pods behind URLs.
    pub(super) attached: &'p [AttachedPods],
}

impl Experiment<'_> {
    /// Merges the parts of each variant into one measurement.
    pub(super) fn merge(
        &mut self,
        round: &Round,
        ids: &[(usize, CandidateId)],
        generated: &Generated,
        seen: &SeenPods<'_, '_>,
    ) {
        let Generated {
            parts, recordings, ..
        } = generated;
        let Some(first) = recordings.first() else {
            return;
        };
        let offset = instant().duration_since(self.session.started);
        let ends = first
            .rounds
            .iter()
            .map(|part| part.started_offset_us + part.elapsed_us);
        let ended_us = ends.max().unwrap_or_default();
        for (position, id) in ids {
            let name = self.candidates.get(*id).name();
            let proof = first.variant(name).and_then(|record| record.proof.clone());
            self.candidates.get_mut(*id).set_proof_elsewhere(proof);
            let is_whole = |attempt: &Vec<RoundRecord>| attempt.len() == recordings.len();
            let own = parts.get(name).filter(|all| all.iter().all(is_whole));
            for attempt in own.into_iter().flatten() {
                let mut whole = recording::merge_parts(attempt.clone());
                // Calculated from the end, because the offsets of pods count from their own start.
                let before_end_us = ended_us.saturating_sub(attempt[0].started_offset_us);
                let before_end = Duration::from_micros(before_end_us);
                whole.started_offset_us = model::micros(offset.saturating_sub(before_end));
                (whole.systems, whole.shared) =
                    self.usage_in(seen, generated, *position, *id, &attempt[0], &whole);
                self.records.push(whole);
            }
            if let Some(invalid) = reason_of(recordings, name) {
                self.reject(*id, invalid);
            } else if own.is_none() && !self.candidates.is_needless(*id) {
                let reason = "some generators have no measurement of it".to_owned();
                let invalid = Invalid::new(InvalidKind::LoadFailed, reason);
                self.reject(*id, in_round(invalid, round.number));
            }
        }
    }

    /// The usage of the own systems and of the shared systems of a variant, during a measurement. `part` is the
    /// first generator's part of it.
    fn usage_in(
        &self,
        seen: &SeenPods<'_, '_>,
        generated: &Generated,
        position: usize,
        id: CandidateId,
        part: &RoundRecord,
        whole: &RoundRecord,
    ) -> (Vec<SystemUsage>, Vec<SystemUsage>) {
        let first = generated.recordings.first();
        let moments = first.and_then(|first| moments(first, part));
        let (stage, readings) = (seen.stage, &generated.readings);
        let load = &self.session.load;
        let wanted = wanted_each(self.session.lab, &[position]);
        let usage = |system: &str, pods: &[&PodState]| {
            used(stage, system, pods, readings, moments, whole, load)
        };
        let started = |shared: bool| -> Vec<SystemUsage> {
            let own = wanted.iter().filter(|one| one.variant.is_none() == shared);
            own.map(|one| usage(&one.setup.system, &stage.counted_of(one, seen.pods)))
                .collect()
        };
        let of_variant = seen.attached.iter().filter(|it| it.id == id);
        let attached: Vec<SystemUsage> = of_variant
            .map(|it| usage(&it.system, &it.pods.iter().collect::<Vec<_>>()))
            .collect();
        let mut own = started(false);
        own.extend(attached);
        (own, started(true))
    }
}

/// The measurements of the generators, by variants and attempts.
pub(super) fn parts_of(recordings: &[Recording]) -> Parts {
    let mut parts = Parts::new();
    for recording in recordings {
        let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
        for part in &recording.rounds {
            let attempt = attempts.entry(&part.variant).or_default();
            let all = parts.entry(part.variant.clone()).or_default();
            if all.len() == *attempt {
                all.push(Vec::new());
            }
            all[*attempt].push(part.clone());
            *attempt += 1;
        }
    }
    parts
}

/// The reason why a variant has no number, if there is one.
fn reason_of(recordings: &[Recording], variant: &str) -> Option<Invalid> {
    // The first generator with a reason decides, because the other reasons follow from it.
    let mut records = recordings.iter().filter_map(|it| it.variant(variant));
    records.find_map(|record| match &record.status {
        VariantStatus::Invalid { kind, reason } if *kind != InvalidKind::NotNeeded => {
            Some(Invalid::new(*kind, reason.clone()))
        }
        _ => None,
    })
}
