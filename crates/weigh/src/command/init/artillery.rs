//! Reads the requests of an Artillery test, with its variables, its data and the values that it captures.

mod captures;
mod flow;
mod payload;
mod request;

use std::path::Path;

use experiment::address;
use http::Uri;
use serde_json::{Map, Value};

use super::requests::{Requests, Rows};
use super::tree::Tree;
use super::values::plain;
use flow::{Flow, Found};

/// Maximum number of steps of a scenario with repetitions for weights.
const STEPS_MAX: usize = 100;

/// Keys of `config` that the lab itself defines.
const OF_THE_LAB: [&str; 7] = [
    "phases",
    "plugins",
    "processor",
    "ensure",
    "tls",
    "apdex",
    "statsInterval",
];

/// Reads the scenarios of a test in YAML or JSON.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(
    path: &Path,
    text: &str,
    environment: Option<&str>,
    color: bool,
) -> Result<Requests, String> {
    let source = super::file_name(path);
    if [".js", ".mjs", ".cjs", ".ts"]
        .iter()
        .any(|it| source.ends_with(it))
    {
        return Err(
            "expected a test of Artillery in YAML or JSON, found a script. Write its `config` and \
             `scenarios` as YAML"
                .to_owned(),
        );
    }
    let tree = Tree::read(&source, text, color)?;
    let Some(scenarios) = tree.root.get("scenarios").and_then(Value::as_array) else {
        return Err(
            "expected a test of Artillery with a list of `scenarios`, found none".to_owned(),
        );
    };
    let config = config(&tree.root, environment)?;
    let mut requests = Requests::of(&source);
    let test = Test::of(&tree, &config, path, &mut requests);
    let before = test.once("before");
    let mut flows = Vec::new();
    let weights = weights(scenarios);
    for (number, (scenario, weight)) in scenarios.iter().zip(weights).enumerate() {
        let name = scenario.get("name").map(plain).unwrap_or_default();
        let name = match name.as_str() {
            "" => format!("scenario {}", number + 1),
            name => name.to_owned(),
        };
        let pointer = format!("/scenarios/{number}");
        let engine = scenario.get("engine").map(plain).unwrap_or_default();
        if !["", "http"].contains(&engine.as_str()) {
            let why = format!("its engine is `{engine}` and not HTTP");
            requests.leave_out_request(tree.line(&pointer), &name, &why);
            continue;
        }
        let Some(weight) = weight else {
            requests.leave_out(&name, "its weight is 0, so it never runs");
            continue;
        };
        let mut flow = Flow::new(&test, &name, weight);
        flow.know(&before);
        for key in [
            "beforeScenario",
            "afterScenario",
            "beforeRequest",
            "afterResponse",
        ] {
            if scenario.get(key).is_some() {
                flow.remark(key, "functions of the test do not run");
            }
        }
        flow.steps(&format!("{pointer}/flow"), scenario.get("flow"));
        flows.push(flow.finish());
    }
    add(before, flows, &test, &mut requests);
    remark_config(&config, environment, &mut requests);
    Ok(requests)
}

/// Names the parts of the configuration that are not in the lab.
fn remark_config(config: &Map<String, Value>, environment: Option<&str>, requests: &mut Requests) {
    for key in OF_THE_LAB {
        if config.contains_key(key) {
            requests.leave_out(&format!("config.{key}"), "keys of the lab define this");
        }
    }
    if let (Some(Value::Object(known)), None) = (config.get("environments"), environment) {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        let why = format!("choose one with --artillery-env: {}", names.join(", "));
        requests.leave_out("config.environments", &why);
    }
}

/// The configuration of the test, with the values of the environment.
fn config(root: &Value, environment: Option<&str>) -> Result<Map<String, Value>, String> {
    let mut config = root
        .get("config")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let Some(name) = environment else {
        return Ok(config);
    };
    let known = config.get("environments").and_then(Value::as_object);
    let Some(Value::Object(own)) = known.and_then(|known| known.get(name)).cloned() else {
        let names: Vec<&str> = known
            .into_iter()
            .flat_map(|it| it.keys().map(String::as_str))
            .collect();
        return Err(format!(
            "expected an environment of the test in `--artillery-env`, found `{name}`. It has {}",
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        ));
    };
    merge(&mut config, own);
    Ok(config)
}

/// Merges a mapping into another one, key by key.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(own)) => merge(known, own),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

/// The weights of the scenarios as whole numbers without a common divisor. `None` for a weight of 0.
fn weights(scenarios: &[Value]) -> Vec<Option<u32>> {
    let written = scenarios
        .iter()
        .map(|scenario| match scenario.get("weight") {
            None | Some(Value::Null) => 1.0,
            Some(weight) => plain(weight)
                .parse::<f64>()
                .unwrap_or(1.0)
                .clamp(0.0, 1000.0),
        });
    let written: Vec<f64> = written.collect();
    let is_whole = |number: f64| (number - number.round()).abs() < 1e-6;
    let factor = (1..=100).map(f64::from).find(|factor| {
        let mut scaled = written.iter().map(|weight| weight * factor);
        scaled.all(is_whole)
    });
    let factor = factor.unwrap_or(100.0);
    let scaled: Vec<u32> = written
        .iter()
        .map(|weight| match *weight > 0.0 {
            true => format!("{:.0}", (weight * factor).max(1.0))
                .parse()
                .unwrap_or(1),
            false => 0,
        })
        .collect();
    let divisor = scaled.iter().copied().reduce(common_divisor).unwrap_or(1);
    let weight = |weight: &u32| (*weight > 0).then(|| weight / divisor.max(1));
    scaled.iter().map(weight).collect()
}

/// The greatest common divisor.
fn common_divisor(left: u32, right: u32) -> u32 {
    match right {
        0 => left,
        right => common_divisor(right, left % right),
    }
}

/// Adds the requests of all flows to the lab. If one of them uses captured values, they become one scenario.
fn add(before: Walked, flows: Vec<Walked>, test: &Test<'_>, requests: &mut Requests) {
    let is_scenario = flows.iter().any(|flow| flow.uses_captures);
    let is_before_used = flows.iter().any(|flow| before.gives_any(flow));
    if is_scenario {
        requests.follow_each_other();
    }
    if is_before_used {
        requests
            .remark("The steps of `before` run in each iteration, because they capture values.");
    }
    if is_scenario && flows.len() > 1 {
        requests.remark("An iteration runs all scenarios of the file, one after another.");
    }
    let steps: usize = flows.iter().map(Walked::weighted_steps).sum();
    let has_weights = !is_scenario || steps <= STEPS_MAX;
    if !has_weights {
        requests.remark("Each scenario runs once, without its weight.");
    }
    let why_not = |is_sent: bool, why: &'static str| (!is_sent).then_some(why);
    let once = why_not(is_before_used, "it is sent once, before the load");
    add_found(before, once, is_scenario, requests);
    for flow in flows {
        let (from, weight) = (requests.steps(), flow.weight);
        add_found(flow, None, is_scenario, requests);
        if is_scenario && has_weights {
            requests.repeat_steps(from, weight);
        }
    }
    let once = Some("it is sent once, after the load");
    add_found(test.once("after"), once, is_scenario, requests);
}

/// Adds the requests of one flow, or records that they are left out.
fn add_found(walked: Walked, why_not: Option<&str>, is_scenario: bool, requests: &mut Requests) {
    let name = walked.name;
    let mut pause = std::time::Duration::ZERO;
    for found in walked.found {
        match found {
            Found::Request(given, times, secrets) if why_not.is_none() => {
                secrets.iter().for_each(|name| requests.hide(name));
                let mut given = *given;
                if is_scenario {
                    given.pause = std::mem::take(&mut pause);
                    requests.add_times(given, times);
                } else {
                    given.captures.clear();
                    requests.add_times(given, times.saturating_mul(walked.weight));
                }
            }
            Found::Request(given, ..) => {
                let what = format!("{name}: {} {}", given.method, given.path);
                requests.leave_out_request(given.line, &what, why_not.unwrap_or_default());
            }
            Found::Omitted { line, what, why } => {
                requests.leave_out_request(line, &format!("{name}: {what}"), &why);
            }
            Found::Remark { what, why } => requests.leave_out(&format!("{name}: {what}"), &why),
            Found::Think(time) if is_scenario => pause += time,
            Found::Think(_) => requests.leave_out(
                &format!("{name}: think"),
                "the load defines the times of requests",
            ),
        }
    }
}

/// The content of one flow.
struct Walked {
    name: String,
    weight: u32,
    found: Vec<Found>,
    /// The lab's names of captured values that the requests use.
    used: Vec<String>,
    /// The captured values, with the names of the test and of the lab.
    captured: Vec<(String, String)>,
    /// True if one of the requests uses a captured value.
    uses_captures: bool,
}

impl Walked {
    /// Number of steps with the repetitions of the scenario.
    fn weighted_steps(&self) -> usize {
        let requests = self.found.iter().filter_map(|found| match found {
            Found::Request(_, times, _) => usize::try_from(*times).ok(),
            _ => None,
        });
        let weight = usize::try_from(self.weight).unwrap_or(usize::MAX);
        requests
            .fold(0, usize::saturating_add)
            .saturating_mul(weight)
    }

    /// True if the other flow uses one of the values that this one captures.
    fn gives_any(&self, other: &Walked) -> bool {
        let mut words = self.captured.iter().map(|(_, word)| word);
        words.any(|word| other.used.contains(word))
    }
}

/// The settings that all requests of a test share.
struct Test<'a> {
    tree: &'a Tree,
    /// Host and port of the target. `None` if the file does not have it.
    origin: Option<String>,
    /// The path before each relative URL.
    base: String,
    /// True if the target contains a name and a password.
    has_credentials: bool,
    variables: Map<String, Value>,
    /// The columns of `data`, with the names of the test and of the lab.
    columns: Vec<(String, String)>,
    /// Names with a value only at run time, and the reason.
    unknown: Vec<(String, String)>,
    defaults: Vec<(String, String)>,
}

impl<'a> Test<'a> {
    fn of(
        tree: &'a Tree,
        config: &Map<String, Value>,
        path: &Path,
        requests: &mut Requests,
    ) -> Test<'a> {
        let target = config.get("target").map(plain).unwrap_or_default();
        let url: Option<Uri> = address::url(&target).ok();
        let base = match &url {
            Some(url) => url.path().trim_end_matches('/').to_owned(),
            // A target such as `{{ $env.HOST }}/api`.
            None => target
                .rsplit_once("}}")
                .map(|(_, rest)| rest.trim_end_matches('/'))
                .filter(|rest| rest.starts_with('/'))
                .unwrap_or_default()
                .to_owned(),
        };
        let defaults = ["/http/defaults/headers", "/defaults/headers"];
        let whole = Value::Object(config.clone());
        let defaults = defaults.iter().find_map(|at| whole.pointer(at));
        let mut test = Test {
            tree,
            origin: url.as_ref().map(super::origins::origin),
            base,
            has_credentials: url.as_ref().and_then(address::authorization).is_some(),
            variables: Map::new(),
            columns: Vec::new(),
            unknown: Vec::new(),
            defaults: request::headers(defaults).collect(),
        };
        let mut rows = payload::rows(config.get("payload"), path, &mut test.unknown, requests);
        test.add_variables(config.get("variables"), &mut rows, requests);
        if let Some((names, rows)) = rows {
            let words = names.iter().map(|name| super::placeholders::word(name));
            let words: Vec<String> = words.collect();
            test.columns = names.into_iter().zip(words.clone()).collect();
            requests.set_data(Rows {
                columns: words,
                ..rows
            });
        }
        test
    }

    /// Adds the variables. One with several values becomes a column of `data`: the test draws one of them.
    fn add_variables(
        &mut self,
        variables: Option<&Value>,
        rows: &mut Option<(Vec<String>, Rows)>,
        requests: &mut Requests,
    ) {
        for (name, value) in variables.and_then(Value::as_object).into_iter().flatten() {
            let values = match value {
                Value::Array(values) if values.len() == 1 => {
                    self.variables.insert(name.clone(), values[0].clone());
                    continue;
                }
                Value::Array(values) if !values.is_empty() => values,
                value => {
                    self.variables.insert(name.clone(), value.clone());
                    continue;
                }
            };
            match payload::add_drawn(name, values, rows) {
                Ok(()) => {}
                Err(why) => {
                    requests.leave_out(&format!("config.variables.{name}"), &why);
                    self.unknown
                        .push((name.clone(), format!("`{name}` has several values")));
                }
            }
        }
    }

    /// The requests of `before` or `after`.
    fn once(&self, key: &str) -> Walked {
        let mut flow = Flow::new(self, key, 1);
        let written = self.tree.root.get(key).and_then(|it| it.get("flow"));
        flow.steps(&format!("/{key}/flow"), written);
        flow.finish()
    }
}

#[cfg(test)]
mod tests;
