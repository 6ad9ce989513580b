//! Stacks as a tree: each frame with the amount below it, of one graph or of two.

use std::collections::BTreeMap;

use super::{Scale, Stacks};
use crate::float::float;

/// A frame with all that was called from it. Amounts are microseconds per request, or shares where
/// that is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    pub(super) amount: f64,
    /// The same in the graph it is compared with.
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

    /// Adds the graph it is compared with. A frame that is only there has no width and is not drawn;
    /// its callers show what is gone.
    pub(super) fn compared_with(mut self, stacks: &Stacks, scale: &Scale) -> Self {
        self.add(stacks, |frame, samples| {
            frame.before += float(samples) * scale.per_sample();
        });
        self
    }

    fn add(&mut self, stacks: &Stacks, count: impl Fn(&mut Self, u64)) {
        for (stack, samples) in &stacks.0 {
            // The root counts every sample, so that its width is the whole.
            count(self, *samples);
            let mut frame = &mut *self;
            for name in stack {
                frame = frame.children.entry(name.clone()).or_default();
                count(frame, *samples);
            }
        }
    }

    /// Frames above one another, this one included, none narrower than `least`.
    pub(super) fn depth(&self, least: f64) -> usize {
        let children = self.children.values();
        let deepest = children
            // The same bound as in drawing, or the picture would be higher than what is drawn.
            .filter(|child| child.amount >= least)
            .map(|child| child.depth(least))
            .max();
        1 + deepest.unwrap_or(0)
    }
}
