//! The nodes that variants had, so that variants without a common node exchange their nodes from round to round.
//!
//! Pods of a system prefer the nodes that the same system has in other variants. If no node has place for all
//! variants, some get another node. In the next round each variant then prefers the node of the variant after it.
//! After as many rounds as there are variants, each has had each node, and the nodes are no difference between them.

use std::collections::BTreeMap;

/// The nodes of the variants of each system in the last round with all systems.
#[derive(Debug, Default)]
pub(super) struct NodeHistory {
    /// By the name of the system, and by the position of the variant.
    nodes: BTreeMap<String, BTreeMap<usize, String>>,
}

impl NodeHistory {
    /// Forgets the last round.
    pub(super) fn begin_round(&mut self) {
        self.nodes.clear();
    }

    pub(super) fn add(&mut self, system: &str, variant: usize, node: String) {
        let of_system = self.nodes.entry(system.to_owned()).or_default();
        of_system.insert(variant, node);
    }

    /// The node for a variant in the next round. `None` if all variants had the same node.
    pub(super) fn next(&self, system: &str, variant: usize) -> Option<&str> {
        let nodes = self.nodes.get(system)?;
        let first = nodes.values().next()?;
        if !nodes.contains_key(&variant) || nodes.values().all(|node| node == first) {
            return None;
        }
        let later = nodes.range(variant + 1..).map(|(_, node)| node).next();
        Some(later.unwrap_or(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_with_a_common_node_keep_it() {
        let mut history = NodeHistory::default();
        assert_eq!(history.next("server", 0), None);
        history.add("server", 0, "x".to_owned());
        history.add("server", 1, "x".to_owned());
        assert_eq!(history.next("server", 0), None);
        // A shared system, or a variant that was left out.
        assert_eq!(history.next("server", 2), None);
        assert_eq!(history.next("other", 0), None);
    }

    #[test]
    fn variants_on_several_nodes_have_each_node_equally_often() {
        let mut history = NodeHistory::default();
        let mut nodes = ["x", "x", "y"].map(str::to_owned).to_vec();
        let mut had = vec![Vec::new(); 3];
        for _ in 0..6 {
            history.begin_round();
            for (variant, node) in nodes.iter().enumerate() {
                had[variant].push(node.clone());
                history.add("server", variant, node.clone());
            }
            let next = |variant| history.next("server", variant).expect("a node").to_owned();
            nodes = (0..3).map(next).collect();
        }
        for of_variant in had {
            let on_y = of_variant.iter().filter(|node| *node == "y").count();
            assert_eq!(on_y, 2, "{of_variant:?}");
        }
    }
}
