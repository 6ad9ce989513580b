//! Realistic recordings for tests, with seeded samples and consistent figures.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Arrival, GeneratorCost, Load, Order, Outcomes, Phase, Rate, Shard, Stop};
use stats::Histogram;

use crate::{
    Environment, FileText, Format, Hdr, Header, Kind, LabText, LimitsText, LoadText, METHOD,
    MachineUse, Measured, Proof, ProofAnswer, Recording, RequestText, RoundRecord, SystemRecord,
    SystemUsage, VariantRecord, VariantStatus, Version, Windows,
};

const CONNECTIONS: u32 = 100;
/// Number of drawn latencies of one measurement.
const DRAWS: u64 = 2000;
/// Number of requests per drawn latency, so that rounds are long enough for whole windows.
const WEIGHT: u64 = 50;
const ANSWERS: u64 = DRAWS * WEIGHT;
/// Length of a round in the open loop: 4,000 requests per second.
const ROUND_US: u64 = 25_000_000;
const WINDOW_US: u64 = 100_000;

/// Builder of a recording. The first variant is the baseline.
pub struct SampleRun {
    is_open: bool,
    order: Order,
    rounds: u32,
    /// Name, mean latency in microseconds.
    variants: Vec<(String, f64)>,
    random: Random,
}

impl SampleRun {
    /// A closed loop with 100 connections. Each connection sends its next request when its last response is
    /// complete.
    pub fn closed() -> Self {
        Self {
            is_open: false,
            order: Order::InTurn,
            rounds: 8,
            variants: Vec::new(),
            random: Random(7),
        }
    }

    /// An open loop with 4,000 requests per second.
    pub fn open() -> Self {
        Self {
            is_open: true,
            ..Self::closed()
        }
    }

    /// The open loop with all variants at the same time.
    pub fn side_by_side() -> Self {
        Self {
            order: Order::SideBySide,
            ..Self::open()
        }
    }

    /// Sets the number of rounds.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Adds a variant with this mean latency.
    #[must_use]
    pub fn variant(mut self, name: &str, latency_us_mean: f64) -> Self {
        self.variants.push((name.to_owned(), latency_us_mean));
        self
    }

    /// The lab of seed 003: two stacks, two builds.
    pub fn graphql_server() -> Recording {
        Self::closed()
            .variant("juniper-ntex plain", 723.0)
            .variant("juniper-ntex tuned", 684.0)
            .variant("async-graphql-actix-web plain", 578.0)
            .variant("async-graphql-actix-web tuned", 491.0)
            .build()
    }

    /// Draws the figures of all rounds.
    #[must_use]
    pub fn build(mut self) -> Recording {
        let names: Vec<String> = self.variants.iter().map(|(name, _)| name.clone()).collect();
        let variants = self.variants.clone();
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            // Machines drift, so a round is slightly faster or slower for all variants.
            let luck = 1.0 + 0.02 * self.random.normal();
            for (position, (name, mean)) in variants.iter().enumerate() {
                let mean = mean * luck * (1.0 + 0.004 * self.random.normal());
                rounds.push(self.measure(round, position as u32, name, mean));
            }
        }
        Recording {
            format: Format::Recording,
            method: METHOD,
            weigh: Version {
                version: "0.1.0".to_owned(),
                commit: Some("1f3c2a0".to_owned()),
            },
            kind: Kind::Lab,
            command: vec!["weigh".into(), "lab".into(), "graphql server".into()],
            lab: Some(lab()),
            started_at: "2026-02-01T10:00:00Z".to_owned(),
            ended_at: "2026-02-01T10:01:00Z".to_owned(),
            interrupted: false,
            ended_because: None,
            seed: 7,
            order: vec![names.clone(); self.rounds as usize],
            measured: (self.order == Order::SideBySide).then(|| Measured {
                order: self.order,
                because: None,
                groups: Vec::new(),
                groups_because: None,
                leaves_at_any_time: false,
            }),
            until: None,
            decided: None,
            gates: None,
            cluster: None,
            environment: environment(),
            load: load(self.is_open),
            baseline: names[0].clone(),
            variants: names.iter().map(|name| variant(name)).collect(),
            rounds,
            profiles: Vec::new(),
            why: None,
            revisions: None,
        }
    }

    /// A single load without a lab.
    pub fn load_alone(is_open: bool) -> Recording {
        let sample = if is_open {
            Self::open()
        } else {
            Self::closed()
        };
        let mut recording = sample.rounds(1).variant("target", 723.0).build();
        recording.kind = Kind::Load;
        recording.lab = None;
        recording.load.url = Some("http://127.0.0.1:8080/graphql".to_owned());
        recording.load.warmup_us = 0;
        recording.command = [
            "weigh",
            "load",
            "-c",
            "100",
            "http://127.0.0.1:8080/graphql",
        ]
        .map(str::to_owned)
        .to_vec();
        recording
    }

    fn generator(&self, elapsed_us: u64) -> GeneratorCost {
        GeneratorCost {
            cpu: Duration::from_micros(elapsed_us * 7 / 10),
            threads: 1,
            pauses: Vec::new(),
            pauses_dropped: 0,
            waited_for_cpu: Some(Duration::from_micros(elapsed_us / 200)),
            counted: None,
            realtime: self.is_open,
            realtime_for: None,
        }
    }

    /// Times to open connections.
    fn connect(&mut self) -> Histogram {
        let mut connect = Histogram::new();
        (0..CONNECTIONS)
            .for_each(|_| connect.record_ns(50_000 + (20e3 * self.random.share()) as u64));
        connect
    }

    fn measure(&mut self, round: u32, position: u32, name: &str, mean_us: f64) -> RoundRecord {
        let mut latency = Histogram::new();
        let mut lateness = Histogram::new();
        let mut first_byte = Histogram::new();
        let mut latency_sum_us = 0.0;
        for _ in 0..DRAWS {
            // Log-normal with a deviation of 0.3: mean = exp(0.045) times the median.
            let us = mean_us * (0.3 * self.random.normal() - 0.045).exp();
            latency_sum_us += us * WEIGHT as f64;
            latency.record_n_ns((us * 1e3) as u64, WEIGHT);
            first_byte.record_n_ns((us * 0.98e3) as u64, WEIGHT);
            if self.is_open {
                lateness.record_n_ns((20e3 * self.random.share()) as u64, WEIGHT);
            }
        }
        let connect = self.connect();
        let closed_us = (latency_sum_us / f64::from(CONNECTIONS)) as u64;
        let elapsed_us = if self.is_open { ROUND_US } else { closed_us };
        let windows = windows(elapsed_us, &mut self.random);
        let system_cpu_us = (mean_us * ANSWERS as f64 / 103.0) as u64;
        RoundRecord {
            round,
            position,
            cores: BTreeMap::new(),
            variant: name.to_owned(),
            search: None,
            interrupted: false,
            disturbed: false,
            started_offset_us: u64::from(round) * 4_000_000 + u64::from(position) * 1_000_000,
            elapsed_us,
            planned: ANSWERS,
            waited: 0,
            sent_again: 0,
            packets: None,
            handshakes: None,
            outcomes: passed(ANSWERS),
            statuses: BTreeMap::from([(200, ANSWERS)]),
            bytes_in: ANSWERS * 160,
            bytes_in_bodies: Some(ANSWERS * 30),
            encodings: Some(BTreeMap::from([(model::IDENTITY.to_owned(), ANSWERS)])),
            coded: None,
            latency_by_status_ns_hdr: BTreeMap::new(),
            bytes_out: ANSWERS * 140,
            latency_ns_hdr: Hdr::of(&latency),
            blocks_latency_ns_hdr: Vec::new(),
            requests: Vec::new(),
            service_ns_hdr: Hdr::of(&latency),
            lateness_ns_hdr: Hdr::of(&lateness),
            gaps_ns_hdr: self.is_open.then(|| Hdr::of(&gaps())),
            connect_ns_hdr: Hdr::of(&connect),
            first_byte_ns_hdr: Hdr::of(&first_byte),
            first_byte: None,
            events: None,
            windows,
            generator: self.generator(elapsed_us),
            steps: Vec::new(),
            iterations: None,
            proofs: Vec::new(),
            left_out: None,
            all_latency_ns_hdr: None,
            left_out_answers: None,
            latency_means: None,
            group: None,
            shared: Vec::new(),
            slices: None,
            machine: Some(machine(elapsed_us, system_cpu_us)),
            systems: vec![usage(round, system_cpu_us)],
            network: None,
            generators: Vec::new(),
            failures: Vec::new(),
        }
    }
}

fn passed(passed: u64) -> Outcomes {
    Outcomes {
        passed,
        ..Outcomes::default()
    }
}

fn machine(elapsed_us: u64, system_cpu_us: u64) -> MachineUse {
    MachineUse {
        cores: 2,
        looked_us: elapsed_us,
        busy_us: elapsed_us * 72 / 100 + system_cpu_us,
        steal_us: elapsed_us / 1000,
        throttled: None,
    }
}

fn usage(round: u32, cpu_us: u64) -> SystemUsage {
    SystemUsage {
        name: "server".to_owned(),
        cpu_us: Some(cpu_us),
        cpu_kernel_us: Some(cpu_us * 3 / 4),
        memory_peak_bytes: Some(11_500_000 + u64::from(round % 3) * 20_000),
        throttled: None,
        context_switches: Some(5200),
        context_switches_involuntary: Some(400),
        waited_for_cpu_us: Some(30_000),
        source: "cgroup v1".to_owned(),
        instances: Vec::new(),
    }
}

/// Equal gaps of the open loop's rate, with the small delays of a sleeping thread.
fn gaps() -> Histogram {
    let mut gaps = Histogram::new();
    let gap_ns = ROUND_US * 1000 / ANSWERS;
    for late_ns in [0, 10_000, 20_000] {
        gaps.record_n_ns(gap_ns + late_ns, ANSWERS / 6);
        gaps.record_n_ns(gap_ns - late_ns, ANSWERS / 6);
    }
    gaps
}

/// Windows with about equal numbers of responses. The last one is cut short.
fn windows(elapsed_us: u64, random: &mut Random) -> Windows {
    let count = elapsed_us.div_ceil(WINDOW_US);
    let mut left = ANSWERS;
    let mut completed = Vec::new();
    let mut jitter = 0.0;
    for index in 1..count {
        // Every second window compensates for the previous one, so that differences do not add up.
        jitter = if index % 2 == 1 {
            0.01 * random.normal()
        } else {
            -jitter
        };
        let share = WINDOW_US as f64 / elapsed_us as f64 * (1.0 + jitter);
        completed.push(((ANSWERS as f64 * share).round() as u64).min(left));
        left -= completed[completed.len() - 1];
    }
    completed.push(left);
    Windows {
        width_us: WINDOW_US,
        errors: vec![0; completed.len()],
        latency_sum_ns: completed.iter().map(|count| count * 700_000).collect(),
        completed,
    }
}

fn lab() -> LabText {
    let text = "question: How far does a bare GraphQL server go?\n";
    LabText {
        name: "graphql-server".to_owned(),
        question: "How far does a bare GraphQL server go, and what does its stack cost?".to_owned(),
        path: "labs/graphql-server/graphql-server.yaml".to_owned(),
        sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
        files: vec![FileText {
            path: "labs/graphql-server/graphql-server.yaml".to_owned(),
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
            text: Some(text.to_owned()),
        }],
        ladder: Vec::new(),
        factors: None,
    }
}

fn environment() -> Environment {
    Environment {
        cpu_model: Some("Example CPU 3000".to_owned()),
        cores: Some(2),
        kernel: Some("Linux 6.1.0".to_owned()),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        memory_bytes: Some(24 * 1024 * 1024 * 1024),
        accounting: Some("cgroup v1".to_owned()),
        load_average_before: Some([0.2, 0.3, 0.3]),
        load_average_after: Some([1.4, 0.6, 0.4]),
        steal_ms: Some(120),
        ..Environment::default()
    }
}

fn load(is_open: bool) -> LoadText {
    let model = if is_open {
        let rate = ANSWERS as f64 * 1e6 / ROUND_US as f64;
        Load::Open {
            phases: vec![Phase::constant(
                Duration::from_micros(ROUND_US),
                Rate::new(rate).expect("the rate is a constant above 0"),
            )],
            arrival: Arrival::Uniform,
            connections_max: 1000,
            requests_max: None,
        }
    } else {
        Load::Closed {
            connections: CONNECTIONS,
            stop: Stop {
                requests: Some(ANSWERS),
                duration: None,
            },
        }
    };
    let body = r#"{"query":"{\n  test {\n    id\n  }\n}\n","variables":null}"#;
    LoadText {
        model,
        capacity: None,
        chosen: None,
        url: None,
        address: None,
        protocol: None,
        warmup_us: 1_000_000,
        settle: None,
        keeps_systems: false,
        kept_systems: Vec::new(),
        settled_again_us: None,
        threads: 1,
        shard: Shard::WHOLE,
        start_at: None,
        timeout_us: 5_000_000,
        keep_alive: true,
        is_scenario: false,
        requests: vec![RequestText {
            name: "test".to_owned(),
            method: "POST".to_owned(),
            path: "/graphql".to_owned(),
            headers: vec![Header {
                name: "Content-Type".to_owned(),
                value: "application/json".to_owned(),
            }],
            body_sha256: Some(
                "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752".into(),
            ),
            body_bytes: body.len() as u64,
            body: Some(body.to_owned()),
            pause_us: 0,
            descriptors_sha256: None,
            weight: 1,
            operations: 1,
        }],
    }
}

fn variant(name: &str) -> VariantRecord {
    let (stack, build) = name.split_once(' ').unwrap_or((name, "plain"));
    let with = [("server.stack", stack), ("server.build", build)];
    VariantRecord {
        name: name.to_owned(),
        baseline: None,
        requests: Vec::new(),
        prepared: Vec::new(),
        protocol: None,
        with: with
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        systems: vec![SystemRecord {
            url: None,
            address: None,
            name: "server".to_owned(),
            command: vec![format!("target/release/graphql-server-{stack}")],
            version: Some(format!("graphql-server-{stack} 0.1.0")),
            env: BTreeMap::new(),
            files: BTreeMap::new(),
            settings: BTreeMap::from([("workers".to_owned(), "1".to_owned())]),
            limits_asked: LimitsText::default(),
            limits_enforced: None,
            limits_by: None,
            cpus: Some(vec![0]),
            replicas: None,
            image: None,
            manifests: None,
            network: None,
            shared: false,
            build_ms: Some(41_000),
        }],
        proof: Some(Proof {
            seen: Vec::new(),
            answers: vec![ProofAnswer {
                request: "test".to_owned(),
                status: 200,
                headers: vec![Header {
                    name: "Server".to_owned(),
                    value: "ntex".to_owned(),
                }],
                body_bytes: 30,
                encoding: None,
                coding_if_asked: None,
                not_compared: None,
                descriptors_sha256: None,
                body_sha256: "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"
                    .into(),
            }],
        }),
        status: VariantStatus::Measured,
    }
}

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform in 0 (excluded) to 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }
}
