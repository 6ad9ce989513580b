//! The rig's claims, on real processes.

// `cfg(test)` tells clippy that helpers are test code as well.
#[cfg(test)]
mod ending;
#[cfg(test)]
mod measuring;
#[cfg(test)]
mod precedence;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod starting;
