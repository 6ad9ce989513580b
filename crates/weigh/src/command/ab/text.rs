//! The text of the lab that compares two URLs. The recording contains it, so that the run can be repeated.

use std::path::PathBuf;
use std::time::Duration;

use experiment::address;
use experiment::files::Unwritten;
use http::Uri;
use model::{GrpcCall, StatusPart, StreamRule, WebSocketCall};

use crate::grpc_args;
use crate::stream_args;
use crate::websocket_args;
use crate::yaml_text::quoted;

/// The name of the lab file.
pub(super) const FILE: &str = "ab.yaml";
/// The file of the request body, next to the lab.
const BODY: &str = "ab.body";
/// The file of the descriptors of a gRPC call, next to the lab.
const DESCRIPTORS: &str = "ab.descriptors";

/// Length of the discarded load before each block.
const WARMUP: Duration = Duration::from_millis(200);

/// Two URLs and the settings of their comparison.
pub(super) struct Comparison {
    pub(super) a: Side,
    pub(super) b: Side,
    pub(super) arrivals: Arrivals,
    /// True if the gaps between requests are random.
    pub(super) is_random: bool,
    /// The length of the load in each round. `None` if the run chooses it together with the rate.
    pub(super) block: Option<Duration>,
    pub(super) rounds: u32,
    pub(super) method: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) timeout: Duration,
    pub(super) insecure: bool,
    pub(super) is_http2: bool,
    pub(super) is_http3: bool,
    pub(super) status: Vec<StatusPart>,
    pub(super) ignore: Vec<String>,
    /// True if both must return the same responses.
    pub(super) is_same: bool,
    /// The rule of responses that are streams.
    pub(super) stream: Option<StreamRule>,
    /// The conversation over WebSocket, instead of a request of HTTP.
    pub(super) websocket: Option<WebSocketCall>,
    /// The call of gRPC, instead of a request of HTTP.
    pub(super) grpc: Option<GrpcCall>,
    pub(super) seed: Option<u64>,
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// Requests per second to each URL.
    Rate(f64),
    /// A rate that the run chooses.
    Auto,
    /// A closed loop with this number of connections.
    Connections(u32),
}

/// One of the two URLs.
pub(super) struct Side {
    pub(super) url: Uri,
    pub(super) attach: Option<AttachText>,
}

/// The program behind a URL, as in a lab.
pub(super) struct AttachText {
    key: &'static str,
    value: String,
}

impl AttachText {
    /// The id of a process, the folder of a control group, or the name of a container. In a cluster, the labels
    /// of pods.
    pub(super) fn of(value: String, is_in_cluster: bool) -> AttachText {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let key = match value.starts_with('/') {
            _ if is_in_cluster => "pods",
            true => "cgroup",
            false if is_number => "pid",
            false => "container",
        };
        AttachText { key, value }
    }
}

impl Side {
    fn system(&self, name: &str) -> String {
        let attach = self
            .attach
            .as_ref()
            .map(|AttachText { key, value }| format!("\n    attach: {{{key}: {}}}", quoted(value)));
        let attach = attach.unwrap_or_default();
        let root = address::root(&self.url);
        format!("  {name}:\n    url: {}{attach}\n", quoted(&root))
    }
}

impl Comparison {
    /// The lab file, and the body file next to it.
    pub(super) fn files(&self) -> Unwritten {
        let lab = (PathBuf::from(FILE), self.lab().into_bytes());
        let body = self.body.clone().map(|body| (PathBuf::from(BODY), body));
        let set = self.grpc.as_ref().and_then(GrpcCall::set);
        let set = set.map(|set| (PathBuf::from(DESCRIPTORS), set.to_vec()));
        Unwritten([lab].into_iter().chain(body).chain(set).collect())
    }

    fn lab(&self) -> String {
        let [a, b] = address::names([&self.a.url, &self.b.url]);
        let [path_of_a, path_of_b] = [&self.a.url, &self.b.url].map(address::path);
        let question = format!("What does {b} cost, compared with {a}?");
        let mut text = format!("question: {}\n\nload:\n", quoted(&question));
        text += &match self.arrivals {
            Arrivals::Rate(rate) => format!("  rate: {rate}/s\n"),
            Arrivals::Auto => "  rate: auto\n".to_owned(),
            Arrivals::Connections(connections) => format!("  connections: {connections}\n"),
        };
        if self.is_random {
            text += "  arrival: poisson\n";
        }
        if let Some(block) = self.block {
            text += &format!("  duration: {}\n", span(block));
        }
        text += &format!("  timeout: {}\n", span(self.timeout));
        if self.insecure {
            text += "  insecure: on\n";
        }
        if self.is_http2 {
            text += "  http2: on\n";
        }
        if self.is_http3 {
            text += "  http3: on\n";
        }
        if let Some(rule) = &self.stream {
            text += &format!("  stream: {}\n", stream_args::as_yaml(rule));
        }
        if let Some(method) = &self.method {
            text += &format!("  method: {}\n", quoted(method));
        }
        // A call has a path of its own.
        if self.grpc.is_none() {
            text += &format!("  path: {}\n", quoted(&path_of_a));
        }
        if !self.headers.is_empty() {
            text += "  headers:\n";
            for (name, value) in &self.headers {
                text += &format!("    {}: {}\n", quoted(name), quoted(value));
            }
        }
        if let Some(call) = &self.websocket {
            let call = websocket_args::as_yaml(call);
            text += &format!("  requests:\n    - {{websocket: {call}}}\n");
        }
        if let Some(call) = &self.grpc {
            let call = grpc_args::as_yaml(call, DESCRIPTORS);
            text += &format!("  requests:\n    - {{grpc: {call}}}\n");
        }
        if self.body.is_some() {
            text += &format!("  requests:\n    - {{body: {BODY}}}\n");
        }
        text += &format!("warmup: {}\nrounds: {}\n", span(WARMUP), self.rounds);
        if let Some(seed) = self.seed {
            text += &format!("seed: {seed}\n");
        }
        text += &self.expect();
        text += "\ntarget: a\nsystems:\n";
        text += &self.a.system("a");
        text += &self.b.system("b");
        text += &format!("\nbaseline: {{name: {}}}\nvariants:\n", quoted(&a));
        text += &format!("  - name: {}\n    target: b\n", quoted(&b));
        if path_of_b != path_of_a && self.grpc.is_none() {
            text += &format!("    load: {{path: {}}}\n", quoted(&path_of_b));
        }
        text
    }

    fn expect(&self) -> String {
        let mut rules = Vec::new();
        match self.status.as_slice() {
            [] => {}
            [status] => rules.push(format!("status: {status}")),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                rules.push(format!("status: [{}]", names.join(", ")));
            }
        }
        if self.is_same {
            rules.push("same-as: baseline".to_owned());
        }
        if !self.ignore.is_empty() {
            let pointers: Vec<String> = self.ignore.iter().map(|it| quoted(it)).collect();
            rules.push(format!("ignore: [{}]", pointers.join(", ")));
        }
        match rules.is_empty() {
            true => String::new(),
            false => format!("expect: {{{}}}\n", rules.join(", ")),
        }
    }
}

/// A duration in the syntax of labs.
fn span(length: Duration) -> String {
    format!("{}us", length.as_micros())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::RpcProtocol;

    use super::*;

    fn comparison(a: &str, b: &str) -> Comparison {
        let side = |url: &str| Side {
            url: url.parse().expect("a URL"),
            attach: None,
        };
        Comparison {
            a: side(a),
            b: side(b),
            arrivals: Arrivals::Rate(100.0),
            is_random: false,
            block: Some(Duration::from_millis(1500)),
            rounds: 8,
            method: None,
            headers: Vec::new(),
            body: None,
            timeout: Duration::from_secs(10),
            insecure: false,
            is_http2: false,
            is_http3: false,
            status: Vec::new(),
            ignore: Vec::new(),
            is_same: true,
            stream: None,
            websocket: None,
            grpc: None,
            seed: None,
        }
    }

    #[test]
    fn the_lab_of_two_urls_reads_as_it_was_meant() {
        let comparison = Comparison {
            headers: vec![("X-Quote".to_owned(), "a \"b\": c".to_owned())],
            body: Some(b"{}".to_vec()),
            ignore: vec!["/timing".to_owned()],
            status: vec![StatusPart::Class(2), StatusPart::Code(429)],
            ..comparison("http://127.0.0.1:1/x?y=1", "https://localhost/z")
        };
        let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
        assert_eq!(lab.name, "ab");
        assert_eq!(lab.baseline.name, "127.0.0.1:1/x?y=1");
        let [variant] = lab.variants.as_slice() else {
            panic!("one variant");
        };
        let [own, theirs] = [&lab.baseline, variant].map(|it| &it.requests[0]);
        assert_eq!((own.path.as_str(), theirs.path.as_str()), ("/x?y=1", "/z"));
        assert_eq!(
            (own.method.as_str(), own.body.as_slice()),
            ("POST", &b"{}"[..])
        );
        assert!(
            own.headers
                .contains(&("X-Quote".to_owned(), "a \"b\": c".to_owned()))
        );
        let status = variant.expect.answer.status;
        assert_eq!(status.to_string(), "2xx or 429");
        assert!(variant.expect.same_as_baseline && variant.expect.ignore == ["/timing"]);
        let [system] = variant.systems() else {
            panic!("one system");
        };
        let url = system.elsewhere().expect("it runs already");
        assert_eq!((url.host.as_str(), url.port), ("localhost", 443));
        assert!(system.is_encrypted);
    }

    #[test]
    fn gaps_can_be_random_at_a_rate_and_at_a_rate_that_the_run_chooses() {
        for arrivals in [Arrivals::Rate(400.0), Arrivals::Auto] {
            let comparison = Comparison {
                arrivals,
                is_random: true,
                ..comparison("http://127.0.0.1:1/", "http://127.0.0.1:2/")
            };
            let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
            let is_random = matches!(
                lab.load,
                model::Load::Open {
                    arrival: model::Arrival::Poisson { .. },
                    ..
                }
            );
            assert!(is_random, "{arrivals:?}: {:?}", lab.load);
        }
    }

    #[test]
    fn what_is_not_said_of_the_load_is_left_to_the_run() {
        let chosen = |block: Option<Duration>| {
            let comparison = Comparison {
                arrivals: Arrivals::Auto,
                block,
                ..comparison("http://127.0.0.1:1/", "http://127.0.0.1:2/")
            };
            let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
            let choice = lab.rate_choice.expect("the run chooses");
            (choice.keeps_duration, lab.load.duration())
        };
        assert_eq!(chosen(None), (false, Some(Duration::from_secs(2))));
        let block = Duration::from_millis(700);
        assert_eq!(chosen(Some(block)), (true, Some(block)));
    }

    #[test]
    fn a_call_of_grpc_is_sent_to_both() {
        let message = |json: &str, count: Option<u64>| model::PlannedMessage {
            content: model::MessageContent::Text(json.to_owned()),
            after: Duration::ZERO,
            every: count.map(|_| Duration::from_millis(20)),
            count,
        };
        let call = GrpcCall {
            method: "null.Echo/Chat".to_owned(),
            protocol: RpcProtocol::Grpc,
            descriptors: model::GrpcDescriptors::Reflection,
            messages: vec![
                message(r#"{"text":"a: \"b\""}"#, Some(3)),
                message("{}", Some(2)),
            ],
            has_replies: true,
            hold: None,
            deadline: Some(Duration::from_secs(2)),
            is_compressed: true,
            status: 5,
            answer: Some(r#"{"text":"b"}"#.to_owned()),
            contains: vec![r#""text":"#.to_owned(), "b".to_owned()],
        };
        let together = GrpcCall {
            messages: vec![message("{}", None), message("{}", None)],
            has_replies: false,
            ..call.clone()
        };
        let of = |protocol: RpcProtocol| GrpcCall {
            protocol,
            messages: vec![message("{}", None)],
            ..together.clone()
        };
        let (connect, web) = (of(RpcProtocol::Connect), of(RpcProtocol::GrpcWeb));
        for call in [call, together, connect, web] {
            let comparison = Comparison {
                is_http2: call.protocol.needs_http2(),
                grpc: Some(call.clone()),
                is_same: false,
                ..comparison("http://127.0.0.1:1/", "http://127.0.0.1:2/")
            };
            let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
            for variant in std::iter::once(&lab.baseline).chain(&lab.variants) {
                assert_eq!(variant.requests[0].grpc.as_ref(), Some(&call));
            }
        }
    }

    #[test]
    fn the_program_behind_a_url_is_named_by_its_form_and_in_a_cluster_by_labels() {
        for (given, is_in_cluster, meaning) in [
            ("4711", false, lab::Attach::Pid(4711)),
            (
                "/sys/fs/cgroup/a",
                false,
                lab::Attach::Cgroup("/sys/fs/cgroup/a".into()),
            ),
            ("web-1", false, lab::Attach::Container("web-1".to_owned())),
            (
                "app=web,tier in (a, b)",
                true,
                lab::Attach::Pods("app=web,tier in (a, b)".to_owned()),
            ),
        ] {
            let mut comparison = comparison("http://web-a:80/", "http://web-b:80/");
            comparison.b.attach = Some(AttachText::of(given.to_owned(), is_in_cluster));
            let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
            let url = lab.variants[0].systems()[0]
                .elsewhere()
                .expect("it runs already");
            assert_eq!(url.attach, Some(meaning));
        }
    }

    #[test]
    fn one_url_twice_has_two_names() {
        let comparison = comparison("http://127.0.0.1:1/", "http://127.0.0.1:1/");
        let lab = lab::parse(Path::new(FILE), &comparison.files()).expect("a lab");
        assert_eq!(lab.baseline.name, "127.0.0.1:1");
        assert_eq!(lab.variants[0].name, "127.0.0.1:1 again");
    }
}
