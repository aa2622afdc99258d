//! The policy as a whole.
