//! The board: what people put on every node, what the demo's own watch has seen of it, and what follows.
//!
//! The demo is the only one who labels this fleet, so what it wrote and was answered for is the truth. A node is
//! *whole* when the watch has shown its present incarnation with all of it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use perennial_testkit::{company_labels, node_name};

use crate::{
    edit::{Edit, Labels},
    lives::Lives,
    replicas::{Replica, State, Work},
    web::Page,
};

/// One node of the fleet.
#[derive(Debug)]
struct Line {
    name: String,
    /// What people have put on it.
    wanted: Labels,
    /// The incarnation that the API server has answered for, unless it is deleted.
    written: Option<String>,
    /// The incarnation that the watch shows.
    seen: Option<Seen>,
    /// A return that is not whole yet, or was the last to become so.
    returned: Option<Return>,
    /// A replica was down or frozen at some time between its last deletion and its labels' return.
    through_fault: bool,
}

#[derive(Debug)]
struct Seen {
    uid: String,
    whole: Option<Instant>,
}

#[derive(Debug)]
struct Return {
    uid: String,
    /// When the API server had answered.
    at: Instant,
    measured: bool,
}

/// Something to tell.
#[derive(Debug)]
pub(crate) enum Note {
    /// What happens from now on.
    Step(String),
    /// Something that is over, and stays on the screen.
    Done(String),
    /// Something that went wrong, and stays there too.
    Failed(String),
}

/// How many nodes are how, as the watch shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// With all labels.
    pub(crate) whole: usize,
    /// There, without all labels.
    pub(crate) waiting: usize,
    /// Not there.
    pub(crate) away: usize,
}

/// Everything that is known.
#[derive(Debug)]
pub(crate) struct Board {
    lines: Vec<Line>,
    by_name: HashMap<String, usize>,
    pub(crate) seed: u64,
    pub(crate) began: Instant,
    pub(crate) lasting: Duration,
    pub(crate) round: usize,
    pub(crate) now: String,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) lives: Lives,
    pub(crate) edits: usize,
    pub(crate) deletions: usize,
    /// From the create's answer to all labels seen, where all replicas were up since the deletion.
    pub(crate) latencies: Vec<Duration>,
    /// The same where one was not, at some time since then.
    pub(crate) latencies_through_fault: Vec<Duration>,
    /// What is known of the page that the lister publishes.
    pub(crate) page: Page,
    pub(crate) notes: VecDeque<Note>,
}

impl Board {
    /// A fleet that is wanted, and of which nothing is seen yet.
    pub(crate) fn new(nodes: usize, replicas: usize, lasting: Duration, seed: u64) -> Self {
        let line = |index| Line {
            name: node_name(index),
            wanted: company_labels(index),
            written: None,
            seen: None,
            returned: None,
            through_fault: false,
        };
        let lines: Vec<Line> = (0..nodes).map(line).collect();
        let by_name = lines.iter().enumerate().map(|(index, line)| (line.name.clone(), index)).collect();
        Self {
            lines,
            by_name,
            seed,
            began: Instant::now(),
            lasting,
            round: 0,
            now: String::new(),
            replicas: (0..replicas).map(Replica::new).collect(),
            lives: Lives::default(),
            edits: 0,
            deletions: 0,
            latencies: Vec::new(),
            latencies_through_fault: Vec::new(),
            page: Page::default(),
            notes: VecDeque::new(),
        }
    }

    /// How many nodes there should be.
    pub(crate) fn nodes(&self) -> usize {
        self.lines.len()
    }

    /// How many labels there should be.
    pub(crate) fn labels(&self) -> usize {
        self.lines.iter().map(|line| line.wanted.len()).sum()
    }

    /// What should be on a node.
    pub(crate) fn wanted(&self, index: usize) -> &Labels {
        &self.lines[index].wanted
    }

    /// The watch shows a node.
    pub(crate) fn saw(&mut self, name: &str, uid: &str, labels: &Labels, at: Instant) {
        let Some(line) = self.by_name.get(name).map(|index| &mut self.lines[*index]) else { return };
        self.lives.saw(uid, labels);
        if line.seen.as_ref().is_none_or(|seen| seen.uid != uid) {
            line.seen = Some(Seen { uid: uid.to_owned(), whole: None });
        }
        if let Some(seen) = &mut line.seen
            && seen.whole.is_none()
            && line.wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        {
            seen.whole = Some(at);
        }
        self.measure(name);
    }

    /// The watch shows that a node is gone.
    pub(crate) fn saw_gone(&mut self, name: &str, uid: &str) {
        let Some(line) = self.by_name.get(name).map(|index| &mut self.lines[*index]) else { return };
        self.lives.saw_gone(uid);
        if line.seen.as_ref().is_some_and(|seen| seen.uid == uid) {
            line.seen = None;
        }
    }

    /// A complete list shows these incarnations, and no other.
    pub(crate) fn saw_only(&mut self, uids: &HashSet<String>) {
        for line in &mut self.lines {
            line.seen.take_if(|seen| !uids.contains(&seen.uid));
        }
    }

    /// The API server has created a node with all its labels.
    pub(crate) fn created(&mut self, index: usize, uid: &str) {
        self.lines[index].written = Some(uid.to_owned());
    }

    /// The API server has created a node that returns bare.
    pub(crate) fn returned(&mut self, index: usize, uid: &str, at: Instant) {
        let faults = !self.all_up();
        self.lives.returned(uid);
        let line = &mut self.lines[index];
        line.through_fault |= faults;
        line.written = Some(uid.to_owned());
        line.returned = Some(Return { uid: uid.to_owned(), at, measured: false });
        let name = line.name.clone();
        // The watch may have been quicker than the answer.
        self.measure(&name);
    }

    /// The API server has deleted a node.
    pub(crate) fn deleted(&mut self, index: usize) {
        let faults = !self.all_up();
        let line = &mut self.lines[index];
        line.written = None;
        line.through_fault = faults;
        self.deletions += 1;
    }

    /// The API server has taken an edit.
    pub(crate) fn edited(&mut self, index: usize, uid: &str, edit: &Edit) {
        self.lives.edited(uid);
        edit.apply(&mut self.lines[index].wanted);
        self.edits += 1;
    }

    /// A replica is killed, while some nodes are away and some wait for labels.
    pub(crate) fn killed(&mut self, replica: usize) {
        self.replicas[replica].killed();
        self.fault();
    }

    /// A replica is frozen, while some nodes are away and some wait for labels.
    pub(crate) fn paused(&mut self, replica: usize) {
        self.replicas[replica].paused();
        self.fault();
    }

    fn fault(&mut self) {
        for line in &mut self.lines {
            let waits = line.returned.as_ref().is_some_and(|returned| !returned.measured);
            line.through_fault |= waits || line.written.is_none();
        }
    }

    fn all_up(&self) -> bool {
        self.replicas.iter().all(|replica| replica.state == State::Up)
    }

    /// What all replicas together said that they did.
    pub(crate) fn work(&self) -> Work {
        self.replicas.iter().map(Replica::work).sum()
    }

    fn measure(&mut self, name: &str) {
        let line = &mut self.lines[self.by_name[name]];
        if let (Some(Seen { uid, whole: Some(whole) }), Some(returned)) = (&line.seen, &mut line.returned)
            && *uid == returned.uid
            && !returned.measured
        {
            returned.measured = true;
            let latency = whole.saturating_duration_since(returned.at);
            let all =
                if line.through_fault { &mut self.latencies_through_fault } else { &mut self.latencies };
            all.push(latency);
        }
    }

    /// How many nodes are how.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for line in &self.lines {
            match &line.seen {
                Some(Seen { whole: Some(_), .. }) => counts.whole += 1,
                Some(Seen { whole: None, .. }) => counts.waiting += 1,
                None => counts.away += 1,
            }
        }
        counts
    }

    /// Whether the watch has shown the present incarnation of a node with all its labels.
    pub(crate) fn is_whole(&self, index: usize) -> bool {
        let line = &self.lines[index];
        let whole = line.seen.as_ref().filter(|seen| seen.whole.is_some());
        line.written.is_some() && whole.map(|seen| &seen.uid) == line.written.as_ref()
    }

    /// How many nodes are whole in that sense.
    pub(crate) fn whole(&self) -> usize {
        (0..self.lines.len()).filter(|index| self.is_whole(*index)).count()
    }
}

/// The board, for all who write on it and look at it.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Board>>);

impl Shared {
    pub(crate) fn new(board: Board) -> Self {
        Self(Arc::new(Mutex::new(board)))
    }

    /// Never held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what happens from now on.
    pub(crate) fn now(&self, text: impl Into<String>) {
        let text = text.into();
        let mut board = self.lock();
        board.now.clone_from(&text);
        board.notes.push_back(Note::Step(text));
    }

    /// Tells something beside it: the table shows it anyway.
    pub(crate) fn aside(&self, text: String) {
        self.lock().notes.push_back(Note::Step(text));
    }

    /// Tells what is over.
    pub(crate) fn done(&self, text: String) {
        self.lock().notes.push_back(Note::Done(text));
    }

    /// Tells what went wrong.
    pub(crate) fn fail(&self, text: String) {
        self.lock().notes.push_back(Note::Failed(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> (Board, Labels) {
        let mut board = Board::new(1, 2, Duration::from_secs(1), 1);
        board.replicas.iter_mut().for_each(|replica| replica.state = State::Up);
        let labels = board.wanted(0).clone();
        (board, labels)
    }

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn latency_runs_from_the_answer_to_the_sight_of_all_labels() {
        let ((mut board, labels), start) = (board(), Instant::now());
        board.returned(0, "u2", start);
        board.saw("web-00000", "u2", &Labels::new(), after(start, 10));
        assert_eq!(board.counts(), Counts { whole: 0, waiting: 1, away: 0 });
        board.saw("web-00000", "u2", &labels, after(start, 30));
        // What comes later changes nothing.
        board.saw("web-00000", "u2", &Labels::new(), after(start, 50));
        assert_eq!(board.latencies, [Duration::from_millis(30)]);
        assert!(board.is_whole(0));
    }

    #[test]
    fn a_watch_that_is_quicker_than_the_answer_is_no_harm() {
        let ((mut board, labels), start) = (board(), Instant::now());
        board.saw("web-00000", "u2", &labels, start);
        assert!(!board.is_whole(0), "the API server has not answered for it");
        board.returned(0, "u2", after(start, 5));
        assert_eq!(board.latencies, [Duration::ZERO]);
    }

    #[test]
    fn one_life_is_not_taken_for_another() {
        let ((mut board, labels), start) = (board(), Instant::now());
        board.created(0, "u1");
        board.saw("web-00000", "u1", &labels, start);
        assert!(board.is_whole(0));
        board.deleted(0);
        assert!(!board.is_whole(0), "the watch may lag");
        board.returned(0, "u2", start);
        assert!(!board.is_whole(0), "the watch still shows the former life");
        board.saw_gone("web-00000", "u1");
        assert_eq!(board.counts().away, 1);
        board.saw("web-00000", "u2", &labels, start);
        board.saw_gone("web-00000", "u1");
        assert!(board.is_whole(0));
    }

    #[test]
    fn a_wrong_value_is_not_whole() {
        let ((mut board, mut labels), start) = (board(), Instant::now());
        labels.insert("team".to_owned(), "nobody".to_owned());
        board.saw("web-00000", "u2", &labels, start);
        assert_eq!(board.counts().waiting, 1);
    }

    #[test]
    fn whoever_is_away_or_waits_when_a_replica_is_killed_or_paused_is_counted_apart() {
        let ((mut board, labels), start) = (board(), Instant::now());
        let fault = |board: &mut Board, uid| {
            if uid == "u2" {
                board.killed(1);
            } else {
                board.paused(1);
            }
            board.replicas[1].state = State::Up;
        };
        for (uid, returned_first) in [("u2", true), ("u3", false)] {
            board.deleted(0);
            if !returned_first {
                fault(&mut board, uid);
            }
            board.returned(0, uid, start);
            if returned_first {
                fault(&mut board, uid);
            }
            board.saw("web-00000", uid, &labels, after(start, 900));
        }
        assert!(board.latencies.is_empty());
        assert_eq!(board.latencies_through_fault, [Duration::from_millis(900); 2]);
        // The next life begins anew.
        board.deleted(0);
        board.returned(0, "u4", start);
        board.saw("web-00000", "u4", &labels, after(start, 20));
        assert_eq!(board.latencies, [Duration::from_millis(20)]);
    }
}
