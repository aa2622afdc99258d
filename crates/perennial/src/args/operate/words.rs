//! What the help of these commands says at length.

pub(super) const NODES: &str = "\
Lists every node that lives or has a record: how it stands, how many labels are kept of it, how old its record is, and \
when it got something back (the API server forgets that after an hour; then `<` stands before the age of the node).

States: `current` (record and node agree), `pending` (the record lags behind the node), `unrestored` (something is owed to \
the node), `closing` (it is gone, and its end is not recorded yet), `absent` (it is gone, and remembered), `waiting` (privileged \
labels wait for the machine's identity), `paused`, `forgotten`, `bare` (nothing of it is kept), `unmanaged` (no rule matches), \
`terminating`, `unreadable` and `newer` (the record cannot be used).";

pub(super) const NODES_EXAMPLES: &str = "\
Examples:
  What needs attention?
    perennial nodes --state pending,unrestored,closing,waiting,unreadable

  One pool, the least recently recorded last
    perennial nodes -l pool=gpu --sort-by recorded

  For a script
    perennial nodes --state absent -o name";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  What does the record hold, and what does the node bear?
    perennial show worker-1

  As data
    perennial show worker-1 -o yaml";

pub(super) const STATUS: &str = "\
Sums up the fleet, and who does the work. At the end it names the nodes that something keeps setting old values on: what is kept of \
a node went back to the state that it had just left (A, B, A), so many times as its record remembers. `perennial_churn_total` and the \
page count the same.";

pub(super) const DIFF: &str = "\
Shows how living nodes differ from their records: `-` is recorded and not on the node, `+` is on the node and not \
recorded, `~` has another value. Exit status: 0 no difference, 1 some, 2 and more for errors.";

pub(super) const RESTORE: &str = "\
Gives a node now what its record holds and it lacks, as the keeper would: the record names the new life first, then the Node is \
patched with what is missing, and marked. It also works where the node is paused (and stays so), or where replicas run with \
--no-restore. It overwrites only what the policy says (`merge`), and never removes.";

pub(super) const RESTORE_EXAMPLES: &str = "\
Examples:
  What would it get?
    perennial restore worker-1 --dry-run";

pub(super) const ROLLBACK: &str = "\
Brings nodes back to what was kept of them at some time. Records remember the last few states (`perennial show NODE` lists \
them). What is missing since comes back and what was changed gets its old value; what was added since stays, unless --exact \
is given: then it goes, if it is known to have come since (where the state was kept under another policy it may have been there \
and not kept, and --exact is refused for that node). Where a node is away, its record is rewritten, and the node gets it when it returns. Every write is conditional; \
nodes that fail are told at the end, and the exit status is 1.";

pub(super) const ROLLBACK_EXAMPLES: &str = "\
Examples:
  After `kubectl label nodes --all team-`, which was five minutes ago: see, then do
    perennial rollback --all --to 6m --dry-run
    perennial rollback --all --to 6m

  One node, exactly as it was
    perennial rollback worker-1 --to 2026-05-01T12:00:00Z --exact";

pub(super) const FORGET: &str = "\
Forgets nodes. A living node is annotated with perennial.dev/forget: its record is erased by a replica, and nothing is kept of \
it until the annotation is removed. The record of a node that is away is removed at once, after a question.";

pub(super) const EXPORT: &str = "\
Writes all records as JSON lines: a header that counts them, then one record a line. A file is replaced as a whole or not at \
all, and only its owner may read it. See docs/cli.md for the format.";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  A backup
    perennial export -f records.jsonl

  Which nodes had this label?
    perennial export | grep '\"team\":\"blue\"'";

pub(super) const IMPORT: &str = "\
Reads records and writes them into this cluster as those of nodes that are away, so that they are given when nodes of these \
names join, or at once where they are there. Everything is checked first; nothing is written if something is wrong. Lives and \
versions of the other cluster are dropped, machines (providerID) are kept. A record that is there is left alone, unless \
--overwrite is given.

It reads what `perennial export` wrote, and what `kubectl get configmaps -o yaml` (or json) says of Perennial's own records and \
of those of two older tools: `node-labels-NODE` with `state.json`, and one key a label with `-SLASH-` for `/`.";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  Move to another cluster
    perennial export --context old -f records.jsonl
    perennial import --context new records.jsonl --dry-run
    perennial import --context new records.jsonl

  Coming from an older tool, from its own namespace
    perennial import --from-namespace node-label-operator --dry-run

  The same from a file
    kubectl -n node-label-operator get configmaps -o yaml | perennial import -";

pub(super) const POLICY: &str = "\
Checks a policy file, and tells every problem in it. With --against-cluster it also says for every node which keys the policy \
would keep, which of its recorded keys would be restored if it returned now, and which would be refused: recorded, but not kept \
any more. Nothing is written.";

pub(super) const POLICY_EXAMPLES: &str = "\
Examples:
  Is it right?
    perennial policy check policy.yaml

  What would change, key by key?
    perennial policy check policy.yaml --against-cluster -o wide";
