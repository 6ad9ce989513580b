//! The texts of `weigh demo`: its lab and its result.

use std::fmt::Write as _;
use std::path::Path;

use analysis::{Summary, Verdict};

use super::FILE;
use crate::yaml_text::quoted;

/// Additional wait of one of the two servers, in microseconds.
const PLANTED_US: u32 = 200;

/// Wait of the other server, in microseconds. With 0, only one server would sleep, and the difference would
/// include the wake-up. It is much longer than the difference, because a longer sleep can delay the wake-up.
const WAIT_US: u32 = 1000;

/// The lab with two servers that run this program.
pub(super) fn lab(program: &str) -> String {
    let (program, longer_us) = (quoted(program), WAIT_US + PLANTED_US);
    format!(
        "\
# Two servers that only wait. One of them waits {PLANTED_US} us longer.
question: Does the lab find the planted delay of {PLANTED_US} us?

load: {{rate: 200/s, duration: 1s}} # both servers receive requests at the same planned times
warmup: 200ms                     # load before each round, in no figure
rounds: 8                         # each round starts both servers again

target: server
systems:
  server:
    settings: {{weigh: {program}, delay: {WAIT_US}us}}
    run: \"{{{{weigh}}}} null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"
    ready: {{path: /}}

# A server with another answer has no number.
expect: {{status: 200, same-as: baseline}}

baseline: {{name: waits {WAIT_US} us}}
variants:
  - {{name: waits {longer_us} us, with: {{server.delay: {longer_us}us}}}}
"
    )
}

/// The measured result for the planted difference.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// One of the two servers is slower.
    Difference {
        /// The difference with its interval.
        size: String,
        /// True if the interval contains the planted difference.
        holds_planted: bool,
        /// The smallest difference that such a run usually shows here.
        smallest: Option<String>,
    },
    /// No difference was shown, for these reasons.
    Nothing(Vec<String>),
}

impl Found {
    pub(super) fn of(summary: &Summary) -> Found {
        let metric = summary.headline;
        let row = summary.variants.iter().find(|row| !row.is_baseline);
        let slower = row.filter(|row| matches!(row.verdict, Verdict::Slower { .. }));
        let overhead = slower
            .and_then(|row| row.metric(metric))
            .and_then(|figure| figure.overhead.as_ref());
        let found = overhead.and_then(|overhead| {
            let planted = f64::from(PLANTED_US);
            let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
            Some(Found::Difference {
                size: overhead.in_words(summary.unit(metric))?,
                holds_planted: (low..=high).contains(&planted),
                smallest: overhead.detectable_in_words(summary.unit(metric)),
            })
        });
        found.unwrap_or_else(|| {
            let told = summary.variants.iter().filter(|row| {
                // The baseline is only mentioned if it has no number.
                !row.is_baseline || row.verdict.is_invalid()
            });
            let told = told.map(|row| format!("{}: {}", row.name, report::verdict_text(row)));
            Found::Nothing(told.collect())
        })
    }
}

/// The printed text: the result, its meaning, the folder of the recording, and the next commands.
pub(super) fn answer(found: &Found, rounds: usize, folder: &Path) -> String {
    let folder = folder.display();
    let shown = match found {
        Found::Difference {
            size,
            holds_planted,
            smallest,
        } => difference(size, *holds_planted, smallest.as_deref(), rounds),
        Found::Nothing(reasons) => nothing(reasons),
    };
    format!(
        "{shown}
Recorded in {folder}
  report.html has every figure, {FILE} is the lab.

Next commands
  weigh ab URL_A URL_B
      compares two running servers
  weigh lab {folder}/{FILE}
      runs this lab again, with another delay if you change it
  weigh init --command 'my-server --listen {{{{addr}}}}'
      writes a first lab for your server
"
    )
}

fn difference(size: &str, holds_planted: bool, smallest: Option<&str>, rounds: usize) -> String {
    let mut text = format!(
        "Planted {PLANTED_US} us, found {size}.

Meaning
  Two test servers of weigh differ only by {PLANTED_US} us. Each of {rounds} rounds started both again,
  checked every answer, and sent one request to each at every due time.
  The brackets contain the 95 % interval over the rounds.
"
    );
    if !holds_planted {
        text += "  The interval does not contain the planted delay. One interval of twenty misses by chance, and the
  clocks and cores of a machine may make a delay longer.
";
    }
    text += "  A layer of your stack with the same cost shows in the same way";
    match smallest {
        Some(smallest) => {
            let _ = writeln!(
                text,
                ". Four of five such runs would\n  show one of {smallest} on this machine."
            );
        }
        None => text += ".\n",
    }
    text
}

fn nothing(reasons: &[String]) -> String {
    let mut text = format!("Planted {PLANTED_US} us, found no difference.\n\nCauses\n");
    for reason in reasons {
        let _ = writeln!(text, "  {reason}");
    }
    text += "  End other programs on this machine and try again. `weigh tare` lists disturbances of a measurement.\n";
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use experiment::files::Unwritten;

    use super::*;

    #[test]
    fn the_lab_is_right_whatever_the_program_is_called() {
        let text = lab("/a folder/it's \"weigh\"");
        let path = Path::new(FILE);
        let files = Unwritten(vec![(PathBuf::from(FILE), text.into_bytes())]);
        let lab = lab::parse(path, &files).expect("a lab");
        assert_eq!(lab.names(), ["waits 1000 us", "waits 1200 us"]);
        let command = lab.baseline.systems()[0].command();
        assert_eq!(command[0].to_string(), "/a folder/it's \"weigh\"");
    }

    #[test]
    fn the_answer_says_what_was_found_and_what_to_do() {
        let found = Found::Difference {
            size: "202 us (198 to 206)".to_owned(),
            holds_planted: true,
            smallest: Some("5 us".to_owned()),
        };
        insta::assert_snapshot!(answer(&found, 8, Path::new("recordings/demo-1")), @"
        Planted 200 us, found 202 us (198 to 206).

        Meaning
          Two test servers of weigh differ only by 200 us. Each of 8 rounds started both again,
          checked every answer, and sent one request to each at every due time.
          The brackets contain the 95 % interval over the rounds.
          A layer of your stack with the same cost shows in the same way. Four of five such runs would
          show one of 5 us on this machine.

        Recorded in recordings/demo-1
          report.html has every figure, demo.yaml is the lab.

        Next commands
          weigh ab URL_A URL_B
              compares two running servers
          weigh lab recordings/demo-1/demo.yaml
              runs this lab again, with another delay if you change it
          weigh init --command 'my-server --listen {{addr}}'
              writes a first lab for your server
        ");
    }

    #[test]
    fn what_was_planted_may_lie_beside_the_interval_and_nothing_may_be_found() {
        let found = difference("220 us (211 to 230)", false, None, 8);
        assert!(
            found.contains("does not contain the planted delay"),
            "{found}"
        );
        insta::assert_snapshot!(nothing(&["waits 1200 us: invalid: steal".to_owned()]), @"
        Planted 200 us, found no difference.

        Causes
          waits 1200 us: invalid: steal
          End other programs on this machine and try again. `weigh tare` lists disturbances of a measurement.
        ");
    }
}
