//! Tests of the process from outside, on SQLite and on a real PostgreSQL.

#![cfg(test)]

mod answers;
mod audit;
mod chart;
mod databases;
mod flood;
mod hostile;
mod model;
mod outage;
mod pages;
mod postgres_tls;
mod quick_start;
mod server;
mod start_and_stop;
mod tls;
mod turns;
