//! The balancer in front of several instances of a system: HAProxy's configuration and statistics.
//!
//! The rig starts it like any system. A separate, read-only port returns its statistics.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit for reading the statistics.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Connections besides the load: probes, proofs and statistics.
const CONNECTIONS_SPARE: u32 = 100;

/// The settings of a balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Balancer {
    pub(super) listen: SocketAddr,
    /// The address of the statistics.
    pub(super) statistics: SocketAddr,
    /// The balancing algorithm in HAProxy's words: `leastconn`, `roundrobin`.
    pub(super) balance: String,
    /// The path of the health check. Without a path, an instance only has to accept connections.
    pub(super) health_path: Option<String>,
    /// The status of a successful health check.
    pub(super) health_status: u16,
    /// Maximum number of connections that the load opens at once.
    pub(super) connections: u32,
    /// The generator's timeout of a response.
    pub(super) timeout: Duration,
    /// Names and addresses of the instances.
    pub(super) instances: Vec<(String, SocketAddr)>,
}

/// The requests of one instance, as counted by the balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    /// The name of the instance.
    pub(super) instance: String,
    /// Number of responses. Health checks are not included.
    pub(super) answers: u64,
}

impl Balancer {
    /// The text of HAProxy's configuration.
    pub(super) fn configuration(&self) -> String {
        let connections = self.connections.saturating_add(CONNECTIONS_SPARE);
        // Longer than the generator's timeout, so that a timeout is not counted as a 504 response.
        let timeout_ms = self.timeout.as_millis().saturating_add(1_000);
        let mut text = format!(
            "global\n  maxconn {connections}\n  stats socket ipv4@{} level user\n\n\
             defaults\n  mode http\n  timeout connect 1s\n  timeout client {timeout_ms}ms\n  \
             timeout server {timeout_ms}ms\n\n\
             frontend web\n  bind {}\n  default_backend {BACKEND}\n\n\
             backend {BACKEND}\n  balance {}\n",
            self.statistics, self.listen, self.balance
        );
        if let Some(path) = &self.health_path {
            // Writing into a `String` does not fail.
            let _ = writeln!(
                text,
                "  option httpchk GET {path}\n  http-check expect status {}",
                self.health_status
            );
        }
        for (name, address) in &self.instances {
            let _ = writeln!(
                text,
                "  server {name} {address} check inter 1s fall 2 rise 1"
            );
        }
        text
    }
}

/// Name of the backend that contains the instances.
const BACKEND: &str = "instances";

/// Reads the response counts of each instance from a balancer.
///
/// # Errors
///
/// When it does not respond, or not in its format.
pub(super) fn answered(statistics: SocketAddr) -> io::Result<Vec<Answered>> {
    let mut stream = TcpStream::connect_timeout(&statistics, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(b"show stat\n")?;
    let mut table = String::new();
    // HAProxy closes the connection after one command, which ends the table.
    stream.read_to_string(&mut table)?;
    counts(&table).ok_or_else(|| {
        let first = table.lines().next().unwrap_or_default();
        io::Error::other(format!("expected a table of statistics, found `{first}`"))
    })
}

/// The responses of each server, from HAProxy's table: the sum over the classes of status codes.
fn counts(table: &str) -> Option<Vec<Answered>> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next()?.strip_prefix("# ")?.split(',').collect();
    // Columns are found by name, because versions of HAProxy add columns.
    let column = |name: &str| header.iter().position(|it| *it == name);
    let (backend, server) = (column("pxname")?, column("svname")?);
    let classes: Vec<usize> = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"]
        .iter()
        .map(|class| column(&format!("hrsp_{class}")))
        .collect::<Option<_>>()?;
    let mut instances = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |index: usize| cells.get(index).copied().unwrap_or_default();
        // The table also has lines for sums and for the listener.
        if cell(backend) != BACKEND || ["BACKEND", "FRONTEND"].contains(&cell(server)) {
            continue;
        }
        let mut answers = 0;
        for class in &classes {
            // A cell that is not a number means an unknown format, and counts must not be guessed.
            answers += cell(*class).parse::<u64>().ok()?;
        }
        instances.push(Answered {
            instance: cell(server).to_owned(),
            answers,
        });
    }
    Some(instances)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer() -> Balancer {
        Balancer {
            listen: ([127, 0, 0, 1], 4000).into(),
            statistics: ([127, 0, 0, 1], 4001).into(),
            balance: "leastconn".to_owned(),
            health_path: Some("/health".to_owned()),
            health_status: 204,
            connections: 1000,
            timeout: Duration::from_millis(2_500),
            instances: vec![
                ("limiter-1".to_owned(), ([127, 0, 0, 1], 5001).into()),
                ("limiter-2".to_owned(), ([127, 0, 0, 1], 5002).into()),
            ],
        }
    }

    #[test]
    fn the_configuration_names_every_instance_and_how_it_is_checked() {
        insta::assert_snapshot!(balancer().configuration(), @r"
        global
          maxconn 1100
          stats socket ipv4@127.0.0.1:4001 level user

        defaults
          mode http
          timeout connect 1s
          timeout client 3500ms
          timeout server 3500ms

        frontend web
          bind 127.0.0.1:4000
          default_backend instances

        backend instances
          balance leastconn
          option httpchk GET /health
          http-check expect status 204
          server limiter-1 127.0.0.1:5001 check inter 1s fall 2 rise 1
          server limiter-2 127.0.0.1:5002 check inter 1s fall 2 rise 1
        ");
        let plain = Balancer {
            health_path: None,
            ..balancer()
        };
        assert!(!plain.configuration().contains("http-check"));
    }

    #[test]
    fn answers_are_summed_over_all_classes_of_status_codes() {
        let table = "# pxname,svname,stot,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,\n\
                     web,FRONTEND,9,0,9,0,0,0,0,\n\
                     instances,limiter-1,7,0,5,0,1,1,0,\n\
                     instances,limiter-2,2,0,2,0,0,0,0,\n\
                     instances,BACKEND,9,0,9,0,0,0,0,\n\n";
        let found = counts(table).unwrap();
        let shown: Vec<(&str, u64)> = found
            .iter()
            .map(|one| (one.instance.as_str(), one.answers))
            .collect();
        assert_eq!(shown, [("limiter-1", 7), ("limiter-2", 2)]);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for table in ["", "Unknown command\n", "# pxname,svname\nx,y\n"] {
            assert_eq!(counts(table), None, "{table}");
        }
        let broken = "# pxname,svname,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other\n\
                      instances,a,0,many,0,0,0,0\n";
        assert_eq!(counts(broken), None);
    }
}
