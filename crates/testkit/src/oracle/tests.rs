//! Hand-made histories: good ones that must pass, and one for each way to break a promise.

mod breaches;
mod excuses;
mod histories;
mod kinds;
mod lives;
mod people;
mod script;
