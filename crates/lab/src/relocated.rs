//! A lab whose systems have been started elsewhere: what is left of it for who only sends the load.

use crate::experiment::{Elsewhere, Lab, Limits, Origin, Probe, Setup, Variant};

impl Lab {
    /// The same lab with systems that run already, where `place` finds them by variant and system. A
    /// balancer of the lab's own is left out: where its system is found, something balances already.
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
    // Where it is found it is one of its own, also where several variants find the same.
    setup.is_shared = false;
    if !matches!(setup.ready.probe, Probe::Answers { .. }) {
        setup.ready.probe = Probe::Listening;
    }
}
