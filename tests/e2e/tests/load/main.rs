//! Tests of `weigh load` and the null server, from the view of a user of other load generators.

mod calibration;
mod crashes;
mod encodings;
mod flags;
mod formats;
mod gates;
mod help;
mod ports;
mod protocols;
mod published;
mod requests;
mod screen;
mod servers;
mod shards;
mod urls;
mod websocket;
