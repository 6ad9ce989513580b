//! The attacked services: their start, and the requests they receive.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::attacks::{Attack, Victim};
use super::dialect::Dialect;
use super::exchange::{HOST, post};
use super::links::Links;
use super::neighbor;
use crate::clock::{now, pause};
use crate::process::Process;
use crate::repository::root;

/// Service to attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Service {
    /// Gateway with planets as its origin.
    Gateway,
    /// GraphQL server on juniper and ntex.
    GraphqlServerJuniperNtex,
    /// GraphQL server on async-graphql and actix-web.
    GraphqlServerAsyncGraphqlActixWeb,
    /// Catalog with SQLite as its database.
    Catalog,
    /// Rate limiter with Redis as its store.
    Ratelimiter,
    /// Webhook of the IntegrationRoute controller.
    RouteWebhook,
    /// Origin of the router labs.
    Planets,
    /// HAProxy in front of planets, for comparison.
    Haproxy,
    /// Hive Router with planets as its origin, for comparison. `HIVE_ROUTER` names the program.
    HiveRouter,
    /// Apollo Router with planets as its origin, for comparison. `APOLLO_ROUTER` names the program.
    ApolloRouter,
}

/// The field of the rate limiter. It does not return a list.
const RATELIMIT: &str =
    "ratelimit(ratelimitInput:{eventName:LOGIN_FAILED,ip:\"10.0.0.1\",email:\"a@example.com\"})";

impl Service {
    /// The name for `--service`. For our own services it is the name of the program.
    pub(super) fn word(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The reason why it cannot be attacked here. `None` if it can.
    pub(super) fn missing(self, programs: &Path) -> Option<String> {
        let needed = match self {
            Service::Haproxy => PathBuf::from("haproxy"),
            Service::HiveRouter | Service::ApolloRouter => match self.foreign() {
                Some(program) => program,
                None => return Some(format!("{} is not set", self.variable())),
            },
            _ => programs.join(self.word()),
        };
        if !crate::bench::is_on_path(&needed) {
            return Some(format!("`{}` is not installed", needed.display()));
        }
        let is_without_redis =
            self == Service::Ratelimiter && !crate::bench::is_on_path(Path::new("redis-server"));
        is_without_redis.then(|| "`redis-server` is not installed".to_owned())
    }

    fn variable(self) -> &'static str {
        match self {
            Service::HiveRouter => "HIVE_ROUTER",
            _ => "APOLLO_ROUTER",
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this chore that reads it"
    )]
    fn foreign(self) -> Option<PathBuf> {
        env::var_os(self.variable()).map(PathBuf::from)
    }

    fn path(self) -> &'static str {
        match self {
            Service::Gateway
            | Service::Ratelimiter
            | Service::HiveRouter
            | Service::ApolloRouter => "/",
            Service::Planets | Service::Haproxy => "/locations",
            Service::RouteWebhook => "/webhook/sync",
            _ => "/graphql",
        }
    }

    pub(super) fn dialect(self) -> Option<Dialect> {
        let planets = Dialect {
            root: "locations",
            longest: "locations",
            kind: "Location",
            leaf: "name",
            with_variables: (
                "query($id:ID!){location(id:$id){id name}}",
                r#""id":"loc-1""#,
            ),
            is_federated: false,
        };
        Some(match self {
            Service::Gateway | Service::HiveRouter | Service::ApolloRouter => Dialect {
                is_federated: true,
                ..planets
            },
            Service::Planets => planets,
            Service::GraphqlServerJuniperNtex | Service::GraphqlServerAsyncGraphqlActixWeb => {
                Dialect {
                    root: "items",
                    longest: "items(count:10000)",
                    kind: "Item",
                    leaf: "name",
                    with_variables: ("query($id:ID!){item(id:$id){name}}", r#""id":"1""#),
                    ..planets
                }
            }
            Service::Catalog => Dialect {
                root: "product(limit:50)",
                longest: "product(limit:1000)",
                kind: "product",
                leaf: "name",
                with_variables: ("query($n:Int){product(limit:$n){name}}", r#""n":1"#),
                ..planets
            },
            Service::Ratelimiter => Dialect {
                root: RATELIMIT,
                longest: RATELIMIT,
                kind: "RatelimitResponse",
                leaf: "isRateLimited",
                with_variables: (
                    "query($e:String!){ratelimit(ratelimitInput:{eventName:LOGIN_FAILED,\
                     ip:\"10.0.0.1\",email:$e}){isRateLimited}}",
                    r#""e":"a@example.com""#,
                ),
                ..planets
            },
            // HAProxy does not support GraphQL.
            Service::RouteWebhook | Service::Haproxy => return None,
        })
    }

    /// The body of a request that gets a good response.
    fn body(self) -> anyhow::Result<String> {
        let text = match (self, self.dialect()) {
            (Service::Haproxy, _) => "{locations{name}}".to_owned(),
            (_, Some(dialect)) => format!("{{{}{{{}}}}}", dialect.root, dialect.leaf),
            (_, None) => {
                let request = root().join("labs/webhook/requests/route.json");
                return Ok(fs::read_to_string(request)?);
            }
        };
        Ok(serde_json::json!({ "query": text }).to_string())
    }
}

/// A running service, with the processes that it needs.
pub(super) struct Running {
    /// The first field, so that it ends before the processes that it depends on.
    pub(super) process: Process,
    _needed: Vec<Process>,
    _links: Option<Links>,
    _folder: tempfile::TempDir,
    pub(super) address: SocketAddr,
    service: Service,
    dialect: Option<Dialect>,
    body: String,
}

impl Running {
    /// Starts a service for an attack, and waits until it responds.
    pub(super) fn start(
        service: Service,
        attack: Attack,
        programs: &Path,
        stop: &AtomicBool,
    ) -> anyhow::Result<Running> {
        let folder = tempfile::tempdir()?;
        let (links, body) = match attack {
            Attack::Entities => (Some(Links::start()?), r#"{"query":"{a{id}}"}"#.to_owned()),
            _ => (None, service.body()?),
        };
        let scene = Scene {
            programs,
            folder: folder.path(),
            links: links.as_ref(),
        };
        let (process, address, needed) = scene.start(service)?;
        let running = Running {
            process,
            _needed: needed,
            _links: links,
            _folder: folder,
            address: address
                .parse()
                .with_context(|| format!("an address: {address}"))?,
            service,
            dialect: service.dialect(),
            body,
        };
        let patience = now() + Duration::from_secs(30);
        while !neighbor::once(running.address, &running.request()) {
            if now() > patience || stop.load(Ordering::Relaxed) {
                bail!("{} does not answer at {}", service.word(), running.address);
            }
            pause(Duration::from_millis(50));
        }
        Ok(running)
    }

    /// The request of the well-behaved client.
    pub(super) fn request(&self) -> Vec<u8> {
        let text =
            String::from_utf8_lossy(&post(self.service.path(), HOST, &self.body)).into_owned();
        text.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
            .into_bytes()
    }

    pub(super) fn victim(&self) -> Victim<'_> {
        Victim {
            address: self.address,
            path: self.service.path(),
            body: &self.body,
            dialect: self.dialect.as_ref(),
        }
    }
}

/// The folders and servers for starting services.
struct Scene<'a> {
    programs: &'a Path,
    folder: &'a Path,
    links: Option<&'a Links>,
}

/// The service, its address, and the processes that it depends on.
type Started = (Process, String, Vec<Process>);

const FREE: &str = "127.0.0.1:0";

impl Scene<'_> {
    fn start(&self, service: Service) -> anyhow::Result<Started> {
        match service {
            Service::Gateway => self.gateway(),
            Service::HiveRouter | Service::ApolloRouter => self.foreign(service),
            Service::Haproxy => self.haproxy(),
            Service::Ratelimiter => self.ratelimiter(),
            Service::RouteWebhook => self.ours(service, &["--host", "127.0.0.1", "--port", "0"]),
            Service::Catalog => self.catalog(),
            _ => self.ours(service, &["--listen", FREE]),
        }
    }

    fn ours(&self, service: Service, flags: &[&str]) -> anyhow::Result<Started> {
        let mut command = bounded(&self.programs.join(service.word()));
        let started = Process::listening(command.args(flags).current_dir(self.folder));
        let (process, address) = started?;
        Ok((process, address, Vec::new()))
    }

    fn catalog(&self) -> anyhow::Result<Started> {
        let database = format!("sqlite:{}/catalog.sqlite3", self.folder.display());
        let seeds = ["--seed-products", "500", "--seed-line-items", "2000"];
        let mut prepare = Command::new(self.programs.join("catalog"));
        prepare
            .args(["--prepare", "--database-url", &database])
            .args(seeds);
        let output = prepare.output().context("catalog starts")?;
        if !output.status.success() {
            bail!(
                "catalog prepares nothing: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        self.ours(
            Service::Catalog,
            &["--listen", FREE, "--database-url", &database],
        )
    }

    fn planets(&self) -> anyhow::Result<(Process, String)> {
        let mut command = Command::new(self.programs.join("planets"));
        Process::listening(command.args(["--listen", FREE]).stderr(Stdio::null()))
    }

    /// The supergraph as a file, and its origin, if that is a process.
    fn supergraph(&self) -> anyhow::Result<(PathBuf, Vec<Process>)> {
        let text = fs::read_to_string(root().join("services/planets/supergraph.graphql"))?;
        let (text, origins) = match self.links {
            Some(links) => (links.supergraph(&text)?, Vec::new()),
            None => {
                let (origin, address) = self.planets()?;
                (text.replace("127.0.0.1:4001", &address), vec![origin])
            }
        };
        let file = self.folder.join("supergraph.graphql");
        fs::write(&file, text)?;
        Ok((file, origins))
    }

    fn gateway(&self) -> anyhow::Result<Started> {
        let (supergraph, origins) = self.supergraph()?;
        let mut command = bounded(&self.programs.join("gateway"));
        command.args(["--listen", FREE, "--health-listen", FREE, "--supergraph"]);
        let (process, address) = Process::listening(command.arg(supergraph))?;
        Ok((process, address, origins))
    }

    fn foreign(&self, service: Service) -> anyhow::Result<Started> {
        let (supergraph, origins) = self.supergraph()?;
        let address = free_address()?;
        let config = self.folder.join("router.yaml");
        let file = supergraph.display();
        let (host, port) = address.split_once(':').context("host and port")?;
        let text = match service {
            Service::HiveRouter => format!(
                "supergraph: {{source: file, path: \"{file}\"}}\n\
                 http: {{host: {host}, port: {port}, graphql_endpoint: /}}\n"
            ),
            _ => format!(
                "supergraph: {{listen: \"{address}\"}}\nhealth_check: {{enabled: false}}\n\
                 homepage: {{enabled: false}}\n"
            ),
        };
        fs::write(&config, text)?;
        let program = service.foreign().context("it is named")?;
        let mut command = bounded(&program);
        if service == Service::HiveRouter {
            command.env("ROUTER_CONFIG_FILE_PATH", &config);
            command.env("HIVE_CONFIG_FILE_PATH", &config);
        } else {
            command.arg("--config").arg(&config);
            command.arg("--supergraph").arg(&supergraph);
            command.env("APOLLO_TELEMETRY_DISABLED", "true");
        }
        Ok((Process::start(&mut command)?, address, origins))
    }

    fn haproxy(&self) -> anyhow::Result<Started> {
        let (origin, upstream) = self.planets()?;
        let address = free_address()?;
        let config = self.folder.join("haproxy.cfg");
        // The timeouts that its manual recommends against slow clients.
        let text = format!(
            "global\n  no log\n\ndefaults\n  mode http\n  timeout connect 5s\n  \
             timeout client 30s\n  timeout server 30s\n  timeout http-request 10s\n\n\
             frontend clients\n  bind {address}\n  default_backend origin\n\n\
             backend origin\n  server origin {upstream}\n"
        );
        fs::write(&config, text)?;
        let mut command = bounded(Path::new("haproxy"));
        let process = Process::start(command.arg("-db").arg("-f").arg(config))?;
        Ok((process, address, vec![origin]))
    }

    fn ratelimiter(&self) -> anyhow::Result<Started> {
        let address = free_address()?;
        let (host, port) = address.split_once(':').context("host and port")?;
        let mut redis = Command::new("redis-server");
        redis.args([
            "--port",
            port,
            "--bind",
            host,
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let redis = Process::start(redis.current_dir(self.folder))?;
        let url = format!("redis://{address}");
        let flags = ["--host", "127.0.0.1", "--port", "0", "--store", "redis"];
        let flags = [&flags[..], &["--redis-url", &url]].concat();
        let (process, address, _) = self.ours(Service::Ratelimiter, &flags)?;
        Ok((process, address, vec![redis]))
    }
}

/// Number of descriptors of a service. It is small, because everywhere more clients can arrive within
/// seconds. The attacking client needs one for each of them too.
pub(super) const DESCRIPTORS: u64 = 512;

/// A command with [`DESCRIPTORS`] descriptors and without standard error, because hostile clients cause many
/// messages.
fn bounded(program: &Path) -> Command {
    let mut command = Command::new("sh");
    let line = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
    command.arg("-c").arg(line).arg(program);
    command.stderr(Stdio::null());
    command
}

/// A free address, for programs that cannot choose one.
fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind(FREE)?.local_addr()?.to_string())
}
