//! Tests of `weigh report`, `weigh compare` and `weigh tare`.

mod compare;
mod compare_help;
mod dist;
mod docs_ci;
mod gates;
mod history;
mod page;
mod readme;
mod tare;
