//! Cores that do not go to sleep while something is measured.
//!
//! A core without work halts. Waking it takes time, more the deeper it sleeps; and on a virtual
//! machine a halted core is the host's to give away, and comes back when the host finds time (what
//! the kernel then counts as steal). Both happen between a request and its answer, and look like the
//! system's doing. While a program holds a bound of 0 on the latency of waking up, the kernel lets idle
//! cores spin instead (its documentation, PM Quality of Service interface). They still count as idle.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// The bound is in force as long as this file is open, and ends with the process.
const BOUND: &str = "/dev/cpu_dma_latency";

/// Keeps all cores of the machine awake until it is dropped.
#[derive(Debug)]
pub struct AwakeCores(#[expect(dead_code, reason = "held open")] File);

/// Asks the kernel to keep all cores awake.
///
/// `None` where it refuses: it wants root (`/dev/cpu_dma_latency` must be writable), and does not know
/// the bound in most containers. A kernel without a driver for idle states (`cpuidle`) takes the bound
/// and lets cores sleep all the same.
#[must_use]
pub fn keep_cores_awake() -> Option<AwakeCores> {
    let mut file = OpenOptions::new().write(true).open(BOUND).ok()?;
    // Four bytes, because the kernel reads any other length as hexadecimal digits.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(AwakeCores(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_kernels_as_long_as_it_is_held() {
        let bound = || {
            let mut bytes = [0; 4];
            let mut file = File::open(BOUND).ok()?;
            std::io::Read::read_exact(&mut file, &mut bytes).ok()?;
            Some(i32::from_ne_bytes(bytes))
        };
        if bound().is_none() {
            assert!(keep_cores_awake().is_none(), "no bound to be seen");
            return;
        }
        let awake = keep_cores_awake().expect("a user who may read it may write it");
        // Other programs may hold it as well, so nothing can be said about afterwards.
        assert_eq!(bound(), Some(0));
        drop(awake);
    }
}
