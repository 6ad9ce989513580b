//! What `perf script -F comm,tid,ip,sym,dso` prints, folded.
//!
//! ```text
//! server 123
//!             7f01 leaf (/usr/lib/libc.so.6)
//!             55aa caller (/usr/bin/server)
//! ```

use super::Stacks;
use super::symbol;

/// Folds the text of `perf script`. Lines that are not understood are left out.
pub fn stacks(script: &str) -> Stacks {
    let mut stacks = Stacks::default();
    let mut root: Option<String> = None;
    let mut frames: Vec<String> = Vec::new();
    // An empty line at the end closes the last stack, which `perf` may leave open.
    for line in script.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(root) = root.take() {
                // `perf` lists the leaf first; stacks begin at the root.
                frames.push(root);
                stacks.add(frames.drain(..).rev().collect(), 1);
            }
            frames.clear();
        } else if line.starts_with([' ', '\t']) {
            frames.extend(frame(line));
        } else {
            // None where the line names no thread: the frames below it are dropped then.
            root = command(line);
        }
    }
    stacks
}

/// The name of the thread, without its number: threads of one name belong together.
fn command(line: &str) -> Option<String> {
    let (name, thread) = line.trim().rsplit_once(char::is_whitespace)?;
    thread.parse::<u32>().ok()?;
    // `worker-3` and `worker-4` are one kind of thread.
    let number = |character: char| character.is_ascii_digit() || "-#:".contains(character);
    Some(name.trim().trim_end_matches(number).to_owned())
}

/// `ADDRESS SYMBOL (OBJECT)`; the frame pointer's garbage, which is in no object, is left out.
fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.trim().split_once(' ')?;
    // From the right, because names of functions may hold brackets themselves.
    let (name, object) = match rest.rsplit_once(" (") {
        Some((name, object)) => (name.trim(), object.trim_end_matches(')')),
        None => (rest.trim(), ""),
    };
    let is_kernel = object.starts_with("[kernel") || object.starts_with("[guest.kernel");
    if name == "[unknown]" {
        if object.is_empty() || object == "[unknown]" {
            return None;
        }
        // Of a function without a symbol, the file at least is known.
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
