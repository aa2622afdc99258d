//! The keeper against a real etcd and kube-apiserver, under exactly the permissions of `deploy/rbac.yaml`.
//!
//! Each test is one sentence about what happens to a node. The world is the cluster as people and kubelets
//! see it; the keeper runs beside it and is started, stopped and crashed like a pod.
#![allow(clippy::unwrap_used, reason = "what a test needs and lacks fails it")]

mod audit;
mod born;
mod ends;
mod finalizers;
mod follow;
mod hindrance;
mod history;
mod interrupted;
mod marks;
mod measured;
mod plane;
mod restore;
mod silence;
mod swap;
mod traced;
mod world;
