//! Tree of stacks: each frame with the amount below it, from one graph or two.

use std::collections::BTreeMap;

use recording::float;

use super::{Scale, Stacks};

/// A frame with all its callees. Amounts are microseconds per request, or shares if the processor time is
/// unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    pub(super) amount: f64,
    /// The amount in the other graph of a comparison.
    pub(super) before: f64,
    pub(super) samples: u64,
    pub(super) children: BTreeMap<String, Frame>,
}

impl Frame {
    pub(super) fn of(stacks: &Stacks, scale: &Scale) -> Self {
        let mut root = Self::default();
        root.add(stacks, |frame, samples| {
            frame.samples += samples;
            frame.amount += float(samples) * scale.per_sample();
        });
        root
    }

    /// Adds the other graph of a comparison. A frame that is only in the other graph has no width and is not
    /// drawn. Its callers show the difference.
    pub(super) fn compared_with(mut self, stacks: &Stacks, scale: &Scale) -> Self {
        self.add(stacks, |frame, samples| {
            frame.before += float(samples) * scale.per_sample();
        });
        self
    }

    fn add(&mut self, stacks: &Stacks, count: impl Fn(&mut Self, u64)) {
        for (stack, samples) in &stacks.0 {
            // The root counts every sample, so that its width is the total.
            count(self, *samples);
            let mut frame = &mut *self;
            for name in stack {
                frame = frame.children.entry(name.clone()).or_default();
                count(frame, *samples);
            }
        }
    }

    /// Depth of the stack of frames, including this one. Frames narrower than `least` do not count.
    pub(super) fn depth(&self, least: f64) -> usize {
        let children = self.children.values();
        let deepest = children
            // The bound is the same as in drawing. Otherwise the picture would be too high.
            .filter(|child| child.amount >= least)
            .map(|child| child.depth(least))
            .max();
        1 + deepest.unwrap_or(0)
    }
}
