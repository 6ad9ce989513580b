//! The state that all threads of the process share.

use std::sync::Arc;

use chassis::ConnectionTable;
use gateway_upstream::Traffic;

use crate::graphql::planning::Planning;
use crate::http::health::Health;
use crate::process::metrics::Metrics;
use crate::stream::subscription::callback::Callbacks;
use crate::stream::subscription::opened::SubscriptionCounters;

/// The state that all workers share.
pub(crate) struct ProcessState {
    pub(crate) metrics: Metrics,
    pub(crate) health: Arc<Health>,
    pub(crate) planning: Arc<Planning>,
    /// The open connections of clients.
    pub(crate) connections: Arc<ConnectionTable>,
    /// The connections of all workers to services.
    pub(crate) traffic: Arc<Traffic>,
    /// Number of worker threads.
    pub(crate) workers: usize,
    /// Counters of the clients' subscriptions.
    pub(crate) subscriptions: Arc<SubscriptionCounters>,
    /// The subscriptions that receive their events by callbacks.
    pub(crate) callbacks: Arc<Callbacks>,
    /// Counts of the spans and metrics for collectors.
    pub(crate) exported: Arc<gateway_telemetry::ExportCounts>,
}
