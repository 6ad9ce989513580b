//! Tests of the process from outside, on SQLite and on a real PostgreSQL.

#![cfg(test)]

mod answers;
mod audit;
mod databases;
mod flood;
mod hostile;
mod model;
mod outage;
mod quick_start;
mod server;
mod start_and_stop;
mod turns;
