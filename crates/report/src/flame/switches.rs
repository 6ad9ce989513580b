//! Parser of the output of `perf script -F comm,tid,time,event,ip,sym,dso --show-switch-events`. It adds up
//! the time of each stack off a core.
//!
//! ```text
//! server 123 61641.5494: sched:sched_switch:
//!             ffff __schedule ([kernel.kallsyms])
//!             55aa caller (/usr/bin/server)
//!
//! server 123 61641.5496: PERF_RECORD_SWITCH OUT
//! server 123 61641.5595: PERF_RECORD_SWITCH IN
//! ```

use std::collections::BTreeMap;

use super::folded;
use super::perf::{frame, grouped};

/// Functions of the scheduler at the end of every stack.
const SCHEDULER: [&str; 2] = ["__schedule [kernel]", "schedule [kernel]"];

/// One thread in the trace.
#[derive(Default)]
struct Tracked {
    /// The stack of the next switch, with its time in seconds.
    stack: Option<(String, f64)>,
    /// The stack that is off a core, since this time.
    off: Option<(String, f64)>,
}

/// The line before a stack, or a switch.
struct Header<'a> {
    name: String,
    thread: u32,
    at_s: f64,
    event: &'a str,
}

/// The time of each blocked stack in seconds. A wait that lasted longer than `slowest_s` is left out, because
/// no response contains it. A thread that was forced off its core did not wait.
pub fn blocked(script: &str, slowest_s: f64) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    let mut threads: BTreeMap<u32, Tracked> = BTreeMap::new();
    let mut open: Option<(Header<'_>, Vec<String>)> = None;
    for line in script.lines().chain([""]) {
        if line.starts_with(['\t', ' ']) && open.is_some() {
            let frames = open.iter_mut();
            frames.for_each(|(_, frames)| frames.extend(frame(line)));
            continue;
        }
        if let Some((header, frames)) = open.take() {
            let thread = threads.entry(header.thread).or_default();
            thread.stack = Some((stack(&header.name, frames), header.at_s));
        }
        let Some(header) = Header::of(line) else {
            continue;
        };
        let thread = threads.entry(header.thread).or_default();
        match header.event {
            "PERF_RECORD_SWITCH OUT" => thread.off = thread.stack.take(),
            "PERF_RECORD_SWITCH IN" => {
                let ended = thread.off.take();
                let lasted = ended.map(|(stack, since)| (stack, header.at_s - since));
                let counted = lasted.filter(|(_, lasted)| *lasted <= slowest_s);
                if let Some((stack, lasted)) = counted {
                    *times.entry(stack).or_default() += lasted.max(0.0);
                }
            }
            event if event.starts_with("sched:") => open = Some((header, Vec::new())),
            // `OUT preempt`: the thread could have continued.
            _ => *thread = Tracked::default(),
        }
    }
    times
}

impl<'a> Header<'a> {
    /// `None` for any other line.
    fn of(line: &'a str) -> Option<Self> {
        let (before, event) = line.split_once(": ")?;
        let (name, at) = before.trim().rsplit_once(char::is_whitespace)?;
        let (name, thread) = name.trim().rsplit_once(char::is_whitespace)?;
        Some(Self {
            name: grouped(name),
            thread: thread.parse().ok()?,
            at_s: at.parse().ok()?,
            event: event.trim().trim_end_matches(':'),
        })
    }
}

/// The folded stack, root first, without the scheduler's own functions.
fn stack(name: &str, mut frames: Vec<String>) -> String {
    // `perf` lists the leaf first.
    let own = frames
        .iter()
        .take_while(|it| SCHEDULER.contains(&it.as_str()));
    let own = own.count();
    frames.drain(..own);
    frames.push(name.to_owned());
    frames.reverse();
    folded(&frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
server-1 7 10.500: PERF_RECORD_SWITCH IN
server-1 7 11.000: sched:sched_switch:
\tffff __schedule ([kernel.kallsyms])
\tffff schedule ([kernel.kallsyms])
\tffff do_nanosleep ([kernel.kallsyms])
\t55aa server::rest (/opt/server)

other 8 11.0005: PERF_RECORD_SWITCH IN
server-1 7 11.001: PERF_RECORD_SWITCH OUT
server-1 7 11.003: PERF_RECORD_SWITCH IN
server-1 7 12.000: sched:sched_switch:
\tffff do_nanosleep ([kernel.kallsyms])
\t55aa server::rest (/opt/server)

server-1 7 12.000: PERF_RECORD_SWITCH OUT preempt
server-1 7 12.100: PERF_RECORD_SWITCH IN
server-2 9 13.000: sched:sched_switch:
\tffff ep_poll ([kernel.kallsyms])

server-2 9 13.000: PERF_RECORD_SWITCH OUT
server-2 9 19.000: PERF_RECORD_SWITCH IN
";

    #[test]
    fn a_stack_is_off_a_core_from_its_switch_to_the_next() {
        let times = blocked(TRACE, 1.0);
        let stacks: Vec<&String> = times.keys().collect();
        assert_eq!(stacks, ["server;server::rest;do_nanosleep [kernel]"]);
        let time = times.values().sum::<f64>();
        assert!((time - 0.003).abs() < 1e-9, "{time}");
        assert_eq!(blocked(TRACE, 10.0).len(), 2, "an idle wait is long");
        assert!(blocked("garbage\n\tmore", 1.0).is_empty());
    }
}
