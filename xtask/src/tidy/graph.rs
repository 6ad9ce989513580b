//! Dependencies between packages, as cargo resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::repository::root;

/// The resolved dependency graph of the workspace.
pub(crate) struct Graph {
    /// Package id → its name and manifest folder relative to the root.
    packages: BTreeMap<String, (String, String)>,
    /// Package id → dependencies in its binary.
    normal: BTreeMap<String, BTreeSet<String>>,
    /// Package id → dependencies of its tests.
    dev: BTreeMap<String, BTreeSet<String>>,
    members: Vec<String>,
}

impl Graph {
    pub(crate) fn load() -> Graph {
        let output = Command::new(env!("CARGO"))
            // The resolved graph, because a manifest does not show indirect dependencies.
            .args(["metadata", "--format-version", "1", "--locked"])
            .current_dir(root())
            .output()
            .expect("cargo describes the workspace");
        assert!(
            output.status.success(),
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
        let packages = list(&metadata["packages"])
            .map(|package| (text(&package["id"]), describe(package)))
            .collect();
        let mut normal = BTreeMap::new();
        let mut dev = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let id = text(&node["id"]);
            normal.insert(id.clone(), edges(node, |kind| kind.is_null()));
            dev.insert(id, edges(node, |kind| kind == "dev"));
        }
        let members = list(&metadata["workspace_members"]).map(text).collect();
        Graph {
            packages,
            normal,
            dev,
            members,
        }
    }

    /// Names of the members with a folder that starts with `prefix`.
    pub(crate) fn members_below(&self, prefix: &str) -> Vec<String> {
        self.members
            .iter()
            .filter_map(|id| self.packages.get(id))
            .filter(|(_, folder)| folder.starts_with(prefix))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Folders of the members below `prefix`, relative to the root.
    pub(crate) fn folders_below(&self, prefix: &str) -> Vec<String> {
        self.members
            .iter()
            .filter_map(|id| self.packages.get(id))
            .filter(|(_, manifest)| manifest.starts_with(prefix))
            .filter_map(|(_, manifest)| manifest.strip_suffix("/Cargo.toml"))
            .map(str::to_owned)
            .collect()
    }

    /// Names that the member imports itself, its tests included.
    pub(crate) fn direct(&self, member: &str) -> BTreeSet<String> {
        let id = self.id(member);
        self.names(self.normal[&id].iter().chain(&self.dev[&id]))
    }

    /// Names of all packages in the member's binary.
    pub(crate) fn reach(&self, member: &str) -> BTreeSet<String> {
        self.names(&self.closure(BTreeSet::from([self.id(member)])))
    }

    /// Like [`Graph::reach`], including the member's tests.
    pub(crate) fn reach_with_dev(&self, member: &str) -> BTreeSet<String> {
        let id = self.id(member);
        let mut start = self.dev[&id].clone();
        start.insert(id);
        self.names(&self.closure(start))
    }

    fn closure(&self, start: BTreeSet<String>) -> BTreeSet<String> {
        let mut seen = start.clone();
        let mut open: Vec<String> = start.into_iter().collect();
        while let Some(id) = open.pop() {
            for next in self.normal.get(&id).into_iter().flatten() {
                // Each package once, because dev-dependencies may form a circle.
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    }

    fn names<'a>(&self, ids: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        ids.into_iter()
            .filter_map(|id| self.packages.get(id))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn id(&self, member: &str) -> String {
        self.members
            .iter()
            .find(|id| {
                self.packages
                    .get(*id)
                    .is_some_and(|(name, _)| name == member)
            })
            .unwrap_or_else(|| panic!("`{member}` is not a member of the workspace"))
            .clone()
    }
}

fn edges(node: &Value, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    list(&node["deps"])
        .filter(|dependency| list(&dependency["dep_kinds"]).any(|kind| wanted(&kind["kind"])))
        .map(|dependency| text(&dependency["pkg"]))
        .collect()
}

fn describe(package: &Value) -> (String, String) {
    let manifest = text(&package["manifest_path"]);
    let prefix = format!("{}/", root().display());
    let folder = manifest
        .strip_prefix(&prefix)
        .unwrap_or(&manifest)
        .to_owned();
    (text(&package["name"]), folder)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
