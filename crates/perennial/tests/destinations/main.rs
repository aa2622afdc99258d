//! Destinations against real servers: versitygw, which checks signatures and conditions, moto, which honours ACLs, and
//! kube-apiserver.
#![allow(clippy::unwrap_used, reason = "what a test needs and lacks fails it")]

mod acl;
mod broken;
mod config_map;
mod faults;
mod file;
mod history;
mod s3;
mod secrets;
mod wire;
mod world;
