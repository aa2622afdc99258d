//! The charts, rendered by the real Helm and judged by the real API server.
//!
//! | file | what |
//! | --- | --- |
//! | `committed` | the manifests in `deploy` are what the chart renders |
//! | `accepted` | every example is accepted, under the restricted Pod Security level |
//! | `refused` | mistakes in values are refused, and values that pass make a policy that passes |
//! | `fenced` | what an account could do beyond its task is refused by the API server |
//! | `fleet` | what the fleet's containers are told to do, they can do |
//! | `granted` | the accounts of the chart may do what is needed, and not what is not |
//! | `pages` | commands of the documentation do what they say |
//! | `values` | docs/values.md is what the schemas say |
#![allow(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

mod accepted;
mod committed;
mod fenced;
mod fleet;
mod granted;
mod pages;
mod refused;
mod rendered;
mod values;
