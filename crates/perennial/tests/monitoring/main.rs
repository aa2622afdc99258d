//! What an operator sees: the dashboard, the alerts, and what collects them. Checked by Prometheus' own tools, by Grafana's own
//! types, and against a real run.
#![allow(clippy::unwrap_used, reason = "what a test needs and lacks fails it")]

mod alerts;
mod chart;
mod dashboard;
mod guarded;
mod manifests;
#[path = "../charts/rendered.rs"]
#[allow(dead_code, reason = "each suite uses its own part of it")]
mod rendered;
mod scraped;
mod tools;
