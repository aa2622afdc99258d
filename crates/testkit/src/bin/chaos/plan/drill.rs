//! Draws what goes wrong, and knows in what state it left the replicas.

use std::time::Duration;

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Fault, Shape, Theme, Wire, servers::Servers};

/// So many replicas join beyond those that were there at first.
const MOST_JOIN: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Paused,
    Down,
}

pub(super) struct Drill {
    theme: Theme,
    random: StdRng,
    replicas: Vec<State>,
    first: usize,
    bent: Vec<bool>,
    servers: Servers,
    snapshot: Option<usize>,
    restored: bool,
}

impl Drill {
    pub(super) fn new(theme: Theme, shape: Shape, random: StdRng) -> Self {
        let Shape { replicas, .. } = shape;
        let bent = vec![false; replicas + MOST_JOIN];
        Self {
            theme,
            random,
            replicas: vec![State::Up; replicas],
            first: replicas,
            bent,
            servers: Servers::new(shape),
            snapshot: None,
            restored: false,
        }
    }

    /// What goes wrong at this tick of so many.
    pub(super) fn next(&mut self, tick: usize, of: usize) -> Vec<Fault> {
        match self.theme {
            Theme::Calm => Vec::new(),
            Theme::Blackout if tick == of / 4 => self.all_down(),
            Theme::Blackout if tick == of / 2 => self.all_up(),
            Theme::Blackout if tick > of / 4 && tick < of / 2 => Vec::new(),
            Theme::History if tick == 2 => {
                self.snapshot = Some(tick);
                vec![Fault::Snapshot]
            }
            Theme::History if tick == of - 4 => self.restore(),
            Theme::All if tick == of / 2 && self.random.random_bool(0.2) => self.all_down(),
            // The first one always happens, so that no round of a theme is calm by chance.
            _ if tick == 3 || self.random.random_bool(0.55) => {
                let many = if self.random.random_bool(0.3) { 2 } else { 1 };
                (0..many).map(|_| self.one()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a replica that was killed comes back in time to overtake the others.
    pub(super) fn overtakes(&mut self) -> bool {
        matches!(self.theme, Theme::Replicas | Theme::All) && self.random.random_bool(0.5)
    }

    /// A replica that is up, and that will be again. Not the last one.
    pub(super) fn kill_one(&mut self) -> Option<usize> {
        let up = |(replica, state): (usize, &State)| (*state == State::Up).then_some(replica);
        let up: Vec<usize> = self.replicas.iter().enumerate().filter_map(up).collect();
        if up.len() > 1 { up.choose(&mut self.random).copied() } else { None }
    }

    fn one(&mut self) -> Fault {
        let (wire, plane, servers, compact) = match self.theme {
            Theme::Calm | Theme::Replicas | Theme::Blackout => (0, 0, 0, 0),
            Theme::ControlPlane => (0, 75, 0, 0),
            Theme::Servers => (0, 0, 75, 0),
            Theme::Wire => (80, 0, 0, 0),
            Theme::History => (0, 0, 0, 30),
            Theme::All => (35, 10, 15, 8),
        };
        match self.random.random_range(0..100) {
            roll if roll < wire => self.wire(),
            roll if roll < wire + plane => self.control_plane(),
            roll if roll < wire + plane + servers => {
                self.servers.next(&mut self.random).unwrap_or_else(|| self.control_plane())
            }
            roll if roll < wire + plane + servers + compact => Fault::Compact,
            _ => self.replica(),
        }
    }

    fn all_down(&mut self) -> Vec<Fault> {
        let up = |(replica, state): (usize, &State)| match state {
            State::Up => Some(Fault::Kill(replica)),
            State::Paused | State::Down => None,
        };
        let faults = self.replicas.iter().enumerate().filter_map(up).collect();
        for state in self.replicas.iter_mut().filter(|state| **state == State::Up) {
            *state = State::Down;
        }
        faults
    }

    fn all_up(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (replica, state) in self.replicas.iter_mut().enumerate() {
            match state {
                State::Up => {}
                State::Paused => faults.push(Fault::Resume(replica)),
                State::Down => faults.push(Fault::Start(replica)),
            }
            *state = State::Up;
        }
        faults
    }

    /// Nobody may sleep through it: one who does cannot know that versions ran backwards.
    fn restore(&mut self) -> Vec<Fault> {
        if self.snapshot.is_none() || self.restored {
            return Vec::new();
        }
        self.restored = true;
        let mut faults = self.all_up();
        faults.push(Fault::Restore);
        faults
    }

    fn replica(&mut self) -> Fault {
        let replica = self.random.random_range(0..self.replicas.len());
        let joined = self.replicas.len() - self.first;
        let (fault, state) = match (self.replicas[replica], self.random.random_range(0..100)) {
            (_, 0..8) if joined < MOST_JOIN => {
                self.replicas.push(State::Up);
                return Fault::Join;
            }
            (_, 8..14) if self.replicas.last() == Some(&State::Up) && joined > 0 => {
                self.replicas.pop();
                return Fault::Leave;
            }
            (State::Up, 14..45) | (State::Paused, 14..30) => (Fault::Kill(replica), State::Down),
            (State::Up, 45..60) => (Fault::Stop(replica), State::Down),
            (State::Up, _) => (Fault::Pause(replica), State::Paused),
            (State::Paused, _) => (Fault::Resume(replica), State::Up),
            (State::Down, _) => (Fault::Start(replica), State::Up),
        };
        self.replicas[replica] = state;
        fault
    }

    fn control_plane(&mut self) -> Fault {
        let while_ = Duration::from_millis(self.random.random_range(100..1_500));
        match self.random.random_range(0..100) {
            0..20 => Fault::RestartApi,
            20..40 => Fault::KillApi(while_),
            40..60 => Fault::FreezeApi(while_),
            60..75 => Fault::KillEtcd(while_),
            75..87 => Fault::FillEtcd(while_),
            _ => Fault::FreezeEtcd(while_),
        }
    }

    fn wire(&mut self) -> Fault {
        let replica = self.random.random_range(0..self.replicas.len());
        if self.bent[replica] && self.random.random_bool(0.5) {
            self.bent[replica] = false;
            return Fault::Lift(replica);
        }
        self.bent[replica] = true;
        let late = Duration::from_millis(self.random.random_range(100..3_000));
        let all = [
            Wire::LagNodes(late),
            Wire::LagRecords(late),
            Wire::HoldNodes,
            Wire::HoldRecords,
            Wire::Drop,
            Wire::Duplicate,
            Wire::Swap,
            Wire::CutStreams,
            Wire::Partition,
            Wire::PartitionNodes,
            Wire::PartitionMembers,
            Wire::HoldMembers,
            Wire::Expire,
            Wire::LoseReplies,
            Wire::Refuse(409),
            Wire::Refuse(429),
            Wire::Refuse(500),
            Wire::Refuse(503),
            Wire::Throttle,
            Wire::DelayWrites(late),
            Wire::HangWrites,
            Wire::StaleLists,
            Wire::EmptyLists,
            Wire::ThinLists,
            Wire::BreakLists,
            Wire::Dribble,
        ];
        let wire = *all.choose(&mut self.random).unwrap_or(&Wire::CutStreams);
        Fault::Wire(replica, wire)
    }
}
