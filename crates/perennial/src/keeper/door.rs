//! Who comes and who goes: what the API server asks before a Node is created or deleted.
//!
//! ```text
//! webhook ── comes ──> the task that owns the ledger ── what it is born with ──> webhook
//!         ── goes  ──>            the same            ── it is recorded ──────> webhook
//! ```
//! Nothing is read from the API server, or written, here to answer. Whoever has to wait, waits for what the watches tell and the
//! keepers do anyway.

use perennial_core::admission::Comer;
use perennial_core::keeper::Hand;
use perennial_core::keeper::born::Birth;
use tokio::sync::{mpsc, oneshot};

use super::Keeper;
use super::hatch::Hatch;
use super::ledger::{Ledger, Name};
use super::object::NodeObject;

/// How many questions may be on their way.
const WAITING: usize = 256;
/// How many may wait for something to happen.
const AT_THE_DOOR: usize = 1024;

/// A question at the door.
#[derive(Debug)]
pub(crate) enum Question {
    /// What is it born with?
    Comes { comer: Comer, to: oneshot::Sender<Birth> },
    /// May it go: is it recorded?
    Goes { node: Box<NodeObject>, to: oneshot::Sender<()> },
}

/// The door. Clones are the same.
#[derive(Clone, Debug)]
pub struct Door(Hatch<Question>);

impl Default for Door {
    fn default() -> Self {
        Self(Hatch::new(WAITING))
    }
}

impl Door {
    /// The questions, for the one who answers them.
    pub(crate) fn questions(&self) -> Option<mpsc::Receiver<Question>> {
        self.0.questions()
    }

    /// What a Node is born with, and whether behind a gate (`owed`). While one of its name is there, as far as is known here, this waits for its end.
    /// `None` where nobody can tell.
    pub(crate) async fn comes(&self, comer: Comer) -> Option<Birth> {
        self.0.ask(|to| Question::Comes { comer, to }).await
    }

    /// Waits until what is kept of a Node is recorded as it is now, or nothing of it is. `None` where nobody can tell.
    pub(crate) async fn goes(&self, node: NodeObject) -> Option<()> {
        self.0.ask(|to| Question::Goes { node: Box::new(node), to }).await
    }
}

/// Those who wait for something to happen.
#[derive(Debug, Default)]
pub(super) struct AtTheDoor {
    comers: Vec<(Comer, oneshot::Sender<Birth>)>,
    goers: Vec<(Name, oneshot::Sender<()>)>,
}

impl Keeper {
    pub(super) fn at_the_door(&mut self, question: Question) {
        // Whoever does not know everything yet cannot tell.
        if !self.synced {
            return;
        }
        match question {
            Question::Comes { comer, to } => self.comes(comer, to),
            Question::Goes { node, to } => self.goes(*node, to),
        }
    }

    fn comes(&mut self, comer: Comer, to: oneshot::Sender<Birth>) {
        let hand = Hand::read(&comer.annotations);
        if self.config.dry_run || hand.pause == Some(true) || hand.forget {
            // Whoever asked may have given up.
            to.send(Birth::default()).ok();
            return;
        }
        if self.ledger.lives(&comer.name) {
            let comers = &mut self.door.comers;
            comers.retain(|(_, to)| !to.is_closed());
            if comers.len() < AT_THE_DOOR {
                comers.push((comer, to));
            }
            return;
        }
        let view = Self::view(&self.config, &self.policy, &self.roster, self.now());
        let birth = self.ledger.born(&comer, &view.cx);
        // Nothing is owed to it that a gate would wait for, where there is none.
        let owed = birth.owed && self.config.gate.is_some() && !comer.is_control_plane();
        to.send(Birth { owed, ..birth }).ok();
    }

    /// A node left: whoever comes under its name is answered.
    pub(super) fn left(&mut self, name: &str) {
        let comers = &mut self.door.comers;
        for (comer, to) in comers.extract_if(.., |(comer, _)| comer.name == name).collect::<Vec<_>>() {
            self.comes(comer, to);
        }
    }

    fn goes(&mut self, node: NodeObject, to: oneshot::Sender<()>) {
        let name: Name = node.metadata.name.as_str().into();
        if self.config.dry_run || !self.config.capture {
            to.send(()).ok();
            return;
        }
        let now = self.now();
        if !self.ledger.node_read(&name, node, &self.config.installation, &self.policy, now) {
            // The watch is behind, by a whole life: it is about to tell.
            return;
        }
        self.door.goers.retain(|(_, to)| !to.is_closed());
        if self.door.goers.len() < AT_THE_DOOR {
            self.door.goers.push((name.clone(), to));
        }
        self.look(&name);
    }

    /// A line was looked at: whoever waits for its record is answered once it is there.
    pub(super) fn looked(&mut self, name: &str) {
        if self.door.goers.is_empty() || !self.ledger.is_recorded(name) {
            return;
        }
        for (_, to) in self.door.goers.extract_if(.., |(goer, _)| **goer == *name) {
            to.send(()).ok();
        }
    }
}

impl Ledger {
    /// Whether a node of this name is there, as far as is known.
    fn lives(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.line.live().is_some())
    }
}
