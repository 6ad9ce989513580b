//! Tests of the rig on real processes.

// `cfg(test)` makes clippy treat helpers as test code.
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
