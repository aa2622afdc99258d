//! A loopback port of one's own.
//!
//! Two things can take a port from a server that is stopped and shall come back under the same address: an
//! outgoing connection (the kernel picks those from its ephemeral range, so we stay below it), and another test
//! that looks for a free port (so each of us holds the UDP port of the same number for as long as it claims the
//! TCP port: the kernel lets only one have it, and frees it whatever happens to us).

use std::{
    fs,
    net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket},
    ops::Range,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, bail};

const LOWEST: u16 = 20_000;
/// Where Linux begins its ephemeral range unless told otherwise.
const EPHEMERAL: u16 = 32_768;

/// A claim on a loopback TCP port, given up on drop.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: UdpSocket,
}

impl Port {
    /// Claims a port that nobody listens on.
    pub fn claim() -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let range = range();
        let size = u32::from(range.end - range.start);
        for _ in 0..size {
            // Processes that start at the same time have pids close together: begin far apart.
            let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(process::id().wrapping_mul(97));
            let number = range.start + u16::try_from(step % size)?;
            if let Some(port) = Self::try_claim(number) {
                return Ok(port);
            }
        }
        bail!("no free port in {range:?}")
    }

    fn try_claim(number: u16) -> Option<Self> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, number);
        let claim = UdpSocket::bind(address).ok()?;
        TcpListener::bind(address).ok()?;
        Some(Self { number, _claim: claim })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

fn range() -> Range<u16> {
    let ephemeral = ephemeral_start().unwrap_or(EPHEMERAL);
    if ephemeral > LOWEST + 1_000 { LOWEST..ephemeral } else { LOWEST..EPHEMERAL }
}

fn ephemeral_start() -> anyhow::Result<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    Ok(range.split_whitespace().next().context("empty")?.parse()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::eventually::eventually;

    #[tokio::test]
    async fn a_claimed_port_is_not_claimed_twice() {
        let ports: Vec<Port> = (0..50).map(|_| Port::claim().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        assert!(Port::try_claim(numbers[0]).is_none());
        drop(ports);
        // A child that is being started holds copies of our sockets until it becomes its program.
        eventually(Duration::from_secs(5), "the port is free again", || async {
            Ok(Port::try_claim(numbers[0]))
        })
        .await
        .unwrap();
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_left_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(Port::try_claim(listener.local_addr().unwrap().port()).is_none());
    }
}
