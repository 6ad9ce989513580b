//! Approximate size of a prepared operation in bytes. The operation cache limits the sum of these sizes.

use crate::checked::Checked;
use crate::plan::{FetchPlan, Input, Need, PathStep, Plan, Rewrite, RewriteStep, TypeSet};
use crate::prepared::Prepared;
use crate::projection::Projection;

impl Prepared {
    /// Approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let cost = self.cost.as_ref().map_or(0, |it| it.weight());
        size_of::<Self>()
            + cost
            + self.checked.weight()
            + self.plan.weight()
            + self.deferral.as_ref().map_or(0, |it| it.weight())
            + self.labels.weight()
            + self.demands.weight()
            + self.unauthorized.weight()
    }
}

impl Checked {
    /// Approximate size in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        // The type and the default of a variable are small trees.
        let declared = self.declared.iter().map(|it| it.name.len() + 256);
        let exceeded = self.exceeded.iter().map(|it| it.weight() + 128);
        size_of::<Self>()
            + self.projection.weight()
            + declared.sum::<usize>()
            + exceeded.sum::<usize>()
    }
}

impl Projection {
    fn weight(&self) -> usize {
        let members = self.members.iter().flat_map(|members| members.iter());
        // The shape of a list is boxed and counts 32 bytes.
        let members = members.map(|it| {
            let text = it.key.len() + it.opener.len() + it.coordinate.len();
            let asked = it.introspection.as_ref().map_or(0, |_| 256);
            size_of_val(it) + text + asked + 32
        });
        let selections = self.selections.iter().map(|per_type| {
            let by_type = per_type.by_type.iter();
            size_of_val(per_type)
                + by_type
                    .map(|it| size_of_val(it) + it.0.len())
                    .sum::<usize>()
        });
        let enums = self
            .enums
            .iter()
            .flat_map(|it| it.values.iter().map(|value| value.len() + 16));
        let lists = 16 * self.members.len();
        lists
            + members.sum::<usize>()
            + selections.sum::<usize>()
            + enums.sum::<usize>()
            + 64 * self.presences.len()
            + 128 * (self.anchors.len() + self.groups.len())
    }
}

impl Plan {
    pub(crate) fn weight(&self) -> usize {
        self.fetches.iter().map(FetchPlan::weight).sum()
    }
}

impl FetchPlan {
    fn weight(&self) -> usize {
        // Two additional copies of the text, for the two forms of the plan that stages can request.
        let text = 3 * self.operation.len() + self.prefix.len();
        let variables = self.variables.iter().map(|it| size_of_val(it) + it.1.len());
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|it| size_of_val(it) + it.key.len() + rewrites(&it.rewrites));
        size_of::<Self>()
            + text
            + variables.sum::<usize>()
            + outputs.sum::<usize>()
            + self.inputs.iter().map(Input::weight).sum::<usize>()
            + rewrites(&self.rewrites)
    }
}

impl Input {
    fn weight(&self) -> usize {
        let places = self.places.iter().map(|place| {
            let path = place.path.iter().map(|step| {
                size_of_val(step)
                    + match step {
                        PathStep::Key(key) => key.len(),
                        PathStep::List => 0,
                        PathStep::Types(types) => types.weight(),
                    }
            });
            size_of_val(place) + path.sum::<usize>() + needs(&place.needs)
        });
        size_of::<Self>() + self.opener.len() + places.sum::<usize>() + rewrites(&self.rewrites)
    }
}

fn needs(all: &[Need]) -> usize {
    let weights = all.iter().map(|need| {
        size_of_val(need)
            + match need {
                Need::Typename => 0,
                Need::Field {
                    key, opener, needs, ..
                } => key.len() + opener.len() + self::needs(needs),
                Need::Fragment {
                    name, types, needs, ..
                } => name.len() + types.weight() + self::needs(needs),
            }
    });
    weights.sum()
}

fn rewrites(all: &[Rewrite]) -> usize {
    let weights = all.iter().map(|rewrite| {
        let path = rewrite.path.iter().map(|step| {
            size_of_val(step)
                + match step {
                    RewriteStep::Key(key) => key.len(),
                    RewriteStep::Types(types) => types.weight(),
                }
        });
        size_of_val(rewrite) + path.sum::<usize>()
    });
    weights.sum()
}

impl TypeSet {
    fn weight(&self) -> usize {
        let names = self.names().map(|name| name.len() + size_of::<Vec<u8>>());
        names.sum()
    }
}
