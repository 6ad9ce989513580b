//! Parser of the output of `perf script -F comm,tid,ip,sym,dso`, which folds it to stacks.
//!
//! ```text
//! server 123
//!             7f01 leaf (/usr/lib/libc.so.6)
//!             55aa caller (/usr/bin/server)
//! ```

use super::Stacks;
use super::symbol;

/// Folds the text of `perf script`. Unknown lines are left out.
pub fn stacks(script: &str) -> Stacks {
    let mut stacks = Stacks::default();
    let mut root: Option<String> = None;
    let mut frames: Vec<String> = Vec::new();
    // An empty line at the end closes the last stack, which `perf` may leave open.
    for line in script.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(root) = root.take() {
                // `perf` lists the leaf first. Stacks begin at the root.
                frames.push(root);
                stacks.add(frames.drain(..).rev().collect(), 1);
            }
            frames.clear();
        } else if line.starts_with([' ', '\t']) {
            frames.extend(frame(line));
        } else {
            // `None` if the line names no thread. The frames below it are then dropped.
            root = command(line);
        }
    }
    stacks
}

/// The name of the thread without its number, so that threads with one name are grouped.
fn command(line: &str) -> Option<String> {
    let (name, thread) = line.trim().rsplit_once(char::is_whitespace)?;
    thread.parse::<u32>().ok()?;
    Some(grouped(name))
}

/// The name of a thread without its number. `worker-3` and `worker-4` are one kind of thread.
pub(super) fn grouped(name: &str) -> String {
    let number = |character: char| character.is_ascii_digit() || "-#:".contains(character);
    name.trim().trim_end_matches(number).to_owned()
}

/// Parses `ADDRESS SYMBOL (OBJECT)`. Leaves out invalid frames that are in no object, which come from an
/// incorrect frame pointer.
pub(super) fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.trim().split_once(' ')?;
    // The search starts from the right, because names of functions may contain brackets.
    let (name, object) = match rest.rsplit_once(" (") {
        Some((name, object)) => (name.trim(), object.trim_end_matches(')')),
        None => (rest.trim(), ""),
    };
    let is_kernel = object.starts_with("[kernel") || object.starts_with("[guest.kernel");
    if name == "[unknown]" {
        if object.is_empty() || object == "[unknown]" {
            return None;
        }
        // If a function has no symbol, the frame shows at least its file.
        let file = object.rsplit('/').next().unwrap_or(object);
        return Some(format!("[{}]", file.trim_matches(['[', ']'])));
    }
    let name = symbol::readable(name);
    Some(if is_kernel {
        format!("{name} [kernel]")
    } else {
        name
    })
}
