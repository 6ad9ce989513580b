//! TCP segments of single connections, requested from the kernel as `ss --info` does it.
//!
//! Request and response are `struct`s of the kernel in a special socket (`man 7 sock_diag`). Their fields are
//! read at offsets, so that the code never reinterprets memory as a type.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::Segments;

/// Timeout of the kernel's response. A kernel responds at once, but without a timeout a strange kernel could
/// delay the end of a load.
const WITHIN: Duration = Duration::from_secs(1);
/// Largest size of one part of a response, in bytes. The kernel never writes more than the receiver's buffer
/// holds.
const PART_MOST: usize = 64 << 10;
/// Largest number of parts of a response. One part contains some 100 connections.
const PARTS_MOST: usize = 10_000;

// From `linux/netlink.h`, `linux/sock_diag.h`, `linux/inet_diag.h` and `linux/tcp.h`.
const HEADER: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const TCP: u8 = 6;
const INFO: u16 = 2;
/// States of connections that are open in at least one direction, as bits.
const OPEN: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const QUESTION: usize = HEADER + 56;
const MESSAGE: usize = 72;
const PEER_PORT: usize = 6;
const PEER: usize = 24;
const TOTAL_RETRANS: usize = 100;
const SEGS_OUT: usize = 136;

/// Sum of the segments that the open connections of this network namespace to `peer` have sent. `None` if
/// there are no such connections, or the kernel does not report segments.
#[must_use]
pub fn segments_to(peer: SocketAddr) -> Option<Segments> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(SOCK_DIAG),
    )
    .ok()?;
    set_socket_timeout(&socket, Timeout::Recv, Some(WITHIN)).ok()?;
    send(&socket, &question(peer), SendFlags::empty()).ok()?;
    let mut all = None;
    let mut part = vec![0; PART_MOST];
    for _ in 0..PARTS_MOST {
        let answered = received(&socket, &mut part)?;
        if add(answered, peer, &mut all)? {
            return all;
        }
    }
    None
}

fn received<'p>(socket: &OwnedFd, part: &'p mut [u8]) -> Option<&'p [u8]> {
    let (length, whole) = recv(socket.as_fd(), &mut *part, RecvFlags::empty()).ok()?;
    // A truncated part would be missing in the sum.
    (length == whole).then_some(())?;
    part.get(..length)
}

/// A request for all open TCP connections to this port. The address is compared in the response.
fn question(peer: SocketAddr) -> [u8; QUESTION] {
    let mut bytes = [0; QUESTION];
    let length = u32::try_from(QUESTION).expect("a question is short");
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[HEADER] = family(peer);
    bytes[HEADER + 1] = TCP;
    bytes[HEADER + 2] = 1 << (INFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&OPEN.to_ne_bytes());
    bytes[HEADER + 10..HEADER + 12].copy_from_slice(&peer.port().to_be_bytes());
    bytes
}

fn family(peer: SocketAddr) -> u8 {
    let family = match peer {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    u8::try_from(family.as_raw()).expect("both are small numbers")
}

/// Adds the connections of one part of the response. Returns true for the last part, and `None` if the part
/// is malformed.
fn add(mut part: &[u8], peer: SocketAddr, all: &mut Option<Segments>) -> Option<bool> {
    while !part.is_empty() {
        let length = usize::try_from(u32_at(part, 0)?).ok()?;
        let message = part.get(..length).filter(|it| it.len() >= HEADER)?;
        match u16_at(message, 4)? {
            DONE => return Some(true),
            ERROR => return None,
            _ => {}
        }
        if let Some(own) = connection(&message[HEADER..], peer) {
            let before = all.unwrap_or_default();
            *all = Some(Segments {
                sent: before.sent + own.sent,
                retransmitted: before.retransmitted + own.retransmitted,
            });
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Some(false)
}

/// Segments of one connection, if it leads to this address.
fn connection(message: &[u8], peer: SocketAddr) -> Option<Segments> {
    let is_meant = match peer.ip() {
        IpAddr::V4(ip) => message.get(PEER..PEER + 4)? == ip.octets(),
        IpAddr::V6(ip) => message.get(PEER..PEER + 16)? == ip.octets(),
    };
    let port = message.get(PEER_PORT..PEER_PORT + 2)?;
    if !is_meant || port != peer.port().to_be_bytes() {
        return None;
    }
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let attribute = attributes.get(..length).filter(|it| it.len() >= 4)?;
        if u16_at(attribute, 2)? == INFO {
            let again = u64::from(u32_at(attribute, 4 + TOTAL_RETRANS)?);
            // The kernel counts retransmissions here, too.
            let sent = u64::from(u32_at(attribute, 4 + SEGS_OUT)?);
            return Some(Segments {
                sent: sent.max(again),
                retransmitted: again,
            });
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

/// Rounds up, because messages and attributes begin at multiples of 4.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_counts_what_each_connection_has_sent() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let peer = listener.local_addr().expect("an address");
            assert_eq!(segments_to(peer), None, "nobody is connected to it");
            let mut streams = Vec::new();
            for _ in 0..3 {
                let mut near = TcpStream::connect(peer).expect("a connection");
                near.set_nodelay(true).expect("a flag");
                let (mut far, _) = listener.accept().expect("a connection");
                for _ in 0..10 {
                    near.write_all(b"x").expect("it is sent");
                    far.read_exact(&mut [0]).expect("it comes");
                }
                streams.push((near, far));
            }
            let found = segments_to(peer).expect("three connections");
            // Each with two of its handshake and ten bytes.
            assert!((36..60).contains(&found.sent), "{found:?}");
            assert_eq!(found.retransmitted, 0);
        }
    }

    /// A connection in the form of the kernel.
    fn connection_of(peer: SocketAddr, sent: u32, again: u32) -> Vec<u8> {
        let mut message = vec![0; MESSAGE];
        message[PEER_PORT..PEER_PORT + 2].copy_from_slice(&peer.port().to_be_bytes());
        let IpAddr::V4(ip) = peer.ip() else {
            panic!("{peer}")
        };
        message[PEER..PEER + 4].copy_from_slice(&ip.octets());
        let mut info = vec![0; SEGS_OUT + 4];
        info[TOTAL_RETRANS..TOTAL_RETRANS + 4].copy_from_slice(&again.to_ne_bytes());
        info[SEGS_OUT..SEGS_OUT + 4].copy_from_slice(&sent.to_ne_bytes());
        let length = u16::try_from(4 + info.len()).expect("it is short");
        message.extend(length.to_ne_bytes());
        message.extend(INFO.to_ne_bytes());
        message.extend(info);
        message
    }

    /// Over a link that is cut, a kernel sends each segment several times.
    #[test]
    fn segments_that_are_sent_again_and_again_are_never_more_than_all() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 80));
        let found = connection(&connection_of(peer, 33_396, 23_820), peer);
        let expected = Segments {
            sent: 33_396,
            retransmitted: 23_820,
        };
        assert_eq!(found, Some(expected));
        let elsewhere = SocketAddr::from(([10, 0, 0, 2], 80));
        assert_eq!(connection(&connection_of(peer, 5, 0), elsewhere), None);
    }

    #[test]
    fn an_answer_that_ends_early_is_none() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 80));
        for broken in [&[1, 0][..], &[200, 0, 0, 0, 20, 0], &[0; 16]] {
            assert_eq!(add(broken, peer, &mut None), None, "{broken:?}");
        }
        assert_eq!(add(&[], peer, &mut None), Some(false));
    }
}
