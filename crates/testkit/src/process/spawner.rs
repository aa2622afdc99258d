//! The one thread that starts children.
//!
//! "Kill me when my parent dies" (`PR_SET_PDEATHSIG`) means the *thread* that forked, and threads of tests and of
//! runtimes end long before the process does. So every child is started from this thread, which never ends.

use std::{
    io,
    process::{Child, Command},
    sync::{
        OnceLock,
        mpsc::{Sender, channel},
    },
    thread,
};

struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Starts a command from the thread that lives as long as this process.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
    let gone = || io::Error::other("the spawner thread is gone");
    let (reply, answer) = channel();
    ORDERS.get_or_init(begin).send(Order { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn begin() -> Sender<Order> {
    let (sender, orders) = channel::<Order>();
    thread::Builder::new()
        .name("spawner".into())
        .spawn(move || {
            for Order { mut command, reply } in orders {
                // Whoever ordered may be gone already: then the child is dropped here, and must not run on.
                if let Err(unclaimed) = reply.send(command.spawn())
                    && let Ok(mut child) = unclaimed.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        })
        .expect("a thread can be started");
    sender
}
