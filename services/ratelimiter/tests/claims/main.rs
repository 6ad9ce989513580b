//! Tests of the process from outside, with a real Redis if needed.

#![cfg(test)]

mod answers;
mod audit;
mod certificates;
mod chart;
mod deploy;
mod flood;
mod fuzz;
mod outage;
mod quick_start;
mod redis_tls;
mod rules;
mod same_decisions;
mod sentinel;
mod server;
mod stack;
mod tls;
mod variables;
