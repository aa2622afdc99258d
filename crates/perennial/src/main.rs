//! `perennial`: see `--help`.
fn main() {}
