//! Flamegraphs: where a system's processor time goes, and where a variant's differs.
//!
//! Samples are folded to distinct stacks ([`Stacks`]), added up to a tree, and drawn ([`svg`],
//! [`difference_svg`]). The idea and the form of the drawing are Brendan Gregg's ("The Flame Graph",
//! Communications of the ACM 59(6), 2016): width is the share of samples, order is by name, and height
//! is depth. Widths are scaled to processor time per request, so that two graphs can be compared.
//!
//! Absent on purpose: sampling, files, and scripts in the drawing beyond zooming and searching.

mod draw;
mod perf;
mod symbol;
mod tree;

use std::collections::BTreeMap;

pub use draw::{difference_svg, svg};
pub use perf::stacks;

use crate::float::float;
use crate::recording::HotFunction;

/// Distinct stacks with the number of their samples; root first, `root;caller;callee`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks(BTreeMap<Vec<String>, u64>);

impl Stacks {
    /// Counts one sample; the root comes first.
    pub(crate) fn add(&mut self, stack: Vec<String>, samples: u64) {
        *self.0.entry(stack).or_insert(0) += samples;
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.0.values().sum()
    }

    /// The share of samples that were in code of which only the file is known.
    pub fn nameless_share(&self) -> f64 {
        let is_nameless = |stack: &[String]| stack.last().is_some_and(|leaf| leaf.starts_with('['));
        let nameless = self.0.iter().filter(|(stack, _)| is_nameless(stack));
        // At least one, so that no samples have a share of 0 and not of NaN.
        float(nameless.map(|(_, samples)| samples).sum()) / float(self.samples().max(1))
    }

    /// One stack a line, as other tools read it: `root;caller;callee 12`.
    pub fn folded(&self) -> String {
        let line = |(stack, samples): (&Vec<String>, &u64)| {
            // `;` separates frames in this format.
            let frames: Vec<String> = stack.iter().map(|frame| frame.replace(';', ":")).collect();
            format!("{} {samples}\n", frames.join(";"))
        };
        self.0.iter().map(line).collect()
    }

    /// The functions in which the processor was found most often, most first.
    pub fn hottest(&self, count: usize) -> Vec<HotFunction> {
        let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (stack, samples) in &self.0 {
            let Some(leaf) = stack.last() else { continue };
            found.entry(leaf).or_default().0 += samples;
            // A function that calls itself is counted once a sample.
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
            // By name where counts are equal, so that the same samples give the same list.
            most.then_with(|| one.function.cmp(&other.function))
        });
        hottest.truncate(count);
        hottest
    }
}

/// A graph's title and what one sample stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Processor time per request, in microseconds; samples are shown instead where it is not known.
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

    /// Microseconds per request that a sample stands for; its share where that is not known.
    fn per_sample(&self) -> f64 {
        self.cpu_us_per_request.unwrap_or(1.0) / float(self.samples.max(1))
    }
}

#[cfg(test)]
mod tests;
