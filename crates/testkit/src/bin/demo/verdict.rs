//! The last look: every label of every node, compared with what people had put on it.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _, api::ListParams};
use perennial_testkit::{kubelet_labels, node_name};

use crate::{
    board::{Board, Shared},
    edit::Labels,
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
    faults: Vec<Fault>,
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
        Self { kept: wanted.saturating_sub(lost), wanted, nodes: board.nodes(), faults }
    }

    /// Nothing is missing, wrong, or there against somebody's will.
    pub(crate) fn all_kept(&self) -> bool {
        self.faults.is_empty()
    }

    /// Some of what is wrong, a line for each node.
    pub(crate) fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.faults.iter().take(NAMED).map(Fault::to_string).collect();
        if let Some(more) = self.faults.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(format!("and {}", words::count(more, "more node")));
        }
        lines
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kept {} of {} labels on {} nodes", self.kept, self.wanted, self.nodes)
    }
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
        let board = Board::new(8, Duration::from_secs(1), 1);
        let labels = |index| kubelet_labels(index).into_iter().chain(board.wanted(index).clone()).collect();
        let found = (0..8).map(|index| (node_name(index), labels(index))).collect();
        (board, found)
    }

    #[test]
    fn a_fleet_with_all_its_labels_is_kept() {
        let (board, found) = fleet();
        let verdict = Verdict::judge(&board, &found);
        assert!(verdict.all_kept() && verdict.details().is_empty());
        assert_eq!(verdict.to_string(), format!("kept {0} of {0} labels on 8 nodes", board.labels()));
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
        let all = board.labels();
        assert_eq!(verdict.to_string(), format!("kept {} of {all} labels on 8 nodes", all - 3));
        let told = "web-00000: missing: team; wrong value: pool; removed, but back: kernel-test";
        assert_eq!(verdict.details(), [told]);
    }

    #[test]
    fn a_node_that_is_not_there_has_none_of_its_labels() {
        let (board, mut found) = fleet();
        found.clear();
        let verdict = Verdict::judge(&board, &found);
        assert_eq!(verdict.to_string(), format!("kept 0 of {} labels on 8 nodes", board.labels()));
        assert_eq!(verdict.details().len(), NAMED + 1);
        assert_eq!(verdict.details()[NAMED], "and 3 more nodes");
    }
}
