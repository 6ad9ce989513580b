//! Ports for systems.
//!
//! A port is taken from *outside* the range that the kernel gives to outgoing connections
//! (`ip_local_port_range`). A load generator opens thousands of them, and one would sooner or later occupy
//! the port of a system that is about to start. Ports that the administrator has reserved
//! (`ip_local_reserved_ports`) are left alone. One process gives a port a second time only after it has given
//! all of them.
//!
//! A lease holds the port with a socket that is bound to every address, without `SO_REUSEADDR`, and never
//! listens. No other lease and no server can get the port, and connections to it are refused. Drop the lease
//! right before the system starts. **The race that remains:** between that moment and the system's own
//! `bind`, another program could bind this very port number by name. A system that then ends with "address
//! already in use" shows it. Starting it again on another port solves it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// People and programs know the ports below by name.
const FIRST: u16 = 10_000;

/// A port that no other program can get until this is dropped.
#[derive(Debug)]
pub struct PortLease {
    port: u16,
    _held: OwnedFd,
}

impl PortLease {
    /// The reserved port number.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The reserved port on 127.0.0.1.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}

/// Reserves a port on which no process listens. Drop the lease right before spawning the system that is to
/// listen there.
///
/// # Errors
/// If no port is free, or the process has no file descriptor left.
pub fn free_port() -> io::Result<PortLease> {
    // Without the file, the code below assumes the kernel's defaults.
    let read = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let candidates = candidates(
        &read("ip_local_port_range"),
        &read("ip_local_reserved_ports"),
    );
    for _ in 0..candidates.len() {
        let port = candidates[next_index(candidates.len())];
        match lease(port) {
            Ok(lease) => {
                tracing::trace!(port, "a port is reserved");
                return Ok(lease);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            // A port that only a privileged process may bind.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    // Every port is in the kernel's range, so the kernel may choose.
    lease(0)
}

/// Advances with every call. Two processes start at different places.
fn next_index(count: usize) -> usize {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Processes started together have neighboring ids. The multiplier (a prime) puts a good distance between
    // their starting points.
    let start = u64::from(std::process::id()) * 7_919;
    let step = u64::from(GIVEN.fetch_add(1, Ordering::Relaxed));
    usize::try_from((start + step) % (count as u64)).expect("less than a length")
}

/// Ports from [`FIRST`] on that are neither in the kernel's range nor reserved.
fn candidates(kernel_range: &str, reserved: &str) -> Vec<u16> {
    let kernel = {
        let mut ends = kernel_range.split_ascii_whitespace().map(str::parse::<u16>);
        match (ends.next(), ends.next()) {
            (Some(Ok(low)), Some(Ok(high))) => low..=high,
            // The kernel's own default.
            _ => 32_768..=60_999,
        }
    };
    let reserved = ranges(reserved);
    (FIRST..=u16::MAX)
        .filter(|port| !kernel.contains(port))
        .filter(|port| !reserved.iter().any(|range| range.contains(port)))
        .collect()
}

/// Parses `8080,9000-9010` as ranges.
fn ranges(list: &str) -> Vec<RangeInclusive<u16>> {
    list.trim()
        .split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse().ok()?..=high.parse().ok()?)
        })
        .collect()
}

fn lease(port: u16) -> io::Result<PortLease> {
    let held = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&held, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    let bound = SocketAddrV4::try_from(getsockname(&held)?)?;
    Ok(PortLease {
        port: bound.port(),
        _held: held,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn ports_of_outgoing_connections_and_reserved_ones_are_not_given() {
        let ports = candidates("32768\t60999\n", "10001,61000-65000\n");
        assert_eq!(ports.first(), Some(&10_000));
        assert!(!ports.contains(&10_001));
        assert!(!ports.contains(&32_768) && !ports.contains(&60_999));
        assert!(!ports.contains(&61_000) && ports.contains(&65_001));
        assert!(candidates("1024 65535", "").is_empty());
        assert!(!candidates("", "").contains(&40_000), "the default range");
    }

    #[test]
    fn a_leased_port_is_free_only_after_the_lease() {
        let lease = free_port().unwrap();
        let addr = lease.addr();
        assert!(TcpListener::bind(addr).is_err());
        assert!(super::lease(addr.port()).is_err());
        drop(lease);
        TcpListener::bind(addr).unwrap();
    }

    #[test]
    fn a_port_somebody_listens_on_is_not_leased() {
        let lease = free_port().unwrap();
        let addr = lease.addr();
        drop(lease);
        let _listener = TcpListener::bind(addr).unwrap();
        assert!(super::lease(addr.port()).is_err());
    }

    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<u16> = (0..200).map(|_| free_port().unwrap().port()).collect();
        assert_eq!(ports.len(), 200);
    }
}
