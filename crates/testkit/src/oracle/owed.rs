//! What is owed to a node, worked out from its lives alone.
//!
//! A life that bore its mark, or to which nothing was owed, has the last word about itself. One that died before it
//! got its own back is laid over what was owed to it. A life that must count counts in every account; one that may
//! have been missed (the design's one exception, or history that is gone) counts in some and not in others. So what
//! is owed is a set of accounts, mostly of one.

use std::collections::BTreeSet;

use perennial_core::kept::Pairs;

use super::{life::Pool, timeline::pairs};

/// Beyond so many accounts hardly one is wrong any more.
const MOST: usize = 512;

/// A life that is over.
#[derive(Clone, Debug)]
pub(super) struct Ended<'a> {
    /// What was kept of it at the last.
    pub(super) kept: &'a Pairs,
    /// It bore its mark.
    pub(super) marked: bool,
    /// It need not count.
    pub(super) excused: Option<Excuse<'a>>,
}

/// How a life may fail to count.
#[derive(Clone, Debug)]
pub(super) enum Excuse<'a> {
    /// No record ever named it: it may be missed.
    Unnamed,
    /// Its end is gone from history: what was recorded of it counts instead.
    Unproved(&'a Pairs),
}

/// What is owed: one of some accounts, and beneath it any part of what may or may not be remembered.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub(super) accounts: BTreeSet<Pairs>,
    pub(super) pool: Pool,
}

impl Owed {
    /// Whether this is what is owed.
    pub(super) fn contains(&self, content: &Pairs) -> bool {
        if self.pool.is_empty() {
            return self.accounts.contains(content);
        }
        let loose = |key: &String, value: &String| self.pool.contains(&(key.clone(), value.clone()));
        self.accounts.iter().any(|account| {
            account.iter().all(|(key, value)| content.get(key) == Some(value))
                && content.iter().all(|(key, value)| account.contains_key(key) || loose(key, value))
        })
    }

    /// The accounts, as a person reads them.
    pub(super) fn text(&self) -> String {
        let all: Vec<String> = self.accounts.iter().map(pairs).collect();
        let beneath = if self.pool.is_empty() {
            String::new()
        } else {
            format!(" over any of {}", pairs(&self.pool.iter().cloned().collect()))
        };
        all.join(" or ") + &beneath
    }
}

/// Every account of what is owed. `None` if there are too many to tell.
pub(super) fn accounts<'a>(
    before: &Pairs,
    lives: impl IntoIterator<Item = Ended<'a>>,
) -> Option<BTreeSet<Pairs>> {
    let mut all = BTreeSet::from([before.clone()]);
    for Ended { kept, marked, excused } in lives {
        let mut next: BTreeSet<Pairs> =
            all.iter().map(|owed| if marked { kept.clone() } else { laid_over(kept, owed) }).collect();
        match excused {
            None => {}
            Some(Excuse::Unnamed) => next.extend(all),
            Some(Excuse::Unproved(recorded)) => {
                next.insert(recorded.clone());
            }
        }
        all = next;
        if all.len() > MOST {
            return None;
        }
    }
    Some(all)
}

/// What a node that bears `onto` would bear after `owed` was restored to it.
fn laid_over(onto: &Pairs, owed: &Pairs) -> Pairs {
    let mut all = owed.clone();
    all.extend(onto.iter().map(|(key, value)| (key.clone(), value.clone())));
    all
}
