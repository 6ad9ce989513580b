//! One lab in two revisions of its repository: equal work, done by the programs of each revision.

use std::path::Path;

use crate::experiment::{Lab, Variant};

/// The variant of the older revision, if only one is compared.
const BASE: &str = "base";
/// The variant of the newer revision, if only one is compared.
const HEAD: &str = "head";

impl Lab {
    /// Returns the lab that compares variants in two revisions. For each of these names it has the variant as
    /// `head` starts it. Its baseline is the variant as `base` builds and starts it. Both use the load,
    /// expectations and proofs of `head`, because otherwise different work would be compared.
    ///
    /// `base` is an error with the reason if the older revision has no such readable lab. A variant that only
    /// `head` has gets a baseline that is marked as absent. Names that `head` does not have are left out. At
    /// least one name must be left.
    ///
    /// # Panics
    ///
    /// If `head` does not have any of the names.
    #[must_use]
    pub fn of_revisions(base: Result<&Lab, &str>, head: Lab, names: &[String]) -> Lab {
        let chosen = head.all().filter(|variant| names.contains(&variant.name));
        let chosen: Vec<Variant> = chosen.cloned().collect();
        let is_alone = chosen.len() == 1;
        let mut rows = chosen.into_iter().flat_map(|variant| {
            let name = |revision: &str| match is_alone {
                true => revision.to_owned(),
                false => format!("{}, {revision}", variant.name),
            };
            let older = of_base(base, &variant, name(BASE));
            let newer = Variant {
                name: name(HEAD),
                against: Some(older.name.clone()),
                ..alone(variant)
            };
            [older, newer]
        });
        let baseline = rows
            .next()
            .expect("the caller chose from the variants of `head`");
        let variants = rows.collect();
        Lab {
            requests: baseline.requests.clone(),
            expect: baseline.expect.clone(),
            // Groups, ladders and designs name variants that no longer exist.
            groups: None,
            ladder: Vec::new(),
            factors: None,
            baseline,
            variants,
            ..head
        }
    }

    /// Returns the lab with its files named by their paths below `folder`.
    #[must_use]
    pub fn seen_from(mut self, folder: &Path) -> Lab {
        let shortened = |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_owned();
        self.path = shortened(&self.path);
        for source in &mut self.sources {
            source.path = shortened(&source.path);
        }
        self
    }
}

/// A variant of `head`, started as the older revision starts it.
fn of_base(base: Result<&Lab, &str>, variant: &Variant, name: String) -> Variant {
    let found = base.map_err(str::to_owned).and_then(|lab| {
        let found = lab.all().find(|other| other.name == variant.name);
        found.ok_or_else(|| {
            format!(
                "the lab of the older revision has no variant `{}`",
                variant.name
            )
        })
    });
    let (systems, absent) = match found {
        Ok(older) => (older.systems.clone(), None),
        Err(reason) => (variant.systems.clone(), Some(reason)),
    };
    // Both revisions receive the requests of `head`.
    let mut systems = systems;
    if let (Some(older), Some(newer)) = (systems.last_mut(), variant.systems.last()) {
        older.http = newer.http;
        older.resumption = newer.resumption;
    }
    alone(Variant {
        name,
        against: None,
        absent,
        systems,
        ..variant.clone()
    })
}

/// Gives a variant its own systems, because one process of a shared system would belong to one revision.
fn alone(mut variant: Variant) -> Variant {
    for setup in &mut variant.systems {
        setup.is_shared = false;
    }
    variant
}
