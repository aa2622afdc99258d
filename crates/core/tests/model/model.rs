//! What may happen next, and what must be true whatever happened.

use stateright::{Model, Property};

use super::apply::Reply;
use super::bounds::{Budget, Config};
use super::guards::Guard;
use super::machines::Machine;
use super::state::{BARE, Labels, NODE, Node, Replica, Server, State};
use super::truth::{Broken, Truth};
use perennial_core::keeper::born::born;
use perennial_core::keeper::{Mark, Plan, RecordSight};
use perennial_core::record::State as Phase;

/// As many reads as a replica may need before it can write.
const READS: usize = 6;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A node registers, bearing the labels of this place in the list of births, on the machine of that place; and a webhook adds
    /// these, which may be of any time.
    Create(usize, usize, Labels),
    /// A cloud controller says which machine it is.
    Tell,
    /// A person gives the node the privileged label, or takes it.
    Role(u8),
    /// A person sets a label, or removes it.
    Label(usize, u8),
    /// The node is deleted.
    Delete,
    /// A replica hears the next event of its node stream.
    HearNode(usize),
    /// A replica hears the next event of its record stream.
    HearRecord(usize),
    /// A replica decides and acts.
    Step(usize),
    /// The same, but it does not hear what came of it.
    StepUnheard(usize),
    /// A replica decides, and is paused before it acts.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    Crash(usize),
    Start(usize),
    ListNodes(usize),
    ListRecords(usize),
    /// A list that lacks what is there.
    ListNoNodes(usize),
    ListNoRecords(usize),
    Compact,
    Snapshot,
    /// Everything goes back to the snapshot.
    Restore,
    /// Nodes go back to the snapshot, the records stay.
    Move,
    /// A replica learns that versions run backwards.
    BeginAnew(usize),
    /// A replica compares its record with the present.
    Judge(usize),
    /// Every retention is over.
    Wait,
    /// A collector finds more absent records than the cap.
    OverCap(usize),
    /// A person removes the record.
    Remove,
}

impl Model for Config {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let kinds = self.replicas.iter().map(|policy| (*policy, true));
        let kinds = kinds.chain(self.joiners.iter().map(|policy| (*policy, false)));
        let replicas: Vec<Replica> = kinds.clone().map(|(policy, _)| Replica::down(policy)).collect();
        let mut state = State {
            server: Server { nodes: Vec::new(), begin: 0, made: 0, records: Vec::new() },
            replicas,
            lives: 0,
            epoch: 0,
            fork: 0,
            snapshot: None,
            late: false,
            collecting: false,
            budget: self.budget,
            truth: Truth::new(),
            broken: None,
        };
        for (at, _) in kinds.enumerate().filter(|(_, (_, up))| *up) {
            state.start(at, self.without);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        self.world_actions(state, actions);
        for at in 0..state.replicas.len() {
            self.replica_actions(state, at, actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        self.act(&mut next, action);
        next.normalise();
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("given at most once", |_, s: &State| s.broken != Some(Broken::GivenTwice)),
            Property::always("only what is missing is set", |_, s: &State| {
                s.broken != Some(Broken::Overwritten)
            }),
            Property::always("nothing is given to another machine", |_, s: &State| {
                s.broken != Some(Broken::Misgiven)
            }),
            Property::always("what another machine displaces can be undone", |_, s: &State| {
                s.broken != Some(Broken::Effaced)
            }),
            Property::always("newer wins", |_, s: &State| s.broken != Some(Broken::Older)),
            Property::always("an open record is what the node bore", |_, s: &State| {
                s.broken != Some(Broken::Untrue)
            }),
            Property::always("nothing alive is closed", |_, s: &State| s.broken != Some(Broken::ClosedAlive)),
            Property::always("nothing owed is lost", |_, s: &State| s.broken != Some(Broken::Lost)),
            Property::always("no doubt without need", |_, s: &State| s.broken != Some(Broken::Doubted)),
            Property::always("every schedule ends, and ends well", Self::ends_well),
        ]
    }
}

impl Config {
    fn births(&self, state: &State) -> &'static [Labels] {
        self.births[usize::from(state.lives > 0)]
    }

    fn machines(&self, state: &State) -> &'static [Machine] {
        self.machines[usize::from(state.lives > 0)]
    }

    /// What a node that registers with these labels may be born with: nothing, or what some replica answers.
    fn born(&self, state: &State, labels: Labels) -> Vec<Labels> {
        let mut given = vec![BARE];
        let asked = (0..state.replicas.len()).filter(|at| self.webhook && state.replicas[*at].up);
        given.extend(asked.map(|at| {
            let line = &state.replicas[at].line;
            Labels::of(&born(NODE, &labels.pairs(), None, line, &state.context(at)).labels)
        }));
        given.sort_unstable();
        given.dedup();
        given
    }

    fn world_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let Budget { steps, lives, compactions, restores, moves, late, removals, .. } = state.budget;
        match state.server.node() {
            Some(node) if steps > 0 => {
                for key in 0..self.keys {
                    let now = node.labels.0[key];
                    // What is set tells the machine that it was set on, where there are several.
                    let who = node.machine.who;
                    let next = if who == 0 { if now == 1 { 2 } else { 1 } } else { who };
                    actions.extend((now != next).then_some(Action::Label(key, next)));
                    actions.extend((now != 0).then_some(Action::Label(key, 0)));
                }
                let Machine { who, told, role } = node.machine;
                actions.extend((who != 0 && !told).then_some(Action::Tell));
                actions.extend(self.roles.then_some(Action::Role(if role == 0 { who } else { 0 })));
                actions.push(Action::Delete);
            }
            None if steps > 0 && lives > 0 => {
                let machines = 0..self.machines(state).len();
                let births = 0..self.births(state).len();
                for (birth, on) in births.flat_map(|birth| machines.clone().map(move |on| (birth, on))) {
                    let given = self.born(state, self.births(state)[birth]);
                    actions.extend(given.into_iter().map(|given| Action::Create(birth, on, given)));
                }
            }
            _ => {}
        }
        let head = state.server.node_head();
        if compactions > 0 && state.server.begin < head {
            actions.push(Action::Compact);
        }
        if restores + moves > 0 && state.snapshot.is_none() && head > 0 {
            actions.push(Action::Snapshot);
        }
        if state.snapshot.is_some() && restores > 0 {
            actions.push(Action::Restore);
        }
        if state.snapshot.is_some() && moves > 0 {
            actions.push(Action::Move);
        }
        // Nobody lags, is paused or leaves something undone for longer than a retention.
        let resting = || state.is_heard() && (0..state.replicas.len()).all(|at| !self.is_busy(state, at));
        if late > 0 && state.server.record().is_some() && resting() {
            actions.push(Action::Wait);
        }
        if removals > 0 && state.server.record().is_some() {
            actions.push(Action::Remove);
        }
    }

    fn replica_actions(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let Budget { crashes, lost, pauses, relists, blanks, over_cap, .. } = state.budget;
        let replica = &state.replicas[at];
        if !replica.up {
            actions.push(Action::Start(at));
            return;
        }
        if crashes > 0 {
            actions.push(Action::Crash(at));
        }
        if let Some(plan) = &replica.plan {
            if state.is_turn(at, &plan.0, plan.1, self.without) {
                actions.push(Action::Resume(at));
            }
        } else if !replica.held {
            let (plan, basis) = state.plan(at, self.without);
            if !matches!(plan, Plan::Rest(_) | Plan::Wait { .. })
                && state.is_turn(at, &plan, basis, self.without)
            {
                actions.push(Action::Step(at));
                if lost > 0 {
                    actions.push(Action::StepUnheard(at));
                }
                if pauses > 0 {
                    actions.push(Action::Pause(at));
                }
            }
        }
        if replica.epoch != state.epoch {
            actions.push(Action::BeginAnew(at));
            return;
        }
        if state.is_elsewhere(at) && self.without != Some(Guard::Histories) {
            actions.push(Action::Judge(at));
        }
        if replica.nodes < state.server.node_head() {
            actions.push(Action::HearNode(at));
            if relists > 0 {
                actions.push(Action::ListNodes(at));
            }
        }
        if replica.records < state.server.record_head() {
            actions.push(Action::HearRecord(at));
            if relists > 0 {
                actions.push(Action::ListRecords(at));
            }
        }
        if blanks > 0 && state.server.node().is_some() {
            actions.push(Action::ListNoNodes(at));
        }
        if blanks > 0 && state.server.record().is_some() {
            actions.push(Action::ListNoRecords(at));
        }
        let closed = |phase| phase == Phase::Closed;
        let record = replica.line.seen().and_then(perennial_core::keeper::Seen::summary);
        // Only the oldest are beyond the cap: everybody has heard of those.
        let found = over_cap > 0 && !replica.line.over_cap && state.is_heard();
        if found && record.is_some_and(|record| closed(record.state)) {
            actions.push(Action::OverCap(at));
        }
    }

    /// Lets it happen.
    pub(crate) fn act(&self, state: &mut State, action: Action) {
        let without = self.without;
        match action {
            Action::Create(birth, on, given) => {
                state.budget.steps -= 1;
                state.budget.lives -= 1;
                let (labels, machine) = (self.births(state)[birth], self.machines(state)[on]);
                state.lives += 1;
                let born = labels.lacks(given);
                let labels = labels.over(given);
                let node = Node { life: state.lives, labels, born, mark: Mark::None, machine };
                state.server.nodes.push(Some(node));
            }
            // Not in this model: who changes it and changes it back, before anybody looked.
            Action::Label(key, value) => state.change(|node| {
                node.labels.0[key] = value;
                node.born.0[key] = 0;
            }),
            Action::Role(value) => state.change(|node| node.machine.role = value),
            Action::Tell => state.change(|node| node.machine.told = true),
            Action::Delete => {
                state.budget.steps -= 1;
                state.server.nodes.push(None);
            }
            Action::HearNode(at) => state.hear_node(at, without),
            Action::HearRecord(at) => state.hear_record(at, without),
            Action::Step(at) => self.step(state, at, Reply::Heard),
            Action::StepUnheard(at) => {
                state.budget.lost -= 1;
                self.step(state, at, Reply::Lost);
            }
            Action::Pause(at) => {
                state.budget.pauses -= 1;
                state.replicas[at].plan = Some(Box::new(state.plan(at, without)));
            }
            Action::Resume(at) => {
                let (plan, basis) = *state.replicas[at].plan.take().expect("it was paused");
                state.carry_out(at, plan, basis, Reply::Heard, without);
            }
            Action::Crash(at) => {
                state.budget.crashes -= 1;
                state.truth.forget_late();
                state.replicas[at] = Replica::down(state.replicas[at].policy);
            }
            Action::Start(at) | Action::BeginAnew(at) => state.start(at, without),
            Action::ListNodes(at) => {
                state.budget.relists -= 1;
                state.list_nodes(at, false, without);
            }
            Action::ListRecords(at) => {
                state.budget.relists -= 1;
                state.list_records(at, false, without);
            }
            Action::ListNoNodes(at) => {
                state.budget.blanks -= 1;
                state.list_nodes(at, true, without);
            }
            Action::ListNoRecords(at) => {
                state.budget.blanks -= 1;
                state.list_records(at, true, without);
            }
            Action::Compact => {
                state.budget.compactions -= 1;
                state.server.begin = state.server.node_head();
            }
            Action::Snapshot => state.snapshot = Some(Box::new((state.server.clone(), state.truth.clone()))),
            Action::Restore => {
                state.budget.restores -= 1;
                state.restore(true);
            }
            Action::Move => {
                state.budget.moves -= 1;
                state.restore(false);
            }
            Action::Judge(at) => state.judge_history(at),
            Action::Wait => {
                state.budget.late -= 1;
                (state.late, state.collecting) = (true, true);
                for at in 0..state.replicas.len() {
                    state.look(at);
                }
            }
            Action::OverCap(at) => {
                state.budget.over_cap -= 1;
                state.collecting = true;
                state.replicas[at].line.over_cap = true;
            }
            Action::Remove => {
                state.budget.removals -= 1;
                state.judge_removal();
                state.server.remove_record();
            }
        }
    }

    /// Decides and acts: reads whatever it needs, and writes. What may come in between is a pause.
    fn step(&self, state: &mut State, at: usize, reply: Reply) {
        for _ in 0..READS {
            let (plan, basis) = state.plan(at, self.without);
            let read =
                matches!(plan, Plan::ReadNode | Plan::ReadRecord | Plan::Prove { .. } | Plan::ReadEnd { .. });
            if state.is_turn(at, &plan, basis, self.without) {
                state.carry_out(at, plan, basis, reply, self.without);
            }
            if !read || state.replicas[at].held {
                return;
            }
        }
    }

    /// Everybody hears and does everything, and then nobody has anything to do: is that where it belongs?
    fn ends_well(&self, state: &State) -> bool {
        match state.broken {
            Some(how) => !matches!(how, Broken::Restless | Broken::Unsettled),
            None if state.is_heard() => self.settled(state).is_none(),
            None => true,
        }
    }

    /// What is wrong once everything was heard and done, from here on: by those who are up, and by all.
    pub(crate) fn settled(&self, state: &State) -> Option<Broken> {
        let left = state.replicas.iter().filter(|replica| replica.up).count();
        let without_the_dead = 0 < left && left < state.replicas.len();
        let broken = if without_the_dead { self.settled_by(state, false) } else { None };
        broken.or_else(|| self.settled_by(state, true))
    }

    fn settled_by(&self, state: &State, starts: bool) -> Option<Broken> {
        let mut state = state.clone();
        for _ in 0..80 {
            let mut actions = Vec::new();
            for at in 0..state.replicas.len() {
                self.replica_actions(&state, at, &mut actions);
            }
            actions.retain(|action| ordinary(*action) && (starts || !matches!(action, Action::Start(_))));
            let Some(next) = actions.into_iter().next() else {
                let stuck = (0..state.replicas.len()).any(|at| self.is_busy(&state, at));
                return if stuck { Some(Broken::Restless) } else { state.judge_rest() };
            };
            self.act(&mut state, next);
            if state.broken.is_some() {
                return state.broken;
            }
        }
        Some(Broken::Restless)
    }

    fn is_busy(&self, state: &State, at: usize) -> bool {
        let replica = &state.replicas[at];
        let waits = matches!(replica.line.record, RecordSight::Unlisted);
        replica.up && (waits || !matches!(state.plan(at, self.without).0, Plan::Rest(_)))
    }
}

/// What happens by itself, without anything going wrong.
fn ordinary(action: Action) -> bool {
    matches!(
        action,
        Action::Start(_)
            | Action::BeginAnew(_)
            | Action::Judge(_)
            | Action::HearNode(_)
            | Action::HearRecord(_)
            | Action::Resume(_)
            | Action::Step(_)
    )
}

impl State {
    /// Somebody changes the living node.
    fn change(&mut self, how: impl FnOnce(&mut Node)) {
        self.budget.steps -= 1;
        let mut node = self.server.node().expect("it lives");
        how(&mut node);
        self.server.nodes.push(Some(node));
    }

    /// Whether everybody who is there has heard everything, and nobody is paused.
    fn is_heard(&self) -> bool {
        let (nodes, records) = (self.server.node_head(), self.server.record_head());
        self.replicas.iter().filter(|replica| replica.up).all(|replica| {
            let heard = replica.nodes == nodes && replica.records == records && replica.epoch == self.epoch;
            heard && replica.plan.is_none()
        })
    }

    /// Goes back to the snapshot. No version of a record is ever used twice, nor one of a node by somebody who
    /// does not know: that two histories meet in one by chance is not in this model.
    fn restore(&mut self, records_too: bool) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let (server, truth) = *snapshot;
        self.epoch += 1;
        self.fork = server.node_head();
        if !records_too {
            return self.move_nodes(server);
        }
        let version = self.server.record_head() + 1;
        let present = server.records.last().cloned();
        let made = self.server.made;
        self.server = Server { made, ..server };
        if self.server.record_head() + 1 != version {
            self.server.records = present.into_iter().map(|(_, stored)| (version, stored)).collect();
        }
        self.truth = truth;
    }
}
