//! The general path: TLS and HTTP/2, by rustls, h2 and tokio.
//!
//! It takes the same slots from the same [`Supply`], judges by the same rules and writes into the
//! same [`Recorder`] as the fast path in `worker.rs`. What differs is who carries a slot: a lane,
//! which is one of the requests that may be under way on a connection (one over HTTP/1.1, as many
//! as there are streams over HTTP/2). A lane is a task for as long as there are slots for it; one
//! more future on the thread, the pacer, hands out slots when they are due.
//!
//! A timeout over HTTP/2 ends its stream only, and no further request goes onto that connection.
//! The same holds when the target says that it goes away: the requests under way are awaited while a
//! new connection is opened, so for that while there may be more connections than asked for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::job::Bounds;
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::rendered::Rotation;
use crate::supply::{Supply, Taken};
use crate::worker::Shared;

mod answer;
mod http1;
mod http2;
mod lane;
mod link;
mod message;
mod pass;
mod route;
mod single;
mod stream;
mod timer;
mod tls;

use link::Link;
use message::Message;
use pass::Rests;
pub(crate) use pass::Script;
pub(crate) use route::Route;
pub(crate) use single::exchange;
use stream::Traffic;
use timer::Timer;
pub use tls::TlsError;

/// No wait is longer: the stop flag must be seen.
const WAIT_MAX_NS: u64 = 10_000_000;

/// Standing still longer than this is a pause.
const PAUSE_NS: u64 = 10_000_000;

/// Between two updates of the live counts.
const PUBLISH_NS: u64 = 100_000_000;

/// The requests of a rotation as HTTP/2 carries them; `None` where it differs from slot to slot.
pub(crate) type Messages = Vec<Option<Message>>;

/// Translates a rotation.
///
/// # Errors
///
/// With the position of the first request that HTTP/2 cannot carry, and why.
pub(crate) fn messages(
    rotation: &Rotation,
    script: &Script,
    route: &Route,
) -> Result<Messages, (usize, String)> {
    let mut filled = Vec::new();
    // Of what passes capture, anything stands for all.
    let captured = vec!["0".to_owned(); script.captures];
    let translate = |(index, request): (usize, &crate::rendered::Rendered)| {
        // Of a template, the first slot stands for all.
        request.fill(0, &captured, &mut filled);
        let message = Message::new(request.bytes(&filled), route.is_encrypted());
        let message = message.map_err(|reason| (index, reason))?;
        Ok((!request.is_template()).then_some(message))
    };
    rotation
        .requests
        .iter()
        .enumerate()
        .map(translate)
        .collect()
}

/// What the lanes of a thread carry, and how.
pub(crate) struct Cargo {
    pub(crate) route: Route,
    pub(crate) rotation: Rotation,
    pub(crate) script: Script,
    /// As many as there are requests in the rotation; none for HTTP/1.1.
    pub(crate) messages: Messages,
}

/// One generator thread.
pub(crate) struct Crew<'a> {
    shared: Shared<'a>,
    // Dropped before the runtime that its sockets are registered with.
    lanes: LocalSet,
    desk: Rc<Desk>,
    runtime: Runtime,
    was_interrupted: bool,
}

/// What the lanes of a thread share.
struct Desk {
    timer: Timer,
    clock: crate::clock::Clock,
    peer: crate::socket::Peer,
    timeout: Duration,
    keep_alive: bool,
    bounds: Bounds,
    route: Route,
    messages: Messages,
    rotation: RefCell<Rotation>,
    script: Script,
    traffic: Rc<Traffic>,
    links: Vec<Link>,
    /// Lanes of a link. At least 1.
    streams: usize,
    book: RefCell<Book>,
    /// The read buffer of HTTP/1.1.
    buffer: RefCell<Vec<u8>>,
    is_closed_loop: Cell<bool>,
}

/// Who is free, and what has happened.
struct Book {
    supply: Supply,
    recorder: Recorder,
    /// Lanes of connections that were open when they were last used.
    idle: Vec<usize>,
    /// Other lanes that were used before.
    vacant: Vec<usize>,
    /// The first lane that was never used.
    unused: usize,
    lanes: usize,
    /// Slots under way.
    active: usize,
    rests: Rests,
}

impl Book {
    fn is_anybody_free(&self) -> bool {
        !self.idle.is_empty() || !self.vacant.is_empty() || self.unused < self.lanes
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.active == 0 && self.supply.is_over(now_ns)
    }

    fn has_work(&self, now_ns: u64) -> bool {
        let is_overdue = |due_ns| due_ns <= now_ns;
        self.active > 0 || self.supply.next_due_ns().is_some_and(is_overdue)
    }
}

impl<'a> Crew<'a> {
    pub(crate) fn new(
        shared: Shared<'a>,
        cargo: Cargo,
        connections: usize,
        bounds: Bounds,
    ) -> std::io::Result<Crew<'a>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let timer = {
            let _within = runtime.enter();
            Timer::new(shared.clock)?
        };
        // A connection for each request carries one.
        let streams = match shared.keep_alive {
            true => usize::try_from(cargo.route.version.streams()).unwrap_or(usize::MAX),
            false => 1,
        };
        let desk = Desk {
            timer,
            clock: shared.clock,
            peer: shared.peer.clone(),
            timeout: Duration::from_nanos(shared.timeout_ns),
            keep_alive: shared.keep_alive,
            bounds,
            route: cargo.route,
            messages: cargo.messages,
            rotation: RefCell::new(cargo.rotation),
            script: cargo.script,
            traffic: Rc::default(),
            links: (0..connections).map(|_| Link::default()).collect(),
            streams,
            book: RefCell::new(Book {
                supply: Supply::none(),
                recorder: Recorder::new(0, 0),
                idle: Vec::new(),
                vacant: Vec::new(),
                unused: 0,
                lanes: connections.saturating_mul(streams),
                active: 0,
                rests: Rests::default(),
            }),
            buffer: RefCell::new(vec![0; 64 * 1024]),
            is_closed_loop: Cell::new(false),
        };
        Ok(Crew {
            shared,
            lanes: LocalSet::new(),
            desk: Rc::new(desk),
            runtime,
            was_interrupted: false,
        })
    }

    /// Opens all connections before the load begins, as the fast path does.
    pub(crate) fn open_all(&mut self) {
        let (desk, shared) = (&self.desk, self.shared);
        self.lanes.block_on(&self.runtime, async {
            let opening: Vec<_> = (0..desk.links.len())
                .map(|link| {
                    let desk = Rc::clone(desk);
                    tokio::task::spawn_local(async move { desk.open(link).await })
                })
                .collect();
            for mut task in opening {
                let wait = Duration::from_nanos(WAIT_MAX_NS);
                while tokio::time::timeout(wait, &mut task).await.is_err() {
                    if shared.stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
    }

    /// Sends all slots of the supply and awaits their answers.
    pub(crate) fn run(&mut self, supply: Supply, recorder: Recorder, priority: &mut Priority) {
        let (desk, shared) = (Rc::clone(&self.desk), self.shared);
        let before = (desk.traffic.bytes_in.get(), desk.traffic.bytes_out.get());
        desk.is_closed_loop.set(matches!(supply, Supply::Closed(_)));
        {
            let mut book = desk.book.borrow_mut();
            book.supply = supply;
            let connect = std::mem::replace(&mut book.recorder, recorder).connect;
            book.recorder.connect.add(&connect);
        }
        let pace = pace(&desk, shared, priority);
        self.was_interrupted = !self.lanes.block_on(&self.runtime, pace);
        let recorder = &mut desk.book.borrow_mut().recorder;
        recorder.bytes_in = desk.traffic.bytes_in.get() - before.0;
        recorder.bytes_out = desk.traffic.bytes_out.get() - before.1;
        recorder.publish(shared.live);
    }

    /// Closes all connections. Returns the account, and whether the load was interrupted.
    pub(crate) fn finish(self) -> (Recorder, bool) {
        drop(self.lanes);
        let nothing = Recorder::new(0, 0);
        let recorder = std::mem::replace(&mut self.desk.book.borrow_mut().recorder, nothing);
        (recorder, self.was_interrupted)
    }
}

/// Hands out slots until all have ended; `false` when it was stopped before.
async fn pace(desk: &Rc<Desk>, shared: Shared<'_>, priority: &mut Priority) -> bool {
    let mut publish_ns = 0;
    priority.begin(desk.clock.now_ns());
    loop {
        desk.dispatch();
        let now_ns = desk.clock.now_ns();
        {
            let Book {
                supply, recorder, ..
            } = &mut *desk.book.borrow_mut();
            supply.give_up_missed(now_ns, &desk.rotation.borrow(), recorder);
        }
        if desk.book.borrow().is_over(now_ns) {
            return true;
        }
        if shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        if now_ns >= publish_ns {
            publish_ns = now_ns + PUBLISH_NS;
            desk.book.borrow_mut().recorder.publish(shared.live);
        }
        let latest_ns = now_ns + WAIT_MAX_NS;
        // Slots that are overdue are taken by the lanes as they become free.
        let due_ns = {
            let book = desk.book.borrow();
            let slot_ns = book.supply.next_due_ns().filter(|due_ns| *due_ns >= now_ns);
            let next_ns = slot_ns.into_iter().chain(book.rests.next_end_ns()).min();
            next_ns.filter(|due_ns| *due_ns < latest_ns)
        };
        let wake_ns = due_ns.unwrap_or(latest_ns);
        let meant_ns = desk.timer.wait_until(wake_ns, due_ns.is_some()).await;
        let woken_ns = desk.clock.now_ns();
        priority.review(woken_ns);
        let mut book = desk.book.borrow_mut();
        if woken_ns > meant_ns + PAUSE_NS && book.has_work(woken_ns) {
            book.recorder.paused(meant_ns, woken_ns - meant_ns);
        }
    }
}

impl Desk {
    /// Sends slots for as long as there are some, and lanes for them; passes go on whose rest is
    /// over.
    fn dispatch(self: &Rc<Desk>) {
        self.end_rests();
        loop {
            let mut book = self.book.borrow_mut();
            if !book.is_anybody_free() {
                return;
            }
            let Some(taken) = book.supply.take(self.clock.now_ns()) else {
                return;
            };
            let lane = self.pick(&mut book);
            book.active += 1;
            drop(book);
            tokio::task::spawn_local(lane::work(Rc::clone(self), lane, taken));
        }
    }

    /// A free lane, one with an open connection before others. There must be one.
    fn pick(&self, book: &mut Book) -> usize {
        while let Some(lane) = book.idle.pop() {
            if self.link(lane).is_open() {
                return lane;
            }
            book.vacant.push(lane);
        }
        book.vacant.pop().unwrap_or_else(|| {
            book.unused += 1;
            book.unused - 1
        })
    }

    fn link(&self, lane: usize) -> &Link {
        &self.links[self.link_of(lane)]
    }

    fn link_of(&self, lane: usize) -> usize {
        lane / self.streams
    }

    /// The slot of a lane has ended.
    fn ended(&self) {
        let mut book = self.book.borrow_mut();
        book.active -= 1;
        let now_ns = self.clock.now_ns();
        if book.is_over(now_ns) {
            self.timer.wake_by(now_ns);
        }
    }

    /// A lane became free: gives it the next slot or parks it.
    fn release(&self, lane: usize) -> Option<Taken> {
        let mut book = self.book.borrow_mut();
        let is_nobody_free = !book.is_anybody_free();
        let now_ns = self.clock.now_ns();
        let taken = book.supply.take(now_ns);
        if let Some(taken) = taken {
            book.active += 1;
            if is_nobody_free && taken.due_ns.is_some() {
                book.recorder.waited(now_ns);
            }
            return Some(taken);
        }
        if self.link(lane).is_open() {
            book.idle.push(lane);
        } else {
            book.vacant.push(lane);
        }
        if let Some(due_ns) = book.supply.next_due_ns() {
            self.timer.wake_by(due_ns);
        }
        None
    }
}
