//! The text of the lab that `weigh init` writes, with comments for first-time users.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::address;
use http::Uri;

use super::compose::ComposeDraft;
use super::proto::Calls;
use super::proxies::{FOLDER, KnownProxy};
use super::requests::Requests;
use crate::yaml_text::quoted;

/// The file name of the schema next to a lab. Editors read it without a network.
pub(super) const SCHEMA: &str = "lab.schema.json";

/// The setup that a lab compares.
pub(super) enum Setup {
    /// One command, compared with itself.
    Alone(String),
    /// Two commands. The second is compared with the first.
    Commands([String; 2]),
    /// A server without and with a proxy.
    Proxy { server: Server, proxy: Proxy },
    /// Two running servers. The second is compared with the first.
    Urls([Uri; 2]),
    /// The services of a compose file, without and with one of them.
    Compose(ComposeDraft),
}

impl Setup {
    /// The URLs of servers that run already.
    fn urls(&self) -> &[Uri] {
        match self {
            Setup::Proxy {
                server: Server::Url(url),
                ..
            } => std::slice::from_ref(url),
            Setup::Urls(urls) => urls,
            _ => &[],
        }
    }

    /// True if one of the URLs has a path.
    pub(super) fn has_path(&self) -> bool {
        self.urls().iter().any(|url| address::path(url) != "/")
    }
}

/// The server behind a proxy.
pub(super) enum Server {
    Command(String),
    Url(Uri),
}

impl Server {
    /// The host that a proxy connects to.
    fn host(&self) -> &str {
        match self {
            Server::Command(_) => "127.0.0.1",
            Server::Url(url) => url.host().unwrap_or("127.0.0.1"),
        }
    }
}

/// A proxy before a server.
pub(super) enum Proxy {
    /// A command of the user.
    Command(String),
    /// A proxy with a configuration of ours.
    Known(&'static KnownProxy),
}

/// The inputs of a lab's text.
pub(super) struct Draft<'a> {
    /// Path of the lab, as the user typed it.
    pub(super) lab: &'a str,
    /// Working folder of the commands, relative to the lab.
    pub(super) folder: &'a str,
    /// Path and query of the request, if they were given.
    pub(super) path: Option<&'a str>,
    /// Imported requests, instead of one request to that path.
    pub(super) requests: Option<&'a Requests>,
    /// Calls of gRPC, instead of requests.
    pub(super) calls: Option<&'a Calls>,
    pub(super) setup: &'a Setup,
}

/// The comment in the lab about a server that `weigh` starts.
const STARTED: &str = "  \
  # weigh starts it, waits until it accepts connections, and stops it. weigh assigns the host and port:
  # {{addr}} is both, {{port}} is the port alone, {{url}} is a URL.
  #   ready: {path: /health}              ready if this path answers with 200
  #   limits: {cpus: 1, memory: 256MiB}   limits of its resources
";

const RUNNING: &str = "  \
  # It runs already. weigh does not start or stop it, and a round is a block of time.
  #   attach: {pid: 4711}   the process behind the URL, to measure its processor time and memory
";

impl Draft<'_> {
    /// The files next to the lab: their names and contents.
    pub(super) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let Setup::Proxy {
            server,
            proxy: Proxy::Known(known),
        } = self.setup
        else {
            return Vec::new();
        };
        let files = known.files(server.host());
        files
            .map(|(name, text)| (Path::new(FOLDER).join(name), text.into_bytes()))
            .collect()
    }

    /// The text of the lab file.
    pub(super) fn text(&self) -> String {
        let (lab, consent) = (self.lab, self.consent());
        let mut text = format!(
            "\
# yaml-language-server: $schema={SCHEMA}
# A first lab, written by `weigh init`. Change it as you like. docs/labs.md of Weighbridge explains
# every key.
#   weigh check {lab}{consent}
#   weigh lab {lab}{consent}
"
        );
        if !consent.is_empty() {
            text += "# weigh loads another machine only with the last flag. It confirms that you may load that host.\n";
        }
        let _ = writeln!(text, "question: {}\n", quoted(&self.question()));
        text += &self.load();
        text += match self.requests {
            Some(requests) if requests.is_websocket() => EXPECT_MESSAGES,
            Some(requests) if requests.is_scenario() => EXPECT_STEPS,
            _ => EXPECT,
        };
        text += &self.requests.map(Requests::gates).unwrap_or_default();
        text += &self.systems();
        text += &self.variants();
        text
    }

    fn question(&self) -> String {
        match self.setup {
            Setup::Alone(_) => "What does a change of this server cost?".to_owned(),
            Setup::Commands(_) => {
                "What does the second command cost, compared with the first?".to_owned()
            }
            Setup::Proxy {
                proxy: Proxy::Known(known),
                ..
            } => format!("What does {} cost?", known.name),
            Setup::Proxy { .. } => "What does the proxy cost?".to_owned(),
            Setup::Compose(compose) => format!("What does {} cost?", compose.service),
            Setup::Urls(_) => {
                let [first, second] = self.names();
                format!("What does {second} cost, compared with {first}?")
            }
        }
    }

    fn load(&self) -> String {
        let sent = match (self.requests, self.calls) {
            (Some(requests), _) => requests.load(),
            (None, Some(calls)) => calls.load(),
            (None, None) => format!("  path: {}\n", quoted(&self.request_path())),
        };
        let head = match self.requests {
            Some(requests) if requests.is_websocket() => {
                LOAD_MESSAGES.to_owned() + &length(requests)
            }
            Some(requests) if requests.is_scenario() => LOAD_STEPS.to_owned() + &length(requests),
            _ => LOAD.to_owned(),
        };
        format!(
            "{head}{sent}\
rounds: 8 # number of measurements. Fewer than 6 cannot show a difference
warmup: 500ms # load before each round, in no figure
"
        )
    }

    fn request_path(&self) -> String {
        match (self.path, self.setup.urls()) {
            (Some(path), _) => path.to_owned(),
            (None, [url, ..]) => address::path(url),
            (None, []) => "/".to_owned(),
        }
    }

    fn systems(&self) -> String {
        let mut text = String::new();
        match self.setup {
            Setup::Alone(command) => {
                text += "\ntarget: server # this system receives the load\nsystems:\n";
                text += STARTED;
                text += &self.command("server", command);
            }
            Setup::Commands([first, second]) => {
                text += "\ntarget: first # this system receives the load\nsystems:\n";
                text += STARTED;
                text += &self.command("first", first);
                text += &self.command("second", second);
            }
            Setup::Proxy { server, proxy } => {
                text += "\ntarget: server # this system receives the load\nsystems:\n";
                match server {
                    Server::Command(command) => {
                        text += STARTED;
                        text += &self.command("server", command);
                    }
                    Server::Url(url) => {
                        text += RUNNING;
                        text += &running("server", url);
                    }
                }
                text += "  # It forwards to the server. Its address is {{server.addr}} or {{server.url}}.\n";
                text += &match proxy {
                    Proxy::Command(command) => self.command("proxy", command),
                    Proxy::Known(known) => known.system("proxy"),
                };
            }
            Setup::Urls([first, second]) => {
                text += "\ntarget: first # this system receives the load\nsystems:\n";
                text += RUNNING;
                text += &running("first", first);
                text += &running("second", second);
            }
            Setup::Compose(compose) => {
                text += "\ntarget: stack # this system receives the load\nsystems:\n";
                text += COMPOSED;
                text += &project(compose);
            }
        }
        text
    }

    fn command(&self, name: &str, command: &str) -> String {
        format!(
            "  {name}:\n    run: {}\n    folder: {} # folder of the command, relative to this file\n",
            quoted(command),
            quoted(self.folder)
        )
    }

    fn variants(&self) -> String {
        let [baseline, variant] = self.names();
        let with = match self.setup {
            Setup::Compose(compose) => without(compose),
            _ => String::new(),
        };
        let mut text = format!(
            "\n# The report compares every other variant with the baseline.\nbaseline: {{name: {}{with}}}\nvariants:\n",
            quoted(&baseline)
        );
        if matches!(self.setup, Setup::Alone(_)) {
            text += ALONE;
        }
        let _ = writeln!(text, "  - name: {}", quoted(&variant));
        match self.setup {
            Setup::Alone(_) | Setup::Compose(_) => {}
            Setup::Commands(_) => text += "    target: second\n",
            Setup::Proxy { .. } => text += "    target: proxy\n",
            Setup::Urls([first, second]) => {
                text += "    target: second\n";
                let path = address::path(second);
                if path != address::path(first) {
                    let _ = writeln!(text, "    load: {{path: {}}}", quoted(&path));
                }
            }
        }
        text
    }

    /// The names of the report's rows.
    fn names(&self) -> [String; 2] {
        match self.setup {
            Setup::Alone(_) => ["as it is", "the same again"].map(str::to_owned),
            Setup::Commands(_) => ["first", "second"].map(str::to_owned),
            Setup::Proxy {
                proxy: Proxy::Known(known),
                ..
            } => ["without", &format!("with {}", known.name)].map(str::to_owned),
            Setup::Proxy { .. } => ["without", "with proxy"].map(str::to_owned),
            Setup::Urls([first, second]) => address::names([first, second]),
            Setup::Compose(compose) => {
                ["without", "with"].map(|it| format!("{it} {}", compose.service))
            }
        }
    }

    /// The flags that consent to load on other machines. Empty if no other machine is used.
    pub(super) fn consent(&self) -> String {
        let mut hosts: Vec<&str> = self.setup.urls().iter().filter_map(Uri::host).collect();
        hosts.retain(|host| !is_here(host));
        hosts.dedup();
        hosts.iter().fold(String::new(), |flags, host| {
            format!("{flags} --yes-load {host}")
        })
    }
}

/// The beginning of the load for requests in rotation.
const LOAD: &str = "\
# The requests and their rate. Each variant receives this rate, by plan. With `auto`, weigh measures
# latency and processor time first, and chooses the rate and the length of a round. `rate: 50/s` with
# `duration: 2s` fixes both. With `connections: 10` instead of `rate`, each connection sends its next
# request when its last answer is complete.
load:
  rate: auto
";

/// The line of the length of a round, which is long enough for the planned times of one iteration.
fn length(requests: &Requests) -> String {
    let planned: Duration = requests.pauses() + requests.longest();
    let planned = planned.as_millis().div_ceil(1000);
    let why = match planned {
        0 => String::new(),
        seconds => format!(". One iteration takes at least {seconds} s"),
    };
    format!("  duration: {}s # of each round{why}\n", 5 + planned)
}

/// The beginning of the load for conversations over WebSocket.
const LOAD_MESSAGES: &str = "\
# The conversations and the rate at which they begin. Each variant receives this rate, by plan. A rate and
# `hold` together keep many conversations open.
load:
  rate: 10/s
";

/// The beginning of the load for a scenario.
const LOAD_STEPS: &str = "\
# The steps and the rate of their iterations. Each variant receives this rate, by plan. With
# `connections: 10` instead of `rate`, each connection runs one iteration after another.
load:
  rate: 10/s
";

const EXPECT: &str = "
# Every answer must have a status from 200 to 299 and the body of the baseline's answer. A variant with
# another answer has no number. Name the varying fields of a body, for example: ignore: [/time].
expect: {same-as: baseline}
";

const EXPECT_STEPS: &str = "
# Every answer must have a status from 200 to 299, or the status of its step. The bodies are not compared,
# because each iteration has values of its own. For a step whose answer is always the same, write
#   expect: {same-as: baseline}
expect: {status: 2xx}
";

const EXPECT_MESSAGES: &str = "
# Every message of the server is an event. To check them, write into a request, for example:
#   stream: {events: 50, each: json}
";

const ALONE: &str = "  \
  # A variant equal to the baseline shows the smallest difference that this machine can detect. To compare
  # two values, make a setting of the server,
  #   settings: {workers: 1}
  #   run: my-server --listen {{addr}} --workers {{workers}}
  # and replace this variant by a variant with another value:
  #   - {name: four workers, with: {server.workers: 4}}
";

const COMPOSED: &str = "  \
  # The services of a compose file. For each variant, weigh starts a copy of all services without fixed
  # ports and names, and removes it with its networks and volumes. The file does not change. Each service
  # has a line in the report. docs/compose.md of Weighbridge lists the changes and the refused keys.
  #   port: 8080            next to `service`: its port, if the file does not contain it
  #   env: {TAG: '1.2'}     for the ${TAG} of the file
  #   profiles: [debug]     services of these profiles run as well
  #   services:             changes of the lab: environment, image, number of containers
  #     api: {env: {LOG: none}, image: 'api:next', replicas: 2}
";

/// The system of a compose file, with a setting for the difference between the variants.
fn project(compose: &ComposeDraft) -> String {
    let (service, setting) = match compose.is_before {
        true => (
            "\"{{load}}\"".to_owned(),
            format!("load: {}, ", quoted(&compose.service)),
        ),
        false => (quoted(&compose.behind), String::new()),
    };
    let told = match compose.is_before {
        true => "",
        false => {
            "  # Other services keep their settings for the omitted service. Change these under `services`.\n"
        }
    };
    let profiles = match compose.profiles.as_slice() {
        [] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            format!("      profiles: [{}]\n", names.join(", "))
        }
    };
    format!(
        "{told}  stack:\n    settings: {{{setting}leave-out: none}}\n    compose:\n      file: {}\n      \
         service: {service} # this service receives the load\n      without: \"{{{{leave-out}}}}\"\n{profiles}    \
         #   ready: {{path: /health}}   ready if this path answers with 200\n",
        quoted(&compose.file.display().to_string())
    )
}

/// The settings of the variant without the service.
fn without(compose: &ComposeDraft) -> String {
    let leave_out = format!("stack.leave-out: {}", quoted(&compose.service));
    match compose.is_before {
        true => format!(
            ", with: {{stack.load: {}, {leave_out}}}",
            quoted(&compose.behind)
        ),
        false => format!(", with: {{{leave_out}}}"),
    }
}

fn running(name: &str, url: &Uri) -> String {
    format!("  {name}:\n    url: {}\n", quoted(&address::root(url)))
}

/// True if the host is this machine by its name alone. Other names are resolved later, and then need consent.
fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use experiment::files::Unwritten;

    use super::*;

    fn draft(setup: &Setup) -> Draft<'_> {
        Draft {
            lab: "labs/first/first.yaml",
            folder: "../..",
            path: None,
            requests: None,
            calls: None,
            setup,
        }
    }

    fn parsed(setup: &Setup) -> lab::Lab {
        let draft = draft(setup);
        let mut files = draft.files();
        files.push((PathBuf::from("first.yaml"), draft.text().into_bytes()));
        let files = Unwritten(files);
        match lab::parse(Path::new("first.yaml"), &files) {
            Ok(lab) => lab,
            Err(mistakes) => panic!("{mistakes}"),
        }
    }

    fn urls(first: &str, second: &str) -> Setup {
        Setup::Urls([first, second].map(|url| url.parse().expect("a URL")))
    }

    #[test]
    fn a_command_is_compared_with_itself_until_there_is_more() {
        let setup = Setup::Alone("serve --as \"a b\" {{addr}}".to_owned());
        let lab = parsed(&setup);
        assert_eq!(lab.names(), ["as it is", "the same again"]);
        let command = lab.baseline.systems()[0].command();
        assert_eq!(command[2].to_string(), "a b");
        let text = draft(&setup).text();
        assert!(text.contains("systems:\n  # weigh starts it"), "{text}");
        assert!(
            text.contains("variants:\n  # A variant equal to the baseline"),
            "{text}"
        );
    }

    #[test]
    fn a_proxy_brings_what_it_stands_before() {
        let proxy = Proxy::Command("proxy {{addr}} --to {{server.url}}".to_owned());
        let server = Server::Command("serve {{addr}}".to_owned());
        let lab = parsed(&Setup::Proxy { server, proxy });
        let systems = |variant: &lab::Variant| variant.systems().len();
        assert_eq!((systems(&lab.baseline), systems(&lab.variants[0])), (1, 2));
        assert_eq!(lab.names(), ["without", "with proxy"]);
    }

    #[test]
    fn each_known_proxy_has_a_lab_with_its_files() {
        for name in KnownProxy::names().split(", ") {
            for (server, host) in [
                (Server::Command("serve {{addr}}".to_owned()), "127.0.0.1"),
                (
                    Server::Url("http://localhost:8080/".parse().expect("a URL")),
                    "localhost",
                ),
            ] {
                let proxy = Proxy::Known(KnownProxy::named(name).expect("it is known"));
                let lab = parsed(&Setup::Proxy { server, proxy });
                assert_eq!(lab.names(), ["without", &format!("with {name}")]);
                let setup = lab.variants[0].systems().last().expect("the proxy");
                let texts = setup.files.iter().map(|file| file.text.to_string());
                assert!(texts.collect::<String>().contains(host), "{name}");
                assert_eq!(setup.needs.len(), 1);
            }
        }
    }

    fn stack(is_before: bool) -> Setup {
        Setup::Compose(ComposeDraft {
            file: PathBuf::from("../../compose.yaml"),
            service: "nginx.1".to_owned(),
            behind: "api".to_owned(),
            is_before,
            profiles: vec!["debug".to_owned()],
        })
    }

    #[test]
    fn a_service_is_left_out_in_the_baseline_and_what_stands_behind_it_loaded() {
        let loads = |is_before: bool| {
            let lab = parsed(&stack(is_before));
            assert_eq!(lab.names(), ["without nginx.1", "with nginx.1"]);
            let project = |variant: &lab::Variant| {
                let compose = variant.systems()[0].compose();
                let compose = compose.expect("a compose file").clone();
                (compose.service, compose.without)
            };
            [project(&lab.baseline), project(&lab.variants[0])]
        };
        let sidecar = vec!["nginx.1".to_owned()];
        let (api, nginx) = ("api".to_owned(), "nginx.1".to_owned());
        assert_eq!(
            loads(true),
            [(api.clone(), sidecar.clone()), (nginx, vec![])]
        );
        assert_eq!(loads(false), [(api.clone(), sidecar), (api, vec![])]);
    }

    #[test]
    fn two_urls_keep_their_paths() {
        let lab = parsed(&urls("http://127.0.0.1:1/x?y=1", "https://localhost/z"));
        let [own, theirs] = [&lab.baseline, &lab.variants[0]].map(|it| &it.requests[0]);
        assert_eq!((own.path.as_str(), theirs.path.as_str()), ("/x?y=1", "/z"));
        let twice = parsed(&urls("http://127.0.0.1:1/", "http://127.0.0.1:1/"));
        assert_eq!(twice.names(), ["127.0.0.1:1", "127.0.0.1:1 again"]);
    }

    #[test]
    fn other_machines_take_a_flag_and_this_one_takes_none() {
        let consent = |setup: &Setup| draft(setup).consent();
        assert_eq!(consent(&urls("http://[::1]:1/", "http://LOCALHOST/")), "");
        let setup = urls("http://a.example/1", "http://a.example/2");
        assert_eq!(consent(&setup), " --yes-load a.example");
        assert!(
            draft(&setup)
                .text()
                .contains("weigh loads another machine only with the last flag")
        );
    }
}
