//! Labs of null servers, for claims about how rounds are measured.

use e2e::{World, weigh};

/// A lab side by side, of 6 rounds. Its servers differ in `server.flag`.
pub(crate) fn lab(load: &str, variants: &str) -> World {
    let weigh = weigh();
    World::of_lab(&format!(
        "question: Is what was planted found?
load: {load}
warmup: 100ms
order: side-by-side
rounds: 6
target: server
systems:
  server:
    settings: {{flag: --seed=1}}
    run: \"'{}' null-server --listen {{{{addr}}}} {{{{flag}}}}\"
    ready: {{path: /}}
baseline: {{name: plain}}
variants:
{variants}",
        weigh.display()
    ))
}
