//! `cargo run -p conform -- go python` tests these languages against the contract. Without names it tests
//! all.

use std::process::ExitCode;

use conform::{Verdict, conform};

#[expect(clippy::print_stdout, reason = "the only voice of this program")]
fn main() -> anyhow::Result<ExitCode> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut all_passed = true;
    for (name, verdict) in conform(&names)? {
        match verdict {
            Verdict::Passed(count) => println!("{name}: {count} passed"),
            Verdict::NotRun(why) => println!("{name}: NOT RUN: {why}"),
            Verdict::Failed(failures) => {
                all_passed = false;
                println!("{name}: FAILED\n  {}", failures.join("\n  "));
            }
        }
    }
    Ok(if all_passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
