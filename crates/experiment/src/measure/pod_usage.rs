//! The usage of pods during a measurement, according to the kubelets.

use std::time::Duration;

use cluster::kubelet::{Readings, Used};
use cluster::state::PodState;
use jiff::Timestamp;
use model::Load;
use recording::{Recording, RoundRecord, SystemUsage};

use crate::pods::stage::Stage;

/// Start and end of a measurement, by the clock of the first generator. `part` belongs to that generator.
pub(super) fn moments(first: &Recording, part: &RoundRecord) -> Option<(Timestamp, Timestamp)> {
    let started: Timestamp = first.started_at.parse().ok()?;
    let from = started + Duration::from_micros(part.started_offset_us);
    Some((from, from + took(part)))
}

/// Duration of the load. In a closed loop it includes the slices of other variants.
fn took(part: &RoundRecord) -> Duration {
    let slices = part.slices.as_ref().map(|slices| slices.took_us);
    Duration::from_micros(slices.unwrap_or(part.elapsed_us))
}

/// The resources that the pods of a system used, according to the kubelets.
pub(super) fn used(
    stage: &Stage<'_>,
    system: &str,
    own: &[&PodState],
    readings: &Readings,
    moments: Option<(Timestamp, Timestamp)>,
    whole: &RoundRecord,
    load: &Load,
) -> SystemUsage {
    let read = |pod: &&PodState| {
        let (from, to) = moments?;
        readings.used(&pod.name, from, to)
    };
    let all: Option<Vec<Used>> = own.iter().map(read).collect();
    // A part of a changing load does not represent the whole.
    let is_steady = match load {
        Load::Closed { .. } => true,
        Load::Open { phases, .. } => phases.len() == 1 && phases[0].from == phases[0].to,
    };
    let all = all.filter(|all| is_steady && !all.is_empty());
    let memory: Option<u64> = own
        .iter()
        .map(|pod| readings.most_memory(&pod.name))
        .sum::<Option<u64>>();
    let share = |used: &Used| used.cpu.as_secs_f64() / used.over.as_secs_f64();
    let cores = all.as_ref().map(|all| all.iter().map(share).sum::<f64>());
    let source = match &all {
        Some(all) => {
            let over = all.iter().map(|used| used.over).min().unwrap_or_default();
            format!("kubelet, over {:.1} s of the load", over.as_secs_f64())
        }
        None if stage.reads_kubelets => {
            "kubelet: fewer than two readings within the load".to_owned()
        }
        None => "kubelet: access is not allowed".to_owned(),
    };
    let took = took(whole);
    SystemUsage {
        name: system.to_owned(),
        cpu_us: cores.map(|cores| model::micros(took.mul_f64(cores))),
        cpu_kernel_us: None,
        memory_peak_bytes: memory.filter(|_| !own.is_empty()),
        throttled: None,
        context_switches: None,
        context_switches_involuntary: None,
        waited_for_cpu_us: None,
        source,
        instances: Vec::new(),
    }
}
