//! The rules of the keeper, written from DESIGN.md: each row of its table, then what must hold for any line.

mod absent;
mod born;
mod case;
mod clocks;
mod dsl;
mod hand;
mod histories;
mod identity;
mod lines;
mod live;
mod policies;
mod properties;
mod restore;
mod seals;
mod totality;
mod unread;
mod world;
