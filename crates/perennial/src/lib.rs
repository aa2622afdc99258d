//! The one binary and its library.
