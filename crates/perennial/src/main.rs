//! `perennial`: see `--help`. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    perennial::run(perennial::Args::from_command_line()).unwrap_or_else(|error| {
        eprintln!("error: {}", perennial::log::chain(&error));
        // As clap does for a command line it cannot read.
        ExitCode::from(2)
    })
}
