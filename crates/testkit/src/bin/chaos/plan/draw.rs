//! Draws a round.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

use super::{Deed, Labels, Plan, Shape, Theme, Tick, drill::Drill};

/// The labels that people set.
pub(crate) const KEYS: [&str; 6] =
    ["team", "pool", "example.com/tier", "example.com/rack", "example.com/incident", "canary"];
const THEMES: [Theme; 12] = [
    Theme::Replicas,
    Theme::Wire,
    Theme::Servers,
    Theme::All,
    Theme::Calm,
    Theme::Blackout,
    Theme::ControlPlane,
    Theme::Wire,
    Theme::Replicas,
    Theme::History,
    Theme::Servers,
    Theme::All,
];

/// The round of this number.
pub(crate) fn draw(seed: u64, round: u64, shape: Shape) -> Plan {
    let Shape { nodes, .. } = shape;
    let random = StdRng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(round));
    let theme = THEMES[usize::try_from(round.wrapping_sub(1)).unwrap_or(0) % THEMES.len()];
    let mut fleet = Fleet { random, nodes: vec![Node::Away; nodes], values: 0 };
    let first: Vec<Labels> = (0..nodes).map(|_| fleet.labels(2..=4)).collect();
    fleet.nodes.fill(Node::There);
    let mut drill = Drill::new(theme, shape, StdRng::seed_from_u64(fleet.random.random()));
    let count = fleet.random.random_range(16..=30);
    let mass = fleet.random.random_bool(0.4).then(|| fleet.random.random_range(2..count - 2));
    let mut ticks: Vec<Tick> = (0..count)
        .map(|tick| Tick {
            faults: drill.next(tick, count),
            deeds: match mass {
                Some(mass) if tick == mass => fleet.all_go(),
                Some(mass) if tick == mass + 1 => fleet.all_come(),
                _ => fleet.deeds(),
            },
            after: Duration::from_millis(fleet.random.random_range(0..400)),
        })
        .collect();
    ticks.push(Tick { deeds: fleet.release(), ..Tick::default() });
    Plan { theme, fleet: first, ticks }
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

    fn deed(&mut self, node: usize) -> Deed {
        let key = KEYS[self.random.random_range(0..KEYS.len())];
        let (deed, after) = match (self.nodes[node], self.random.random_range(0..100)) {
            (Node::Away, _) => (Deed::Create(self.own()), Node::There),
            (Node::Terminating, 0..50) => (Deed::Release, Node::Away),
            (Node::Terminating, _) => (Deed::Set(key, self.value()), Node::Terminating),
            (Node::There, 0..40) => (Deed::Set(key, self.value()), Node::There),
            (Node::There, 40..52) => (Deed::Remove(key), Node::There),
            (Node::There, 52..64) => (Deed::Delete, Node::Away),
            (Node::There, 64..72) => (Deed::SetAndDelete(key, self.value()), Node::Away),
            (Node::There, 72..96) => {
                let lives = self.random.random_range(1..=3);
                (Deed::Recreate((0..lives).map(|_| self.own()).collect()), Node::There)
            }
            (Node::There, _) => (Deed::Terminate, Node::Terminating),
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
}
