//! The program `catalog`. See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    catalog::run(std::env::args_os())
}
