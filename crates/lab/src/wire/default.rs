//! What a lab says by leaving a key out.

pub(crate) const TIMEOUT: &str = "5s";
pub(crate) const SLICE: &str = "100ms";
pub(crate) const THREADS: u32 = 1;
pub(crate) const CONNECTIONS_MAX: u32 = 1000;
pub(crate) const PATH: &str = "/";
pub(crate) const WARMUP: &str = "1s";
pub(crate) const SETTLE_CONNECTIONS: u32 = 4;
pub(crate) const SETTLE_WITHIN: &str = "10s";
pub(crate) const ROUNDS: u32 = 10;
pub(crate) const MAX_TIME: &str = "1h";
pub(crate) const READY_WITHIN: &str = "10s";
pub(crate) const READY_STATUS: u16 = 200;
pub(crate) const WEIGHT: u32 = 1;
pub(crate) const STREAMS: u32 = 1;
pub(crate) const SPIN_PERCENT: u32 = 25;
pub(crate) const STEP_PERCENT: f64 = 10.0;
pub(crate) const TIMES: u32 = 1;
