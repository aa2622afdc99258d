//! Several replicas against a real etcd and kube-apiserver: they share the work, cover for each other, and undo
//! nothing of one another's.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what a test needs and lacks fails it; counts are whole"
)]

#[path = "../keeper/audit.rs"]
mod audit;
mod doubt;
mod fifty;
#[path = "../faults/fleet.rs"]
mod fleet;
mod joiners;
mod kills;
mod mass;
mod members;
mod mixed;
mod outage;
mod pauses;
#[path = "../keeper/plane.rs"]
mod plane;
mod races;
mod restored;
mod roles;
mod servers;
mod sharing;
mod silent;
mod streams;
mod through;
#[path = "../keeper/world.rs"]
mod world;
