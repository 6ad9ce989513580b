//! The program `route-webhook`. See the library.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::process::ExitCode;

fn main() -> ExitCode {
    route_webhook::run(std::env::args_os())
}
