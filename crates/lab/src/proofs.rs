//! The proofs of a variant: each is of one kind, complete, and about systems that run.

use std::time::Duration;

use yaml_with_places::{At, Finding, Place};

use crate::experiment::{
    DistinctValues, Expect, HeaderValues, Proof, ProofWhat, SeenNumber, SeenRule, Setup,
};
use crate::fields::TextOr;
use crate::formats::{Pointer, Title, Verbatim, Written};
use crate::levels;
use crate::places::{Places, Within};
use crate::quantities::LongerThanZero;
use crate::reading::Reading;
use crate::requests::{self, Sent};
use crate::scope::Scope;
use crate::template::Template;
use crate::text::Text;
use crate::variants::Draft;
use crate::wire::{
    DistinctFile, ExpectFile, HeaderValuesFile, OfName, ProofExpectFile, ProofFile, default,
};

/// The requests, names and systems of one variant.
pub(crate) struct Prover<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) sent: &'a Sent<'a>,
    /// The setups of the systems that run for the variant.
    pub(crate) stack: &'a [Setup],
    pub(crate) is_baseline: bool,
}

impl Prover<'_> {
    /// Returns the proofs of the lab and of the variant for this variant.
    pub(crate) fn check(
        &self,
        of_lab: &[At<ProofFile>],
        variant: &Draft<'_>,
        reading: &mut Reading<'_>,
    ) -> Vec<Proof> {
        let concerns = |proof: &&At<ProofFile>| match proof.value.of.as_ref().map(|of| &of.value) {
            None | Some(TextOr::Text(OfName::All)) => true,
            Some(TextOr::Text(OfName::Baseline)) => self.is_baseline,
            Some(TextOr::Text(OfName::Variants)) => !self.is_baseline,
            Some(TextOr::Mapping(values)) => {
                levels::has_all(values, variant, self.scope.systems, self.scope.target())
            }
        };
        // The proofs of the lab come first, because the report shows them in this order for every variant.
        let all = of_lab.iter().chain(variant.proof).filter(concerns);
        all.filter_map(|proof| self.proof(&proof.value, proof.place, reading))
            .collect()
    }

    fn proof(&self, file: &ProofFile, at: Place, reading: &mut Reading<'_>) -> Option<Proof> {
        check_neighbors(file, at, reading)?;
        let what = match &file.ask {
            Some(ask) => self.seen(file, ask, at, reading)?,
            None => self.answer(file, reading)?,
        };
        let name = file.name.as_ref().map(|name| {
            let Verbatim(Title(title)) = &name.value;
            self.fill(title, name.place, reading)
        });
        Some(Proof {
            name: name.unwrap_or_else(|| usual_name(&what)),
            what,
        })
    }

    fn places(&self) -> Places<'_> {
        Places {
            scope: Some(self.scope),
            data: None,
            captured: &[],
        }
    }

    fn fill(&self, text: &str, place: Place, reading: &mut Reading<'_>) -> String {
        self.places().fill(text, Within::Text, place, reading)
    }

    fn seen(
        &self,
        file: &ProofFile,
        ask: &At<Written<Template>>,
        at: Place,
        reading: &mut Reading<'_>,
    ) -> Option<ProofWhat> {
        let Written(template) = &ask.value;
        let url = self.scope.lab_text(template, ask.place, &[], reading);
        // An address is still open here, and the message shows it as a template.
        let shown = url.to_string();
        if !shown.starts_with("http://") && !shown.starts_with("{{") {
            reading.findings.add(
                Finding::new(
                    ask.place,
                    format!("`{shown}` does not begin with an address"),
                )
                .help("begin with the address of a system: `{{origin.url}}/seen`"),
            );
        }
        let is_running = |system: &str| self.stack.iter().any(|setup| setup.system == system);
        for system in url.systems().filter(|system| !is_running(system)) {
            // The need for the system may be declared in a file that could not be read.
            if !reading.has_gaps {
                reading.findings.add(
                    Finding::new(ask.place, format!("`{system}` does not run for every variant with this proof"))
                        .help(format!(
                            "a system runs only if the target needs it. Add `after: {system}` to a system that sends to it, \
                             or give this proof only to variants that start it"
                        )),
                );
            }
        }
        self.check_shared(file, &url, ask.place, reading);
        let number = match (&file.json, &file.metric) {
            (Some(json), None) => {
                let Written(Pointer(pointer)) = &json.value;
                SeenNumber::Json(self.fill(pointer, json.place, reading))
            }
            (None, Some(metric)) => {
                SeenNumber::Metric(self.fill(&metric.value, metric.place, reading))
            }
            _ => {
                reading.findings.add(
                    Finding::new(at, "expected exactly one of `json` and `metric`")
                        .help("give `json: /requests` or `metric: requests_total`"),
                );
                return None;
            }
        };
        Some(ProofWhat::Seen {
            url,
            number,
            rule: rule(file, at, reading)?,
            within: file.within.as_ref().map_or(Duration::ZERO, |within| {
                let Written(LongerThanZero(within)) = within.value;
                within
            }),
        })
    }

    /// Reports a proof about a shared system, which counts the requests of all variants.
    fn check_shared(&self, file: &ProofFile, url: &Text, place: Place, reading: &mut Reading<'_>) {
        let is_counted = file.at_least_per_request.is_some()
            || file.at_most_per_request.is_some()
            || file.exactly_per_request.is_some();
        let mut asked = url.systems();
        let shared = asked.find(|system| self.scope.systems.is_shared(system));
        if let Some(system) = shared.filter(|_| is_counted) {
            reading.findings.add(
                Finding::new(
                    place,
                    format!("`{system}` is shared, so it counts the requests of all variants"),
                )
                .help("ask a system that is not shared, or remove its `shared`"),
            );
        }
    }

    fn answer(&self, file: &ProofFile, reading: &mut Reading<'_>) -> Option<ProofWhat> {
        let request = match &file.request {
            None => None,
            Some(request) => {
                let made = self.sent.single(&request.value, request.place, reading);
                Some(Box::new(made?))
            }
        };
        let nothing = ProofExpectFile::default();
        let expect = file
            .expect
            .as_ref()
            .map_or(&nothing, |expect| &expect.value);
        let members = expect.json.0.iter().map(|(pointer, value)| {
            let places = self.places();
            let found = places.fill(&value.value.0, Within::Json, value.place, reading);
            let pointer = places.fill(&pointer.value.0, Within::Text, pointer.place, reading);
            (pointer, found)
        });
        let members = members.collect();
        let values = expect.values.0.iter().map(|(header, file)| {
            let HeaderValuesFile { count, distinct } = *file;
            HeaderValues {
                header: header.value.0.clone(),
                count,
                distinct,
            }
        });
        let distinct = expect.distinct.0.iter().filter_map(|(pointer, file)| {
            let Pointer(pointer) = &pointer.value;
            self.distinct(pointer, file, reading)
        });
        let distinct = distinct.collect();
        let times = file.times.as_ref();
        if let Some(times) = times.filter(|_| request.is_none()) {
            reading.findings.add(
                Finding::new(times.place, "`times` without `request`")
                    .help("name the request to repeat: `request: {path: /who}`"),
            );
        }
        Some(ProofWhat::Answer {
            request,
            times: times.map_or(default::TIMES, |times| times.value),
            distinct,
            values: values.collect(),
            members,
            expect: Box::new(self.expect(expect, reading)),
        })
    }

    fn distinct(
        &self,
        pointer: &str,
        file: &At<DistinctFile>,
        reading: &mut Reading<'_>,
    ) -> Option<DistinctValues> {
        let mut number = |written: &At<Verbatim<Template>>| {
            let Verbatim(template) = &written.value;
            let text = self.scope.lab_text(template, written.place, &[], reading);
            let number: Option<u32> = text.to_string().trim().parse().ok();
            if number.is_none_or(|number| number == 0) {
                reading.findings.add(
                    Finding::new(written.place, format!("`{text}` is not a number of values"))
                        .help("write a whole number of at least 1, or a setting with such a value"),
                );
            }
            number
        };
        let least = file.value.at_least.as_ref().map(&mut number);
        let most = file.value.at_most.as_ref().map(&mut number);
        if least.is_none() && most.is_none() {
            reading.findings.add(
                Finding::new(file.place, "`distinct` has no limit")
                    .help("give `at-least: 4`, `at-most: 4` or both"),
            );
            return None;
        }
        Some(DistinctValues {
            pointer: pointer.to_owned(),
            // Every response must have a value, so there is at least one.
            least: least.flatten().unwrap_or(1),
            most: most.flatten(),
        })
    }

    fn expect(&self, file: &ProofExpectFile, reading: &mut Reading<'_>) -> Expect {
        let file = ExpectFile {
            status: file.status.clone(),
            graphql: file.graphql,
            // Only the lab can request the comparison with the baseline, not a proof.
            same_as: None,
            headers: file.headers.clone(),
            body: file.body.clone(),
            ignore: file.ignore.clone(),
        };
        requests::expect(&file, self.places(), reading)
    }
}

/// Reports keys that belong to another kind of proof.
fn check_neighbors(file: &ProofFile, at: Place, reading: &mut Reading<'_>) -> Option<()> {
    let of_seen = [
        ("json", file.json.as_ref().map(|it| it.place)),
        ("metric", file.metric.as_ref().map(|it| it.place)),
        (
            "at-least-per-request",
            file.at_least_per_request.as_ref().map(|it| it.place),
        ),
        (
            "at-most-per-request",
            file.at_most_per_request.as_ref().map(|it| it.place),
        ),
        (
            "exactly-per-request",
            file.exactly_per_request.as_ref().map(|it| it.place),
        ),
        ("equals", file.equals.as_ref().map(|it| it.place)),
        ("within", file.within.as_ref().map(|it| it.place)),
    ];
    let of_answers = [
        ("request", file.request.as_ref().map(|it| it.place)),
        ("times", file.times.as_ref().map(|it| it.place)),
        ("expect", file.expect.as_ref().map(|it| it.place)),
    ];
    let first = |keys: &[(&'static str, Option<Place>)]| {
        keys.iter().find_map(|(key, place)| Some((*key, (*place)?)))
    };
    let wrong = match (&file.ask, first(&of_seen), first(&of_answers)) {
        (Some(ask), _, Some((key, place))) => {
            Finding::new(place, format!("`ask` and `{key}` exclude each other"))
                .related(ask.place, "`ask` is given here")
                .help("a proof checks either the counters of a system (`ask`) or an answer (`request`, `expect`). Split it in two")
        }
        (None, Some((key, place)), _) => Finding::new(place, format!("`{key}` without `ask`"))
            .help("name the system to ask: `ask: \"{{origin.url}}/seen\"`. For a value in an answer, use `expect`"),
        (None, None, None) => Finding::new(at, "this proof has no check")
            .help("give `ask`, `request` or `expect`"),
        // Keys of one kind only.
        _ => return Some(()),
    };
    reading.findings.add(wrong);
    None
}

fn rule(file: &ProofFile, at: Place, reading: &mut Reading<'_>) -> Option<SeenRule> {
    let number = |number: &Option<At<f64>>| number.as_ref().map(|it| it.value);
    let (least, most, exactly) = (
        number(&file.at_least_per_request),
        number(&file.at_most_per_request),
        number(&file.exactly_per_request),
    );
    let is_relative = least.or(most).or(exactly).is_some();
    if exactly.is_some() && least.or(most).is_some() {
        reading.findings.add(
            Finding::new(
                at,
                "`exactly-per-request` cannot be used with another limit",
            )
            .help("`exactly-per-request` is both a lower and an upper limit. Remove the other one"),
        );
    }
    match &file.equals {
        Some(_) if is_relative => {
            reading.findings.add(
                Finding::new(at, "`equals` cannot be used with a number per request")
                    .help("`equals` checks the value after the load, and the other keys check its growth. Write two proofs"),
            );
            None
        }
        Some(equals) if file.metric.is_some() => {
            reading.findings.add(
                Finding::new(equals.place, "`equals` cannot be used with `metric`")
                    .help("`equals` compares JSON values. Compare a metric with the requests: `at-least-per-request: 1`"),
            );
            None
        }
        Some(equals) => Some(SeenRule::Equals(equals.value.0.clone())),
        None if is_relative => Some(SeenRule::PerRequest {
            // `exactly` sets both bounds.
            least: least.or(exactly),
            most: most.or(exactly),
        }),
        None => {
            reading.findings.add(
                Finding::new(at, "the proof has no condition for the number").help(
                    "give `at-least-per-request: 1`, `at-most-per-request`, `exactly-per-request` or `equals`",
                ),
            );
            None
        }
    }
}

/// Returns the name of a proof without a `name`.
fn usual_name(what: &ProofWhat) -> String {
    match what {
        ProofWhat::Seen { url, number, .. } => match number {
            SeenNumber::Json(pointer) => format!("{pointer} of {url}"),
            SeenNumber::Metric(metric) => format!("{metric} of {url}"),
        },
        ProofWhat::Answer { request, .. } => match request {
            Some(request) => format!("the answer to `{}`", request.name),
            None => "the answers".to_owned(),
        },
    }
}
