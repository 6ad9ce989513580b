//! A lab with systems that were started elsewhere, for a generator that only sends the load.

use crate::experiment::{Elsewhere, Lab, Limits, Origin, Probe, Setup, Variant};

impl Lab {
    /// Returns the lab with systems that already run, at the addresses that `place` returns by variant and
    /// system. A system with a `url` stays there. A balancer of the lab is left out, because a system at an
    /// existing address already has its balancer.
    ///
    /// # Errors
    /// A sentence that names the first system without an address.
    pub fn relocated(
        mut self,
        place: &dyn Fn(&str, &str) -> Option<Elsewhere>,
    ) -> Result<Lab, String> {
        for variant in std::iter::once(&mut self.baseline).chain(&mut self.variants) {
            let Variant { name, systems, .. } = variant;
            systems.retain(|setup| setup.balances.is_none());
            for setup in systems {
                if let Origin::Elsewhere(url) = &mut setup.origin {
                    // The kubelets report the usage of pods, and a generator has no access to kubelets.
                    url.attach = None;
                    setup.needs.clear();
                    setup.is_shared = false;
                    continue;
                }
                let found = place(name, &setup.system)
                    .ok_or_else(|| format!("`{}` of `{name}` has no address", setup.system))?;
                relocate(setup, found);
            }
        }
        Ok(self)
    }
}

fn relocate(setup: &mut Setup, found: Elsewhere) {
    setup.origin = Origin::Elsewhere(found);
    setup.build.clear();
    setup.version = None;
    setup.env.clear();
    setup.limits = Limits::default();
    setup.pin = None;
    setup.needs.clear();
    setup.replicas = None;
    // A system at an existing address is not shared, even if several variants have the same address.
    setup.is_shared = false;
    if !matches!(setup.ready.probe, Probe::Answers { .. }) {
        setup.ready.probe = Probe::Listening;
    }
}
