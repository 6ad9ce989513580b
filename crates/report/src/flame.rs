//! Flamegraphs of a system's processor time, and of the difference between two variants.
//!
//! Samples are folded to distinct stacks ([`Stacks`]), added up to a tree, and drawn ([`svg`],
//! [`difference_svg`]). The idea and the form of the drawing are Brendan Gregg's ("The Flame Graph",
//! Communications of the ACM 59(6), 2016). Width is the share of samples, order is by name, and height is
//! depth. Widths are scaled to processor time per request, so that two graphs can be compared.
//!
//! Sampling, files, and scripts in the drawing beyond zooming and searching are absent on purpose.

mod draw;
mod perf;
mod switches;
mod symbol;
mod tree;

use std::collections::BTreeMap;

pub(crate) use draw::inline_difference;
pub use draw::{difference_svg, svg};
pub use perf::stacks;
pub use switches::blocked;

use recording::{HotFunction, float};

/// Distinct stacks with their numbers of samples. The root comes first: `root;caller;callee`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks(BTreeMap<Vec<String>, u64>);

impl Stacks {
    /// Counts `samples` samples of a stack. The root comes first.
    pub(crate) fn add(&mut self, stack: Vec<String>, samples: u64) {
        *self.0.entry(stack).or_insert(0) += samples;
    }

    /// Number of all samples.
    pub fn samples(&self) -> u64 {
        self.0.values().sum()
    }

    /// The share of samples in code without a known function name.
    pub fn nameless_share(&self) -> f64 {
        let is_nameless = |stack: &[String]| stack.last().is_some_and(|leaf| leaf.starts_with('['));
        let nameless = self.0.iter().filter(|(stack, _)| is_nameless(stack));
        // The divisor is at least 1, so that an empty profile has a share of 0 and not NaN.
        float(nameless.map(|(_, samples)| samples).sum()) / float(self.samples().max(1))
    }

    /// The stacks of a recording: `root;caller;callee`, with their numbers of samples.
    pub fn of_counts(counts: &BTreeMap<String, u64>) -> Self {
        let mut stacks = Self::default();
        for (stack, samples) in counts {
            stacks.add(stack.split(';').map(str::to_owned).collect(), *samples);
        }
        stacks
    }

    /// Each stack as `root;caller;callee`, with its number of samples.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let folded = |(stack, samples): (&Vec<String>, &u64)| (folded(stack), *samples);
        self.0.iter().map(folded).collect()
    }

    /// One stack per line, in the format of other tools: `root;caller;callee 12`.
    pub fn folded(&self) -> String {
        let line =
            |(stack, samples): (&Vec<String>, &u64)| format!("{} {samples}\n", folded(stack));
        self.0.iter().map(line).collect()
    }

    /// The functions with the most samples, in descending order.
    pub fn hottest(&self, count: usize) -> Vec<HotFunction> {
        let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (stack, samples) in &self.0 {
            let Some(leaf) = stack.last() else { continue };
            found.entry(leaf).or_default().0 += samples;
            // A recursive function counts once per sample.
            let mut names: Vec<&str> = stack.iter().map(String::as_str).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                found.entry(name).or_default().1 += samples;
            }
        }
        let mut hottest: Vec<HotFunction> = found
            .into_iter()
            .map(|(function, (own_samples, total_samples))| HotFunction {
                function: function.to_owned(),
                own_samples,
                total_samples,
            })
            .filter(|function| function.own_samples > 0)
            .collect();
        hottest.sort_by(|one, other| {
            let most = other.own_samples.cmp(&one.own_samples);
            // Functions with equal counts are sorted by name, so that equal samples give equal lists.
            most.then_with(|| one.function.cmp(&other.function))
        });
        hottest.truncate(count);
        hottest
    }
}

/// A stack on one line. `;` separates frames, so it cannot be in a name.
fn folded(stack: &[String]) -> String {
    let frames: Vec<String> = stack.iter().map(|frame| frame.replace(';', ":")).collect();
    frames.join(";")
}

/// Unit of a graph: the meaning of one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Processor time per request, in microseconds. `None` if it is unknown, and the graph then shows
    /// samples.
    pub cpu_us_per_request: Option<f64>,
    /// All samples of the graph.
    pub samples: u64,
}

impl Scale {
    /// The scale of these stacks.
    pub fn new(stacks: &Stacks, cpu_us_per_request: Option<f64>) -> Self {
        Self {
            cpu_us_per_request,
            samples: stacks.samples(),
        }
    }

    /// Microseconds per request that a sample represents. If they are unknown, it is the sample's share of
    /// all samples.
    fn per_sample(&self) -> f64 {
        self.cpu_us_per_request.unwrap_or(1.0) / float(self.samples.max(1))
    }
}

#[cfg(test)]
mod tests;
