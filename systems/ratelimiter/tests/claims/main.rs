//! Tests of the process from outside, with a real Redis if needed.

#![cfg(test)]

mod answers;
mod audit;
mod chart;
mod deploy;
mod flood;
mod fuzz;
mod outage;
mod quick_start;
mod same_decisions;
mod server;
mod stack;
mod tls;
