//! Every life of every node as the demo's own watch shows it, to tell whether labels were given more than once.
//!
//! Labels change by people, and the demo knows each of their edits, or by a replica: once in a life that began
//! bare, never in another. A second restore, or an old value that is put back over a newer one, is one change too many.

use std::collections::HashMap;

use crate::edit::Labels;

#[derive(Debug, Default)]
struct Life {
    /// The labels that were seen last, while it lives.
    labels: Option<Labels>,
    /// How often they were seen to change.
    changes: usize,
    /// How many of these were people's doing.
    edits: usize,
    /// It began bare.
    returned: bool,
}

impl Life {
    /// How often a replica changed its labels. Edits that the watch has not shown yet make it too few, never too many.
    fn given(&self) -> usize {
        self.changes.saturating_sub(self.edits)
    }
}

/// All lives, by uid.
#[derive(Debug, Default)]
pub(crate) struct Lives(HashMap<String, Life>);

impl Lives {
    /// The watch shows a version of it.
    pub(crate) fn saw(&mut self, uid: &str, labels: &Labels) {
        let life = self.life(uid);
        let before = life.labels.replace(labels.clone());
        life.changes += usize::from(before.is_some_and(|before| before != *labels));
    }

    /// The watch shows its end.
    pub(crate) fn saw_gone(&mut self, uid: &str) {
        self.life(uid).labels = None;
    }

    /// It began bare.
    pub(crate) fn returned(&mut self, uid: &str) {
        self.life(uid).returned = true;
    }

    /// Somebody changed a label.
    pub(crate) fn edited(&mut self, uid: &str) {
        self.life(uid).edits += 1;
    }

    /// How many lives got labels back.
    pub(crate) fn given(&self) -> usize {
        self.0.values().filter(|life| life.given() > 0).count()
    }

    /// How many lives got labels more often than they may. Exact when every edit was answered.
    pub(crate) fn given_again(&self) -> usize {
        self.0.values().filter(|life| life.given() > usize::from(life.returned)).count()
    }

    fn life(&mut self, uid: &str) -> &mut Life {
        self.0.entry(uid.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(team: &str) -> Labels {
        [("team".to_owned(), team.to_owned())].into()
    }

    #[test]
    fn a_return_is_given_labels_once_and_people_may_change_them() {
        let mut lives = Lives::default();
        lives.returned("u1");
        for seen in [Labels::new(), Labels::new(), labels("search"), labels("payments"), labels("payments")] {
            lives.saw("u1", &seen);
        }
        lives.edited("u1");
        lives.saw_gone("u1");
        assert_eq!((lives.given(), lives.given_again()), (1, 0));
    }

    #[test]
    fn an_old_value_put_back_is_one_change_too_many() {
        let mut lives = Lives::default();
        lives.returned("u1");
        lives.edited("u1");
        for seen in [Labels::new(), labels("search"), labels("payments"), labels("search")] {
            lives.saw("u1", &seen);
        }
        assert_eq!(lives.given_again(), 1);
    }

    #[test]
    fn a_life_that_began_whole_is_given_nothing() {
        let mut lives = Lives::default();
        lives.saw("u1", &labels("search"));
        assert_eq!((lives.given(), lives.given_again()), (0, 0));
        lives.saw("u1", &labels("payments"));
        assert_eq!(lives.given_again(), 1);
    }
}
