//! Every language of `runners.yaml` keeps the contract.

use conform::{Verdict, conform};

#[test]
fn every_language_answers_every_case_over_tcp_and_unix_sockets() {
    let verdicts = conform(&[]).unwrap();
    assert!(verdicts.len() >= 2);
    let mut wrong = Vec::new();
    for (name, verdict) in verdicts {
        match verdict {
            Verdict::Passed(count) => println!("{name}: {count} passed"),
            Verdict::NotRun(why) if why.starts_with("by its own word") => {
                println!("{name}: NOT RUN: {why}");
            }
            // A language that was not tested has not passed.
            Verdict::NotRun(why) => wrong.push(format!("{name}: NOT RUN: {why}")),
            Verdict::Failed(failures) => {
                wrong.push(format!("{name}:\n  {}", failures.join("\n  ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
