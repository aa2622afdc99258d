//! The file as it changes: paused time, so that a look every few seconds takes none.

use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

use super::*;

const ONE: &str = "retention: 24h\n";
const TWO: &str = "retention: 48h\n";
const BROKEN: &str = "retention: [\n";

struct Followed {
    policy: watch::Receiver<Arc<Policy>>,
    registry: Registry,
    _task: AbortOnDropHandle<()>,
}

fn follow(source: PolicySource) -> Followed {
    let mut registry = Registry::default();
    let metrics = PolicyMetrics::register(&mut registry);
    let policy = source.subscribe();
    let task = tokio::spawn(source.follow(metrics, CancellationToken::new()));
    Followed { policy, registry, _task: AbortOnDropHandle::new(task) }
}

impl Followed {
    /// Waits for the next policy.
    async fn changed(&mut self) -> Policy {
        tokio::time::timeout(Duration::from_mins(1), self.policy.changed()).await.unwrap().unwrap();
        Policy::clone(&self.policy.borrow_and_update())
    }

    /// Lets several looks pass; tells whether the policy changed.
    async fn changes_within_a_minute(&mut self) -> bool {
        tokio::time::timeout(Duration::from_mins(1), self.policy.changed()).await.is_ok()
    }

    fn metric(&self, line: &str) -> bool {
        crate::metrics::encode(&self.registry).lines().any(|is| is == line)
    }
}

fn file(content: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.yaml");
    std::fs::write(&path, content).unwrap();
    (dir, path)
}

fn policy(text: &str) -> Policy {
    Policy::parse(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_comes_into_force() {
    let (_dir, path) = file(ONE);
    let mut followed = follow(PolicySource::file(path.clone()).unwrap());
    assert_eq!(**followed.policy.borrow(), policy(ONE));
    std::fs::write(&path, TWO).unwrap();
    assert_eq!(followed.changed().await, policy(TWO));
    assert!(followed.metric("policy_reloads_total{result=\"ok\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_file_leaves_the_old_policy_in_force_and_is_told_once() {
    let (_dir, path) = file(ONE);
    let mut followed = follow(PolicySource::file(path.clone()).unwrap());
    std::fs::write(&path, BROKEN).unwrap();
    assert!(!followed.changes_within_a_minute().await);
    assert_eq!(**followed.policy.borrow(), policy(ONE));
    assert!(followed.metric("policy_reloads_total{result=\"failed\"} 1"));
    assert!(followed.metric("policy_refused 1"));

    std::fs::write(&path, TWO).unwrap();
    assert_eq!(followed.changed().await, policy(TWO));
    assert!(followed.metric("policy_refused 0"));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_vanishes_and_returns_as_it_was_changes_nothing() {
    let (_dir, path) = file(ONE);
    let mut followed = follow(PolicySource::file(path.clone()).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert!(!followed.changes_within_a_minute().await);
    assert!(followed.metric("policy_refused 1"));
    std::fs::write(&path, ONE).unwrap();
    assert!(!followed.changes_within_a_minute().await);
    assert!(followed.metric("policy_refused 0"));
}

#[tokio::test(start_paused = true)]
async fn a_mounted_configmap_that_swaps_its_symlink_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (version, content) in [("v1", ONE), ("v2", TWO)] {
        std::fs::create_dir(at(version)).unwrap();
        std::fs::write(at(version).join("policy.yaml"), content).unwrap();
    }
    symlink("v1", at("..data")).unwrap();
    symlink("..data/policy.yaml", at("policy.yaml")).unwrap();
    let mut followed = follow(PolicySource::file(at("policy.yaml")).unwrap());
    symlink("v2", at("..data_tmp")).unwrap();
    std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    assert_eq!(followed.changed().await, policy(TWO));
}

#[tokio::test(start_paused = true)]
async fn a_comment_makes_no_other_policy() {
    let (_dir, path) = file(ONE);
    let mut followed = follow(PolicySource::file(path.clone()).unwrap());
    std::fs::write(&path, format!("# a day\n{ONE}")).unwrap();
    assert!(!followed.changes_within_a_minute().await);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_policy_never_changes_and_never_ends() {
    let mut followed = follow(PolicySource::fixed(Policy::default()));
    assert!(!followed.changes_within_a_minute().await);
    assert!(followed.policy.has_changed().is_ok());
}

#[test]
fn a_file_that_is_no_policy_is_refused_with_its_path() {
    let (dir, path) = file(BROKEN);
    let refused = |path: &Path| PolicySource::file(path.to_owned()).unwrap_err();
    assert!(matches!(refused(&path), Error::Broken { .. }));
    assert!(matches!(refused(dir.path()), Error::Read { .. }));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(refused(&path), Error::Read { .. }));
    std::fs::write(&path, "#".repeat(2 * 1024 * 1024)).unwrap();
    let error = refused(&path);
    assert_eq!(error, Error::TooLarge(path.clone()));
    assert!(error.to_string().contains("policy.yaml"));
}
