//! The servers of the requests in a file. A lab loads one of them.

use experiment::address;
use http::Uri;

use super::requests::Requests;

/// The server of a URL, always with a port.
pub(super) fn origin(url: &Uri) -> String {
    let (host, port) = address::origin(url);
    format!("{host}:{port}")
}

/// Number of requests to each server.
#[derive(Debug, Default)]
pub(super) struct Origins(Vec<(String, u32)>);

impl Origins {
    /// Counts a request to that server.
    pub(super) fn count(&mut self, origin: &str) {
        match self.0.iter_mut().find(|(known, _)| known == origin) {
            Some((_, count)) => *count += 1,
            None => self.0.push((origin.to_owned(), 1)),
        }
    }

    /// The server with the most requests. If several are equal, the first.
    pub(super) fn most(&self) -> Option<String> {
        // `max_by_key` returns the last of equal items, so the list is reversed.
        let most = self.0.iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(origin, _)| origin.clone())
    }

    /// Records the omission of requests to all other servers.
    pub(super) fn leave_out_others(&self, requests: &mut Requests) {
        let Some(most) = self.most() else {
            return;
        };
        for (origin, count) in self.0.iter().filter(|(origin, _)| *origin != most) {
            let what = match count {
                1 => "1 request".to_owned(),
                many => format!("{many} requests"),
            };
            requests.leave_out_requests(
                usize::try_from(*count).unwrap_or(usize::MAX),
                &what,
                &format!("to {origin}, but most requests go to {most}"),
            );
        }
    }
}
