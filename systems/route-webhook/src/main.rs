//! `route-webhook`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    route_webhook::run(std::env::args_os())
}
