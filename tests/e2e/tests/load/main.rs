//! What `weigh load` and the null server do, as a user of other load generators meets them.

mod calibration;
mod crashes;
mod encodings;
mod flags;
mod formats;
mod gates;
mod help;
mod protocols;
mod published;
mod requests;
mod screen;
mod servers;
mod shards;
mod urls;
