//! Draws a round.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Deed, Fault, Labels, Plan, Setting, Shape, Theme, Thing, Tick, Word, drill::Drill};

/// The labels that people set.
pub(crate) const KEYS: [&str; 6] =
    ["team", "pool", "example.com/tier", "example.com/rack", "example.com/incident", "canary"];
/// The annotations that people set.
pub(crate) const NOTES: [&str; 2] = ["example.com/owner", "example.com/note"];
/// The taints that people set: keys and effects.
pub(crate) const TAINTS: [(&str, &str); 3] = [
    ("example.com/dedicated", "NoSchedule"),
    ("example.com/dedicated", "PreferNoSchedule"),
    ("example.com/drain", "NoExecute"),
];
/// What rounds are about, and whether annotations, taints and cordon are kept in them.
const THEMES: [(Theme, bool); 12] = [
    (Theme::Replicas, false),
    (Theme::Wire, true),
    (Theme::Servers, false),
    (Theme::All, false),
    (Theme::Calm, false),
    (Theme::Blackout, true),
    (Theme::ControlPlane, false),
    (Theme::Wire, false),
    (Theme::Replicas, true),
    (Theme::History, false),
    (Theme::Servers, true),
    (Theme::All, true),
];
/// Clocks are wrong by at most so many hours, but for the rounds in which they are wrong by more than records are kept.
const HOURS: i64 = 12;
const FAR: i64 = 40 * 24;
/// In so many parts nodes live twice while a replica starts.
const PARTS: usize = 6;

/// The round of this number.
pub(crate) fn draw(seed: u64, round: u64, shape: Shape) -> Plan {
    let Shape { nodes, replicas, .. } = shape;
    let random = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round));
    let themes = THEMES.len() as u64;
    let place = usize::try_from(round.wrapping_sub(1) % themes).unwrap_or(0);
    let (theme, keeps_all) = THEMES[place];
    let mut fleet = Fleet { random, nodes: vec![Node::Away; nodes], values: 0 };
    let setting = setting(theme, keeps_all, replicas, &mut fleet.random);
    let first: Vec<Labels> = (0..nodes).map(|_| fleet.labels(2..=4)).collect();
    fleet.nodes.fill(Node::There);
    let mut drill = Drill::new(theme, shape, StdRng::seed_from_u64(fleet.random.random()));
    let count = fleet.random.random_range(16..=30);
    let mass = fleet.random.random_bool(0.4).then(|| fleet.random.random_range(2..count - 2));
    // Before anything else goes wrong that would excuse what it leads to.
    let overtaken = drill.overtakes().then(|| overtake(&mut drill, &mut fleet));
    let mut ticks: Vec<Tick> = overtaken.into_iter().flatten().collect();
    for tick in 0..count {
        ticks.push(Tick {
            faults: drill.next(tick, count),
            deeds: match mass {
                Some(mass) if tick == mass => fleet.all_go(),
                Some(mass) if tick == mass + 1 => fleet.all_come(),
                _ => fleet.deeds(),
            },
            after: Duration::from_millis(fleet.random.random_range(0..400)),
        });
    }
    ticks.push(Tick { deeds: fleet.release(), ..Tick::default() });
    Plan { theme, setting, fleet: first, ticks }
}

/// How replicas run in a round.
fn setting(theme: Theme, keeps_all: bool, replicas: usize, random: &mut StdRng) -> Setting {
    // In the second round about replicas a clock is wrong by more than records of nodes that are away are kept.
    let far = theme == Theme::Replicas && keeps_all;
    let mut clock = |replica: usize| match replica {
        0 => 0,
        _ if far && random.random_bool(0.5) => FAR,
        _ if far => -FAR,
        _ => random.random_range(-HOURS..=HOURS),
    };
    let bent = matches!(theme, Theme::Wire | Theme::All);
    Setting { keeps_all, protobuf: !bent, clocks: (0..replicas).map(&mut clock).collect() }
}

/// A replica dies, and is back before anybody counts it out. While it starts, nodes that were away live twice: of some of
/// them it finds the second life in its list, and knows nothing of the first one.
fn overtake(drill: &mut Drill, fleet: &mut Fleet) -> Vec<Tick> {
    let Some(replica) = drill.kill_one() else { return Vec::new() };
    let go = Tick { deeds: fleet.all_go(), ..Tick::default() };
    // Their records are closed by then.
    let after = Duration::from_secs(2);
    let die = Tick { faults: vec![Fault::Kill(replica)], after, ..Tick::default() };
    let mut ticks = vec![go, die];
    // A few at a time: nobody knows how long the replica takes to start.
    let away = fleet.turn(Node::Away, Node::There);
    for (part, nodes) in away.chunks(away.len().div_ceil(PARTS).max(1)).enumerate() {
        let faults = if part == 0 { vec![Fault::Start(replica)] } else { Vec::new() };
        let deeds = nodes.iter().map(|node| (*node, Deed::CreateTwice(fleet.labels(1..=2)))).collect();
        ticks.push(Tick { faults, deeds, ..Tick::default() });
    }
    ticks
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    There,
    Away,
    Terminating,
}

struct Fleet {
    random: StdRng,
    nodes: Vec<Node>,
    /// Every value is new, so that none is right by chance.
    values: u64,
}

impl Fleet {
    fn value(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    fn labels(&mut self, many: std::ops::RangeInclusive<usize>) -> Labels {
        let many = self.random.random_range(many);
        let keys: Vec<&str> = KEYS.choose_multiple(&mut self.random, many).copied().collect();
        keys.into_iter().map(|key| (key.to_owned(), self.value())).collect()
    }

    /// What a kubelet brings along: mostly nothing.
    fn own(&mut self) -> Labels {
        if self.random.random_bool(0.3) { self.labels(1..=2) } else { Labels::new() }
    }

    fn deeds(&mut self) -> Vec<(usize, Deed)> {
        let share = self.random.random_range(0.1..0.5);
        let chosen: Vec<usize> = (0..self.nodes.len()).filter(|_| self.random.random_bool(share)).collect();
        chosen.into_iter().map(|node| (node, self.deed(node))).collect()
    }

    /// Something to set or to remove: mostly a label.
    fn thing(&mut self) -> Thing {
        match self.random.random_range(0..100) {
            0..60 => Thing::Label(KEYS[self.random.random_range(0..KEYS.len())]),
            60..75 => Thing::Annotation(NOTES[self.random.random_range(0..NOTES.len())]),
            75..90 => {
                let (key, effect) = TAINTS[self.random.random_range(0..TAINTS.len())];
                Thing::Taint(key, effect)
            }
            _ => Thing::Cordon,
        }
    }

    fn deed(&mut self, node: usize) -> Deed {
        let thing = self.thing();
        let (deed, after) = match (self.nodes[node], self.random.random_range(0..100)) {
            (Node::Away, 0..8) => (Deed::RemoveRecord, Node::Away),
            (Node::Away, 8..18) => (Deed::CreateTwice(self.own()), Node::There),
            (Node::Away, _) => (Deed::Create(self.own()), Node::There),
            (Node::Terminating, 0..50) => (Deed::Release, Node::Away),
            (Node::Terminating, _) => (Deed::Set(thing, self.value()), Node::Terminating),
            (Node::There, 0..36) => (Deed::Set(thing, self.value()), Node::There),
            (Node::There, 36..46) => (Deed::Remove(thing), Node::There),
            (Node::There, 46..55) => (Deed::Delete, Node::Away),
            (Node::There, 55..63) => (Deed::SetAndDelete(thing, self.value()), Node::Away),
            (Node::There, 63..80) => {
                let lives = self.random.random_range(1..=3);
                (Deed::Recreate((0..lives).map(|_| self.own()).collect()), Node::There)
            }
            (Node::There, 80..83) => (Deed::Terminate, Node::Terminating),
            (Node::There, 83..86) => (Deed::RemoveRecord, Node::There),
            (Node::There, 86..88) => (Deed::DeleteAndRemoveRecord, Node::Away),
            (Node::There, 88..90) => (Deed::Say(Word::Pause), Node::There),
            (Node::There, 90..92) => (Deed::Say(Word::Resume), Node::There),
            (Node::There, 92..93) => (Deed::SayAndDelete(Word::Pause), Node::Away),
            (Node::There, 93..94) => {
                let key = KEYS[self.random.random_range(0..KEYS.len())];
                (Deed::RecreatePaused(key, self.value()), Node::There)
            }
            (Node::There, 94..95) => (Deed::Say(Word::Forget), Node::There),
            (Node::There, 95..97) => (Deed::Say(Word::Remember), Node::There),
            (Node::There, 97..98) => (Deed::SayAndDelete(Word::Forget), Node::Away),
            (Node::There, _) => (Deed::WriteBytes, Node::There),
        };
        self.nodes[node] = after;
        deed
    }

    fn all_go(&mut self) -> Vec<(usize, Deed)> {
        let there = self.turn(Node::There, Node::Away);
        there.into_iter().map(|node| (node, Deed::Delete)).collect()
    }

    fn all_come(&mut self) -> Vec<(usize, Deed)> {
        let away = self.turn(Node::Away, Node::There);
        away.into_iter().map(|node| (node, Deed::Create(self.own()))).collect()
    }

    /// Nothing is held for ever.
    fn release(&mut self) -> Vec<(usize, Deed)> {
        let held = self.turn(Node::Terminating, Node::Away);
        held.into_iter().map(|node| (node, Deed::Release)).collect()
    }

    /// Turns all nodes in one state to another. Returns which.
    fn turn(&mut self, from: Node, to: Node) -> Vec<usize> {
        let turned = self.nodes.iter_mut().enumerate().filter(|(_, state)| **state == from);
        turned.map(|(node, state)| (node, *state = to).0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { nodes: 20, replicas: 3, api_servers: 3, etcd_members: 3 };

    #[test]
    fn a_round_follows_from_seed_and_number_alone() {
        assert_eq!(draw(3, 7, SHAPE), draw(3, 7, SHAPE));
        assert_ne!(draw(3, 7, SHAPE), draw(3, 8, SHAPE));
        assert_ne!(draw(3, 7, SHAPE), draw(4, 7, SHAPE));
    }

    #[test]
    fn twelve_rounds_have_every_theme_and_nothing_goes_wrong_in_the_calm_one() {
        let rounds: Vec<Plan> = (1..=12).map(|round| draw(1, round, SHAPE)).collect();
        let mut themes: Vec<Theme> = rounds.iter().map(|plan| plan.theme).collect();
        themes.sort_unstable();
        themes.dedup();
        assert_eq!(themes.len(), 8);
        for plan in rounds {
            let faults = plan.ticks.iter().flat_map(|tick| &tick.faults).count();
            assert_eq!(faults == 0, plan.theme == Theme::Calm, "{:?}", plan.theme);
        }
    }

    #[test]
    fn twelve_rounds_have_every_deed_and_a_clock_beyond_retention() {
        let rounds: Vec<Plan> = (1..=12).map(|round| draw(1, round, SHAPE)).collect();
        let kind = |deed: &Deed| format!("{deed:?}").split(['(', '[']).next().unwrap_or_default().to_owned();
        let deeds = rounds.iter().flat_map(|plan| &plan.ticks).flat_map(|tick| &tick.deeds);
        let kinds: std::collections::BTreeSet<String> = deeds.map(|(_, deed)| kind(deed)).collect();
        assert_eq!(kinds.len(), 15, "{kinds:?}");
        assert!(rounds.iter().flat_map(|plan| &plan.setting.clocks).any(|hours| hours.abs() == FAR));
        for Plan { theme, setting, .. } in &rounds {
            assert_eq!(setting.protobuf, !matches!(theme, Theme::Wire | Theme::All), "{theme:?}");
            assert_eq!(setting.clocks.first(), Some(&0), "one is right");
        }
    }
}
