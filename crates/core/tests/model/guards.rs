//! Each guard taken out gives a counterexample.

/// A guard that can be taken out, at the boundary: the rules themselves stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Guard {
    /// A record write is a compare-and-swap.
    Swap,
    /// A Node patch carries uid and version.
    PatchVersion,
    /// The record says giving before the Node is touched.
    GivingFirst,
    /// Only a proved end is given.
    Proof,
    /// A newborn's end is merged.
    Merge,
    /// A mark is heeded.
    Mark,
    /// A replica that lags rests.
    Lagging,
    /// A node that a list lacks is read before it counts as gone.
    NodeAbsence,
    /// A record that a list lacks is read before it counts as gone.
    RecordAbsence,
    /// Ends are held until a record holds them.
    Ends,
    /// In doubt, everyone who saw the end goes first.
    Everyone,
    /// What was closed in doubt is repaired.
    Repair,
    /// A direct read of a life that the watch has not told of is not folded.
    ReadAhead,
    /// Records of another history are judged.
    Histories,
    /// One's own collection forgets nothing that came after.
    OwnErasure,
}
