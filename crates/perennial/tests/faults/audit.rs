//! What the API server's audit log says of the keeper.

use std::collections::BTreeMap;

use crate::world::World;

impl World {
    /// How often the keeper patched the nodes of this name, by the API server's audit log. What was asked before
    /// the last [`World::caught_up`] is counted for certain.
    pub(crate) fn patches_of(&self, node: &str) -> usize {
        self.patches().get(node).copied().unwrap_or_default()
    }

    /// The same for all nodes, by name.
    pub(crate) fn patches(&self) -> BTreeMap<String, usize> {
        let mut patches = BTreeMap::new();
        for entry in self.plane.audit().unwrap() {
            let by_keeper = entry.user == self.keepers_name();
            if by_keeper && entry.verb == "patch" && entry.resource == "nodes" && entry.code == 200 {
                *patches.entry(entry.name).or_default() += 1;
            }
        }
        patches
    }
}
