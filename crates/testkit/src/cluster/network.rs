//! The cluster's network: a switch in the control plane's namespace, with a cable to every worker and one to the host.
//!
//! The host keeps a single link, which vanishes with the control plane, and routes over it to pods and Services. No
//! setting of the host is touched: whoever forwards packets is a worker, in a namespace of its own.

use std::{fs, net::Ipv4Addr};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::{
    command::{command, feed, run},
    layout::{CONTROL_PLANE_ADDRESS, HOST, HOST_LINK, MACHINES, PODS, SERVICES, WORKERS, address, pods},
    machine::{Machine, search_path},
};

/// What the host's link says of its cluster: the state folder. Nothing if no cluster is up.
pub(super) fn cluster_up() -> Option<String> {
    let alias = fs::read_to_string(format!("/sys/class/net/{HOST_LINK}/ifalias")).ok()?;
    Some(alias.trim_end().to_owned())
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
    let mut script = format!(
        "ip link add {HOST_LINK} type veth peer name host netns {pid}
         ip link set {HOST_LINK} alias {state:?}
         ip address add {HOST}/24 dev {HOST_LINK}
         ip link set {HOST_LINK} up\n"
    );
    for worker in 1..=WORKERS {
        script += &format!("ip route add {} via {}\n", pods(worker), address(worker));
    }
    // Any worker knows the way to a Service.
    script += &format!("ip route add {SERVICES} via {}\n", address(1));
    feed(command("sh").arg("-e").env("PATH", search_path()), &script).await.context("connecting the host")?;

    let mut script = format!(
        "ip link set lo up
         ip link add switch type bridge
         ip address add {CONTROL_PLANE_ADDRESS}/24 dev switch
         ip link set switch up
         ip link set host master switch up
         ip route add default via {HOST}\n"
    );
    for worker in 1..=WORKERS {
        script += &format!("ip route add {} via {}\n", pods(worker), address(worker));
    }
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
    let mut script = format!(
        "ip link set lo up
         ip address add {}/24 dev eth0
         ip link set eth0 up
         ip route add default via {HOST}
         echo 1 >/proc/sys/net/ipv4/ip_forward\n",
        address(worker)
    );
    for other in (1..=WORKERS).filter(|other| *other != worker) {
        script += &format!("ip route add {} via {}\n", pods(other), address(other));
    }
    feed(machine.network_command("sh")?.arg("-e"), &script)
        .await
        .with_context(|| format!("addressing {name}"))?;
    Ok(())
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
