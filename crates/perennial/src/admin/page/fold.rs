//! Sorted lines, and changes that are folded into them.

/// Folds changes into lines that are sorted by name; gives back those that are news, and whether lines came or went.
///
/// Those that come and go are moved together, in one pass, however many they are: a fleet that joins at once would otherwise
/// move every line for each of its nodes.
pub(super) fn fold<K: Ord + Clone, V: Copy + PartialEq>(
    lines: &mut Vec<(K, V)>,
    changed: Vec<(K, Option<V>)>,
) -> (Vec<(K, Option<V>)>, bool) {
    let (mut news, mut come, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in changed {
        match (lines.binary_search_by(|(known, _)| known.cmp(&name)), value) {
            (Ok(at), Some(value)) if lines[at].1 == value => continue,
            (Ok(at), Some(value)) => lines[at].1 = value,
            (Ok(at), None) => gone.push(at),
            (Err(_), Some(value)) => come.push((name.clone(), value)),
            (Err(_), None) => continue,
        }
        news.push((name, value));
    }
    let moved = !come.is_empty() || !gone.is_empty();
    if !gone.is_empty() {
        gone.sort_unstable();
        let mut gone = gone.into_iter().peekable();
        let mut at = 0;
        lines.retain(|_| {
            at += 1;
            gone.next_if_eq(&(at - 1)).is_none()
        });
    }
    if !come.is_empty() {
        lines.append(&mut come);
        // Two runs that are sorted already: the standard library merges them.
        lines.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    (news, moved)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Counter;
    use std::cmp::Ordering;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    thread_local! {
        static COMPARED: Counter<usize> = const { Counter::new(0) };
    }

    /// A name that counts how often it is compared.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[test]
    fn a_huge_join_costs_a_pass_over_the_lines_and_not_one_for_each_node() {
        let (known, new) = (20_000_u32, 20_000_u32);
        let mut lines: Vec<(Counted, u8)> = (0..known).map(|at| (Counted(2 * at), 0)).collect();
        let join = (0..new).map(|at| (Counted(2 * at + 1), Some(0))).collect();
        COMPARED.set(0);
        let (news, moved) = fold(&mut lines, join);
        let (found, all) = (COMPARED.get(), (known + new) as usize);
        assert!(moved && news.len() == new as usize && lines.len() == all);
        // A place for each, found by halving (16 steps), and two passes over all of them.
        assert!(found <= 16 * new as usize + 2 * all, "{found} comparisons of {all} lines");
        let leave = (0..new).map(|at| (Counted(2 * at + 1), None)).collect();
        fold(&mut lines, leave);
        assert_eq!(lines.len(), known as usize);
    }

    proptest! {
        #[test]
        fn what_is_folded_in_is_what_a_map_would_hold(
            before in proptest::collection::btree_map(0_u8..40, 0_u8..3, 0..30),
            changed in proptest::collection::btree_map(0_u8..40, proptest::option::of(0_u8..3), 0..30),
        ) {
            let mut lines: Vec<(u8, u8)> = before.clone().into_iter().collect();
            let (news, moved) = fold(&mut lines, changed.clone().into_iter().collect());
            let mut after = before.clone();
            for (name, value) in &changed {
                match value {
                    Some(value) => after.insert(*name, *value),
                    None => after.remove(name),
                };
            }
            let expected: BTreeMap<u8, Option<u8>> =
                changed.into_iter().filter(|(name, value)| before.get(name).copied() != *value).collect();
            prop_assert_eq!(lines, after.clone().into_iter().collect::<Vec<_>>());
            prop_assert_eq!(news.into_iter().collect::<BTreeMap<_, _>>(), expected);
            prop_assert_eq!(moved, !before.keys().eq(after.keys()));
        }
    }
}
