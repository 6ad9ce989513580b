//! `weigh`: tells what a layer of an API stack costs.
fn main() {}
