//! `cargo xtask …`: the development tasks of the repository.

mod aa;
mod attack;
mod bench;
mod calibrate;
mod chores;
mod clock;
mod cluster;
mod command_line;
mod dist;
mod engine;
mod gateway_bench;
mod judged;
mod layers;
mod method;
mod page;
mod process;
mod profile_guided;
mod quick;
mod release;
mod repository;
mod results;
mod rust_source;
mod shape;
mod slices;
mod test_run;
#[cfg(test)]
mod tidy;
mod timing;
mod together;

fn main() -> std::process::ExitCode {
    command_line::main()
}
