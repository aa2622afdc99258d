//! How what is on the wire is bent.

use std::time::Duration;

use perennial_testkit::proxy::{Call, Dose, Fault, Injection, Matcher, Proxy};

use crate::plan::Wire;

/// A replica follows nodes, records and members.
const STREAMS: u64 = 3;

/// The proxy before one replica, and what is bent in it.
pub(crate) struct Line {
    proxy: Proxy,
    bent: Vec<Injection>,
    /// It was not told everything, and cannot know.
    deceived: bool,
}

impl Line {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy, bent: Vec::new(), deceived: false }
    }

    pub(crate) fn kubeconfig(&self) -> &std::path::Path {
        self.proxy.kubeconfig()
    }

    /// Bends it further. `old` is a version that lists may be as old as.
    pub(crate) fn bend(&mut self, wire: Wire, old: u64) {
        let streams = Matcher::streams;
        match wire {
            Wire::LagNodes(late) => self.inject(Matcher::watches("nodes"), Fault::Lag(late)),
            Wire::LagRecords(late) => self.inject(Matcher::watches("configmaps"), Fault::Lag(late)),
            Wire::HoldNodes => self.inject(Matcher::watches("nodes"), Fault::Hold),
            Wire::HoldRecords => self.inject(Matcher::watches("configmaps"), Fault::Hold),
            Wire::Drop => self.deceive(streams(), Fault::Drop.chance(0.2)),
            Wire::Duplicate => self.inject(streams(), Fault::Duplicate.chance(0.3)),
            Wire::Swap => self.inject(streams(), Fault::Swap.chance(0.3)),
            Wire::CutStreams => self.proxy.cut(&streams()),
            Wire::Partition => self.bent.push(self.proxy.partition(&Matcher::any())),
            Wire::PartitionNodes => self.bent.push(self.proxy.partition(&Matcher::on("nodes"))),
            Wire::PartitionMembers => self.bent.push(self.proxy.partition(&Matcher::on("leases"))),
            Wire::HoldMembers => self.inject(Matcher::watches("leases"), Fault::Hold),
            Wire::Expire => self.relist(),
            Wire::LoseReplies => self.inject(Matcher::writes(), Fault::LoseReply.chance(0.3)),
            Wire::Refuse(status) => self.inject(Matcher::any(), Fault::Refuse(status).chance(0.3)),
            Wire::Throttle => self.inject(Matcher::any(), Fault::Throttle(429, 1).chance(0.3)),
            Wire::DelayWrites(late) => self.inject(Matcher::writes(), Fault::DelayRequest(late)),
            Wire::HangWrites => self.inject(Matcher::writes(), Fault::Hang),
            Wire::StaleLists => self.relist_with(&Fault::Stale(old)),
            Wire::EmptyLists => self.relist_with(&Fault::Empty),
            Wire::ThinLists => self.relist_with(&Fault::Thin(0.4)),
            Wire::BreakLists => self.relist_with(&Fault::Break),
            Wire::Dribble => {
                let slow = Fault::Dribble(64, Duration::from_millis(2));
                self.inject(Matcher::any(), slow.chance(0.2));
            }
        }
    }

    fn inject(&mut self, matcher: Matcher, fault: impl Into<Dose>) {
        self.bent.push(self.proxy.inject(matcher, fault));
    }

    fn deceive(&mut self, matcher: Matcher, fault: impl Into<Dose>) {
        self.deceived = true;
        self.inject(matcher, fault);
    }

    /// Lists are bent, and then asked for. What is a list to the API server but a consistent read to the keeper, of
    /// one object or of where history stands, is left alone: no API server lies about that.
    fn relist_with(&mut self, fault: &Fault) {
        for resource in ["nodes", "configmaps"] {
            let whole = Matcher::lists(resource).no_query("fieldSelector").when(|call| !asks_where(call));
            self.deceive(whole, fault.clone());
        }
        self.relist();
    }

    /// Every stream that is open is told that its history has expired.
    fn relist(&mut self) {
        self.inject(Matcher::streams(), Fault::Expire.times(STREAMS));
    }

    /// All is straight again. Who was deceived has to list once more, as after any 410.
    pub(crate) fn lift(&mut self) {
        self.bent.clear();
        if std::mem::take(&mut self.deceived) {
            self.proxy.inject(Matcher::streams(), Fault::Expire.times(STREAMS)).keep();
        }
    }

    /// Whether it is told of every change now.
    pub(crate) fn follows(&self) -> bool {
        ["nodes", "configmaps", "leases"].iter().all(|resource| self.proxy.follows(resource))
    }

    /// Whether it is told of every change of a node now.
    pub(crate) fn follows_nodes(&self) -> bool {
        self.proxy.follows("nodes")
    }

    /// The calls that came since there were so many.
    pub(crate) fn calls_since(&self, calls: u64) -> Vec<Call> {
        self.proxy.journal_since(calls).into_iter().map(|entry| entry.call).collect()
    }

    /// How many calls came so far.
    pub(crate) fn calls(&self) -> u64 {
        self.proxy.calls()
    }

    /// The writes that were asked for since there were so many calls, whatever came of them. A replica that lives says
    /// so all the time, and may tell what it did: Leases and Events do not count.
    pub(crate) fn writes_since(&self, calls: u64) -> Vec<String> {
        let counts = |call: &&Call| call.verb.writes() && !["leases", "events"].contains(&&*call.resource);
        self.calls_since(calls).iter().filter(counts).map(ToString::to_string).collect()
    }

    /// Counts how often it looks at everything again from now on: each time it asks where history stands.
    pub(crate) fn resyncs(&self) -> Injection {
        self.proxy.inject(Matcher::lists("nodes").when(asks_where), Fault::DelayReply(Duration::ZERO))
    }
}

/// Whether a list is there for its version alone.
fn asks_where(call: &Call) -> bool {
    call.query.split('&').any(|part| part == "limit=1")
}
