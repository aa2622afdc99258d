//! `perennial`: see `--help`. Everything is in the library.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Labels are many small strings that come and go: the C library's allocator takes a fifth of a heartbeat.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // A hundred thousand small things that change one by one leave holes: huge pages would keep them all in memory. Where
    // the kernel has no such pages there is nothing to turn off.
    let _ = nix::sys::prctl::set_thp_disable(true);
    perennial::run(perennial::Args::from_command_line()).unwrap_or_else(|error| {
        eprintln!("error: {}", perennial::log::chain(&error));
        // As clap does for a command line it cannot read.
        ExitCode::from(2)
    })
}
