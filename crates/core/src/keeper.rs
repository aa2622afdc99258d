//! The keeper's rules: a ledger [`Line`] goes in, a [`Plan`] comes out.
//!
//! `observe` folds what the watches say into lines, [`decide()`] says what has to be done about one, `apply`
//! does it and folds what came of it. Nothing is remembered elsewhere, so a plan may be dropped, repeated or
//! carried out by somebody else at any point.
//!
//! | node | record | plan |
//! | --- | --- | --- |
//! | seen at a version not greater than the record's (within one uid: older, unless it is closed) | any | [`Plan::Rest`]: this replica lags |
//! | live U | none, no ends held | [`Plan::Save`] open(U); nothing kept: `Rest` |
//! | live U | open(U), same kept | `Rest` |
//! | live U | open(U), other kept | `Save`: the node is the authority while it lives |
//! | live U, without its mark | closed(V), V ≠ U | [`Plan::Give`]: record to giving(U) |
//! | live U, without its mark | giving(U) | [`Plan::Patch`]: add what is missing, and the mark; what it was [born](born::born) with counts as missing, and is taken back where it is not remembered |
//! | live U, with its mark | giving(U) | it is open: `Save` if kept differs, otherwise after a few seconds |
//! | live U2 | open(U1) or giving(U1) | end of U1 held: `Give` giving(U2) with it; not held: [`Plan::Prove`], then the same |
//! | live U without its mark | none or open(U), older ends held | `Give` giving(U) with the older ends alone |
//! | absent | open(U) or giving(U) | end held: [`Plan::Close`], after some seconds or when awaited; not held: read directly, `Prove`, `Close` |
//! | absent | none or closed(U1), a newer end held | `Close` with it, merged where it bore no mark |
//! | terminating | open(U), giving(U) with the mark, or none | `Save`; in any other state `Rest` until its end, but an end before it is looked for at once (`Prove`) |
//! | has waiting keys | any | they stay in `waiting` until identity matches: `Patch`; another machine: dropped, told |
//! | any, and an end is held whose machine matters and was not read | any | [`Plan::ReadEnd`] before it is closed, given or displaced |
//! | another machine, `identity: provider` | any | nothing is given; `Save` open anew, the old state into `previous` |
//! | live U3, or absent | open(U1) or giving(U1), its end past history, and later ends are held | `Close` `unproved` without them first; they are merged in the next step, and the record says what they bore |
//! | any | closed `unproved`, or giving made from it without a mark, and the real end is held | `Close` / `Give` again with it, beneath the lives that were merged over it |
//! | absent longer than the retention, or beyond the cap | closed | [`Plan::Erase`], after a direct read |
//! | absent; somebody else removed the record | none | ends from before that are dropped, `Rest`; later ones are held, and all that came after a record that was due for collection |
//! | live U, last seen before the record was removed | none, or of an earlier life | [`Plan::ReadNode`]: it may have been gone by then |
//! | any | created by this replica, which did not know of an earlier removal | `Close` with nothing in it, unless the life that it names survived that removal |
//! | any | of a newer schema | `Rest`: never written, never given |
//! | any | unreadable | [`Plan::SetAside`]; then alive and of this uid: `Save` over it; that uid's end is held: `Close` with it; otherwise `Rest` |
//! | any | of another policy, in a rollout | what this one has no say in stays, as the node bears it, and is given, unless `narrow: now` |
//! | paused | any | `Rest`, once the end of the life before is recorded |
//! | to be forgotten | any | `Erase` |

mod beside;
pub mod born;
pub mod compare;
mod decide;
mod fold;
mod identity;
pub mod line;
pub mod mark;
pub mod plan;
pub mod prove;
pub mod undo;
mod write;

pub use decide::{Context, decide, expired};
pub use line::{Body, Created, End, Kin, Line, Live, Provider, RecordSight, Removal, Seen, Sight, YOUTH};
pub use mark::{Hand, Mark};
pub use plan::{Erasure, Notice, Patch, Plan, Why, Write};
pub use prove::{Answer, Proof, Verdict};

#[cfg(test)]
mod tests;
