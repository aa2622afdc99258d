//! `perennial`: see `--help`. Everything is in the library.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Labels are many small strings that come and go: the C library's allocator takes a fifth of a heartbeat.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    perennial::run(perennial::Args::from_command_line()).unwrap_or_else(|error| {
        eprintln!("error: {}", perennial::log::chain(&error));
        // As clap does for a command line it cannot read.
        ExitCode::from(2)
    })
}
