//! The engine's raw recording as a recording without repetition.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::ScriptPlace;
use crate::engine::{Ran, Shared};
use crate::raw::{
    Raw, RawAccepted, RawBody, RawEnd, RawPlace, RawPlaceholder, RawRequest, RawScenario, RawWire,
};
use crate::recording::{
    AcceptedStatus, AnswerForm, AnswerValue, CallBody, CallWire, ScriptCall, ScriptMessage,
    ScriptNote, ScriptPause, ScriptRecording, ScriptScenario, TextPart,
};
use crate::vary::{Sample, Variation};

/// The identity of a call over all iterations.
type Key = (String, Option<RawPlace>, u32);

/// Converts the engine's result.
pub(crate) fn recording(ran: Ran) -> ScriptRecording {
    let Ran { raw, shared } = ran;
    let mut keys = BTreeMap::<Key, usize>::new();
    for request in &raw.requests {
        let number = keys.len();
        keys.entry(key(request)).or_insert(number);
    }
    let reader = Reader {
        raw: &raw,
        shared: &shared,
        keys,
    };
    let mut notes = reader.notes();
    let mut variation = Variation::new(&raw.lists, raw.users);
    let setup: Vec<ScriptCall> = raw
        .requests
        .iter()
        .filter(|it| it.stage == "setup")
        .map(|it| reader.call(it))
        .collect();
    let mut scenarios = Vec::new();
    for scenario in &raw.scenarios {
        let calls = reader.calls(scenario, &mut variation);
        scenarios.push(ScriptScenario {
            name: scenario.name.clone(),
            exec: scenario.exec.clone(),
            iterations: u32::try_from(scenario.iterations.len()).unwrap_or(u32::MAX),
            calls,
            rest: ScriptPause::of(scenario.iterations.iter().map(|it| it.rest)),
        });
        notes.extend(
            reader.ends(
                scenario
                    .iterations
                    .iter()
                    .filter_map(|it| it.ended.as_ref()),
            ),
        );
    }
    notes.extend(reader.ends(raw.setup_ended.iter()));
    let (data, ranges) = variation.finish();
    ScriptRecording {
        setup,
        scenarios,
        unreached: reader.unreached(),
        notes,
        data,
        ranges,
        modules: shared.left.clone(),
        has_pauses: raw.used.iter().any(|it| it == "sleep"),
        has_checks: raw.used.iter().any(|it| it == "check"),
        options: raw.options,
        absent: raw.absent,
        unset: raw.unset,
        protos: raw.protos,
        descriptors: raw.descriptors,
        functions: raw.functions,
    }
}

fn key(request: &RawRequest) -> Key {
    (
        format!("{} {}", request.stage, request.of),
        request.place.clone(),
        request.turn,
    )
}

/// A value with the notation of its mark: `j` and `n` in JSON, `e` within a text of JSON, `u` percent-encoded.
/// Percent-encoded values need no escapes.
fn noted(part: TextPart, notation: &str) -> TextPart {
    let own = match notation {
        "" | "n" => AnswerForm::Text,
        "j" => AnswerForm::Json,
        "e" => AnswerForm::Escaped,
        "u" | "eu" => AnswerForm::Encoded,
        _ => return refused(&part, "encoded twice"),
    };
    match part {
        TextPart::Answer {
            call, value, name, ..
        } => TextPart::Answer {
            call,
            value,
            form: own,
            name,
        },
        other => other,
    }
}

/// The kind of a call.
fn wire(raw: &RawWire) -> CallWire {
    match raw {
        RawWire::Sse { ends } => CallWire::Sse { ends: *ends },
        RawWire::WebSocket {
            protocol,
            ends,
            hold,
            messages,
        } => CallWire::WebSocket {
            protocol: protocol.clone(),
            ends: *ends,
            hold: hold.map(Duration::from_millis),
            messages: messages
                .iter()
                .map(|message| ScriptMessage {
                    after: Duration::from_millis(message.after),
                    every: message.every.map(Duration::from_millis),
                    count: message.count,
                    is_binary: message.is_binary,
                })
                .collect(),
        },
        RawWire::Grpc {
            method,
            files,
            descriptors,
            is_stream,
            deadline,
        } => CallWire::Grpc {
            method: method.clone(),
            files: files.clone(),
            descriptors: descriptors.clone(),
            is_stream: *is_stream,
            deadline: deadline
                .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok()),
        },
    }
}

/// A value that a lab cannot fill in, with the reason.
fn refused(part: &TextPart, why: &str) -> TextPart {
    match part {
        TextPart::Answer { name, .. } | TextPart::Computed(name) => {
            TextPart::Computed(format!("{name} {why}"))
        }
        other => other.clone(),
    }
}

/// The raw recording, with the numbers of its calls.
struct Reader<'a> {
    raw: &'a Raw,
    shared: &'a Shared,
    keys: BTreeMap<Key, usize>,
}

impl Reader<'_> {
    fn number(&self, request: &RawRequest) -> usize {
        self.keys.get(&key(request)).copied().unwrap_or_default()
    }

    fn place(&self, place: Option<&RawPlace>) -> Option<ScriptPlace> {
        place.map(|place| self.shared.place(place))
    }

    fn notes(&self) -> Vec<ScriptNote> {
        let notes = self.raw.notes.iter().map(|note| ScriptNote {
            place: self.place(note.place.as_ref()),
            text: note.text.clone(),
        });
        notes.collect()
    }

    /// Notes about iterations that ended early, without repetition.
    fn ends<'b>(&self, ends: impl Iterator<Item = &'b RawEnd>) -> Vec<ScriptNote> {
        let mut notes = Vec::new();
        for end in ends {
            let begin = if end.is_unknown {
                ""
            } else {
                "the script ends with an error: "
            };
            let note = ScriptNote {
                place: self.place(end.place.as_ref()),
                text: format!("{begin}{}. Calls after it are left out", end.text),
            };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    fn unreached(&self) -> Vec<ScriptNote> {
        let reached: BTreeSet<usize> = self.raw.reached.iter().copied().collect();
        let sites = self.shared.sites.iter().enumerate();
        let sites = sites.filter(|(number, _)| !reached.contains(number));
        let notes = sites.map(|(_, (file, site))| ScriptNote {
            place: Some(ScriptPlace {
                file: file.clone(),
                line: site.line,
                is_entry: *file == self.shared.entry,
            }),
            text: format!("{} is not reached", site.callee),
        });
        notes.collect()
    }

    /// The parts of a text with marks.
    fn parts(&self, text: &str) -> Vec<TextPart> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((mut before, mut after)) = rest.split_once('\u{E000}') {
            let mut part = TextPart::Computed("a part of a value of an answer".to_owned());
            if let Some((mark, behind)) = after.split_once('\u{E001}') {
                let own = mark.trim_start_matches(|it: char| it.is_ascii_lowercase());
                let notation = &mark[..mark.len() - own.len()];
                after = behind;
                if let Some(found) = own.parse().ok().and_then(|own: usize| self.of(own)) {
                    part = noted(found, notation);
                }
                // JSON has these values without the quotes of a text.
                if ["j", "n"].contains(&notation) {
                    let bare = before.strip_suffix('"').zip(after.strip_prefix('"'));
                    match bare.filter(|(before, _)| !before.ends_with('\\')) {
                        Some(bare) => (before, after) = bare,
                        None => part = refused(&part, "in a JSON text within another text"),
                    }
                }
            }
            if !before.is_empty() {
                parts.push(TextPart::Plain(before.to_owned()));
            }
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TextPart::Plain(rest.replace('\u{E001}', "")));
        }
        parts
    }

    /// The part for the number of a placeholder.
    fn of(&self, number: usize) -> Option<TextPart> {
        Some(self.part(self.raw.placeholders.get(number)?))
    }

    fn part(&self, placeholder: &RawPlaceholder) -> TextPart {
        let answer = |answer: &usize, value: AnswerValue, name: &String| match self
            .raw
            .requests
            .get(*answer)
        {
            Some(request) => TextPart::Answer {
                call: self.number(request),
                value,
                form: AnswerForm::Text,
                name: name.clone(),
            },
            None => TextPart::Computed(name.clone()),
        };
        match placeholder {
            RawPlaceholder::Environment { variable } => TextPart::Environment(variable.clone()),
            RawPlaceholder::Json {
                answer: of,
                path,
                name,
            } => answer(of, AnswerValue::Json(path.clone()), name),
            RawPlaceholder::Header {
                answer: of,
                header,
                pattern,
                name,
            } => answer(
                of,
                AnswerValue::Header(header.clone(), pattern.clone()),
                name,
            ),
            RawPlaceholder::Pattern {
                answer: of,
                pattern,
                name,
            } => answer(of, AnswerValue::Pattern(pattern.clone()), name),
            RawPlaceholder::Body { answer: of, name } => answer(of, AnswerValue::Body, name),
            RawPlaceholder::Matches { name } | RawPlaceholder::Computed { name } => {
                TextPart::Computed(name.clone())
            }
        }
    }

    fn call(&self, request: &RawRequest) -> ScriptCall {
        let accepted = match (&request.expected, &request.accepted) {
            (Some(statuses), _) => Some(AcceptedStatus::These(statuses.clone())),
            (None, Some(RawAccepted::Any(_))) => Some(AcceptedStatus::Any),
            (None, Some(RawAccepted::Ranges(ranges))) => {
                let mut statuses: Vec<u16> =
                    ranges.iter().flat_map(|(from, to)| *from..=*to).collect();
                statuses.sort_unstable();
                statuses.dedup();
                Some(AcceptedStatus::These(statuses))
            }
            (None, None) => None,
        };
        ScriptCall {
            number: self.number(request),
            place: self.place(request.place.as_ref()),
            method: request.method.clone(),
            url: self.parts(&request.url),
            headers: request
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), self.parts(value)))
                .collect(),
            body: request.body.as_ref().map(|body| match body {
                RawBody::Text(text) => CallBody::Text(self.parts(text)),
                RawBody::Base64(bytes) => CallBody::Bytes(bytes.clone()),
            }),
            accepted,
            notes: request.notes.clone(),
            problems: request.problems.clone(),
            count: 1,
            pause: ScriptPause::of(std::iter::once(request.pause)),
            wire: request.wire.as_ref().map(wire).unwrap_or_default(),
        }
    }

    /// The calls of all iterations, in the order of their first iteration, without repetition.
    fn calls(&self, scenario: &RawScenario, variation: &mut Variation<'_>) -> Vec<ScriptCall> {
        let mut order = Vec::<usize>::new();
        let mut samples = BTreeMap::<usize, Vec<Sample>>::new();
        let mut pauses = BTreeMap::<usize, Vec<f64>>::new();
        for iteration in &scenario.iterations {
            let sent = self
                .raw
                .requests
                .get(iteration.from..iteration.to)
                .unwrap_or_default();
            let mut last = None;
            for request in sent {
                let call = self.call(request);
                let number = call.number;
                if !samples.contains_key(&number) {
                    // A call that this iteration alone sends stands behind the call before it.
                    let after = last.and_then(|last| order.iter().position(|it| *it == last));
                    order.insert(after.map_or(0, |it| it + 1), number);
                }
                last = Some(number);
                pauses.entry(number).or_default().push(request.pause);
                samples.entry(number).or_default().push(Sample {
                    call,
                    drawn: iteration.drawn.clone(),
                });
            }
        }
        let mut calls = Vec::new();
        for number in order {
            let own = samples.remove(&number).unwrap_or_default();
            let pause = pauses.remove(&number).unwrap_or_default();
            let pause = ScriptPause::of(pause.into_iter());
            let variants = variation.calls(own).into_iter();
            calls.extend(variants.map(|call| ScriptCall { pause, ..call }));
        }
        calls
    }
}
