//! Table of responses by instance behind a balancer.

use analysis::summary::{InstanceSummary, Summary};
use model::Unit;
use recording::digits;

use crate::cell;
use crate::table::{Column, Table, row};

/// Title of the table.
pub(crate) const TITLE: &str = "Requests by instance";

/// One row for each instance, and one for the sum over all instances of a system.
pub(crate) fn table(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for variant in &summary.variants {
        for system in variant.systems.iter().filter(|it| !it.instances.is_empty()) {
            let of_instance = |instance: &InstanceSummary| {
                row([
                    variant.name.clone(),
                    system.name.clone(),
                    instance.name.clone(),
                    digits::count(instance.answers),
                    digits::percent(instance.share),
                    cell::single(instance.cpu_us_per_answer, Unit::Microseconds),
                ])
            };
            rows.extend(system.instances.iter().map(of_instance));
            // The balancer received the sum. A reader compares it with the number of sent requests.
            let answers = system.instances.iter().map(|it| it.answers).sum();
            rows.push(row([
                variant.name.clone(),
                system.name.clone(),
                "all".to_owned(),
                digits::count(answers),
                String::new(),
                String::new(),
            ]));
        }
    }
    Table::new(
        "requests by instance",
        [
            Column::words("variant"),
            Column::words("system"),
            Column::words("instance"),
            Column::figure("answers", ""),
            Column::figure("share", ""),
            Column::figure("CPU", "us/answer"),
        ],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use recording::InstanceUsage;
    use recording::sample::SampleRun;

    use super::*;
    use crate::{Terminal, full_text, html, json, markdown};

    #[test]
    fn every_rendering_says_what_each_instance_answered() {
        let mut recording = SampleRun::open()
            .variant("one", 700.0)
            .variant("four", 500.0)
            .build();
        for round in recording
            .rounds
            .iter_mut()
            .filter(|it| it.variant == "four")
        {
            let number = u64::from(round.round);
            round.systems[0].instances = [("server-1", 3000), ("server-2", 1000 + number)]
                .map(|(name, answers)| InstanceUsage {
                    name: name.to_owned(),
                    answers,
                    cpu_us: Some(answers * 30),
                })
                .to_vec();
        }
        let summary = Summary::of(&recording);
        let rounds = recording.rounds_of("four").count() as u64;
        let second: u64 = (0..rounds).map(|number| 1000 + number).sum();
        let found: Vec<Vec<String>> = table(&summary)
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.whole().to_owned()).collect())
            .collect();
        assert_eq!(found.len(), 3, "one row for each instance and one for all");
        assert_eq!(
            found[0][2..4],
            ["server-1".to_owned(), digits::count(3000 * rounds)]
        );
        assert_eq!(found[0][5], "30.0");
        assert_eq!(found[1][3], digits::count(second));
        assert_eq!(found[2][3], digits::count(3000 * rounds + second));
        let shown = [
            full_text(&recording, &summary, Terminal::plain(100)),
            markdown(&recording, &summary),
            html(&recording, &summary),
        ];
        for page in shown {
            for cell in found.iter().flat_map(|row| &row[2..4]) {
                assert!(page.contains(cell.as_str()), "{cell}:\n{page}");
            }
            assert!(page.contains("Requests by instance"));
        }
        let value: serde_json::Value = serde_json::from_str(&json(&recording, &summary)).unwrap();
        let instance = &value["summary"]["variants"][1]["systems"][0]["instances"][1];
        assert_eq!(instance["answers"], second);
    }
}
