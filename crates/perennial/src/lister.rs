//! The lister: a Service's endpoints, rendered and published.

pub mod destination;
