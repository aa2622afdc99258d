//! What people see and do, with their own kubeconfig and permissions.
//!
//! ```text
//! records, then nodes ──list──> lines ──core::keeper::decide──> how each stands ──> tables, JSON, YAML
//!                                 └──core::keeper::{decide, undo}──> Plan, Undo ──confirm──> conditional writes
//! ```
//! No replica is asked or told: all there is to know is in the cluster's own API. Whatever is written carries the uid and
//! the version that was decided on, as the keeper's own writes do; when somebody was faster it is read and decided again.

mod compare;
mod desk;
mod diff;
mod document;
mod error;
mod events;
mod export;
mod fleet;
mod forget;
mod hand;
mod import;
mod listings;
mod nodes;
mod policy;
mod restore;
mod rollback;
mod screen;
mod show;
mod standing;
mod status;
mod table;
mod times;
mod writes;

use crate::args::operate::{Operation, PolicyArgs, PolicyCommand};
use crate::config::{DeskConfig, Surroundings};
use error::Error;

pub use screen::Screen;

/// What a command that failed exits with.
const FAILED: u8 = 1;
/// What `diff` exits with when it failed: 1 says that there are differences.
const FAILED_TO_COMPARE: u8 = 2;
/// How often somebody may be faster before a person is told.
const ATTEMPTS: u32 = 5;

/// Does what a person asked for, and returns what to exit with.
pub async fn run(operation: Operation, around: &Surroundings, screen: &mut Screen) -> u8 {
    let failed = if matches!(operation, Operation::Diff(_)) { FAILED_TO_COMPARE } else { FAILED };
    if must_finish(&operation) {
        screen.go_on();
    }
    let done = operate(operation, around, screen).await;
    let done = done.and_then(|code| screen.finish().map(|()| code));
    match done {
        Ok(code) => code,
        // Whoever looked has seen enough.
        Err(error) if error.is_broken_pipe() => 0,
        Err(error) => {
            // Where nobody listens there is nobody to tell.
            screen.note(&error).ok();
            failed
        }
    }
}

/// Whether it goes on where nobody reads what it says: it changes something, or its exit status is the answer.
fn must_finish(operation: &Operation) -> bool {
    match operation {
        Operation::Restore(_)
        | Operation::Rollback(_)
        | Operation::Forget(_)
        | Operation::Pause(_)
        | Operation::Resume(_)
        | Operation::Import(_)
        | Operation::Export(_)
        | Operation::Diff(_) => true,
        Operation::Nodes(_)
        | Operation::Show(_)
        | Operation::Status(_)
        | Operation::Policy(_)
        | Operation::Listings(_) => false,
    }
}

async fn operate(operation: Operation, around: &Surroundings, screen: &mut Screen) -> Result<u8, Error> {
    let config = DeskConfig::check(operation.desk(), around)?;
    match operation {
        Operation::Nodes(args) => nodes::run(&args, &config, screen).await,
        Operation::Show(args) => show::run(&args, &config, screen).await,
        Operation::Status(args) => status::run(&args, &config, screen).await,
        Operation::Diff(args) => diff::run(&args, &config, screen).await,
        Operation::Restore(args) => restore::run(&args, &config, screen).await,
        Operation::Rollback(args) => rollback::run(&args, &config, screen).await,
        Operation::Forget(args) => forget::run(&args, &config, screen).await,
        Operation::Pause(args) => hand::run(&args, true, &config, screen).await,
        Operation::Resume(args) => hand::run(&args, false, &config, screen).await,
        Operation::Export(args) => export::run(&args, &config, screen).await,
        Operation::Import(args) => import::run(&args, &config, screen).await,
        Operation::Policy(PolicyArgs { command: PolicyCommand::Check(args) }) => {
            policy::run(&args, &config, screen).await
        }
        Operation::Listings(args) => listings::run(&args, &config, screen).await,
    }
}
