//! The coprocessor in Rust: entry, port and stop. `../CONTRACT.md` describes its behaviour.

mod decide;
mod serve;
mod token;

use std::env::var;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn main() -> std::io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(workers) = var("WORKERS").ok().and_then(|text| text.parse().ok()) {
        runtime.worker_threads(workers);
    }
    let secret = var("JWT_SECRET").unwrap_or_else(|_| "apollo".to_owned());
    let runtime = runtime.enable_io().build()?;
    runtime.block_on(async {
        match var("SOCKET") {
            Ok(path) => serve::on_socket(&path, &secret).await,
            Err(_) => serve::on_port(&var("PORT").unwrap_or("3000".to_owned()), &secret).await,
        }
    })
}
