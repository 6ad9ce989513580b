//! What a sync costs by itself, in time.
//!
//! `cargo bench -p route-webhook`. Each line is the time of one call, the best of several turns,
//! because noise only ever adds.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench that cannot go on fails, prints its answer and reads the clock"
)]

use std::hint::black_box;
use std::time::Instant;

use route_webhook::json::Writer;
use route_webhook::request::Body;
use route_webhook::sync::{Format, Rules, sync};

/// The webhook's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TURNS: usize = 9;
const CALLS: u32 = 20_000;

/// The request of the lab.
const REQUEST: &[u8] = include_bytes!("../../../labs/webhook/requests/route.json");

fn main() {
    let rules = |format| Rules {
        format,
        image: "ghcr.io/keip/route:latest".to_owned(),
    };
    let (today, seed) = (rules(Format::Today), rules(Format::Seed));
    let now = || "2026-11-20T08:00:00Z".to_owned();
    time("the request, checked", || {
        drop(black_box(Body::read(REQUEST).unwrap()));
    });
    time("the request, written anew", || {
        let mut writer = Writer::new(4096);
        writer.json(std::str::from_utf8(REQUEST).unwrap());
        drop(black_box(writer.finish()));
    });
    time("sync, today", || {
        drop(black_box(sync(REQUEST, &today, now).unwrap()));
    });
    time("sync, seed", || {
        drop(black_box(sync(REQUEST, &seed, now).unwrap()));
    });
}

fn time(name: &str, call: impl Fn()) {
    call();
    let best = (0..TURNS)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            started.elapsed().as_nanos() / u128::from(CALLS)
        })
        .min()
        .unwrap();
    println!("{name:<28} {best:>9} ns");
}
