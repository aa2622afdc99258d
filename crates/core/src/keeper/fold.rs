//! Whose word counts at an end.
//!
//! From open(U), U's end is the content. From giving(U) it is the content if U bore its mark; otherwise U
//! never got its own back, and its end is merged into what was to be given, under the rules of a restore. So a
//! bare newborn that dies at once never empties a record. Several ends are folded in order.

use std::borrow::Cow;

use uuid::Uuid;

use super::beside::{beside, chosen_by, leaves, mixed};
use super::decide::Context;
use super::line::{End, Provider};
use super::mark::Mark;
use super::plan::Plan;
use crate::kept::{Digest, Kept, Pairs, Taint};
use crate::policy::{Identity, Policy, Rule, is_privileged};
use crate::record::{Incarnation, Record, State, Unproved, Version, Waiting, WaitingKeys, all_labels};

/// What is to be remembered, or given, after some ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Memory {
    /// Whose end it is.
    pub(super) incarnation: Incarnation,
    /// The version of that end.
    pub(super) version: Version,
    /// What is kept. Privileged labels in it are `incarnation`'s own.
    pub(super) kept: Kept,
    /// Privileged labels of earlier machines.
    pub(super) waiting: WaitingKeys,
    /// The end that is in doubt.
    pub(super) unproved: Option<Unproved>,
    /// Digest of the policy that chose what was kept before.
    pub(super) policy: Digest,
    /// Digest of what chose all that is kept now.
    pub(super) chosen: Digest,
    /// An end in it whose machine matters and was not read: it may turn out to be another's.
    pub(super) unread: Option<(Uuid, Version)>,
}

impl Memory {
    /// What a record says before anything is folded into it.
    pub(super) fn of(record: &Record, version: Version) -> Self {
        Self {
            incarnation: record.incarnation.clone(),
            version,
            kept: record.kept.clone(),
            waiting: record.waiting.clone(),
            unproved: record.unproved.clone(),
            policy: record.policy,
            chosen: record.policy,
            unread: None,
        }
    }

    /// Nothing is owed to a life of this version.
    pub(super) fn nothing(incarnation: Incarnation, version: Version, policy: Digest) -> Self {
        Self {
            incarnation,
            version,
            kept: Kept::default(),
            waiting: WaitingKeys::new(),
            unproved: None,
            policy,
            chosen: policy,
            unread: None,
        }
    }

    /// Folds one end whose content replaces what was remembered.
    fn replace(&mut self, end: &End, kept: Kept, rule: &Rule, policy: &Policy) {
        self.chosen = chosen_by(&kept, self.policy, Some(rule), policy);
        let later = self.later_than(end);
        let doubted = self.unproved.take().is_some_and(|doubt| doubt.uid == end.uid);
        self.take_name(end);
        self.kept = kept;
        if doubted && self.incarnation.provider_id.is_none() {
            self.keep_machines();
        }
        if end.mark == Mark::Full {
            let provider = &self.incarnation.provider_id;
            self.waiting.retain(|_, waiting| waiting.provider_id != *provider);
        }
        self.waiting.retain(|key, _| !self.kept.labels.contains_key(key));
        self.lay_over(later, rule);
    }

    /// What lies over an end that was in doubt and turns up now: the last of the lives that came after it, and what they bore.
    fn later_than(&mut self, end: &End) -> Option<(Incarnation, Kept)> {
        let doubt = self.unproved.as_mut().filter(|doubt| doubt.uid == end.uid)?;
        let later = std::mem::take(&mut doubt.later);
        (self.incarnation.uid != end.uid).then(|| (self.incarnation.clone(), later))
    }

    fn lay_over(&mut self, later: Option<(Incarnation, Kept)>, rule: &Rule) {
        let Some((incarnation, kept)) = later else { return };
        self.set_privileged_aside();
        self.kept = merged(&kept, &self.kept, rule);
        self.incarnation = incarnation;
    }

    /// Folds one end that never got its own back: what it bore is laid over what was to be given to it.
    fn merge(&mut self, end: &End, kept: Kept, rule: &Rule, policy: &Policy) {
        let remembered = self.incarnation.provider_id.clone();
        let other = |id| Some(id) != remembered.as_deref();
        if rule.identity() != Identity::Name && end.provider.id().is_some_and(other) {
            // A restore would have given this machine nothing.
            self.replace(end, kept, rule, policy);
            return;
        }
        let later = self.later_than(end);
        self.set_privileged_aside();
        // An end in doubt stays in doubt until it turns up, whatever comes after it.
        self.unproved = self.unproved.take().filter(|doubt| doubt.uid != end.uid);
        if let Some(doubt) = &mut self.unproved {
            doubt.later = merged(&kept, &doubt.later, rule);
            doubt.later.labels.retain(|key, _| !is_privileged(key));
        }
        self.kept = merged(&kept, &self.kept, rule);
        self.chosen = match mixed(self.chosen, policy.digest()) {
            own if own == policy.digest() => chosen_by(&self.kept, self.policy, Some(rule), policy),
            both => both,
        };
        self.take_name(end);
        if self.incarnation.provider_id.is_none() && remembered.is_some() {
            // It died before anybody knew its machine. Privileged labels of its own are nobody's; the rest is
            // still what is remembered of the machine before it.
            self.set_privileged_aside();
            self.incarnation.provider_id = remembered;
        }
        self.lay_over(later, rule);
    }

    fn take_name(&mut self, end: &End) {
        let known = self.knows(end).cloned();
        let provider_id = end.provider.id().map(str::to_owned).or(known);
        self.incarnation = Incarnation { uid: end.uid, provider_id };
        self.version = self.version.max(end.version);
    }

    /// The machine of this very life, where it is known already.
    fn knows(&self, end: &End) -> Option<&String> {
        self.incarnation.provider_id.as_ref().filter(|_| self.incarnation.uid == end.uid)
    }

    /// Moves privileged labels to those that wait for the identity of the machine that bore them. An unknown
    /// machine's do not displace a known one's.
    pub(super) fn set_privileged_aside(&mut self) {
        let provider_id = &self.incarnation.provider_id;
        let waiting = &mut self.waiting;
        self.kept.labels.retain(|key, value| {
            if !is_privileged(key) {
                return true;
            }
            if provider_id.is_some() || waiting.get(key).is_none_or(|known| known.provider_id.is_none()) {
                let (value, provider_id) = (std::mem::take(value), provider_id.clone());
                waiting.insert(key.clone(), Waiting { value, provider_id });
            }
            false
        });
    }

    /// Keeps the machine that is known of each privileged label.
    fn keep_machines(&mut self) {
        let waiting = &mut self.waiting;
        self.kept.labels.retain(|key, value| match waiting.get_mut(key) {
            Some(known) if known.provider_id.is_some() => {
                known.value = std::mem::take(value);
                false
            }
            _ => true,
        });
    }

    /// Privileged labels that wait already go on waiting.
    pub(super) fn wait_for(&mut self, waiting: &WaitingKeys) {
        for (key, waiting) in waiting {
            self.waiting.entry(key.clone()).or_insert_with(|| waiting.clone());
        }
    }

    /// The read that this waits for.
    pub(super) fn read_end(&self) -> Option<Plan> {
        let (uid, deleted) = self.unread?;
        Some(Plan::ReadEnd { uid, deleted })
    }

    /// Every label remembered here.
    pub(super) fn labels(&self) -> Cow<'_, Pairs> {
        all_labels(&self.kept, &self.waiting)
    }

    /// Whether there is nothing to give.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.waiting.is_empty()
    }
}

/// Folds the ends that no record holds yet into what the record says. `None` if there is neither.
///
/// `version` is the record's, as it counts in this history.
pub(super) fn fold(record: Option<(&Record, Version)>, ends: &[End], cx: &Context<'_>) -> Option<Memory> {
    let policy = cx.policy;
    let beneath = record.and_then(|(record, version)| beneath(record, version, ends, cx));
    let layered = beneath.is_some();
    let mut memory = beneath.or_else(|| record.map(|(record, version)| Memory::of(record, version)));
    for end in ends {
        let word = record.map_or(Word::Later, |(record, version)| whose_word(record, version, end));
        if word == Word::None {
            continue;
        }
        if end.hand.forget {
            memory = None;
            continue;
        }
        let recorded = memory.as_ref().map(Memory::labels);
        let merges = memory.is_some() && end.mark == Mark::None && (layered || word == Word::Later);
        // What it was born with came from a memory that may have been behind this one.
        let content = if merges { end.content.own() } else { Cow::Borrowed(&end.content) };
        let Some(rule) = policy.rule_for(&content.labels, recorded.as_deref()) else {
            if let Some(memory) = memory.as_mut().filter(|memory| memory.incarnation.uid == end.uid) {
                memory.take_name(end);
            }
            continue;
        };
        let mut kept = rule.keep(&content);
        if let Some(memory) = memory.as_ref().filter(|memory| leaves(cx, memory.policy)) {
            kept = beside(kept, &memory.kept, rule, &content, policy);
        }
        let unread = is_unread(end, memory.as_ref(), rule, &kept).then_some((end.uid, end.version));
        match &mut memory {
            None => memory = Some(first(end, kept, policy)),
            Some(memory) if merges => memory.merge(end, kept, rule, policy),
            Some(memory) => memory.replace(end, kept, rule, policy),
        }
        if let Some(memory) = &mut memory {
            memory.unread = memory.unread.or(unread);
        }
    }
    // Also where all that was remembered is forgotten on the way: a record's version only grows.
    if let (Some(memory), Some((_, version))) = (&mut memory, record) {
        memory.version = memory.version.max(version);
    }
    memory
}

/// Whether what an end leaves depends on a machine that nobody read. The watch tells metadata alone, so a life that
/// was short, or that another replica looked after, is known without its machine.
fn is_unread(end: &End, memory: Option<&Memory>, rule: &Rule, kept: &Kept) -> bool {
    if end.provider != Provider::Unread || memory.is_some_and(|memory| memory.knows(end).is_some()) {
        return false;
    }
    // One that got its privileged labels back does not wait for them any more.
    let waited = memory.is_some_and(|memory| !memory.waiting.is_empty());
    rule.needs_identity(&kept.labels) || end.mark == Mark::Full && waited
}

/// What earlier lives left and was never given to the one that an open record names: it lies beneath that
/// life's own end, as if it was being given. Not where another machine left it and the rule tells them apart.
fn beneath(record: &Record, version: Version, ends: &[End], cx: &Context<'_>) -> Option<Memory> {
    let own = ends.iter().find(|end| end.uid == record.incarnation.uid);
    if record.state != State::Open || record.given || own.is_some_and(|end| end.mark != Mark::None) {
        return None;
    }
    let earlier = |end: &&End| end.uid != record.incarnation.uid && end.version <= version;
    let earlier: Vec<End> = ends.iter().filter(earlier).cloned().collect();
    let mut memory = fold(None, &earlier, cx).filter(|memory| !memory.is_empty())?;
    let rule = cx.policy.rule_for(&record.kept.labels, Some(&memory.labels()))?;
    let (theirs, own_machine) = (&memory.incarnation.provider_id, &record.incarnation.provider_id);
    if rule.identity() != Identity::Name && own_machine.is_some() && theirs != own_machine {
        return None;
    }
    memory.set_privileged_aside();
    if own.is_none() {
        memory.kept = merged(&record.kept, &memory.kept, rule);
        memory.chosen = mixed(record.policy, memory.chosen);
    }
    memory.wait_for(&record.waiting);
    Some(Memory { incarnation: record.incarnation.clone(), version, policy: record.policy, ..memory })
}

/// What an end means to a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// It is older than what the record says.
    None,
    /// It is the content.
    Content,
    /// It is a later life's: the content if it bore its mark, otherwise merged.
    Later,
}

fn whose_word(record: &Record, version: Version, end: &End) -> Word {
    if let Some(doubt) = record.unproved.as_ref().filter(|doubt| doubt.uid == end.uid) {
        return if doubt.from == State::Open { Word::Content } else { Word::Later };
    }
    match record.state {
        State::Open if end.uid == record.incarnation.uid => Word::Content,
        State::Giving if end.uid == record.incarnation.uid => Word::Later,
        State::Open | State::Giving | State::Closed if end.version > version => Word::Later,
        State::Open | State::Giving | State::Closed => Word::None,
    }
}

fn first(end: &End, kept: Kept, policy: &Policy) -> Memory {
    Memory {
        incarnation: Incarnation { uid: end.uid, provider_id: end.provider.id().map(str::to_owned) },
        version: end.version,
        kept,
        waiting: WaitingKeys::new(),
        unproved: None,
        policy: policy.digest(),
        chosen: policy.digest(),
        unread: None,
    }
}

/// What a node that bears `onto` would bear after `from` was restored to it, as far as it is kept.
pub(super) fn merged(onto: &Kept, from: &Kept, rule: &Rule) -> Kept {
    let pairs = |onto: &Pairs, from: &Pairs, overwrites: &dyn Fn(&str) -> bool| {
        let mut all = onto.clone();
        for (key, value) in from {
            if overwrites(key) || !all.contains_key(key) {
                all.insert(key.clone(), value.clone());
            }
        }
        all
    };
    let mut taints = onto.taints.clone();
    for taint in missing_taints(&onto.taints, &from.taints, rule) {
        taints.retain(|other| !other.same_slot(taint));
        taints.push(taint.clone());
    }
    taints.sort();
    Kept {
        labels: pairs(&onto.labels, &from.labels, &|key| rule.overwrites_label(key)),
        annotations: pairs(&onto.annotations, &from.annotations, &|key| rule.overwrites_annotation(key)),
        taints,
        unschedulable: onto.unschedulable || from.unschedulable,
    }
}

/// The taints of `from` that `onto` lacks, or bears with another value where the rule overwrites.
pub(super) fn missing_taints<'a>(onto: &[Taint], from: &'a [Taint], rule: &Rule) -> Vec<&'a Taint> {
    let wanted = |taint: &&Taint| match onto.iter().find(|other| other.same_slot(taint)) {
        None => true,
        Some(other) => other.value != taint.value && rule.overwrites_taint(&taint.key),
    };
    from.iter().filter(wanted).collect()
}
