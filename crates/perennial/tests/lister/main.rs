//! The lister against a real etcd and kube-apiserver, and a real S3 server.
#![allow(clippy::unwrap_used, reason = "what a test needs and lacks fails it")]

mod both;
mod buckets;
mod files;
mod hands;
#[path = "../keeper/plane.rs"]
mod plane;
mod publishing;
mod replicas;
mod restored;
mod single;
mod storms;
mod streams;
mod world;
