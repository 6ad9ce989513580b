//! The calls of a recording that a lab can send, and the reasons for the other calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::secrets::is_secret;
use k6_script::{ScriptCall, ScriptRecording, TextPart};

use super::super::origins::Origins;
use super::super::requests::{Given, Requests};
use super::begin;
use super::call_parts::{decoded, line, name, statuses};
use super::places::{Places, parts};
use super::shares::shares;
use super::targets::{ScriptUrl, split, unknown};
use super::texts;
use super::wires::{self, Kind};

/// Maximum number of steps of a scenario.
const STEPS_MAX: u64 = 100;

/// Maximum weight of a request.
const WEIGHT_MAX: u64 = 1000;

/// A call with its URL.
#[derive(Debug)]
struct Candidate<'a> {
    call: &'a ScriptCall,
    url: ScriptUrl,
    /// The index of its scenario. `None` for a call of `setup`.
    scenario: Option<usize>,
}

/// A call that is not in the lab.
#[derive(Debug)]
struct LeftCall<'a> {
    call: &'a ScriptCall,
    why: String,
}

/// The calls of a recording, sorted into calls of the lab and other calls.
#[derive(Debug)]
pub(super) struct LabCalls<'a> {
    recording: &'a ScriptRecording,
    kept: Vec<Candidate<'a>>,
    left: Vec<LeftCall<'a>>,
    /// Number of calls to each server.
    servers: Origins,
    origin: String,
    kind: Kind,
    places: Places,
    is_scenario: bool,
}

impl<'a> LabCalls<'a> {
    /// Sorts the calls of a recording.
    ///
    /// # Errors
    /// No call goes to the server that the user chose.
    pub(super) fn of(
        recording: &'a ScriptRecording,
        host: Option<&str>,
    ) -> Result<LabCalls<'a>, String> {
        let mut sorted = LabCalls {
            recording,
            kept: Vec::new(),
            left: Vec::new(),
            servers: Origins::default(),
            origin: String::new(),
            kind: Kind::default(),
            places: Places::of(recording),
            is_scenario: false,
        };
        let mut candidates = Vec::new();
        let setup = recording.setup.iter().map(|call| (call, None));
        let scenarios = recording.scenarios.iter().enumerate();
        let loads =
            scenarios.flat_map(|(index, it)| it.calls.iter().map(move |call| (call, Some(index))));
        for (call, scenario) in setup.chain(loads) {
            match split(&call.url) {
                Ok(url) => candidates.push(Candidate {
                    call,
                    url,
                    scenario,
                }),
                Err(why) if scenario.is_some() => sorted.left.push(LeftCall { call, why }),
                Err(_) => {}
            }
        }
        for candidate in candidates.iter().filter(|it| it.scenario.is_some()) {
            sorted.servers.count(&candidate.url.origin);
        }
        sorted.origin = sorted.servers.chosen(host)?.unwrap_or_default();
        let own = candidates
            .iter()
            .filter(|it| it.scenario.is_some() && it.url.origin == sorted.origin);
        sorted.kind = Kind::most(own.map(|it| Kind::of(it.call)));
        for candidate in candidates {
            sorted.sort(candidate);
        }
        sorted.drop_unused_setup();
        let is_captured = |part: &TextPart| {
            matches!(part, TextPart::Answer { .. }) && sorted.places.word(part).is_some()
        };
        let mut kept = sorted.kept.iter();
        sorted.is_scenario = kept.any(|it| parts(it.call).any(is_captured));
        Ok(sorted)
    }

    /// Keeps a call, or the reason for leaving it out.
    fn sort(&mut self, candidate: Candidate<'a>) {
        if candidate.url.origin != self.origin {
            return;
        }
        match self.problem(&candidate) {
            None => {
                let call = candidate.call;
                let headers = call.headers.iter().flat_map(|(_, value)| value);
                for part in candidate
                    .url
                    .path
                    .iter()
                    .chain(headers)
                    .chain(body_parts(call))
                {
                    if let TextPart::Answer { call, value, .. } = part
                        && self.is_sent(*call)
                    {
                        // A header without its value is named later.
                        let _ = self.places.capture(*call, value);
                    }
                }
                self.kept.push(candidate);
            }
            Some(why) if candidate.scenario.is_some() => self.left.push(LeftCall {
                call: candidate.call,
                why,
            }),
            Some(_) => {}
        }
    }

    fn is_sent(&self, call: usize) -> bool {
        self.kept.iter().any(|kept| kept.call.number == call)
    }

    /// The reason why a lab cannot send a call.
    fn problem(&mut self, candidate: &Candidate<'_>) -> Option<String> {
        let call = candidate.call;
        let kind = self.kind.excludes(Kind::of(call));
        if let Some(why) = kind.or_else(|| wires::problem(call)) {
            return Some(why);
        }
        if let Some(problem) = call.problems.first() {
            return Some(problem.clone());
        }
        let needed = |part: &TextPart| matches!(part, TextPart::Answer { .. });
        let is_own = candidate.url.path.iter().any(needed);
        if call.method == "DELETE" && !is_own {
            return Some("what it deletes is missing for the next request".to_owned());
        }
        let path = candidate.url.path.iter().map(|part| ("its path", part));
        for (what, part) in path.chain(body_parts(call).map(|part| ("its body", part))) {
            match part {
                TextPart::Computed(_) | TextPart::Environment(_) => {
                    return Some(unknown(what, part));
                }
                TextPart::Answer { call, name, .. } if !self.is_sent(*call) => {
                    return Some(format!(
                        "{what} contains {name}, and its request is not in the lab"
                    ));
                }
                _ => {}
            }
        }
        for part in candidate.url.path.iter().chain(body_parts(call)) {
            if let TextPart::Answer {
                call, value, name, ..
            } = part
                && let Err(why) = self.places.capture(*call, value)
            {
                return Some(format!("it contains {name}, and {why}"));
            }
        }
        None
    }

    /// Drops each call of `setup`, unless a call of the lab needs its answer.
    fn drop_unused_setup(&mut self) {
        let mut needed = BTreeSet::new();
        for candidate in self.kept.iter().rev() {
            if candidate.scenario.is_some() || needed.contains(&candidate.call.number) {
                needed.extend(parts(candidate.call).filter_map(|part| match part {
                    TextPart::Answer { call, .. } => Some(*call),
                    _ => None,
                }));
            }
        }
        self.kept
            .retain(|it| it.scenario.is_some() || needed.contains(&it.call.number));
    }

    /// Adds all calls to the requests of the lab, and lists the other calls.
    pub(super) fn add(self, requests: &mut Requests) {
        if let Some(rows) = &self.places.rows {
            requests.set_data(rows.clone());
        }
        self.add_remarks(requests);
        if self.kind == Kind::Grpc {
            wires::add_files(self.recording, requests);
        }
        match self.is_scenario {
            true => self.add_steps(requests),
            false => self.add_requests(requests),
        }
        for left in &self.left {
            let what = name(left.call);
            requests.leave_out_request(line(left.call), &what, &left.why);
        }
        self.servers.leave_out_others(&self.origin, requests);
    }

    fn add_remarks(&self, requests: &mut Requests) {
        let is_of_setup = |it: &&Candidate<'_>| it.scenario.is_none();
        let from_setup = self.kept.iter().filter(is_of_setup).count();
        if from_setup > 0 {
            requests
                .remark("The requests of `setup` begin each iteration. In k6 they are sent once.");
        } else if self.recording.functions.iter().any(|name| name == "setup") {
            requests.leave_out("setup", "what it sends is not part of the load");
        }
        if let Some(base) = self.kept.iter().find_map(|it| it.url.base.as_ref()) {
            requests.remark(&format!(
                "If the value of `__ENV.{base}` has a path, give it with `--env {base}=URL`."
            ));
        }
    }

    /// Adds the calls as requests in rotation.
    fn add_requests(&self, requests: &mut Requests) {
        let (shares, remark) = shares(&self.recording.options);
        if let Some(remark) = remark {
            requests.remark(remark);
        }
        let weight = |candidate: &Candidate<'_>| {
            u64::from(candidate.call.count) * self.share(&shares, candidate)
        };
        let divisor = self.kept.iter().map(weight).fold(0, common_divisor).max(1);
        let largest = self.kept.iter().map(weight).max().unwrap_or(1) / divisor;
        if largest > WEIGHT_MAX {
            requests.remark(&format!(
                "The weights are rounded, because a lab has weights up to {WEIGHT_MAX}."
            ));
        }
        for candidate in &self.kept {
            let own = weight(candidate) / divisor;
            let own = match largest > WEIGHT_MAX {
                true => (own * WEIGHT_MAX / largest).max(1),
                false => own,
            };
            let given = self.given(candidate, requests);
            requests.add_times(given, u32::try_from(own).unwrap_or(u32::MAX));
        }
    }

    fn share(&self, shares: &BTreeMap<String, u64>, candidate: &Candidate<'_>) -> u64 {
        let scenario = candidate
            .scenario
            .and_then(|index| self.recording.scenarios.get(index));
        scenario
            .and_then(|scenario| shares.get(&scenario.name))
            .copied()
            .unwrap_or(1)
    }

    /// Adds the calls as steps of one scenario: first `setup`, then each function as often as its share.
    fn add_steps(&self, requests: &mut Requests) {
        requests.follow_each_other();
        let (mut shares, mut remark) = shares(&self.recording.options);
        let steps = |shares: &BTreeMap<String, u64>| -> u64 {
            self.kept.iter().map(|it| self.share(shares, it)).sum()
        };
        if steps(&shares) > STEPS_MAX {
            shares.values_mut().for_each(|share| *share = 1);
            remark = Some(
                "Each scenario of the script counts once, because a lab has at most 100 steps.",
            );
        }
        if let Some(remark) = remark {
            requests.remark(remark);
        }
        let mut pauses = Pauses::default();
        for call in &self.recording.setup {
            pauses.add(call, requests);
            let kept = self.kept.iter().find(|it| std::ptr::eq(it.call, call));
            if let Some(candidate) = kept {
                let given = self.given(candidate, requests);
                requests.add(Given {
                    pause: pauses.take(),
                    ..given
                });
            }
        }
        for (index, scenario) in self.recording.scenarios.iter().enumerate() {
            let own: Vec<&Candidate<'_>> = self
                .kept
                .iter()
                .filter(|it| it.scenario == Some(index))
                .collect();
            let times = shares.get(&scenario.name).copied().unwrap_or(1);
            for turn in 0..times {
                let mut pauses = Pauses::default();
                for call in &scenario.calls {
                    pauses.add(call, requests);
                    let Some(candidate) = own.iter().find(|it| std::ptr::eq(it.call, call)) else {
                        continue;
                    };
                    match condition(candidate, &own, scenario.iterations) {
                        None => {
                            let given = self.given(candidate, requests);
                            requests.add(Given {
                                pause: pauses.take(),
                                ..given
                            });
                        }
                        Some(why) if turn == 0 => {
                            requests.leave_out_request(line(call), &name(call), &why);
                        }
                        Some(_) => {}
                    }
                }
            }
            if !scenario.rest.most.is_zero() {
                requests.remark(&format!(
                    "Left out: the pause at the end of `{}`. The load decides when an iteration begins.",
                    scenario.exec
                ));
            }
        }
    }

    /// The request of a lab for a call.
    fn given(&self, candidate: &Candidate<'_>, requests: &mut Requests) -> Given {
        let call = candidate.call;
        let mut given = Given {
            line: line(call),
            method: call.method.clone(),
            notes: call.notes.clone(),
            captures: if self.is_scenario {
                self.places.captures(call.number)
            } else {
                Vec::new()
            },
            ..Given::default()
        };
        // Paths and bodies with unknown parts are left out before.
        if let Ok(path) = texts::path(&candidate.url.path, &self.places) {
            given.path = path.text;
            given.places.extend(path.words);
        }
        self.add_headers(candidate, &mut given, requests);
        if let Ok(body) = texts::body(call.body.as_ref(), &self.places) {
            given.body = body.bytes;
            given.places.extend(body.words);
        }
        match statuses(call.accepted.as_ref()) {
            Ok(status) => given.status = status,
            Err(note) => given.notes.push(note),
        }
        wires::add(call, &self.places, &mut given);
        given
    }

    fn add_headers(&self, candidate: &Candidate<'_>, given: &mut Given, requests: &mut Requests) {
        let user = candidate.url.user.as_ref();
        if let Some(user) = user {
            match texts::text("its user", user, &self.places) {
                Ok(user) => {
                    let value = format!("Basic {}", STANDARD.encode(decoded(&user.text)));
                    given.headers.push(("Authorization".to_owned(), value));
                }
                Err(_) => requests.hide("Authorization"),
            }
        }
        for (name, value) in &candidate.call.headers {
            match texts::text("it", value, &self.places) {
                Ok(value) => {
                    given.headers.push((name.clone(), value.text));
                    given.places.extend(value.words);
                }
                Err(_) if is_secret(name) => requests.hide(name),
                Err(why) => given
                    .notes
                    .push(format!("without its header `{name}`: {why}")),
            }
        }
    }
}

/// The pauses of a script since the last step of the lab.
#[derive(Debug, Default)]
struct Pauses {
    length: Duration,
    /// The number of the last call. Its variants have one pause.
    last: Option<usize>,
}

impl Pauses {
    /// Adds the pause before a call. A lab has fixed pauses only.
    fn add(&mut self, call: &ScriptCall, requests: &mut Requests) {
        if self.last.replace(call.number) == Some(call.number) {
            return;
        }
        let pause = call.pause;
        if !pause.is_random() {
            self.length = self.length.saturating_add(pause.least);
            return;
        }
        requests.remark(&format!(
            "{}Left out: a random pause of {:?} to {:?} before {}. A lab has fixed pauses: add `pause: 1s`.",
            begin(call.place.as_ref()),
            pause.least,
            pause.most,
            name(call)
        ));
    }

    fn take(&mut self) -> Duration {
        std::mem::take(&mut self.length)
    }
}

/// The reason why a step is not in the scenario, which has no conditions.
fn condition(candidate: &Candidate<'_>, own: &[&Candidate<'_>], iterations: u32) -> Option<String> {
    let variants = || {
        own.iter()
            .filter(|it| it.call.number == candidate.call.number)
    };
    let all: u32 = variants().map(|it| it.call.count).sum();
    if all * 2 < iterations {
        return Some(format!(
            "{all} of {iterations} recorded iterations send it. A scenario has no conditions"
        ));
    }
    // Of several variants, the first of the most frequent.
    let most = variants().map(|it| it.call.count).max().unwrap_or_default();
    let first = variants().find(|it| it.call.count == most)?;
    let is_first = std::ptr::eq(first.call, candidate.call);
    (!is_first).then(|| "a scenario has one variant of each call".to_owned())
}

fn body_parts(call: &ScriptCall) -> impl Iterator<Item = &TextPart> {
    let parts: &[TextPart] = match &call.body {
        Some(k6_script::CallBody::Text(parts)) => parts,
        _ => &[],
    };
    parts.iter()
}

/// The greatest common divisor.
fn common_divisor(left: u64, right: u64) -> u64 {
    match right {
        0 => left,
        right => common_divisor(right, left % right),
    }
}
