//! Measures the time of a sync without HTTP.
//!
//! `cargo bench -p route-webhook`. Each line is the time of one call.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;

use route_webhook::json::Writer;
use route_webhook::request::Body;
use route_webhook::sync::{ResponseFormat, Rules, sync};
use test_client::bench::time;

/// The same allocator as in the webhook.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CALLS: u32 = 20_000;

/// The request of the lab.
const REQUEST: &[u8] = include_bytes!("../../../labs/webhook/requests/route.json");

fn main() {
    let rules = |format| Rules {
        format,
        image: "ghcr.io/keip/route:latest".to_owned(),
    };
    let (today, seed) = (rules(ResponseFormat::Today), rules(ResponseFormat::Seed));
    let now = || "2026-11-20T08:00:00Z".to_owned();
    time("the request, checked", CALLS, || {
        drop(black_box(Body::read(REQUEST).unwrap()));
    });
    time("the request, written anew", CALLS, || {
        let mut writer = Writer::new(4096);
        writer.json(std::str::from_utf8(REQUEST).unwrap());
        drop(black_box(writer.finish()));
    });
    time("sync, today", CALLS, || {
        drop(black_box(sync(REQUEST, &today, now).unwrap()));
    });
    time("sync, seed", CALLS, || {
        drop(black_box(sync(REQUEST, &seed, now).unwrap()));
    });
}
