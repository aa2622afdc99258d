//! The cluster's network: a switch in the control plane's namespace, with a cable to every worker and one to the host.
//!
//! The host keeps a single link, which vanishes with the control plane, and routes over it to pods and Services. No
//! setting of the host is touched: whoever forwards packets is a worker, in a namespace of its own.

use std::{fs, net::Ipv4Addr, path::PathBuf, process::Command as StdCommand, time::Duration};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::{
    command::{command, feed, run},
    layout::{
        CONTROL_PLANE, CONTROL_PLANE_ADDRESS, HOST, HOST_LINK, MACHINES, PODS, SERVICES, WORKERS, address,
        pods,
    },
    machine::{Machine, search_path},
    wait::wait_until,
};

const PATIENCE: Duration = Duration::from_mins(1);
/// Connections that lost their other end, and their process, would keep a network alive for minutes.
const FORGET_ORPHANS: &str = "echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries";

/// The state folder of the cluster that is up on this machine, if one is.
pub(super) fn cluster_up() -> Option<PathBuf> {
    let state = linked()?;
    // The kernel may keep the link for a while after all machines have died.
    let folder = state.join("machines").join(CONTROL_PLANE);
    Machine::new(CONTROL_PLANE, folder, &state).pid().is_ok().then_some(state)
}

/// Whose state folder the host's link names, if there is one.
fn linked() -> Option<PathBuf> {
    let alias = fs::read_to_string(format!("/sys/class/net/{HOST_LINK}/ifalias")).ok()?;
    Some(alias.trim_end().into())
}

/// Removes the host's link, which goes by itself sooner or later.
pub(super) fn disconnect_host() -> anyhow::Result<()> {
    wait_until(PATIENCE, &format!("{HOST_LINK} is gone"), || {
        if linked().is_none() {
            return Ok(());
        }
        let output = StdCommand::new("ip")
            .args(["link", "delete", HOST_LINK])
            .env("PATH", search_path())
            .output()
            .map_err(|error| error.to_string())?;
        let gone = output.status.success() || linked().is_none();
        if gone { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    })
}

/// Fails if the host has other plans for the addresses of the cluster.
pub(super) async fn addresses_are_free() -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Route {
        dst: String,
        dev: Option<String>,
    }
    let routes = run(command("ip").args(["-4", "-j", "route"]).env("PATH", search_path())).await?;
    let routes: Vec<Route> = serde_json::from_str(&routes).context("reading the host's routes")?;
    for route in routes {
        for ours in [MACHINES, PODS, SERVICES] {
            ensure!(
                !overlap(&route.dst, ours),
                "the cluster needs the addresses {ours}, and this machine has a route to {} already (by {})",
                route.dst,
                route.dev.as_deref().unwrap_or("no link"),
            );
        }
    }
    Ok(())
}

/// Puts the switch into the control plane and plugs the host in.
pub(super) async fn connect_control_plane(machine: &Machine, state: &str) -> anyhow::Result<()> {
    let pid = machine.pid()?;
    // Any worker knows the way to a Service.
    let script = format!(
        "ip link add {HOST_LINK} type veth peer name host netns {pid}
         ip link set {HOST_LINK} alias {state:?}
         ip address add {HOST}/24 dev {HOST_LINK}
         ip link set {HOST_LINK} up
         ip route add {SERVICES} via {}
         {}",
        address(1),
        routes_to_pods(None)
    );
    feed(command("sh").arg("-e").env("PATH", search_path()), &script).await.context("connecting the host")?;

    let script = format!(
        "ip link set lo up
         ip link add switch type bridge
         ip address add {CONTROL_PLANE_ADDRESS}/24 dev switch
         ip link set switch up
         ip link set host master switch up
         ip route add default via {HOST}
         {FORGET_ORPHANS}
         {}",
        routes_to_pods(None)
    );
    feed(machine.network_command("sh")?.arg("-e"), &script).await.context("making the switch")?;
    Ok(())
}

/// Plugs a worker into the switch.
pub(super) async fn connect_worker(
    machine: &Machine,
    worker: u8,
    control_plane: &Machine,
) -> anyhow::Result<()> {
    let pid = machine.pid()?;
    let name = machine.name();
    // The cable of a machine that was switched off a moment ago may still hang there.
    let script = format!(
        "ip link delete {name} 2>/dev/null || true
         ip link add {name} type veth peer name eth0 netns {pid}
         ip link set {name} master switch up\n"
    );
    feed(control_plane.network_command("sh")?.arg("-e"), &script)
        .await
        .with_context(|| format!("connecting {name}"))?;
    // The way to a pod that is not there yet, or no more, is none. By the default route, which leads back where it came
    // from, whoever asked would be told to take it ever after, and reach the pod minutes later.
    let script = format!(
        "ip link set lo up
         ip address add {}/24 dev eth0
         ip link set eth0 up
         for link in all default eth0; do echo 0 >/proc/sys/net/ipv4/conf/$link/send_redirects; done
         ip route add unreachable {}
         ip route add default via {HOST}
         echo 1 >/proc/sys/net/ipv4/ip_forward
         {FORGET_ORPHANS}
         {}",
        address(worker),
        pods(worker),
        routes_to_pods(Some(worker))
    );
    feed(machine.network_command("sh")?.arg("-e"), &script)
        .await
        .with_context(|| format!("addressing {name}"))?;
    Ok(())
}

/// The ways to the pods of all workers but this one.
fn routes_to_pods(but: Option<u8>) -> String {
    let others = (1..=WORKERS).filter(|worker| but != Some(*worker));
    others
        .map(|worker| format!("ip route add {} via {}", pods(worker), address(worker)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether two blocks of addresses have one in common. `default` is no block.
fn overlap(one: &str, other: &str) -> bool {
    let (Some((one, bits)), Some((other, other_bits))) = (block(one), block(other)) else { return false };
    let shift = 32 - bits.min(other_bits);
    one.checked_shr(shift) == other.checked_shr(shift)
}

fn block(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits(), bits.parse().ok().filter(|bits| *bits <= 32)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_overlap_when_one_holds_the_other() {
        assert!(overlap("10.96.0.0/12", SERVICES));
        assert!(overlap("10.99.0.7", MACHINES));
        assert!(overlap("10.0.0.0/8", PODS));
        assert!(!overlap("192.0.2.0/24", PODS));
        assert!(!overlap("10.99.1.0/24", MACHINES));
        assert!(!overlap("default", MACHINES));
    }
}
