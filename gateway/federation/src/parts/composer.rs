//! Composes the parts of a response, one after the other, when their data arrives.

use std::cell::Cell;
use std::mem::take;

use bytes::Bytes;

use super::gate::Gate;
use super::groups::{Bits, Delivery, bit};
use super::new_fields::{NewFields, Target};
use super::text::{self, Instance};
use super::{Open, PartsFormat, Piece};
use crate::bounds::Excess;
use crate::deferral::fetches;
use crate::error::{GraphqlError, PathSegment};
use crate::execute::explains;
use crate::execution_state::State;
use crate::fetch::Fetch;
use crate::policy::ErrorPolicies;
use crate::prepared::Prepared;
use crate::response::{Place, Places, Progress, Room, Writer};
use crate::variables::Variables;

/// Maximum number of places with deferred fragments in one request. Beyond it, a fragment arrives together
/// with its surroundings.
const PLACES_MAX: usize = 2_000;

/// Maximum bytes of the paths of these places. In each part, also the maximum for the paths of objects that
/// are written separately.
const PATH_BYTES_MAX: usize = 1 << 20;

pub(super) struct Composer<'a> {
    prepared: &'a Prepared,
    variables: &'a Variables,
    policies: &'a ErrorPolicies,
    format: PartsFormat,
    delivery: Delivery<'a>,
    /// The parts that were sent.
    sent: Bits,
    /// The members of each sent part.
    sent_members: Vec<(usize, Vec<bool>)>,
    /// The places of future parts, with their ids.
    places: Vec<(usize, Place)>,
    next_id: usize,
    left: Cell<Left>,
    /// Paths of reported errors.
    reported: Vec<Vec<PathSegment>>,
}

/// The remaining limits for all future parts together.
#[derive(Clone, Copy)]
struct Left {
    /// Remaining bytes of data.
    bytes: usize,
    room: Room,
}

/// The output for one object.
#[derive(Default)]
struct Written {
    text: Vec<u8>,
    errors: Vec<GraphqlError>,
    left_out: usize,
    is_too_large: bool,
    found: Found,
}

/// Places of deferred fragments in the output.
#[derive(Default)]
struct Found {
    places: Vec<Place>,
    /// Groups with too many places.
    crowded: Vec<usize>,
}

/// Parts that are sent together.
#[derive(Default)]
struct Batch {
    instances: Vec<Instance>,
    /// Places that the batch announces, with their ids.
    announced: Vec<(usize, Place)>,
    is_cut: bool,
}

impl<'a> Composer<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        variables: &'a Variables,
        policies: &'a ErrorPolicies,
        format: PartsFormat,
        delivery: Delivery<'a>,
    ) -> Self {
        Composer {
            prepared,
            variables,
            policies,
            format,
            delivery,
            sent: 0,
            sent_members: Vec::new(),
            places: Vec::new(),
            next_id: 0,
            left: Cell::new(Left {
                bytes: prepared.bounds.response_bytes,
                room: Room {
                    places: PLACES_MAX,
                    path_bytes: PATH_BYTES_MAX,
                },
            }),
            reported: Vec::new(),
        }
    }

    /// True if a part can be composed now.
    pub(super) fn is_ready(&self, gate: &Gate) -> bool {
        if self.sent == 0 {
            return self.has_data(0, gate);
        }
        self.delivery.parts().any(|part| self.is_due(part, gate))
    }

    /// True if a part after the first can be written now.
    fn is_due(&self, part: usize, gate: &Gate) -> bool {
        let is_announced = self.sent & bit(self.delivery.around(part)) != 0;
        self.sent & bit(part) == 0 && is_announced && self.has_data(part, gate)
    }

    fn has_data(&self, part: usize, gate: &Gate) -> bool {
        self.requests(part).iter().all(|it| gate.has_passed(&[*it]))
    }

    fn requests(&self, part: usize) -> Vec<usize> {
        let mut all = Vec::new();
        if part == 0
            && let Some(step) = self.delivery.first()
        {
            fetches(step, &mut all);
        }
        self.delivery.needs(part).for_each(|it| all.extend(it));
        all
    }

    /// Composes the next part. `None` if its data is missing.
    pub(super) async fn compose<F: Fetch>(
        &mut self,
        state: &mut State,
        gate: &Gate,
        fetch: &F,
    ) -> Option<Piece> {
        if self.sent == 0 {
            return self.first(state, gate, fetch).await;
        }
        let mut batch = Batch::default();
        let mut written = Vec::new();
        // In this order, a fragment inside another fragment can be sent together with it.
        for part in self.delivery.parts().collect::<Vec<_>>() {
            if self.is_due(part, gate) && self.part(part, state, &mut batch, fetch).await {
                written.extend(self.requests(part));
            }
        }
        if batch.instances.is_empty() {
            return None;
        }
        batch.is_cut |= !state.excesses.is_empty();
        let has_next = !self.places.is_empty();
        // The last part must contain all remaining errors.
        let errors = self.errors_of(state, |it| !has_next || written.contains(&it));
        self.assign(errors, &mut batch.instances);
        let error_count = batch.instances.iter().map(|it| it.errors.len()).sum();
        let body = match self.format {
            PartsFormat::Path => text::by_path(&batch.instances, has_next),
            PartsFormat::Pending => {
                let announced = self.announced(&batch.announced);
                text::by_id(&batch.instances, &announced, has_next)
            }
        };
        Some(Piece {
            body: body.into(),
            error_count,
            is_cut: batch.is_cut,
            has_next,
            open: self.open(),
            whole: None,
        })
    }

    async fn first<F: Fetch>(
        &mut self,
        state: &mut State,
        gate: &Gate,
        fetch: &F,
    ) -> Option<Piece> {
        let root = Place {
            group: 0,
            members: self.prepared.checked.projection.root,
            object: state.root,
            path: Vec::new(),
        };
        let left = self.left.get();
        let mut written = loop {
            if !self.has_data(0, gate) {
                return None;
            }
            // As in one piece, the data is null only if no other fetch of root fields returned data.
            if state.root_is_null && !state.root_has_data {
                break Written {
                    text: b"null".to_vec(),
                    ..Written::default()
                };
            }
            let members = self.delivery.members(0, 0);
            let places = self.delivery.anchors(0);
            let written = self
                .write(state, &root, &members, Some(places), fetch)
                .await;
            if written.found.crowded.is_empty() {
                break written;
            }
            self.left.set(left);
            let crowded = written.found.crowded.iter();
            crowded.for_each(|it| self.delivery.join(*it));
        };
        if written.is_too_large {
            let most = self.prepared.bounds.response_bytes;
            state.excesses.push(Excess::Response(most).error());
            written.text = b"null".to_vec();
            written.found.places.clear();
        }
        self.announce(take(&mut written.found.places));
        self.keep(0, self.delivery.members(0, 0));
        state.left_out += written.left_out;
        let has_next = !self.places.is_empty();
        let is_cut = !state.excesses.is_empty();
        let requests = self.requests(0);
        let mut errors = self.prepared.unauthorized.in_errors().to_vec();
        errors.extend(self.errors_of(state, |it| !has_next || requests.contains(&it)));
        let mut violations = self.unexplained(take(&mut written.errors));
        let completion = self.prepared.completion(&mut violations);
        errors.append(&mut violations);
        let pending = match self.format {
            PartsFormat::Path => None,
            PartsFormat::Pending => Some(self.announced(&self.places)),
        };
        let mut extensions = Vec::new();
        let unauthorized = &self.prepared.unauthorized;
        unauthorized.write_extensions(&completion, &mut extensions);
        let more = has_next.then_some(pending.as_deref());
        let body = text::first(&written.text, &errors, &extensions, more);
        Some(Piece {
            body: Bytes::from(body),
            error_count: errors.len(),
            is_cut,
            has_next,
            open: self.open(),
            whole: None,
        })
    }

    /// Writes a part for all its places. Returns false if it needs more data.
    async fn part<F: Fetch>(
        &mut self,
        part: usize,
        state: &mut State,
        batch: &mut Batch,
        fetch: &F,
    ) -> bool {
        let (own, others) = take(&mut self.places)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, place)| place.group == part);
        self.places = others;
        let before = self.left.get();
        let apart = PATH_BYTES_MAX / own.len().max(1);
        let (mut instances, mut places, mut left_out) = (Vec::new(), Vec::new(), 0);
        for (id, place) in &own {
            let mut instance = Instance::new(*id, place, self.delivery.label(part));
            let ((targets, members), found) = self.targets(part, place, state, apart);
            let written = self
                .instance(part, &mut instance, targets, &members, state, fetch)
                .await;
            let crowded = [found.crowded, written.found.crowded].concat();
            if !crowded.is_empty() {
                crowded.into_iter().for_each(|it| self.delivery.join(it));
                self.places.extend(own);
                self.left.set(before);
                return false;
            }
            left_out += written.left_out;
            batch.is_cut |= instance.is_too_large;
            if !instance.is_null {
                places.extend(found.places);
                places.extend(written.found.places);
            }
            instances.push(instance);
        }
        state.left_out += left_out;
        batch.instances.extend(instances);
        batch.announced.extend(self.announce(places));
        let sent = match self.format {
            PartsFormat::Path => 0,
            PartsFormat::Pending => self.sent,
        };
        self.keep(part, self.delivery.members(part, sent));
        true
    }

    /// The objects and members to write for a part at one place, and the deferred fragments on the paths to
    /// these objects.
    fn targets(
        &self,
        part: usize,
        place: &Place,
        state: &State,
        path_bytes: usize,
    ) -> ((Vec<Target>, Vec<bool>), Found) {
        let whole = (vec![Target::of(place)], self.delivery.members(part, 0));
        if self.format == PartsFormat::Path {
            return (whole, Found::default());
        }
        let new = self.delivery.members(part, self.sent);
        let fields = NewFields {
            checked: &self.prepared.checked,
            store: &state.store,
            delivery: &self.delivery,
            part,
            sent: self.sent,
            sent_members: &self.sent_members,
            new: &new,
        };
        let left = self.left.get();
        let mut places = Places::new(self.delivery.anchors(part), left.room);
        match fields.find(place, &mut places, path_bytes) {
            Some(targets) => ((targets, new), self.found(places)),
            // The whole part is sent again, because the alternative is thousands of pieces.
            None => (whole, Found::default()),
        }
    }

    /// Writes a part at one place.
    async fn instance<F: Fetch>(
        &self,
        part: usize,
        instance: &mut Instance,
        targets: Vec<Target>,
        members: &[bool],
        state: &State,
        fetch: &F,
    ) -> Written {
        let mut all = Written::default();
        for target in targets {
            let at = Place {
                group: part,
                members: target.members,
                object: target.object,
                path: [instance.path.as_slice(), &target.below].concat(),
            };
            let anchors = Some(self.delivery.anchors(part));
            let written = self.write(state, &at, members, anchors, fetch).await;
            instance.errors.extend(written.errors);
            instance.is_too_large |= written.is_too_large;
            instance.is_null |= written.text == b"null" || written.is_too_large;
            instance.entries.push((target.below, written.text));
            all.left_out += written.left_out;
            all.found.places.extend(written.found.places);
            all.found.crowded.extend(written.found.crowded);
        }
        if instance.is_too_large {
            let most = self.prepared.bounds.response_bytes;
            instance.errors = vec![Excess::Response(most).error()];
        }
        if instance.is_null {
            instance.entries.clear();
        }
        all
    }

    /// Writes the members of one object.
    async fn write<F: Fetch>(
        &self,
        state: &State,
        at: &Place,
        members: &[bool],
        anchors: Option<Vec<Option<usize>>>,
        fetch: &F,
    ) -> Written {
        let left = self.left.get();
        let mut writer = Writer::new(
            &self.prepared.checked,
            self.variables,
            &state.store,
            members,
            Vec::new(),
            left.bytes,
        );
        writer.places = anchors.map(|wanted| Places::new(wanted, left.room));
        writer.stand_at(&at.path);
        let mut progress = writer.object_with(at.members, at.object);
        while progress == Progress::Paused {
            fetch.give_way().await;
            progress = writer.object_with(at.members, at.object);
        }
        let is_too_large = progress == Progress::TooLarge || writer.out.len() > left.bytes;
        if !is_too_large {
            let bytes = left.bytes - writer.out.len();
            self.left.set(Left { bytes, ..left });
        }
        let places = writer.places.take();
        Written {
            is_too_large,
            text: writer.out,
            errors: writer.errors,
            left_out: writer.left_out,
            found: places.map(|it| self.found(it)).unwrap_or_default(),
        }
    }

    /// Takes the recorded places and reduces the remaining room.
    fn found(&self, mut places: Places) -> Found {
        let crowded = take(&mut places.crowded);
        let (places, room) = places.into_found();
        let left = self.left.get();
        self.left.set(Left { room, ..left });
        Found { places, crowded }
    }

    fn open(&self) -> Open {
        let places = self.places.iter().map(|(id, place)| {
            let label = self.delivery.label(place.group);
            Instance::new(*id, place, label)
        });
        Open(places.collect())
    }

    fn keep(&mut self, part: usize, members: Vec<bool>) {
        self.sent |= bit(part);
        self.sent_members.push((part, members));
    }

    /// Assigns ids to places and returns both.
    fn announce(&mut self, places: Vec<Place>) -> Vec<(usize, Place)> {
        let ids = self.next_id..;
        self.next_id += places.len();
        let numbered: Vec<(usize, Place)> = ids.zip(places).collect();
        self.places.extend(numbered.iter().cloned());
        numbered
    }

    /// The text that announces places to the client. It includes places that are sent in the same part.
    fn announced(&self, places: &[(usize, Place)]) -> Vec<u8> {
        let places = places.iter();
        let places = places.map(|(id, place)| (*id, place, self.delivery.label(place.group)));
        text::pending(places)
    }

    /// Errors of requests, after the error policies.
    fn errors_of(
        &mut self,
        state: &mut State,
        is_reported: impl Fn(usize) -> bool,
    ) -> Vec<GraphqlError> {
        let (reported, kept) = take(&mut state.errors)
            .into_iter()
            .partition(|(fetch, _)| is_reported(*fetch));
        state.errors = kept;
        let mut errors = self.prepared.permitted(reported, self.policies);
        errors.append(&mut state.excesses);
        errors.extend(state.left_out_error());
        let paths = errors.iter().map(|it| it.path.clone());
        self.reported.extend(paths);
        errors
    }

    /// Removes violations of the schema that a reported error explains.
    fn unexplained(&mut self, mut violations: Vec<GraphqlError>) -> Vec<GraphqlError> {
        let reported = &self.reported;
        violations.retain(|violation| !reported.iter().any(|path| explains(path, violation)));
        let paths = violations.iter().map(|it| it.path.clone());
        self.reported.extend(paths);
        violations
    }

    /// Assigns errors of requests to the instances on their paths, before the violations there.
    fn assign(&mut self, errors: Vec<GraphqlError>, instances: &mut [Instance]) {
        for instance in instances.iter_mut() {
            if !instance.is_too_large {
                let violations = take(&mut instance.errors);
                instance.errors = self.unexplained(violations);
                instance.completion = self.prepared.completion(&mut instance.errors);
            }
        }
        let mut assigned: Vec<Vec<GraphqlError>> = vec![Vec::new(); instances.len()];
        for error in errors {
            let leads = |it: &Instance| it.path.len() <= error.path.len() && it.holds(&error.path);
            let index = instances.iter().position(leads).unwrap_or(0);
            assigned[index].push(error);
        }
        for (instance, mut own) in instances.iter_mut().zip(assigned) {
            own.append(&mut instance.errors);
            instance.errors = own;
            // Without an error, the client would take the instance as delivered. The text is short, because
            // one reason can affect thousands of instances.
            let is_silent = instance.errors.is_empty() && instance.completion.is_empty();
            if instance.is_null && is_silent {
                let text =
                    "nothing of this fragment could be delivered; the reason was told before";
                let mut error = GraphqlError::new(text, "RESPONSE_VALIDATION_FAILED");
                error.path.clone_from(&instance.path);
                instance.errors.push(error);
            }
        }
    }
}
