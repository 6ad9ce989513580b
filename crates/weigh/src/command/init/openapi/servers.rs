//! The servers of a description. A lab takes one of them.

use std::fmt;

use serde_json::{Map, Value};

use super::example::Description;
use super::is_method;
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
    /// True if requests to it can go to another server of the description, with its own path.
    pub(super) fn is_at(&self, home: &Server) -> bool {
        self.origin.is_none() || home.origin.is_none() || self.origin == home.origin
    }

    /// True if a user means it: a host, a host and a port, or one of them with the path.
    fn is_named(&self, host: &str) -> bool {
        let origin = self.origin.as_deref().unwrap_or_default();
        let before_path = host.strip_suffix(self.prefix.as_str());
        is_named(origin, host)
            || before_path.is_some_and(|host| is_named(origin, host))
            || self.to_string() == host
    }
}

/// The servers of an operation: the list of the nearest level counts.
pub(super) fn of_operation(
    root: &Value,
    item: &Map<String, Value>,
    operation: &Value,
) -> Vec<Server> {
    let item = item.get("servers");
    let item = item.map(|list| serde_json::json!({ "servers": list }));
    let levels = [Some(operation), item.as_ref(), Some(root)];
    let mut lists = levels.into_iter().flatten().map(of);
    lists.find(|list| !list.is_empty()).unwrap_or_default()
}

/// The servers of a description, each with its number of operations.
fn counted(description: &Description<'_>) -> Vec<(Server, usize)> {
    let root = description.root;
    let mut all: Vec<(Server, usize)> = of(root).into_iter().map(|it| (it, 0)).collect();
    let paths = root.get("paths").and_then(Value::as_object);
    let items = paths.into_iter().flatten();
    let items = items.filter_map(|(_, item)| description.resolve(item)?.as_object());
    for item in items {
        let operations = item.iter().filter(|(method, _)| is_method(method));
        for (_, operation) in operations {
            for server in of_operation(root, item, operation) {
                match all.iter_mut().find(|(known, _)| *known == server) {
                    Some((_, count)) => *count += 1,
                    None => all.push((server, 1)),
                }
            }
        }
    }
    all
}

/// The server of the lab: the choice of the user, or the first server of the description. The others become a
/// remark.
///
/// # Errors
/// The description has no such server.
pub(super) fn home(
    description: &Description<'_>,
    host: Option<&str>,
    requests: &mut Requests,
) -> Result<Server, String> {
    let all = counted(description);
    let servers = || all.iter().map(|(server, _)| server);
    let home = match host {
        None => servers().next().cloned().unwrap_or_default(),
        Some(host) => {
            // A path makes the choice exact.
            let exact = servers().find(|server| server.to_string() == host);
            let found = exact.or_else(|| servers().find(|server| server.is_named(host)));
            let names: Vec<String> = servers().map(Server::to_string).collect();
            let unknown = || unknown_host(host, names.iter().map(String::as_str));
            found.cloned().ok_or_else(unknown)?
        }
    };
    let usual = of(description.root);
    let is_other = |server: &Server| {
        let is_choice = usual.contains(server) && usual.contains(&home);
        *server != home && (is_choice || !server.is_at(&home))
    };
    let others = all.iter().filter(|(server, _)| is_other(server));
    let others: Vec<String> = others
        .map(|(server, count)| match count {
            1 => format!("{server} (1 operation)"),
            many => format!("{server} ({many} operations)"),
        })
        .collect();
    if !others.is_empty() {
        requests.remark(&format!(
            "The lab takes the server {home}. Choose another with `--host`: {}.",
            shortened(&others)
        ));
    }
    Ok(home)
}
