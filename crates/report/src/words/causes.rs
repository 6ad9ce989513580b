//! Checks in words: the figure of a check, and the cause and remedy if it withholds a verdict.
//!
//! `docs/checks.md` has the same remedies in its last column. A test compares the two.

use analysis::summary::CheckName;
use model::Metric;
use recording::digits;

/// The remedy for a withheld verdict, as an instruction. `headline` is the metric that decides.
pub(crate) fn remedy_for(name: CheckName, headline: Metric) -> String {
    match headline {
        // The rate decides a closed loop, so the advice must not name the typical latency.
        Metric::Requests => remedy(name).replace("typical ±20us", "requests ±2%"),
        Metric::Mean => remedy(name).replace("typical ±", "mean ±"),
        _ => remedy(name).to_owned(),
    }
}

/// The remedy for a check that is not in order, as an instruction to the user.
pub(crate) fn remedy(name: CheckName) -> &'static str {
    match name {
        CheckName::Failures => {
            "look at the kinds and examples in the report (`weigh report --full`)"
        }
        CheckName::StoppedAnswering => {
            "find what ended the target; no gate on `failures` allows it"
        }
        CheckName::Missed => "lower the `rate`, or raise `connections-max`",
        CheckName::LittlesLaw => {
            "run it again with `--order in-turn`; if it stays, report a defect"
        }
        CheckName::Rate => "lower the `rate`",
        CheckName::LeftOut => {
            "name fewer `--variants`, lower the `rate`, or take a quieter machine"
        }
        CheckName::LeftOutSlower => {
            "`pin` the systems away from the generator, or measure with `--order in-turn`"
        }
        CheckName::Lateness => {
            "give the generator a core: `pin` the systems, or run as root for real-time priority \
             (`ulimit -r` grants it too)"
        }
        CheckName::LatenessApart => {
            "`pin` the systems away from the generator, or measure with `--order in-turn`"
        }
        CheckName::ArrivalLaw => {
            "give the generator a core: `pin` the systems, or run as root for real-time priority"
        }
        CheckName::GeneratorCpu => "use more `threads`, or another machine",
        CheckName::GeneratorPauses => "end what else runs, or run as root for real-time priority",
        CheckName::GeneratorStarved => "end what else runs, or `pin` the systems to other cores",
        CheckName::SystemsStarved => {
            "lower the `rate`, or `pin`; the table of costs says which system waited"
        }
        CheckName::TargetStalls => "look at the target: garbage collection, locks, a limit",
        CheckName::DriftWithinRounds => "give a longer `warmup`, or find what piles up",
        CheckName::DriftAcrossRounds => "find what a restart does not reset",
        CheckName::Throttling => {
            "lift the limit around `weigh`; a system's own limit is the experiment"
        }
        CheckName::Steal => {
            "take another time, another machine, or cores that are kept awake (METHODOLOGY.md)"
        }
        CheckName::NoiseFloor => "measure more `rounds`, or take a quieter machine",
        CheckName::MachineLoad => "end what else runs, or use `--until 'typical ±20us'`",
        CheckName::Placement => "put the systems on one node with `pods.systems.node-selector`",
        CheckName::ClockOffset => {
            "put the generators nearer to each other, or fewer of them on a node"
        }
        CheckName::GeneratorLateness => "put fewer generators on that node",
        CheckName::GeneratorSpread => "put all generators into the same zone",
        CheckName::PacketLoss => "take another network, or lower the `rate`",
        CheckName::NetworkJitter => "take another network",
    }
}

/// The cause in few words: `other programs used 74 % of the cores`.
pub(crate) fn cause(name: CheckName, figure: f64) -> String {
    let share = digits::percent(figure);
    let long = digits::duration_ns(figure * 1e3);
    match name {
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
        CheckName::MachineLoad => {
            format!("other programs used {:.0} % of the cores", figure * 100.0)
        }
        CheckName::Placement => {
            format!("{share} of its pods ran on other nodes than the baseline's pods")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/checks.md");

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
            assert_eq!(row[4], remedy(name), "docs/checks.md, {shown}");
        }
        // The heading is also a row.
        assert_eq!(rows.len(), CheckName::ALL.len() + 1, "{rows:#?}");
    }

    #[test]
    fn a_cause_names_its_figure() {
        let causes = [
            (CheckName::MachineLoad, 0.74),
            (CheckName::Failures, 0.2),
            (CheckName::GeneratorStarved, 0.6),
            (CheckName::Lateness, 2240.0),
        ];
        let causes: Vec<String> = causes
            .into_iter()
            .map(|(name, figure)| cause(name, figure))
            .collect();
        insta::assert_snapshot!(causes.join("\n"), @"
        other programs used 74 % of the cores
        20 % of the requests had no complete answer
        the generator waited 60 % of the time for a core
        1 % of the sends left more than 2.24 ms late
        ");
    }
}
