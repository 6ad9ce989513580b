//! The check that explains a withheld verdict.

use super::{Check, CheckName, CheckState};

impl CheckName {
    /// All checks, in the order of `docs/checks.md`.
    pub const ALL: [Self; 27] = [
        Self::Failures,
        Self::StoppedAnswering,
        Self::Missed,
        Self::LittlesLaw,
        Self::Rate,
        Self::LeftOut,
        Self::LeftOutSlower,
        Self::Lateness,
        Self::LatenessApart,
        Self::ArrivalLaw,
        Self::GeneratorCpu,
        Self::GeneratorPauses,
        Self::GeneratorStarved,
        Self::SystemsStarved,
        Self::TargetStalls,
        Self::DriftWithinRounds,
        Self::DriftAcrossRounds,
        Self::Throttling,
        Self::Steal,
        Self::NoiseFloor,
        Self::MachineLoad,
        Self::Placement,
        Self::ClockOffset,
        Self::GeneratorLateness,
        Self::GeneratorSpread,
        Self::PacketLoss,
        Self::NetworkJitter,
    ];

    /// Returns the rank of a cause. If several checks failed, the check with the lowest rank explains the
    /// rest. The machine comes before the generator, and the generator before the load.
    fn rank(self) -> usize {
        const ORDER: [CheckName; 27] = [
            CheckName::StoppedAnswering,
            CheckName::Failures,
            CheckName::Throttling,
            CheckName::Steal,
            CheckName::MachineLoad,
            CheckName::Placement,
            CheckName::ClockOffset,
            CheckName::PacketLoss,
            CheckName::NetworkJitter,
            CheckName::GeneratorPauses,
            CheckName::GeneratorStarved,
            CheckName::GeneratorCpu,
            CheckName::GeneratorLateness,
            CheckName::GeneratorSpread,
            CheckName::SystemsStarved,
            CheckName::TargetStalls,
            CheckName::LatenessApart,
            CheckName::LeftOut,
            CheckName::LeftOutSlower,
            CheckName::Missed,
            CheckName::Rate,
            CheckName::Lateness,
            CheckName::ArrivalLaw,
            CheckName::LittlesLaw,
            CheckName::DriftWithinRounds,
            CheckName::DriftAcrossRounds,
            CheckName::NoiseFloor,
        ];
        let place = ORDER.iter().position(|name| *name == self);
        place.unwrap_or(ORDER.len())
    }

    /// True if a busy machine can be the cause of this check's failure.
    fn is_of_timing(self) -> bool {
        matches!(
            self,
            Self::Lateness
                | Self::LatenessApart
                | Self::ArrivalLaw
                | Self::GeneratorPauses
                | Self::GeneratorStarved
                | Self::GeneratorLateness
                | Self::LeftOut
                | Self::Missed
                | Self::Rate
        )
    }

    /// True if the check covers the effect of other programs or guests on the machine.
    fn is_of_machine(self) -> bool {
        matches!(self, Self::Steal | Self::MachineLoad)
    }
}

/// The check that explains a withheld verdict. `None` if no check failed. A busy machine is a weak check, but
/// if the failed check is about timing, the busy machine explains it.
pub(crate) fn root(checks: &[Check]) -> Option<&Check> {
    let failed = || checks.iter().filter(|it| it.state == CheckState::Failed);
    let first = failed().min_by_key(|it| it.name.rank())?;
    let is_machine = |it: &&Check| it.name.is_of_machine() && it.state != CheckState::Ok;
    let machine = checks.iter().filter(is_machine);
    let machine = machine.min_by_key(|it| (it.state != CheckState::Failed, it.name.rank()));
    Some(
        machine
            .filter(|_| first.name.is_of_timing())
            .unwrap_or(first),
    )
}

#[cfg(test)]
mod tests {
    use super::super::CheckFacts;
    use super::*;

    fn check(name: CheckName, state: CheckState, figure: f64) -> Check {
        Check {
            name,
            state,
            figure,
            weak_beyond: 0.0,
            failed_beyond: None,
            facts: CheckFacts::Figure,
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_check_is_listed_once_and_has_a_rank() {
        for (index, name) in CheckName::ALL.iter().enumerate() {
            assert!(!CheckName::ALL[..index].contains(name), "{name} twice");
            assert!(name.rank() < CheckName::ALL.len(), "{name} has no rank");
        }
    }

    #[test]
    fn a_busy_machine_explains_lateness_and_not_wrong_failures() {
        let busy = check(CheckName::MachineLoad, CheckState::Weak, 0.74);
        let late = check(CheckName::Lateness, CheckState::Failed, 2240.0);
        let failures = check(CheckName::Failures, CheckState::Failed, 0.2);
        let starved = check(CheckName::GeneratorStarved, CheckState::Failed, 0.6);
        let name = |checks: &[Check]| root(checks).map(|check| check.name);
        assert_eq!(
            name(&[late.clone(), busy.clone()]).unwrap(),
            CheckName::MachineLoad
        );
        assert_eq!(
            name(&[busy.clone(), failures.clone(), late.clone()]).unwrap(),
            CheckName::Failures
        );
        assert_eq!(
            name(&[late.clone(), starved]).unwrap(),
            CheckName::GeneratorStarved
        );
        assert_eq!(
            name(std::slice::from_ref(&late)).unwrap(),
            CheckName::Lateness
        );
        assert_eq!(name(&[busy]), None);
    }
}
