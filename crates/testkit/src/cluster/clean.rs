//! Taking a cluster down, whatever state it is in.

use std::{fs, io::ErrorKind, time::Duration};

use anyhow::{Context as _, anyhow};
use nix::fcntl::{Flock, FlockArg};

use super::{cgroups, layout::Layout, machine::Machine, network, wait::wait_until};

const PATIENCE: Duration = Duration::from_mins(1);

/// Held by who starts or stops the cluster.
pub(super) fn lock(layout: &Layout) -> anyhow::Result<Flock<fs::File>> {
    let path = layout.lock();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let file = fs::File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("opening {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        anyhow!("somebody else is starting or stopping the cluster in {}", layout.folder().display())
    })
}

/// Stops and removes everything of the cluster in this folder that is still there.
///
/// With its first process a machine loses all others, its mounts and its network; what is left are control groups and
/// files.
pub(super) fn clean(layout: &Layout) -> anyhow::Result<()> {
    let folder = layout.folder();
    let machines = match fs::read_dir(folder.join("machines")) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for entry in machines {
        let name = entry.file_name().to_string_lossy().into_owned();
        Machine::new(&name, entry.path(), &layout.logs()).cut_power()?;
    }
    // Another cluster may be up, with its state elsewhere: these are its own then.
    if network::cluster_up().is_none() {
        network::disconnect_host()?;
        cgroups::remove()?;
    }
    // The last words of a machine that is being switched off may fall into a folder that was empty a moment ago.
    wait_until(PATIENCE, &format!("{} is removed", folder.display()), || match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
}
