//! The control groups that the kubelets have for their roots, one below the other's: kubelets that shared a root would
//! remove each other's pods.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;

use super::wait::wait_until;

/// All of the cluster's are below this one.
const ROOT: &str = "perennial";
/// The kernel lets go of a group some time after the last process in it has died.
const PATIENCE: Duration = Duration::from_mins(1);

/// One tree of groups.
#[derive(Debug, PartialEq)]
struct Hierarchy {
    mount: PathBuf,
    /// Version 2, where controllers have to be switched on from above.
    unified: bool,
}

/// The path of a machine's group, as a kubelet takes it.
pub(super) fn path(machine: &str) -> String {
    format!("/{ROOT}/{machine}")
}

/// Makes a machine's group in every tree, new and empty: after a reboot nothing is left of the groups of pods, and a
/// kubelet that finds them looks in vain for their containers for minutes.
pub(super) fn create(machine: &str) -> anyhow::Result<()> {
    remove_below(Path::new(machine))?;
    for hierarchy in with_controllers(hierarchies()?) {
        let root = hierarchy.mount.join(ROOT);
        let group = root.join(machine);
        fs::create_dir_all(&group)
            .with_context(|| format!("making the control group {}", group.display()))?;
        if hierarchy.unified {
            switch_on_controllers(&hierarchy.mount)?;
            switch_on_controllers(&root)?;
        } else {
            // A new group for processors and memory has none of either, and nothing can be started in it.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                for (from, to) in [(&hierarchy.mount, &root), (&root, &group)] {
                    if from.join(file).exists() {
                        fs::write(to.join(file), fs::read(from.join(file))?)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Removes them all. Whatever ran in them must be dead or dying.
pub(super) fn remove() -> anyhow::Result<()> {
    remove_below(Path::new(""))
}

fn remove_below(group: &Path) -> anyhow::Result<()> {
    for hierarchy in hierarchies()? {
        let root = hierarchy.mount.join(ROOT).join(group);
        wait_until(PATIENCE, &format!("{} is removed", root.display()), || remove_tree(&root))?;
    }
    Ok(())
}

/// Innermost first; the files in a group are not files.
fn remove_tree(group: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

fn switch_on_controllers(group: &Path) -> anyhow::Result<()> {
    let available = fs::read_to_string(group.join("cgroup.controllers"))?;
    for controller in available.split_whitespace() {
        // Some cannot be had while others are in use; a kubelet says which it misses.
        let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
    Ok(())
}

fn hierarchies() -> anyhow::Result<Vec<Hierarchy>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    Ok(mounts.lines().filter_map(parse).collect())
}

/// Beside trees of version 1 that of version 2 has no controllers.
fn with_controllers(mut all: Vec<Hierarchy>) -> Vec<Hierarchy> {
    if all.iter().any(|hierarchy| !hierarchy.unified) {
        all.retain(|hierarchy| !hierarchy.unified);
    }
    all
}

fn parse(line: &str) -> Option<Hierarchy> {
    let (before, after) = line.split_once(" - ")?;
    let unified = match after.split(' ').next()? {
        "cgroup" => false,
        "cgroup2" => true,
        _ => return None,
    };
    Some(Hierarchy { mount: before.split(' ').nth(4)?.into(), unified })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_1: &str = "\
25 24 0:23 / /sys/fs/cgroup/cpu rw,relatime shared:4 - cgroup cgroup rw,cpu
26 24 0:24 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 24 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
28 1 0:26 / /proc rw - proc proc rw";

    #[test]
    fn every_tree_of_version_1_counts_and_the_empty_one_beside_them_does_not() {
        let all: Vec<Hierarchy> = VERSION_1.lines().filter_map(parse).collect();
        assert_eq!(all.len(), 3);
        let mounts: Vec<PathBuf> = with_controllers(all).into_iter().map(|tree| tree.mount).collect();
        assert_eq!(mounts, [PathBuf::from("/sys/fs/cgroup/cpu"), "/sys/fs/cgroup/memory".into()]);
    }

    #[test]
    fn version_2_alone_is_one_tree() {
        let line = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let tree = || Hierarchy { mount: "/sys/fs/cgroup".into(), unified: true };
        assert_eq!(parse(line), Some(tree()));
        assert_eq!(with_controllers(vec![tree()]), [tree()]);
    }
}
