//! The flags of `perennial check`, as typed.

use clap::Args as ClapArgs;

use super::RunArgs;

pub(super) const LONG_ABOUT: &str = "\
Checks what `perennial run` would be given, and changes nothing: the flags and variables, the policy file, whether the \
API server answers, whether this account may do all that the chosen roles need, and whether Listings are known where they \
are wanted. With --url, also whether a running replica says that it is ready.

It takes the same flags and variables as `perennial run`. Exit status: 0 all is well; 1 something is not, each told in \
a line of its own; 2 for a mistake in what was given.";

pub(super) const EXAMPLES: &str = "\
Examples:
  May this account do all that is needed?
    perennial check --roles keeper,lister

  Is this policy right, and does the cluster answer?
    perennial check --policy policy.yaml

  Does an installation work, as `helm test` asks?
    perennial check --url http://perennial.perennial.svc:8080";

/// The flags of `perennial check`.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct CheckArgs {
    /// What `perennial run` would be given.
    #[command(flatten)]
    pub run: RunArgs,

    /// The admin address of a running replica, or of the Service before them: it has to be ready
    #[arg(long, value_name = "URL", help_heading = "Checking")]
    pub url: Option<String>,
}
