//! The servers that the requests of a file go to, of which a lab asks one.

use http::Uri;

use super::requests::Requests;
use crate::address;

/// The server of a URL, with its port whether or not the URL names it.
pub(super) fn origin(url: &Uri) -> String {
    let (host, port) = address::origin(url);
    format!("{host}:{port}")
}

/// How many requests go to which server.
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

    /// That to which most requests go; of equal ones the first.
    pub(super) fn most(&self) -> Option<String> {
        // The last of equal ones wins, so they are looked at from behind.
        let most = self.0.iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(origin, _)| origin.clone())
    }

    /// Names the requests to all others.
    pub(super) fn leave_out_others(&self, requests: &mut Requests) {
        let Some(most) = self.most() else {
            return;
        };
        for (origin, count) in self.0.iter().filter(|(origin, _)| *origin != most) {
            let what = match count {
                1 => "1 request".to_owned(),
                many => format!("{many} requests"),
            };
            requests.leave_out(
                &what,
                &format!("to {origin}, but most requests go to {most}"),
            );
        }
    }
}
