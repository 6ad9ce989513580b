//! Keeps cores awake during a measurement.
//!
//! A core without work halts. Waking it takes time, and more time the deeper it sleeps. On a virtual machine,
//! the host may give a halted core to another guest and return it later. The kernel counts that as steal.
//! Both delays occur between a request and its response, and look like delays of the system. While a program
//! holds a bound of 0 on the wake-up latency, the kernel lets idle cores spin instead (see its PM Quality of
//! Service interface). They still count as idle.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// The bound is in force while this file is open, and ends with the process.
const BOUND: &str = "/dev/cpu_dma_latency";

/// Keeps all cores of the machine awake until it is dropped.
#[derive(Debug)]
pub struct AwakeCores(#[expect(dead_code, reason = "held open")] File);

/// Requests that the kernel keeps all cores awake.
///
/// Returns `None` if the kernel refuses. It requires root (`/dev/cpu_dma_latency` must be writable), and most
/// containers do not have the file. A kernel without a driver for idle states (`cpuidle`) accepts the bound
/// but still lets cores sleep.
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
        // Other programs may hold the bound, too, so the test cannot check it afterwards.
        assert_eq!(bound(), Some(0));
        drop(awake);
    }
}
