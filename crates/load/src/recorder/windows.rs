//! Counts of ended slots by time, in at most 36,000 windows.

use std::time::Duration;

use crate::measurement::Window;

/// An hour of tenths of a second. Beyond it windows are merged in pairs.
const WINDOWS_MAX: usize = 36_000;

const WIDTH_NS: u64 = 100_000_000;

/// Windows of equal width from the start of the load. Requested times only go forward, except for a window
/// that is over.
pub(super) struct Windows {
    width_ns: u64,
    /// End of the last window.
    end_ns: u64,
    list: Vec<Window>,
}

impl Windows {
    pub(super) fn new(start_ns: u64) -> Windows {
        Windows {
            width_ns: WIDTH_NS,
            end_ns: start_ns + WIDTH_NS,
            list: vec![Window::default()],
        }
    }

    /// Returns the window of a time that is not before the last requested time.
    #[inline]
    pub(super) fn at(&mut self, now_ns: u64) -> &mut Window {
        if now_ns >= self.end_ns {
            self.advance(now_ns);
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns {
            if self.list.len() == WINDOWS_MAX {
                self.coarsen();
            } else {
                self.list.push(Window::default());
                self.end_ns += self.width_ns;
            }
        }
    }

    /// Merges windows in pairs.
    fn coarsen(&mut self) {
        let is_odd = self.list.len() % 2 == 1;
        self.list = self
            .list
            .chunks(2)
            .map(|pair| {
                let mut sum = Window::default();
                for window in pair {
                    sum.add(window);
                }
                sum
            })
            .collect();
        // The last window had no neighbor and is now twice as wide, so its end moves.
        if is_odd {
            self.end_ns += self.width_ns;
        }
        self.width_ns *= 2;
    }

    /// Adds the windows of another thread of the same load.
    pub(super) fn absorb(&mut self, mut other: Windows) {
        // Both have the same start, and their widths differ by a power of 2. With equal widths, windows cover
        // the same times.
        while self.width_ns < other.width_ns {
            self.coarsen();
        }
        while other.width_ns < self.width_ns {
            other.coarsen();
        }
        if self.list.len() < other.list.len() {
            std::mem::swap(self, &mut other);
        }
        for (window, more) in self.list.iter_mut().zip(&other.list) {
            window.add(more);
        }
    }

    pub(super) fn into_parts(self) -> (Duration, Vec<Window>) {
        (Duration::from_nanos(self.width_ns), self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the windows of responses at these tenths of a second.
    fn windows(tenths: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::new(7);
        for tenth in tenths {
            windows.at(7 + tenth * WIDTH_NS).completed += 1;
        }
        windows
    }

    #[test]
    fn an_answer_counts_in_its_own_tenth_of_a_second() {
        let (width, list) = windows([0, 0, 3]).into_parts();
        assert_eq!(width, Duration::from_millis(100));
        let completed: Vec<u64> = list.iter().map(|window| window.completed).collect();
        assert_eq!(completed, [2, 0, 0, 1]);
    }

    #[test]
    fn a_week_takes_no_more_windows_than_an_hour() {
        let week = 7 * 24 * 36_000;
        let (width, list) = windows((0..week).step_by(10)).into_parts();
        assert!(list.len() <= WINDOWS_MAX);
        assert_eq!(
            list.iter().map(|window| window.completed).sum::<u64>(),
            week / 10
        );
        assert_eq!(width, Duration::from_millis(100 * 256));
        // Every full window holds its share.
        assert!(
            list[..list.len() - 1]
                .iter()
                .all(|window| (25..=26).contains(&window.completed))
        );
    }

    #[test]
    fn windows_of_threads_add_up_whatever_their_width() {
        let mut short = windows([0, 1, 2]);
        short.absorb(windows([0, 40_000]));
        let (width, list) = short.into_parts();
        assert_eq!(width, Duration::from_millis(200));
        assert_eq!(list.len(), 20_001);
        assert_eq!(list[0].completed, 3);
        assert_eq!(list[1].completed, 1);
        assert_eq!(list[20_000].completed, 1);
    }
}
