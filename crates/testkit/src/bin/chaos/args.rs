//! The command line.

use clap::Parser;

use crate::plan::Shape;

const LONG_ABOUT: &str = "\
Break everything around Perennial, and see whether it breaks its promises.

Starts etcd, kube-apiserver and several replicas on this machine. In each round a fleet of nodes is created, labelled, \
deleted and re-created at random while replicas are killed, frozen, restarted and cut off and the control plane fails. \
Then everything is healed: node by node, records must come to agree with history, and then there must be silence. \
An oracle of its own reads etcd's history and judges every write.

The exit status is 0 if every promise was kept, 1 if one was broken, 2 if chaos itself failed.";

/// What was typed, checked.
#[derive(Clone, Debug, Parser)]
#[command(name = "chaos", about = "Break everything around Perennial", long_about = LONG_ABOUT)]
#[command(max_term_width = 100)]
pub(crate) struct Args {
    /// Other choices; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// For how many minutes rounds begin
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) minutes: u64,

    /// How many rounds at most
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,

    /// The first round: to play one again that failed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) from: u64,

    /// How many replicas run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=20))]
    pub(crate) replicas: u16,

    /// How many nodes the fleet has
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub(crate) nodes: u16,

    /// How many API servers run, behind a balancer
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) api_servers: u16,

    /// How many members etcd has
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) etcd_members: u16,

    /// For how many seconds records may need to agree, after everything was healed
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) patience: u64,

    /// Arguments for `perennial run`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) keeper: Vec<std::ffi::OsString>,
}

impl Args {
    /// The command that plays one round again.
    pub(crate) fn again(&self, round: u64) -> String {
        let Self { seed, replicas, nodes, api_servers, etcd_members, .. } = self;
        format!(
            "chaos --seed {seed} --from {round} --rounds 1 --replicas {replicas} --nodes {nodes} \
             --api-servers {api_servers} --etcd-members {etcd_members}"
        )
    }

    /// How many of everything there are.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            nodes: self.nodes.into(),
            replicas: self.replicas.into(),
            api_servers: self.api_servers.into(),
            etcd_members: self.etcd_members.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_played_again_with_the_same_choices() {
        let args = Args::parse_from([
            "chaos",
            "--seed",
            "7",
            "--minutes",
            "9",
            "--nodes",
            "12",
            "--api-servers",
            "2",
        ]);
        let again = Args::parse_from(args.again(4).split(' '));
        assert_eq!((again.seed, again.nodes, again.replicas), (7, 12, 3));
        assert_eq!((again.api_servers, again.etcd_members), (2, 3));
        assert_eq!((again.from, again.rounds), (4, Some(1)));
    }
}
