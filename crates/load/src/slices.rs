//! Slices of time for the sends of a closed loop.

use std::time::Duration;

use crate::clock::to_ns;

/// A stretch of time with slots in a closed loop. Between slices its connections idle. All times count from
/// the start of the load.
///
/// Loads that run together, each with its own slices, move from target to target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Start of the slots.
    pub from: Duration,
    /// End of new slots. The load awaits slots under way.
    pub to: Duration,
    /// Slots that begin earlier are checked and then discarded, because connections and threads were idle
    /// before. Not before `from` and not after `to`.
    pub count_from: Duration,
}

/// True if slices are in order, disjoint, and not empty.
pub(crate) fn are_in_order(slices: &[Slice]) -> bool {
    let is_sound = |slice: &Slice| {
        slice.from < slice.to && slice.from <= slice.count_from && slice.count_from <= slice.to
    };
    slices.iter().all(is_sound) && slices.windows(2).all(|pair| pair[0].to <= pair[1].from)
}

/// A slice by the clock of the load.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: u64,
    to_ns: u64,
    count_from_ns: u64,
}

/// The slices that are not over.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    spans: Box<[Span]>,
    /// Index of the first slice that was not over at the last call of `pass`.
    current: usize,
}

/// The meaning of a moment for a loop in slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Slots exist. They count, or are discarded.
    Within { is_discarded: bool },
    /// There is no slot before `from_ns`.
    Before { from_ns: u64 },
    /// No slot will follow.
    After,
}

impl Slices {
    /// Returns one slice without an end, for a loop without slices of its own.
    pub(crate) fn from(start_ns: u64) -> Slices {
        let all = Span {
            from_ns: start_ns,
            to_ns: u64::MAX,
            count_from_ns: start_ns,
        };
        Slices {
            spans: Box::new([all]),
            current: 0,
        }
    }

    /// Returns the slices of a load that starts at `start_ns`.
    pub(crate) fn new(slices: &[Slice], start_ns: u64) -> Slices {
        if slices.is_empty() {
            return Slices::from(start_ns);
        }
        let at = |offset: Duration| start_ns.saturating_add(to_ns(offset));
        let span = |slice: &Slice| Span {
            from_ns: at(slice.from),
            to_ns: at(slice.to),
            count_from_ns: at(slice.count_from),
        };
        Slices {
            spans: slices.iter().map(span).collect(),
            current: 0,
        }
    }

    /// Returns the meaning of this moment. The clock does not go back.
    #[inline]
    pub(crate) fn at(&self, now_ns: u64) -> Moment {
        // Nearly always the first slice, because `pass` was called within it.
        let open = self.spans[self.current..]
            .iter()
            .find(|span| now_ns < span.to_ns);
        match open {
            None => Moment::After,
            Some(span) if now_ns < span.from_ns => Moment::Before {
                from_ns: span.from_ns,
            },
            Some(span) => Moment::Within {
                is_discarded: now_ns < span.count_from_ns,
            },
        }
    }

    /// Moves past slices that are over.
    #[inline]
    pub(crate) fn pass(&mut self, now_ns: u64) {
        while let Some(span) = self.spans.get(self.current)
            && now_ns >= span.to_ns
        {
            self.current += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(from: u64, to: u64, count_from: u64) -> Slice {
        Slice {
            from: Duration::from_nanos(from),
            to: Duration::from_nanos(to),
            count_from: Duration::from_nanos(count_from),
        }
    }

    #[test]
    fn a_moment_is_within_a_slice_or_not() {
        let mut slices = Slices::new(&[slice(10, 20, 13), slice(30, 40, 30)], 100);
        for (now_ns, moment) in [
            (0, Moment::Before { from_ns: 110 }),
            (110, Moment::Within { is_discarded: true }),
            (
                113,
                Moment::Within {
                    is_discarded: false,
                },
            ),
            (120, Moment::Before { from_ns: 130 }),
            (
                130,
                Moment::Within {
                    is_discarded: false,
                },
            ),
            (140, Moment::After),
        ] {
            assert_eq!(slices.at(now_ns), moment, "before passing to {now_ns}");
            slices.pass(now_ns);
            assert_eq!(slices.at(now_ns), moment, "after passing to {now_ns}");
        }
        assert_eq!(
            Slices::from(7).at(7),
            Moment::Within {
                is_discarded: false
            }
        );
    }

    #[test]
    fn slices_that_overlap_or_are_empty_are_out_of_order() {
        assert!(are_in_order(&[slice(0, 10, 10), slice(10, 20, 10)]));
        assert!(!are_in_order(&[slice(0, 10, 0), slice(9, 20, 10)]));
        assert!(!are_in_order(&[slice(5, 5, 5)]));
        assert!(!are_in_order(&[slice(5, 9, 4)]));
        assert!(!are_in_order(&[slice(5, 9, 10)]));
    }
}
