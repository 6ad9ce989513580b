//! Limits the rate of similar lines. Lines of one place in the program are similar, and so are events of one
//! kind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Line;

/// The current windows. Their number is the number of places in the program and of kinds of events.
static WINDOWS: Mutex<Option<HashMap<Place, Window>>> = Mutex::new(None);

/// File, line number, and kind of the event.
type Place = (String, u32, String);

/// The maximum rate of similar lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    /// Maximum number of similar lines in an interval.
    pub capacity: u32,
    /// The length of an interval.
    pub interval: Duration,
}

#[derive(Debug)]
struct Window {
    start: Instant,
    written: u32,
    left_out: u64,
}

impl LineLimit {
    /// Number of similar lines that were left out before this line. `None` if this line is left out, too.
    pub(super) fn admit(&self, line: &Line<'_>, now: Instant) -> Option<u64> {
        let file = line.metadata.file().unwrap_or_default().to_owned();
        let kind = line.fields.get("kind").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let place = (file, line.metadata.line().unwrap_or_default(), kind);
        // No code panics while it holds this lock.
        let mut windows = WINDOWS.lock().unwrap_or_else(PoisonError::into_inner);
        let windows = windows.get_or_insert_default();
        let window = windows.entry(place).or_insert(Window {
            start: now,
            written: 0,
            left_out: 0,
        });
        if now.saturating_duration_since(window.start) >= self.interval {
            window.start = now;
            window.written = 0;
        }
        if window.written >= self.capacity {
            window.left_out += 1;
            return None;
        }
        window.written += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

/// The current time on a monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
