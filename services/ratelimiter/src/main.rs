//! The program `ratelimiter`. See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ratelimiter::run(std::env::args_os())
}
