//! The depth of introspection.
//!
//! Types refer to each other. So a short query with nested lists of types can request a response of any size.

use crate::projection::{Projection, Shape, What};

/// Maximum nesting of lists of fields, if `limits.introspection_max_depth` is on.
const NESTED_LISTS_MAX: usize = 2;

/// True if lists of types and fields are nested too deep below a member of the root.
pub(super) fn nests_too_deep(projection: &Projection) -> bool {
    let Some(root) = projection.members.get(projection.root) else {
        return false;
    };
    root.iter()
        .filter(|member| member.introspection.is_some())
        .any(|member| match &member.what {
            What::Value(shape) => list_depth(projection, shape) > NESTED_LISTS_MAX,
            What::Text(_) | What::Denied | What::Deferred(_) => false,
        })
}

fn list_depth(projection: &Projection, shape: &Shape) -> usize {
    let selection = match shape {
        Shape::Leaf(_) => return 0,
        Shape::List { item, .. } => return list_depth(projection, item),
        Shape::Object(selection) => *selection,
    };
    let Some(per_type) = projection.selections.get(selection) else {
        return 0;
    };
    // Introspection types are objects, never interfaces. So `otherwise` contains all members.
    let members = projection.members.get(per_type.otherwise);
    let depths = members.into_iter().flatten().map(|member| {
        let What::Value(shape) = &member.what else {
            return 0;
        };
        let name = member
            .introspection
            .as_ref()
            .map_or("", |asked| &asked.name);
        let listed = matches!(
            name,
            "fields" | "interfaces" | "possibleTypes" | "inputFields"
        );
        usize::from(listed) + list_depth(projection, shape)
    });
    depths.max().unwrap_or(0)
}
