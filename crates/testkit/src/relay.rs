//! TCP relays on the loopback address: what they carry can be delayed, held or cut, and one of them can spread
//! connections over several servers.

use std::{
    net::{Ipv4Addr, TcpListener as StdListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

/// What becomes of the bytes on a connection between two servers, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// They arrive.
    #[default]
    Open,
    /// They arrive this much later.
    Delayed(Duration),
    /// They arrive when the link is open again: connections stay, and stay silent.
    Held,
    /// Connections break, and new ones break at once.
    Cut,
}

/// Accepts connections on a port of its own until it is dropped, and carries them to a server.
pub(crate) struct Relay {
    port: u16,
    link: watch::Sender<Link>,
    _accepting: AbortOnDropHandle<()>,
}

impl Relay {
    /// Carries connections to these ports in turn. A port that refuses is passed over.
    pub(crate) fn in_turn(ports: Vec<u16>) -> anyhow::Result<Self> {
        let next = AtomicUsize::new(0);
        Self::start(Bound::new()?, ports, move |many| next.fetch_add(1, Ordering::Relaxed) % many)
    }

    /// Carries connections to the first of these ports that does not refuse.
    pub(crate) fn to_first(ports: Vec<u16>) -> anyhow::Result<Self> {
        Self::start(Bound::new()?, ports, |_| 0)
    }

    /// One relay before each of these etcd members, by the ports that they listen to their peers on. The link of a
    /// member is that of the connections to it and of those that it opens to others.
    pub(crate) fn between_peers(ports: &[u16]) -> anyhow::Result<Vec<Self>> {
        let bound = ports.iter().map(|_| Bound::new()).collect::<anyhow::Result<Vec<_>>>()?;
        let links: Vec<_> = ports.iter().map(|_| watch::Sender::new(Link::Open)).collect();
        let links_by_port: Arc<[(u16, watch::Sender<Link>)]> =
            bound.iter().map(|bound| bound.port).zip(links.iter().cloned()).collect();
        let relays = bound.into_iter().zip(links).zip(ports).map(|((bound, link), port)| {
            let (port, links_by_port) = (*port, links_by_port.clone());
            let own = link.clone();
            bound.serve(link, move |stream| {
                let (own, links_by_port) = (own.clone(), links_by_port.clone());
                async move {
                    let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
                    let mut links = vec![own.subscribe()];
                    if let Some(from) = peer_port(&stream).await {
                        let dialer = links_by_port.iter().find(|(port, _)| *port == from);
                        links.extend(dialer.map(|(_, link)| link.subscribe()));
                    }
                    carry(stream, to, links).await;
                }
            })
        });
        relays.collect()
    }

    fn start(
        bound: Bound,
        ports: Vec<u16>,
        first: impl Fn(usize) -> usize + Send + 'static,
    ) -> anyhow::Result<Self> {
        let link = watch::Sender::new(Link::Open);
        let own = link.clone();
        bound.serve(link, move |stream| {
            let mut ports = ports.clone();
            let first = first(ports.len());
            ports.rotate_left(first);
            let link = own.subscribe();
            async move {
                for port in ports {
                    if let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                        return carry(stream, to, vec![link]).await;
                    }
                }
            }
        })
    }

    /// The port that it accepts connections on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Decides what becomes of what it carries, from now on.
    pub(crate) fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

/// A listening socket whose port is known before anybody serves it.
struct Bound {
    listener: StdListener,
    port: u16,
}

impl Bound {
    fn new() -> anyhow::Result<Self> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a relay")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    fn serve<Fut: Future<Output = ()> + Send + 'static>(
        self,
        link: watch::Sender<Link>,
        carry: impl Fn(TcpStream) -> Fut + Send + 'static,
    ) -> anyhow::Result<Relay> {
        let listener = TcpListener::from_std(self.listener)?;
        let accepting = async move {
            // Dropped with the relay, and with it every connection.
            let mut carried = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        if let Ok((stream, _)) = accepted {
                            carried.spawn(carry(stream));
                        }
                    }
                    Some(_) = carried.join_next() => {}
                }
            }
        };
        let accepting = AbortOnDropHandle::new(tokio::spawn(accepting));
        Ok(Relay { port: self.port, link, _accepting: accepting })
    }
}

/// The port of the peer address that an etcd member states in the head of its first request.
async fn peer_port(stream: &TcpStream) -> Option<u16> {
    let mut head = [0; 2048];
    let read = stream.peek(&mut head).await.ok()?;
    let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
    let url = head.lines().find_map(|line| line.strip_prefix("x-peerurls: http://127.0.0.1:"))?;
    url.trim().parse().ok()
}

/// Carries bytes both ways until one side ends, or a link is cut.
async fn carry(from: TcpStream, to: TcpStream, links: Vec<watch::Receiver<Link>>) {
    // Only speed depends on it.
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
    let both = async {
        tokio::try_join!(pump(from_read, to_write, links.clone()), pump(to_read, from_write, links.clone()))
    };
    let cuts = links.iter().cloned().map(|mut link| {
        Box::pin(async move {
            let _ = link.wait_for(|link| *link == Link::Cut).await;
        })
    });
    tokio::select! {
        _ = both => {}
        _ = futures::future::select_all(cuts) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut links: Vec<watch::Receiver<Link>>,
) -> std::io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut chunk).await?;
        for link in &mut links {
            let delay = match link.wait_for(|link| *link != Link::Held).await.as_deref() {
                Ok(Link::Delayed(delay)) => *delay,
                _ => Duration::ZERO,
            };
            if !delay.is_zero() {
                sleep(delay).await;
            }
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers every connection with its name and then repeats what it hears.
    async fn server(name: u8) -> (u16, AbortOnDropHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    write.write_u8(name).await.unwrap();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        (port, AbortOnDropHandle::new(serving))
    }

    /// Connects, and tells which server answers.
    async fn connect(relay: &Relay) -> (TcpStream, u8) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).await.unwrap();
        let name = stream.read_u8().await.unwrap();
        (stream, name)
    }

    #[tokio::test]
    async fn connections_go_to_servers_in_turn_and_not_to_one_that_refuses() {
        let ((one, _one), (two, two_serves)) = (server(b'1').await, server(b'2').await);
        let relay = Relay::in_turn(vec![one, two]).unwrap();
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(connect(&relay).await.1);
        }
        assert_eq!(names, *b"1212");
        drop(two_serves);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, two)).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let after = [connect(&relay).await.1, connect(&relay).await.1];
        assert_eq!(after, *b"11");
    }

    #[tokio::test]
    async fn connections_go_to_the_first_server_that_does_not_refuse() {
        let ((one, _one), (two, _two)) = (server(b'1').await, server(b'2').await);
        let refuses = Bound::new().unwrap().port;
        for (ports, name) in [(vec![one, two], b'1'), (vec![refuses, two], b'2')] {
            let relay = Relay::to_first(ports).unwrap();
            assert_eq!([connect(&relay).await.1, connect(&relay).await.1], [name, name]);
        }
    }

    #[tokio::test]
    async fn what_is_sent_over_a_held_link_arrives_when_it_is_open_again() {
        let (port, _serves) = server(b'1').await;
        let relay = Relay::to_first(vec![port]).unwrap();
        let (mut stream, _) = connect(&relay).await;
        relay.set(Link::Held);
        stream.write_all(b"x").await.unwrap();
        let mut silent = false;
        tokio::select! {
            _ = stream.read_u8() => {}
            () = sleep(Duration::from_millis(100)) => silent = true,
        }
        assert!(silent, "nothing arrives");
        relay.set(Link::Open);
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn what_is_sent_over_a_delayed_link_does_not_arrive_before() {
        let (port, _serves) = server(b'1').await;
        let relay = Relay::to_first(vec![port]).unwrap();
        let (mut stream, _) = connect(&relay).await;
        let delay = Duration::from_millis(50);
        relay.set(Link::Delayed(delay));
        let sent = std::time::Instant::now();
        stream.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
        assert!(sent.elapsed() >= 2 * delay, "once on its way there, once on its way back");
    }

    #[tokio::test]
    async fn a_cut_link_breaks_connections_that_are_open_and_new_ones() {
        let (port, _serves) = server(b'1').await;
        let relay = Relay::to_first(vec![port]).unwrap();
        let (mut stream, _) = connect(&relay).await;
        relay.set(Link::Cut);
        assert!(stream.read_u8().await.is_err());
        let mut new = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).await.unwrap();
        assert!(new.read_u8().await.is_err());
        relay.set(Link::Open);
        assert_eq!(connect(&relay).await.1, b'1');
    }
}
