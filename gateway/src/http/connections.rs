//! Connection settings, in the types of `chassis` and hyper.

use std::num::NonZeroUsize;

use chassis::{Exchange, Most, Timeouts, Work};
use gateway_config::Config;
use gateway_upstream::ConnectionLimits;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;

use crate::stream::subscription::shares::{Limit, SubscriptionLimits};

/// Default fraction of the file descriptors for clients.
const SHARE: f64 = 1.0 / 2.0;

/// Fraction of the file descriptors for connections to services. One client may run many requests, and each
/// of them may call many subgraphs, so the number of clients does not limit these connections. The remaining
/// descriptors are for files, the listeners and Redis.
const UPSTREAM_SHARE: f64 = 3.0 / 8.0;

/// Limits for client connections.
pub(crate) fn most(config: &Config) -> Most {
    let limits = &config.limits;
    Most::new(
        limits.max_connections.map(NonZeroUsize::get),
        limits.max_connections_per_address.map(NonZeroUsize::get),
        SHARE,
    )
}

/// Limits for connections to services.
pub(crate) fn upstream(config: &Config) -> ConnectionLimits {
    let limits = &config.limits;
    let total = limits.max_upstream_connections.map(NonZeroUsize::get);
    let per_origin = limits.max_upstream_connections_per_origin;
    ConnectionLimits {
        total: Most::new(total, None, UPSTREAM_SHARE).total,
        per_origin: per_origin.map(NonZeroUsize::get),
        waiting: limits.max_upstream_waiting.get(),
    }
}

/// Limits for the clients' subscriptions. Subscriptions at subgraphs are limited by their connections.
pub(crate) fn subscriptions(config: &Config) -> SubscriptionLimits {
    let subscription = config.subscriptions();
    let total = subscription.map_or(0, |it| {
        let most = it.max_opened_subscriptions;
        most.map_or(usize::MAX, NonZeroUsize::get)
    });
    let per_address = subscription.and_then(|it| it.max_opened_subscriptions_per_address);
    SubscriptionLimits {
        places: Limit {
            total,
            per_address: per_address.map(NonZeroUsize::get),
        },
        request_bytes: Limit {
            total: subscription.map_or(0, |it| it.requests_max_bytes.0.0),
            per_address: None,
        },
    }
}

/// The timeouts for the connections of one of `workers` workers.
pub(crate) fn timeouts(config: &Config, workers: usize) -> Timeouts {
    let http = &config.server.http;
    Timeouts {
        head: http.header_read_timeout.0,
        idle: http.idle_timeout.0,
        write: http.write_timeout.0,
        unsent_bytes: config.limits.max_unsent_response_bytes.0.0 / workers,
    }
}

/// A permit to work for a request. `None` if its connection has too many running requests.
///
/// HTTP/2 limits only the requests that a client waits for. A client that cancels a request may send another
/// one at once. Without `early_cancel`, the work for the first request continues.
pub(crate) fn work(exchange: &Exchange, config: &Config) -> Option<Work> {
    let most = config.limits.http2_max_concurrent_streams.get();
    (exchange.working() < most).then(|| exchange.work())
}

/// Built for each connection, so that new connections use the current configuration.
pub(crate) fn builder<E>(config: &Config, executor: E) -> auto::Builder<E> {
    let limits = &config.limits;
    let mut builder = auto::Builder::new(executor);
    // Without a timer, because `chassis` has the time limit for a head.
    let mut http1 = builder.http1();
    if let Some(most) = limits.http1_max_request_headers {
        http1.max_headers(most);
    }
    if let Some(most) = limits.http1_max_request_buf_size {
        // hyper panics below this value.
        http1.max_buf_size(most.0.0.max(8192));
    }
    let most = limits.http2_max_headers_list_bytes.map(|it| it.0.0);
    // 16 KiB is hyper's own default. HTTP/2 writes this setting with 32 bits, so a larger limit becomes the
    // maximum.
    let most = u32::try_from(most.unwrap_or(16 * 1024)).unwrap_or(u32::MAX);
    let http = &config.server.http;
    let interval = http.http2_keep_alive_interval.0;
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(most)
        .max_concurrent_streams(limits.http2_max_concurrent_streams.get())
        .keep_alive_interval((!interval.is_zero()).then_some(interval))
        .keep_alive_timeout(http.http2_keep_alive_timeout.0);
    builder
}
