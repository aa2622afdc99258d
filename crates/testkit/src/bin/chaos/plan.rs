//! What happens in a round: a function of the seed and the round's number, and of nothing else.

mod draw;
mod drill;
mod servers;

use std::{collections::BTreeMap, time::Duration};

pub(crate) use draw::{KEYS, NOTES, TAINTS, draw};
pub(crate) use servers::{Harm, Server};

/// Labels by key.
pub(crate) type Labels = BTreeMap<String, String>;

/// How many of everything there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) replicas: usize,
    pub(crate) api_servers: usize,
    pub(crate) etcd_members: usize,
}

/// A round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// What it is mostly about.
    pub(crate) theme: Theme,
    /// How the replicas run in it.
    pub(crate) setting: Setting,
    /// What the nodes bear at first, by index.
    pub(crate) fleet: Vec<Labels>,
    /// What happens then, step by step.
    pub(crate) ticks: Vec<Tick>,
}

/// How replicas run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// They keep annotations, taints and cordon, too, and so watch whole Nodes.
    pub(crate) keeps_all: bool,
    /// Streams of metadata come in protobuf. Then no event on the wire can be bent.
    pub(crate) protobuf: bool,
    /// By how many hours their clocks are wrong, one after the other.
    pub(crate) clocks: Vec<i64>,
}

/// What happens at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tick {
    /// What goes wrong.
    pub(crate) faults: Vec<Fault>,
    /// What people and kubelets do, at most one thing a node.
    pub(crate) deeds: Vec<(usize, Deed)>,
    /// How long nothing happens before it.
    pub(crate) after: Duration,
}

/// What a round is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Theme {
    /// Nothing goes wrong: then nothing is excused.
    Calm,
    /// Replicas are killed, frozen, restarted, added, removed.
    Replicas,
    /// Nobody watches for a while.
    Blackout,
    /// The API server and etcd are restarted and killed.
    ControlPlane,
    /// One API server or etcd member of several fails.
    Servers,
    /// What is on the wire is bent.
    Wire,
    /// etcd forgets, and is turned back.
    History,
    /// Everything at once.
    All,
}

/// What people set on a node, and remove from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// A label.
    Label(&'static str),
    /// An annotation.
    Annotation(&'static str),
    /// A taint of this key and effect.
    Taint(&'static str, &'static str),
    /// The cordon.
    Cordon,
}

/// What people tell the keeper by an annotation on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Leave it alone.
    Pause,
    /// Do not leave it alone any more.
    Resume,
    /// Forget it.
    Forget,
    /// Do not forget it any more.
    Remember,
}

/// What people and kubelets do to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It registers with these labels beside the kubelet's.
    Create(Labels),
    /// It registers with these labels, is deleted at once and registers again with none.
    CreateTwice(Labels),
    /// It is deleted.
    Delete,
    /// It is deleted and registers at once, as often as there are labels here.
    Recreate(Vec<Labels>),
    /// Somebody labels it, it is deleted, and registers at once as one that is paused.
    RecreatePaused(&'static str, String),
    /// Somebody sets this.
    Set(Thing, String),
    /// Somebody removes this.
    Remove(Thing),
    /// Somebody sets this, and it is deleted at once.
    SetAndDelete(Thing, String),
    /// It is deleted, but a finalizer holds it.
    Terminate,
    /// The finalizer lets go.
    Release,
    /// Somebody says this.
    Say(Word),
    /// Somebody says this, and it is deleted at once.
    SayAndDelete(Word),
    /// Somebody removes its record.
    RemoveRecord,
    /// It is deleted, and then somebody removes its record.
    DeleteAndRemoveRecord,
    /// Its kubelet writes it in protobuf, with an annotation that is no text.
    WriteBytes,
}

impl Deed {
    /// Whether a pause may come of it.
    pub(crate) fn pauses(&self) -> bool {
        matches!(self, Self::Say(Word::Pause) | Self::SayAndDelete(Word::Pause) | Self::RecreatePaused(..))
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill(usize),
    /// SIGTERM.
    Stop(usize),
    /// It is started again.
    Start(usize),
    /// SIGSTOP.
    Pause(usize),
    /// SIGCONT.
    Resume(usize),
    /// One more replica joins.
    Join,
    /// The last one that joined leaves.
    Leave,
    /// The API server is restarted.
    RestartApi,
    /// The API server is killed, and started after a while.
    KillApi(Duration),
    /// The API server is frozen for a while.
    FreezeApi(Duration),
    /// etcd is killed, and started after a while.
    KillEtcd(Duration),
    /// etcd is frozen for a while.
    FreezeEtcd(Duration),
    /// etcd takes nothing new for a while.
    FillEtcd(Duration),
    /// This happens to a server.
    Harm(Server, Harm),
    /// Nothing of the kind happens to it any more.
    Mend(Server),
    /// This happens for a while to the etcd member that leads.
    Leader(Harm, Duration),
    /// etcd forgets all history.
    Compact,
    /// etcd's data are copied.
    Snapshot,
    /// etcd's data are what they were.
    Restore,
    /// What this replica hears or says is bent.
    Wire(usize, Wire),
    /// All that is bent for this replica is straight again.
    Lift(usize),
}

/// How what is on the wire is bent. Old events do not come again: no API server sends a watch what is older than where it
/// began, and whoever was told that a person removed a record does not remember that for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    /// Events of nodes come late.
    LagNodes(Duration),
    /// Events of records come late.
    LagRecords(Duration),
    /// No events of nodes until it is lifted.
    HoldNodes,
    /// No events of records until it is lifted.
    HoldRecords,
    /// Some events do not come.
    Drop,
    /// Some events come twice.
    Duplicate,
    /// Some events come in the wrong order.
    Swap,
    /// All streams break once.
    CutStreams,
    /// Nothing goes through.
    Partition,
    /// Nothing of nodes goes through.
    PartitionNodes,
    /// Nothing of the members goes through: they disagree about who is there.
    PartitionMembers,
    /// No events of members until it is lifted.
    HoldMembers,
    /// Every stream is told that history has expired.
    Expire,
    /// Some writes are done, and nobody hears of it.
    LoseReplies,
    /// Some calls are answered with this status.
    Refuse(u16),
    /// Some calls are asked to wait.
    Throttle,
    /// Writes arrive late.
    DelayWrites(Duration),
    /// Writes are kept, and arrive when it is lifted.
    HangWrites,
    /// Lists are old, after the streams broke.
    StaleLists,
    /// Lists are empty, after the streams broke.
    EmptyLists,
    /// Lists lack some items, after the streams broke.
    ThinLists,
    /// Lists end in the middle, after the streams broke.
    BreakLists,
    /// Replies come byte by byte.
    Dribble,
}

impl Fault {
    /// Whether it happens to all servers at once: those that were harmed by themselves are mended first.
    pub(crate) fn is_of_all_servers(&self) -> bool {
        matches!(
            self,
            Self::RestartApi
                | Self::KillApi(_)
                | Self::FreezeApi(_)
                | Self::KillEtcd(_)
                | Self::FreezeEtcd(_)
                | Self::FillEtcd(_)
                | Self::Snapshot
                | Self::Restore
        )
    }

    /// The name under which it is counted.
    pub(crate) fn kind(&self) -> String {
        let text = format!("{self:?}");
        let word = |text: &str| text.split(['(', ' ']).next().unwrap_or_default().to_owned();
        match self {
            Self::Harm(server, harm) => {
                format!("{} {}", word(&format!("{server:?}")), word(&format!("{harm:?}")))
            }
            Self::Leader(harm, _) => format!("leader {}", word(&format!("{harm:?}"))),
            Self::Wire(_, wire) => format!("wire {}", word(&format!("{wire:?}"))),
            _ => word(&text),
        }
        .to_lowercase()
    }
}
