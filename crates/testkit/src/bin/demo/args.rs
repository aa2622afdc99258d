//! The command line.

use std::{ffi::OsString, time::Duration};

use clap::Parser;
use jiff::SignedDuration;

const LONG_ABOUT: &str = "\
Watch Perennial at work on a real API server.

Starts etcd, kube-apiserver and some replicas of the keeper on this machine, creates a fleet of nodes with a company's \
labels, and then does to it what clusters do: people change labels, nodes are deleted (some a moment after a label was \
changed), return bare, a zone fails, nodes flap; and a replica is killed in the middle (kill -9), one is paused and woken, \
all are down for a while. At the end every label of every node is compared with what people had put on it.

The table shows who does what, as the replicas say. All else is measured by the demo's own watch. The last line says how \
many labels were kept, and the exit status is 0 only if all were and none was given twice. Ctrl-C ends it; nothing stays \
behind.";

const EXAMPLES: &str = "\
Examples:
  demo --nodes 100 --for 20s
  demo --for 2m --seed 42
  demo --replicas 1                one keeper alone
  demo --stay                      look around on the status page afterwards
  demo | cat                       plain lines instead of a table
  demo -- --log-level debug        arguments after -- go to `perennial run`
  demo -- --no-restore             see it fail: nothing is given back

Colours are left out when NO_COLOR is set.";

/// What was typed, checked.
#[derive(Clone, Debug, Parser)]
#[command(name = "demo", about = "Watch Perennial at work on a real API server", long_about = LONG_ABOUT)]
#[command(after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    /// How many nodes the fleet has
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..=5000))]
    pub(crate) nodes: u16,

    /// How many keepers share the work
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) replicas: u8,

    /// For how long rounds begin; four are always played
    #[arg(long = "for", value_name = "DURATION", default_value = "45s", value_parser = duration)]
    pub(crate) lasting: Duration,

    /// Other choices of nodes and labels; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Leave everything up in the end, until Ctrl-C, to look around on the status page
    #[arg(long)]
    pub(crate) stay: bool,

    /// How long labels may be missing before they count as lost
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) patience: Duration,

    /// Arguments for `perennial run`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) keeper: Vec<OsString>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 30s, 2m or 1m30s".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(duration).map_err(|_| wrong())?;
    match duration {
        Duration::ZERO => Err(wrong()),
        long if long > Duration::from_hours(1) => Err("an hour is the most".to_owned()),
        fine => Ok(fine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_has_a_default_and_may_be_chosen() {
        let args = parse("demo").unwrap();
        let chosen = |args: &Args| (args.nodes, args.replicas, args.lasting, args.seed);
        assert_eq!(chosen(&args), (300, 3, Duration::from_secs(45), 1));
        let args = parse("demo --nodes 20 --replicas 5 --for 1m30s --seed 9 -- --log-level debug").unwrap();
        assert_eq!(chosen(&args), (20, 5, Duration::from_secs(90), 9));
        assert_eq!(args.keeper, ["--log-level", "debug"]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (line, hint) in [
            ("demo --for 45", "such as 30s"),
            ("demo --for 0s", "such as 30s"),
            ("demo --for=-3s", "such as 30s"),
            ("demo --for 2h", "an hour is the most"),
            ("demo --nodes 0", "1..=5000"),
            ("demo --nodes many", "invalid"),
            ("demo --replicas 0", "1..=9"),
            ("demo --replicas 10", "1..=9"),
            ("demo --log-level debug", "unexpected argument"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(hint), "{line}: {error}");
        }
    }
}
