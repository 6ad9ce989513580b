//! The listen addresses of processes, read from the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a listening socket, in `/proc/PID/net/tcp`.
const LISTENS: &str = "0A";

/// The TCP addresses on which these processes listen. A process that has ended adds no address.
#[must_use]
pub fn listening(pids: &[i32]) -> BTreeSet<SocketAddr> {
    let mut found = BTreeSet::new();
    for pid in pids {
        let own = sockets_of(*pid);
        for table in ["tcp", "tcp6"] {
            // A process may have ended, and a kernel may have no IPv6.
            let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
            let rows = text.lines().skip(1).filter_map(listener);
            found
                .extend(rows.filter_map(|(address, inode)| own.contains(inode).then_some(address)));
        }
    }
    found
}

/// The inodes of a process's sockets, as text.
fn sockets_of(pid: i32) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    let links = files.into_iter().flatten().flatten();
    let inode = |link: std::path::PathBuf| {
        let text = link.to_string_lossy().into_owned();
        let inode = text.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(inode.to_owned())
    };
    links
        .filter_map(|file| inode(fs::read_link(file.path()).ok()?))
        .collect()
}

/// Address and inode in a row of the kernel's table, if the row describes a listening socket.
fn listener(row: &str) -> Option<(SocketAddr, &str)> {
    let mut columns = row.split_whitespace();
    let local = columns.nth(1)?;
    let state = columns.nth(1)?;
    let inode = columns.nth(5)?;
    (state == LISTENS).then_some((address(local)?, inode))
}

/// Parses `0100007F:1F90` as 127.0.0.1:8080. Each 32 bits are written in the byte order of the machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |text: &str| Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes());
    let bytes: Vec<u8> = (0..host.len())
        .step_by(8)
        .map(|at| word(host.get(at..at + 8)?))
        .collect::<Option<Vec<[u8; 4]>>>()?
        .concat();
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some((Ipv4Addr::from(bytes), port).into());
    }
    let bytes = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    Some((Ipv6Addr::from(bytes), port).into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_sockets_that_this_process_listens_on_are_found() {
        let pid = i32::try_from(std::process::id()).expect("a process id");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        assert!(listening(&[pid]).contains(&address));
        drop(listener);
        assert!(!listening(&[pid]).contains(&address));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let read = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(read("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(
            read("00000000000000000000000001000000:0050").as_deref(),
            Some("[::1]:80")
        );
        assert_eq!(read("0100007F"), None);
        assert_eq!(read("01007F:1F90"), None);
    }
}
