//! The servers of a description. A lab takes one of them.

use std::fmt;

use serde_json::Value;

use crate::command::init::origins::{is_named, origin, shortened, unknown_host};
use crate::command::init::requests::Requests;
use crate::command::init::values::plain;

/// A server: host and port, if the URL has them, and the path before each path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) origin: Option<String>,
    pub(super) prefix: String,
}

/// The servers of a description, a path or an operation.
pub(super) fn of(object: &Value) -> Vec<Server> {
    let list = object.get("servers").and_then(Value::as_array);
    let server = |server: &Value| {
        let mut url = server.get("url").map(plain).unwrap_or_default();
        let variables = server.get("variables").and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable.get("default").map(plain).unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), &value);
        }
        let (host, path) = match url.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(format!("{scheme}://{}", &rest[..end])), &rest[end..])
            }
            None => (None, url.as_str()),
        };
        let parsed = host.and_then(|host| experiment::address::url(&host).ok());
        let path = path
            .split(['?', '#'])
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        Server {
            origin: parsed.as_ref().map(origin),
            prefix: match path {
                "" => String::new(),
                path if path.starts_with('/') => path.to_owned(),
                path => format!("/{path}"),
            },
        }
    };
    list.into_iter().flatten().map(server).collect()
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin.as_deref().unwrap_or_default();
        match (origin, self.prefix.as_str()) {
            ("", "") => f.write_str("/"),
            (origin, prefix) => write!(f, "{origin}{prefix}"),
        }
    }
}

impl Server {
    /// True if a user means it: a host, a host and a port, or one of them with the path.
    fn is_named(&self, host: &str) -> bool {
        let origin = self.origin.as_deref().unwrap_or_default();
        let before_path = host.strip_suffix(self.prefix.as_str());
        is_named(origin, host)
            || before_path.is_some_and(|host| is_named(origin, host))
            || self.to_string() == host
    }
}

/// The server of the lab: the choice of the user, or the first server of the description. The others become a
/// remark.
///
/// # Errors
/// The description has no such server.
pub(super) fn home(
    root: &Value,
    host: Option<&str>,
    requests: &mut Requests,
) -> Result<Server, String> {
    let mut all: Vec<Server> = Vec::new();
    let items = root.get("paths").and_then(Value::as_object);
    let items = items.into_iter().flat_map(|items| items.values());
    let operations = items.clone().filter_map(Value::as_object);
    let operations = operations.flat_map(|item| item.values());
    for object in std::iter::once(root).chain(items).chain(operations) {
        for server in of(object) {
            if !all.contains(&server) {
                all.push(server);
            }
        }
    }
    let home = match host {
        None => all.first().cloned().unwrap_or_default(),
        Some(host) => {
            // A path makes the choice exact.
            let exact = all.iter().find(|server| server.to_string() == host);
            let found = exact.or_else(|| all.iter().find(|server| server.is_named(host)));
            let names: Vec<String> = all.iter().map(Server::to_string).collect();
            let unknown = || unknown_host(host, names.iter().map(String::as_str));
            found.cloned().ok_or_else(unknown)?
        }
    };
    let others = all.iter().filter(|server| **server != home);
    let others: Vec<String> = others.map(Server::to_string).collect();
    if !others.is_empty() {
        requests.remark(&format!(
            "The lab takes the server {home}. Other servers of the description: {}. Choose a server with `--host`.",
            shortened(&others)
        ));
    }
    Ok(home)
}
