//! The trace of one request, and its recorded pieces of work.
//!
//! A request that is not recorded only has ids to forward. No clock is read for it. The spans of a recorded
//! request are collected and added to the queue together, when the last reference to the trace is dropped.
//! This may be after the client has left.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use gateway_config::TraceIdFormat;
use http::header::{HeaderMap, HeaderValue};

use crate::clock;
use crate::context::{SpanId, TraceId};
use crate::identifier::SpanIds;
use crate::propagation::{Formats, Passed};
use crate::queue::{ExportCounts, Queue};
use crate::span::{Span, SpanKind, Value};

/// Maximum number of spans of one request: a list of a hundred operations with ten fetches each. Further
/// spans are dropped and counted.
const SPANS_MAX: usize = 1_000;

/// The trace of one request.
#[derive(Debug)]
pub struct Trace {
    origin: Origin,
    recording: Option<Recording>,
}

/// The part of a trace that comes from the client's request or from the tracer.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) id: TraceId,
    pub(crate) is_sampled: bool,
    pub(crate) state: Option<HeaderValue>,
    pub(crate) baggage: Option<HeaderValue>,
    /// The formats in which the trace is forwarded.
    pub(crate) formats: Arc<Formats>,
}

#[derive(Debug)]
struct Recording {
    queues: Arc<[Arc<Queue>]>,
    attributes_max: usize,
    ids: Cell<SpanIds>,
    /// The same moment on two clocks. Spans are timed by the monotonic clock.
    start: (Instant, u64),
    spans: RefCell<Vec<Span>>,
    /// Additional attributes for the server span.
    described: RefCell<Vec<(&'static str, Value)>>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let spans = self.spans.take();
        // Usually one exporter is configured, and it needs no copy.
        let Some((last, others)) = self.queues.split_last() else {
            return;
        };
        for queue in others {
            queue.put(spans.clone());
        }
        last.put(spans);
    }
}

impl Recording {
    fn now_ns(&self) -> u64 {
        let (start, unix_ns) = self.start;
        unix_ns + clock::whole_ns(clock::now().duration_since(start))
    }

    fn next_id(&self) -> SpanId {
        let mut ids = self.ids.get();
        let id = ids.next();
        self.ids.set(ids);
        id
    }
}

impl Trace {
    pub(crate) fn new(
        origin: Origin,
        queues: &Arc<[Arc<Queue>]>,
        attributes_max: usize,
        ids: SpanIds,
    ) -> Self {
        let recording = origin.is_sampled.then(|| Recording {
            queues: Arc::clone(queues),
            attributes_max,
            ids: Cell::new(ids),
            start: (clock::now(), clock::unix_ns()),
            spans: RefCell::default(),
            described: RefCell::default(),
        });
        Self { origin, recording }
    }

    pub(crate) fn only_passed_on(origin: Origin) -> Self {
        Self {
            origin,
            recording: None,
        }
    }

    /// Opens the server span.
    pub(crate) fn server(
        self: &Rc<Self>,
        id: SpanId,
        parent: Option<SpanId>,
    ) -> Option<Box<OpenSpan>> {
        self.open(
            id,
            parent,
            parent.is_some(),
            "HTTP".into(),
            SpanKind::Server,
        )
    }

    fn open(
        self: &Rc<Self>,
        id: SpanId,
        parent: Option<SpanId>,
        parent_is_remote: bool,
        name: Cow<'static, str>,
        kind: SpanKind,
    ) -> Option<Box<OpenSpan>> {
        let start_ns = self.recording.as_ref()?.now_ns();
        Some(Box::new(OpenSpan {
            trace: Rc::clone(self),
            span: Some(Span {
                trace: self.origin.id,
                id,
                parent,
                parent_is_remote,
                state: self.origin.state.clone(),
                name,
                kind,
                start_ns,
                end_ns: start_ns,
                attributes: Vec::with_capacity(8),
                dropped_attributes: 0,
                failure: None,
            }),
            choices: None,
        }))
    }
}

/// A trace, and the span that is the parent of current work.
#[derive(Clone, Debug)]
pub struct Active {
    pub(crate) trace: Rc<Trace>,
    pub(crate) span: SpanId,
}

impl Active {
    /// The id of the trace.
    #[must_use]
    pub fn id(&self) -> TraceId {
        self.trace.origin.id
    }

    /// The id of the trace in a format.
    #[must_use]
    pub fn shown_id(&self, format: TraceIdFormat) -> String {
        self.id().shown(format)
    }

    /// The id of the current span.
    #[must_use]
    pub fn span_id(&self) -> SpanId {
        self.span
    }

    /// True if the spans of this trace are recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.trace.recording.is_some()
    }

    /// Begins a piece of work. `None` if the trace is not recorded.
    #[must_use]
    pub fn start(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
    ) -> Option<Box<OpenSpan>> {
        let id = self.trace.recording.as_ref()?.next_id();
        self.trace
            .open(id, Some(self.span), false, name.into(), kind)
    }

    /// Writes the trace into the headers of a request, and replaces earlier trace headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        let origin = &self.trace.origin;
        let passed = Passed {
            trace: origin.id,
            span: self.span,
            is_sampled: origin.is_sampled,
            state: origin.state.as_ref(),
            baggage: origin.baggage.as_ref(),
        };
        origin.formats.write(&passed, headers);
    }

    /// Removes the headers that [`Active::write`] writes.
    pub fn clear(&self, headers: &mut HeaderMap) {
        self.trace.origin.formats.clear(headers);
    }

    /// Adds an attribute to the server span. If the name exists, the first value stays.
    pub fn describe(&self, name: &'static str, value: impl Into<Value>) {
        if let Some(recording) = &self.trace.recording {
            let mut described = recording.described.borrow_mut();
            if !described.iter().any(|(known, _)| *known == name) {
                described.push((name, value.into()));
            }
        }
    }
}

/// A piece of work in progress. Dropping this value ends it.
#[derive(Debug)]
pub struct OpenSpan {
    trace: Rc<Trace>,
    /// Removed when the work ends.
    span: Option<Span>,
    /// The attributes of `telemetry.instrumentation`. `None` without the section.
    choices: Option<Box<Choices>>,
}

/// The name, the status and the attributes that a configuration chose for a span. They have precedence.
#[derive(Debug, Default)]
struct Choices {
    edits: Option<Arc<SpanEdits>>,
    name: Option<String>,
    /// True for a failure, and false for a success.
    status: Option<bool>,
    /// The reason of a failure.
    description: Option<String>,
    attributes: Vec<(Arc<str>, Value)>,
}

/// Changes of the attributes that spans have anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanEdits {
    /// Names of attributes to remove.
    pub removed: Vec<Arc<str>>,
    /// Names of attributes, with their new names.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
}

impl OpenSpan {
    fn span(&mut self) -> &mut Span {
        self.span.as_mut().expect("only the drop takes the span")
    }

    /// The trace with this span as the parent of further work.
    #[must_use]
    pub fn active(&self) -> Active {
        let span = self.span.as_ref().expect("only the drop takes the span");
        Active {
            trace: Rc::clone(&self.trace),
            span: span.id,
        }
    }

    /// Changes the name of the span.
    pub fn name(&mut self, name: impl Into<Cow<'static, str>>) {
        self.span().name = name.into();
    }

    /// Changes the attributes of the span at its end.
    pub fn edit(&mut self, edits: &Arc<SpanEdits>) {
        self.choices.get_or_insert_default().edits = Some(Arc::clone(edits));
    }

    /// Sets an attribute at the end of the span. It replaces an attribute with the same name.
    pub fn choose(&mut self, name: &Arc<str>, value: Value) {
        let choices = self.choices.get_or_insert_default();
        choices.attributes.push((Arc::clone(name), value));
    }

    /// Sets the name at the end of the span.
    pub fn choose_name(&mut self, name: String) {
        self.choices.get_or_insert_default().name = Some(name);
    }

    /// Sets the status at the end of the span: true for a failure, and false for a success.
    pub fn choose_status(&mut self, has_failed: bool) {
        self.choices.get_or_insert_default().status = Some(has_failed);
    }

    /// Sets the reason of a failure at the end of the span. It has no effect on a success.
    pub fn choose_description(&mut self, description: String) {
        self.choices.get_or_insert_default().description = Some(description);
    }

    /// Applies the choices of the configuration.
    fn apply(&mut self, choices: Choices) {
        let span = self.span();
        if let Some(edits) = &choices.edits {
            span.attributes
                .retain(|(name, _)| !edits.removed.iter().any(|it| **it == **name));
            for (name, _) in &mut span.attributes {
                let renamed = edits.renamed.iter().find(|(from, _)| **from == **name);
                if let Some((_, to)) = renamed {
                    *name = to.to_string().into();
                }
            }
        }
        if let Some(name) = choices.name {
            span.name = name.into();
        }
        match choices.status {
            Some(true) if span.failure.is_none() => span.failure = Some("".into()),
            Some(false) => span.failure = None,
            Some(true) | None => {}
        }
        if let (Some(failure), Some(description)) = (&mut span.failure, choices.description) {
            *failure = description.into();
        }
        for (name, value) in choices.attributes {
            let span = self.span();
            match span.attributes.iter_mut().find(|(it, _)| **it == *name) {
                Some((_, known)) => *known = value,
                None => self.set(name.to_string(), value),
            }
        }
    }

    /// Sets an attribute of the span.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let most = self
            .trace
            .recording
            .as_ref()
            .map_or(0, |it| it.attributes_max);
        let span = self.span();
        if span.attributes.len() < most {
            span.attributes.push((name.into(), value.into()));
        } else {
            span.dropped_attributes += 1;
        }
    }

    /// Marks the span as failed, with a reason.
    pub fn fail(&mut self, why: impl Into<Cow<'static, str>>) {
        self.span().failure = Some(why.into());
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let trace = Rc::clone(&self.trace);
        let Some(recording) = &trace.recording else {
            return;
        };
        if self.span().kind == SpanKind::Server {
            for (name, value) in recording.described.take() {
                self.set(name, value);
            }
        }
        if let Some(choices) = self.choices.take() {
            self.apply(*choices);
        }
        let end_ns = recording.now_ns();
        let Some(mut span) = self.span.take() else {
            return;
        };
        span.end_ns = end_ns;
        let mut spans = recording.spans.borrow_mut();
        if spans.len() < SPANS_MAX {
            spans.push(span);
        } else {
            for queue in &*recording.queues {
                ExportCounts::add(&queue.counts().overflown, 1);
            }
        }
    }
}
