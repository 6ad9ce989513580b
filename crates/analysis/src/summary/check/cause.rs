//! Cause and remedy of each check, in words for a user.
//!
//! `docs/checks.md` has the same remedies in its last column. A test compares the two.

use recording::digits;

use super::{Check, CheckName, CheckState};

impl CheckName {
    /// All checks, in the order of `docs/checks.md`.
    pub const ALL: [Self; 26] = [
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
        Self::ClockOffset,
        Self::GeneratorLateness,
        Self::GeneratorSpread,
        Self::PacketLoss,
        Self::NetworkJitter,
    ];

    /// The remedy for a check that is not in order, as an instruction to the user.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Failures => {
                "look at the kinds and examples in the report (`weigh report --full`)"
            }
            Self::StoppedAnswering => "find what ended the target; no gate on `failures` allows it",
            Self::Missed => "lower the `rate`, or raise `connections-max`",
            Self::LittlesLaw => "run it again with `--order in-turn`; if it stays, report a defect",
            Self::Rate => "lower the `rate`",
            Self::LeftOut => "name fewer `--variants`, lower the `rate`, or take a quieter machine",
            Self::LeftOutSlower => {
                "`pin` the systems away from the generator, or measure with `--order in-turn`"
            }
            Self::Lateness => {
                "give the generator a core: `pin` the systems, or run as root for real-time priority \
                 (`ulimit -r` grants it too)"
            }
            Self::LatenessApart => {
                "`pin` the systems away from the generator, or measure with `--order in-turn`"
            }
            Self::ArrivalLaw => {
                "give the generator a core: `pin` the systems, or run as root for real-time priority"
            }
            Self::GeneratorCpu => "use more `threads`, or another machine",
            Self::GeneratorPauses => "end what else runs, or run as root for real-time priority",
            Self::GeneratorStarved => "end what else runs, or `pin` the systems to other cores",
            Self::SystemsStarved => {
                "lower the `rate`, or `pin`; the table of costs says which system waited"
            }
            Self::TargetStalls => "look at the target: garbage collection, locks, a limit",
            Self::DriftWithinRounds => "give a longer `warmup`, or find what piles up",
            Self::DriftAcrossRounds => "find what a restart does not reset",
            Self::Throttling => {
                "lift the limit around `weigh`; a system's own limit is the experiment"
            }
            Self::Steal => {
                "take another time, another machine, or cores that are kept awake (METHODOLOGY.md)"
            }
            Self::NoiseFloor => "measure more `rounds`, or take a quieter machine",
            Self::MachineLoad => "end what else runs, or use `--until 'typical ±20us'`",
            Self::ClockOffset => {
                "put the generators nearer to each other, or fewer of them on a node"
            }
            Self::GeneratorLateness => "put fewer generators on that node",
            Self::GeneratorSpread => "put all generators into the same zone",
            Self::PacketLoss => "take another network, or lower the `rate`",
            Self::NetworkJitter => "take another network",
        }
    }

    /// Returns the rank of a cause. If several checks failed, the check with the lowest rank explains the
    /// rest. The machine comes before the generator, and the generator before the load.
    fn rank(self) -> usize {
        const ORDER: [CheckName; 26] = [
            CheckName::StoppedAnswering,
            CheckName::Failures,
            CheckName::Throttling,
            CheckName::Steal,
            CheckName::MachineLoad,
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

impl Check {
    /// The cause in few words: `other programs used 74 % of the cores`.
    #[must_use]
    pub fn cause(&self) -> String {
        let share = digits::percent(self.figure);
        let long = digits::duration_ns(self.figure * 1e3);
        match self.name {
            CheckName::Failures => format!("{share} of the requests had no complete answer"),
            CheckName::StoppedAnswering => {
                format!("the target stopped answering for the last {share} of the load")
            }
            CheckName::Missed => format!("{share} of the planned requests were never sent"),
            CheckName::LittlesLaw => {
                format!("connections and throughput × mean latency differ by {share}")
            }
            CheckName::LeftOut => format!("{share} of the cycles are in no figure"),
            CheckName::LeftOutSlower => {
                format!("the omitted requests would raise the mean latency by {share}")
            }
            CheckName::Rate => format!("the load stayed {share} below the plan"),
            CheckName::Lateness => format!("1 % of the sends left more than {long} late"),
            CheckName::LatenessApart => {
                format!("its sends and the baseline's differ in lateness by at least {long}")
            }
            CheckName::ArrivalLaw => "the sends did not keep the planned gaps".to_owned(),
            CheckName::GeneratorCpu => format!("the generator was busy {share} of the time"),
            CheckName::GeneratorPauses => {
                format!("the generator stood still for {share} of the time")
            }
            CheckName::GeneratorStarved => {
                format!("the generator waited {share} of the time for a core")
            }
            CheckName::SystemsStarved => {
                format!("waiting for cores was {share} of the systems' latency")
            }
            CheckName::TargetStalls => format!("the target stood still for {share} of the time"),
            CheckName::DriftWithinRounds => {
                format!("latency changed by {share} or more within a round")
            }
            CheckName::DriftAcrossRounds => format!("latency changed by {share} over the rounds"),
            CheckName::Throttling => {
                format!("a processor limit stopped everything in {share} of the periods")
            }
            CheckName::Steal => {
                format!("other guests of the host took {share} of the processor time")
            }
            CheckName::NoiseFloor => "the difference is below the noise floor".to_owned(),
            CheckName::MachineLoad => format!(
                "other programs used {:.0} % of the cores",
                self.figure * 100.0
            ),
            CheckName::ClockOffset => {
                format!("the sends of the generators may be {long} apart from the plan")
            }
            CheckName::GeneratorLateness => {
                format!("1 % of the sends of the latest generator left more than {long} late")
            }
            CheckName::GeneratorSpread => {
                format!("the generators differ by {share} in their median latency")
            }
            CheckName::PacketLoss => format!("{share} of the TCP segments were sent again"),
            CheckName::NetworkJitter => {
                format!("the round trip to the target varies by {share} of the median latency")
            }
        }
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
    use super::*;

    const PAGE: &str = include_str!("../../../../../docs/checks.md");

    fn check(name: CheckName, state: CheckState, figure: f64) -> Check {
        Check {
            name,
            state,
            figure,
            weak_beyond: 0.0,
            failed_beyond: None,
            text: String::new(),
        }
    }

    #[test]
    fn the_page_has_the_remedy_of_every_check() {
        let rows: Vec<Vec<&str>> = PAGE
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
            .collect();
        for name in CheckName::ALL {
            let shown = name.to_string();
            let is_own =
                |row: &&Vec<&str>| row[0] == shown || row[0].starts_with(&format!("{shown} ("));
            let row = rows.iter().find(is_own);
            let row = row.unwrap_or_else(|| panic!("docs/checks.md has no row for {shown}"));
            assert_eq!(row.len(), 5, "{row:?}");
            assert_eq!(row[4], name.remedy(), "docs/checks.md, {shown}");
        }
        // The heading is also a row.
        assert_eq!(rows.len(), CheckName::ALL.len() + 1, "{rows:#?}");
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
        let cause = |checks: &[Check]| root(checks).map(Check::cause);
        assert_eq!(
            cause(&[late.clone(), busy.clone()]).unwrap(),
            "other programs used 74 % of the cores"
        );
        assert_eq!(
            cause(&[busy.clone(), failures.clone(), late.clone()]).unwrap(),
            "20 % of the requests had no complete answer"
        );
        assert_eq!(
            cause(&[late.clone(), starved]).unwrap(),
            "the generator waited 60 % of the time for a core"
        );
        assert_eq!(
            cause(std::slice::from_ref(&late)).unwrap(),
            "1 % of the sends left more than 2.24 ms late"
        );
        assert_eq!(cause(&[busy]), None);
    }
}
