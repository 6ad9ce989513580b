//! A recording with another variant as its baseline.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Kind, Recording, RoundPart};

impl Recording {
    /// Compares all variants with this one. Variants with another baseline stay as they are.
    ///
    /// Measurements do not change, so any variant of a recording can take the place of its baseline. The
    /// baseline is then compared like a variant.
    ///
    /// # Errors
    ///
    /// When the recording has no such variant, or when it was not measured at the same time as a variant that
    /// would be compared with it.
    pub fn compare_with(&mut self, name: &str) -> Result<(), String> {
        if self.kind == Kind::Load {
            return Err(format!(
                "expected a recording of a lab, found a single load, which has no variant `{name}`"
            ));
        }
        let Some(place) = self.variants.iter().position(|it| it.name == name) else {
            let names = self.variants.iter().map(|it| format!("`{}`", it.name));
            return Err(format!(
                "expected a variant of the recording, found `{name}`. The variants are {}",
                names.collect::<Vec<_>>().join(", ")
            ));
        };
        let root = self.root_of(name);
        let is_compared = |other: &str| other != name && self.root_of(other) == root;
        let names = self.variants.iter().map(|it| it.name.clone());
        let compared: BTreeSet<String> = names.filter(|other| is_compared(other)).collect();
        self.check_parts(name, &compared)?;
        let first = self.variants.iter().position(|it| it.name == root);
        let is_first = self.baseline == root;
        for variant in &mut self.variants {
            if variant.name == name || compared.contains(&variant.name) {
                // A recording omits the name of its first baseline.
                variant.baseline = (!is_first).then(|| name.to_owned());
            }
        }
        if is_first {
            // Other variants had no name of their own baseline, and have the same baseline as before.
            self.baseline = name.to_owned();
        }
        // A report starts with the baseline of a group.
        let variant = self.variants.remove(place);
        let first = first.unwrap_or(0).min(place);
        self.variants.insert(first, variant);
        Ok(())
    }

    /// Name of the baseline at the end of the chain of comparisons.
    fn root_of(&self, name: &str) -> String {
        let by_name: BTreeMap<&str, &str> = self
            .variants
            .iter()
            .map(|it| (it.name.as_str(), self.baseline_of(it)))
            .collect();
        let mut root = name;
        // A damaged recording can have a circle, so the steps are counted.
        for _ in 0..self.variants.len() {
            match by_name.get(root) {
                Some(next) if *next != root => root = next,
                _ => break,
            }
        }
        root.to_owned()
    }

    /// Checks that each of these variants was measured together with the new baseline at least once.
    fn check_parts(&self, name: &str, compared: &BTreeSet<String>) -> Result<(), String> {
        let parts = |name: &str| -> BTreeSet<RoundPart> {
            self.rounds_of(name).map(|round| round.part()).collect()
        };
        let own = parts(name);
        let is_apart = |other: &&String| {
            let theirs = parts(other);
            !own.is_empty() && !theirs.is_empty() && own.is_disjoint(&theirs)
        };
        match compared.iter().find(is_apart) {
            None => Ok(()),
            Some(other) => Err(format!(
                "`{other}` and `{name}` were measured in different groups, so no round contains both. Write \
                 `groups: [[…, {name}, {other}]]` in the lab and measure again"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::SampleRun;

    #[test]
    fn a_chain_of_comparisons_ends_with_the_new_baseline() {
        let mut recording = SampleRun::side_by_side()
            .variant("direct", 700.0)
            .variant("proxy", 840.0)
            .variant("log", 861.0)
            .build();
        recording.variants[2].baseline = Some("proxy".to_owned());
        recording.compare_with("log").unwrap();
        let against: Vec<&str> = recording
            .variants
            .iter()
            .map(|it| recording.baseline_of(it))
            .collect();
        assert_eq!(against, ["log", "log", "log"]);
    }

    #[test]
    fn variants_of_another_baseline_stay() {
        let mut recording = SampleRun::side_by_side()
            .variant("small", 700.0)
            .variant("small, log", 840.0)
            .variant("large", 900.0)
            .variant("large, log", 961.0)
            .build();
        for large in &mut recording.variants[2..] {
            large.baseline = Some("large".to_owned());
        }
        recording.compare_with("large, log").unwrap();
        let found = |recording: &crate::Recording| -> Vec<(String, String)> {
            let variants = recording.variants.iter();
            let pair =
                |it: &crate::VariantRecord| (it.name.clone(), recording.baseline_of(it).to_owned());
            variants.map(pair).collect()
        };
        let pairs = |list: [[&str; 2]; 4]| list.map(|[a, b]| (a.to_owned(), b.to_owned())).to_vec();
        assert_eq!(
            found(&recording),
            pairs([
                ["small", "small"],
                ["small, log", "small"],
                ["large, log", "large, log"],
                ["large", "large, log"],
            ])
        );
        recording.compare_with("small, log").unwrap();
        assert_eq!(
            found(&recording),
            pairs([
                ["small, log", "small, log"],
                ["small", "small, log"],
                ["large, log", "large, log"],
                ["large", "large, log"],
            ])
        );
    }

    #[test]
    fn wrong_names_and_groups_are_refused() {
        let mut recording = SampleRun::side_by_side()
            .variant("direct", 700.0)
            .variant("proxy", 840.0)
            .build();
        let refused = recording.clone().compare_with("prxy").unwrap_err();
        assert!(
            refused.contains("The variants are `direct`, `proxy`"),
            "{refused}"
        );
        for round in &mut recording.rounds {
            round.group = Some(u32::from(round.variant == "proxy"));
        }
        let refused = recording.compare_with("proxy").unwrap_err();
        assert!(refused.contains("in different groups"), "{refused}");
    }
}
