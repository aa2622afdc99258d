//! The last look: every label of every node, compared with what people had put on it.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _, api::ListParams};
use perennial_testkit::{kubelet_labels, node_name};

use crate::{
    board::{Board, Shared},
    edit::Labels,
    replicas::Replica,
    view::words,
};

/// So many nodes are named when labels are missing.
const NAMED: usize = 5;

/// How the demo ended.
#[derive(Debug)]
pub(crate) struct Verdict {
    kept: usize,
    wanted: usize,
    nodes: usize,
    /// Lives of nodes that got labels back, and how many of all lives got them once too often.
    given: usize,
    again: usize,
    faults: Vec<Fault>,
    /// What each replica did, in a line.
    replicas: Vec<String>,
}

/// What is wrong with one node.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    node: String,
    /// Keys that are not there.
    missing: Vec<String>,
    /// Keys with another value.
    wrong: Vec<String>,
    /// Keys that somebody had removed.
    back: Vec<String>,
}

impl Verdict {
    /// Lists all nodes and compares.
    pub(crate) async fn reach(nodes: &Api<Node>, board: &Shared) -> anyhow::Result<Self> {
        let list = nodes.list_metadata(&ListParams::default()).await?.items;
        let found = list.into_iter().map(|node| (node.name_any(), node.labels().clone())).collect();
        Ok(Self::judge(&board.lock(), &found))
    }

    fn judge(board: &Board, found: &BTreeMap<String, Labels>) -> Self {
        let fault = |index| Fault::find(index, board.wanted(index), found.get(&node_name(index)));
        let faults: Vec<Fault> = (0..board.nodes()).filter_map(fault).collect();
        let (wanted, lost) = (board.labels(), faults.iter().map(Fault::size).sum());
        Self {
            kept: wanted.saturating_sub(lost),
            wanted,
            nodes: board.nodes(),
            given: board.lives.given(),
            again: board.lives.given_again(),
            faults,
            replicas: board.replicas.iter().map(tale).collect(),
        }
    }

    /// Nothing is missing, wrong, or there against somebody's will, and nothing was given twice.
    pub(crate) fn all_kept(&self) -> bool {
        self.faults.is_empty() && self.again == 0
    }

    /// Who did what, and some of what is wrong, a line for each node.
    pub(crate) fn details(&self) -> Vec<String> {
        let mut lines = self.replicas.clone();
        lines.extend(self.faults.iter().take(NAMED).map(Fault::to_string));
        if let Some(more) = self.faults.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(format!("and {}", words::count(more, "more node")));
        }
        lines
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kept {} of {} labels on {} nodes; ", self.kept, self.wanted, self.nodes)?;
        match (self.given, self.again) {
            (0, 0) => write!(f, "nothing was given back"),
            (given, 0) => write!(f, "given once each, on {}", words::count(given, "return")),
            (given, again) => {
                write!(f, "given once too often to {again} of {}", words::count(given, "return"))
            }
        }
    }
}

/// What was done to a replica, and what it did.
fn tale(replica: &Replica) -> String {
    let (work, times) = (replica.work(), |what: &str, often| match often {
        0 => String::new(),
        1 => format!(", {what} once"),
        2 => format!(", {what} twice"),
        often => format!(", {what} {often} times"),
    });
    format!(
        "{}: share {}, {}, {}{}{}",
        replica.name,
        words::percent(replica.share()),
        words::count(work.restores, "restore"),
        words::count(work.takeovers, "takeover"),
        times("killed", replica.kills),
        times("paused", replica.pauses),
    )
}

impl Fault {
    fn find(index: usize, wanted: &Labels, found: Option<&Labels>) -> Option<Self> {
        let nothing = Labels::new();
        let found = found.unwrap_or(&nothing);
        let keys = |judge: &dyn Fn(&String, &String) -> bool, labels: &Labels| -> Vec<String> {
            labels.iter().filter(|(key, value)| judge(key, value)).map(|(key, _)| key.clone()).collect()
        };
        let kubelets = kubelet_labels(index);
        let fault = Self {
            node: node_name(index),
            missing: keys(&|key, _| !found.contains_key(key), wanted),
            wrong: keys(&|key, value| found.get(key).is_some_and(|found| found != value), wanted),
            back: keys(&|key, _| !wanted.contains_key(key) && !kubelets.contains_key(key), found),
        };
        (fault.size() > 0).then_some(fault)
    }

    /// A label that is there against somebody's will counts like one that is missing.
    fn size(&self) -> usize {
        self.missing.len() + self.wrong.len() + self.back.len()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told =
            [("missing", &self.missing), ("wrong value", &self.wrong), ("removed, but back", &self.back)];
        let told = told.iter().filter(|(_, keys)| !keys.is_empty());
        let told: Vec<String> = told.map(|(what, keys)| format!("{what}: {}", keys.join(", "))).collect();
        write!(f, "{}: {}", self.node, told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fleet() -> (Board, BTreeMap<String, Labels>) {
        let board = Board::new(8, 2, Duration::from_secs(1), 1);
        let labels = |index| kubelet_labels(index).into_iter().chain(board.wanted(index).clone()).collect();
        let found = (0..8).map(|index| (node_name(index), labels(index))).collect();
        (board, found)
    }

    /// `K`, `L` and the end of the last line.
    fn told(verdict: &Verdict) -> (usize, usize, String) {
        let line = verdict.to_string();
        let (labels, rest) = line.split_once(" labels on 8 nodes; ").unwrap();
        let (kept, wanted) = labels.strip_prefix("kept ").unwrap().split_once(" of ").unwrap();
        (kept.parse().unwrap(), wanted.parse().unwrap(), rest.to_owned())
    }

    #[test]
    fn a_fleet_with_all_its_labels_is_kept() {
        let (board, found) = fleet();
        let verdict = Verdict::judge(&board, &found);
        assert!(verdict.all_kept());
        assert_eq!(verdict.details().len(), 2, "a line for each replica");
        assert_eq!(told(&verdict), (board.labels(), board.labels(), "nothing was given back".to_owned()));
    }

    #[test]
    fn what_was_given_twice_is_no_success_even_if_all_is_kept() {
        let (mut board, found) = fleet();
        let bare = Labels::new();
        for (uid, changes) in [("u1", 1), ("u2", 1), ("u3", 2)] {
            board.lives.returned(uid);
            board.lives.saw(uid, &bare);
            (0..changes).for_each(|n| board.lives.saw(uid, &[("n".to_owned(), format!("{n}"))].into()));
            let verdict = Verdict::judge(&board, &found);
            assert_eq!(verdict.all_kept(), uid != "u3");
        }
        let verdict = Verdict::judge(&board, &found);
        assert_eq!(told(&verdict).2, "given once too often to 1 of 3 returns");
    }

    #[test]
    fn what_was_done_to_a_replica_is_told() {
        let (mut board, found) = fleet();
        board.killed(1);
        board.killed(1);
        board.paused(1);
        let told = "keeper-2: share -, 0 restores, 0 takeovers, killed twice, paused once";
        assert_eq!(Verdict::judge(&board, &found).details()[1], told);
    }

    #[test]
    fn whatever_is_missing_wrong_or_back_is_counted_and_named() {
        let (board, mut found) = fleet();
        let labels = found.get_mut("web-00000").unwrap();
        labels.remove("team");
        labels.insert("pool".to_owned(), "batch".to_owned());
        labels.insert("kernel-test".to_owned(), String::new());
        let verdict = Verdict::judge(&board, &found);
        assert!(!verdict.all_kept());
        assert_eq!(told(&verdict).0, board.labels() - 3);
        let fault = "web-00000: missing: team; wrong value: pool; removed, but back: kernel-test";
        assert_eq!(verdict.details()[2..], [fault]);
    }

    #[test]
    fn a_node_that_is_not_there_has_none_of_its_labels() {
        let (board, mut found) = fleet();
        found.clear();
        let verdict = Verdict::judge(&board, &found);
        assert_eq!((told(&verdict).0, told(&verdict).1), (0, board.labels()));
        assert_eq!(verdict.details()[2..].len(), NAMED + 1);
        assert_eq!(verdict.details().last().unwrap(), "and 3 more nodes");
    }
}
