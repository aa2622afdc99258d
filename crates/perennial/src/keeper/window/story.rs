//! What happened lately, in rings of fixed size: the last events, and counts by minute and by quarter of an hour.
//!
//! Every replica sees every node, so each can tell the whole story of nodes that left, came back and got their
//! own, whoever did the work. What only the one who decides knows (why a node was skipped) is told by that one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use uuid::Uuid;

use crate::keeper::ledger::Name;

/// How many events are remembered.
const EVENTS: usize = 256;
/// How long two accounts of one restore may be apart.
const SAME: i64 = 30_000;
/// Restore times are counted up to these, in seconds; what took longer is in one more.
pub(crate) const WITHIN: [f64; 8] = [1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A node got its own back.
    Restored,
    /// A node left.
    Left,
    /// A node that is remembered is back.
    Returned,
    /// A node that nobody remembers is there.
    Joined,
    /// What is kept of a node changed.
    Changed,
    /// A record was removed.
    Erased,
    /// A node is left as it is, though something is owed to it.
    Skipped,
    /// Something that a person should look at.
    Warning,
    /// A replica came or went.
    Member,
}

impl Kind {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Left => "left",
            Self::Returned => "returned",
            Self::Joined => "joined",
            Self::Changed => "changed",
            Self::Erased => "erased",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Member => "member",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    /// Grows by one with each event, and with each that is told better.
    pub(crate) sequence: u64,
    /// In milliseconds.
    pub(crate) at: i64,
    pub(crate) kind: Kind,
    /// The node's name, or the member's.
    pub(crate) name: Name,
    uid: Option<Uuid>,
    pub(crate) text: Cow<'static, str>,
}

/// What was counted in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    /// Which stretch: its start divided by its length.
    pub(crate) number: i64,
    pub(crate) restored: u32,
    pub(crate) left: u32,
    /// The slowest restore, in seconds.
    pub(crate) slowest: f64,
    /// How many restores took how long, see [`WITHIN`].
    pub(crate) times: [u32; WITHIN.len() + 1],
    /// The smallest share of nodes that were current, if anybody looked.
    pub(crate) share: Option<f64>,
}

/// Slots in a row; those in which nothing happened are not there.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The length of a slot, in seconds.
    pub(crate) seconds: i64,
    /// How many there are at most.
    pub(crate) slots: usize,
    ring: VecDeque<Slot>,
}

impl Series {
    fn new(seconds: i64, slots: usize) -> Self {
        Self { seconds, slots, ring: VecDeque::with_capacity(slots) }
    }

    /// The slot of this moment.
    fn at(&mut self, millis: i64) -> &mut Slot {
        let number = millis.div_euclid(1000 * self.seconds);
        // A clock that is set back goes on in the newest slot.
        if self.ring.back().is_none_or(|last| last.number < number) {
            if self.ring.len() == self.slots {
                self.ring.pop_front();
            }
            self.ring.push_back(Slot { number, ..Slot::default() });
        }
        let last = self.ring.len() - 1;
        &mut self.ring[last]
    }

    /// The slots that are not too old, oldest first.
    pub(crate) fn since(&self, millis: i64) -> impl Iterator<Item = &Slot> {
        let now = millis.div_euclid(1000 * self.seconds);
        let oldest = now.saturating_sub(i64::try_from(self.slots).unwrap_or(i64::MAX));
        self.ring.iter().filter(move |slot| slot.number > oldest)
    }
}

#[derive(Debug)]
struct Rings {
    events: VecDeque<Happened>,
    sequence: u64,
    minutes: Series,
    quarters: Series,
    /// Grows whenever a count changes.
    counted: u64,
}

/// What happened lately. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Story(Arc<Mutex<Rings>>);

impl Default for Story {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Rings {
            events: VecDeque::new(),
            sequence: 0,
            minutes: Series::new(60, 60),
            quarters: Series::new(900, 96),
            counted: 0,
        })))
    }
}

impl Story {
    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened to a node, or to a member.
    pub(crate) fn tell(
        &self,
        kind: Kind,
        name: &Name,
        uid: Option<Uuid>,
        text: impl Into<Cow<'static, str>>,
        now: Timestamp,
    ) {
        let mut rings = self.rings();
        let at = now.as_millisecond();
        if kind == Kind::Left {
            rings.count(at, |slot| slot.left += 1);
        }
        rings.push(Happened { sequence: 0, at, kind, name: name.clone(), uid, text: text.into() });
    }

    /// A node got its own back, so many seconds after it was there. Whoever did it knows how much, and may tell it
    /// before the watch does, or after.
    pub(crate) fn restored(
        &self,
        name: &Name,
        uid: Uuid,
        seconds: f64,
        what: Option<String>,
        now: Timestamp,
    ) {
        let mut rings = self.rings();
        let at = now.as_millisecond();
        let same =
            |one: &&mut Happened| one.kind == Kind::Restored && one.uid == Some(uid) && at - one.at < SAME;
        let sequence = rings.sequence + 1;
        if let Some(told) = rings.events.iter_mut().rev().find(same) {
            if let Some(what) = what {
                told.text = what.into();
                told.sequence = sequence;
                rings.sequence = sequence;
            }
            return;
        }
        rings.count(at, |slot| {
            slot.restored += 1;
            slot.slowest = slot.slowest.max(seconds);
            let place = WITHIN.iter().position(|within| seconds <= *within).unwrap_or(WITHIN.len());
            slot.times[place] += 1;
        });
        let text = what.map_or(Cow::Borrowed("got its own back from another replica"), Cow::Owned);
        rings.push(Happened {
            sequence: 0,
            at,
            kind: Kind::Restored,
            name: name.clone(),
            uid: Some(uid),
            text,
        });
    }

    /// This is the share of nodes that are current.
    pub(crate) fn share(&self, share: f64, now: Timestamp) {
        self.rings().count(now.as_millisecond(), |slot| {
            slot.share = Some(slot.share.map_or(share, |before| before.min(share)));
        });
    }

    /// What happened after this number, oldest first.
    pub(crate) fn events_after(&self, sequence: u64) -> Vec<Happened> {
        let mut events: Vec<Happened> =
            self.rings().events.iter().filter(|one| one.sequence > sequence).cloned().collect();
        events.sort_by_key(|one| one.sequence);
        events
    }

    /// The counts, by minute and by quarter of an hour, if they changed since this number; and their number.
    pub(crate) fn series_after(&self, counted: u64) -> Option<(u64, Series, Series)> {
        let rings = self.rings();
        (rings.counted != counted).then(|| (rings.counted, rings.minutes.clone(), rings.quarters.clone()))
    }
}

impl Rings {
    fn push(&mut self, event: Happened) {
        self.sequence += 1;
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Happened { sequence: self.sequence, ..event });
    }

    fn count(&mut self, at: i64, change: impl Fn(&mut Slot)) {
        self.counted += 1;
        change(self.minutes.at(at));
        change(self.quarters.at(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn restored(story: &Story, uid: u128, seconds: f64, what: Option<&str>, now: i64) {
        story.restored(&"a".into(), Uuid::from_u128(uid), seconds, what.map(str::to_owned), at(now));
    }

    #[test]
    fn only_the_last_events_are_remembered_and_each_is_told_once() {
        let story = Story::default();
        for number in 0..EVENTS + 10 {
            story.tell(Kind::Left, &"a".into(), None, number.to_string(), at(0));
        }
        let events = story.events_after(0);
        assert_eq!((events.len(), &*events[0].text), (EVENTS, "10"));
        let last = events.last().unwrap().sequence;
        assert!(story.events_after(last).is_empty());
        assert_eq!(story.events_after(last - 1).len(), 1);
    }

    #[test]
    fn one_restore_is_one_event_and_one_count_whoever_tells_of_it_first() {
        let story = Story::default();
        restored(&story, 1, 0.4, None, 100);
        restored(&story, 1, 0.5, Some("3 labels"), 101);
        restored(&story, 2, 1.5, Some("2 labels"), 102);
        restored(&story, 2, 1.6, None, 103);
        let events = story.events_after(0);
        let told: Vec<&str> = events.iter().map(|event| &*event.text).collect();
        assert_eq!(told, ["3 labels", "2 labels"]);
        let (_, minutes, quarters) = story.series_after(0).unwrap();
        for series in [minutes, quarters] {
            let slots: Vec<&Slot> = series.since(103_000).collect();
            assert_eq!((slots.len(), slots[0].restored, slots[0].slowest), (1, 2, 1.5));
            assert_eq!(slots[0].times[..2], [1, 1]);
        }
    }

    #[test]
    fn counts_are_kept_by_minute_for_an_hour_and_by_quarter_for_a_day() {
        let story = Story::default();
        for minute in 0..2000 {
            story.tell(Kind::Left, &"a".into(), None, "", at(60 * minute));
        }
        let (counted, minutes, quarters) = story.series_after(0).unwrap();
        assert!(story.series_after(counted).is_none());
        let now = 60_000 * 1999;
        assert_eq!(minutes.since(now).map(|slot| slot.left).collect::<Vec<_>>(), [1; 60]);
        let lefts: Vec<u32> = quarters.since(now).map(|slot| slot.left).collect();
        assert_eq!((lefts.len(), lefts[0]), (96, 15));
        assert_eq!(minutes.since(now + 60_000 * 30).count(), 30, "what is an hour old is not shown");
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_counting() {
        let story = Story::default();
        story.tell(Kind::Left, &"a".into(), None, "", at(6000));
        story.tell(Kind::Left, &"a".into(), None, "", at(60));
        let (_, minutes, _) = story.series_after(0).unwrap();
        assert_eq!(minutes.since(6_000_000).map(|slot| slot.left).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_worst_share_of_a_slot_counts() {
        let story = Story::default();
        for share in [1.0, 0.5, 0.9] {
            story.share(share, at(1));
        }
        let (_, minutes, _) = story.series_after(0).unwrap();
        assert_eq!(minutes.since(1000).next().unwrap().share, Some(0.5));
    }
}
