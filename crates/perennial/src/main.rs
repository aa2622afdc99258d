//! `perennial`: see `--help`. Everything is in the library; only here does an error lose its type.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    Ok(perennial::run(perennial::Args::from_command_line())?)
}
