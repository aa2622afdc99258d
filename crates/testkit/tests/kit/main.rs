//! The testkit on real control planes, and the programs made of it.
//!
//! One program for all of it: most of these tests wait most of the time, and so they wait beside each other.

mod chaos;
mod controlplane;
mod demo;
mod failures;
mod fleet;
mod history;
mod oracle;
mod planes;
mod proxy;
