//! The program itself: plain when piped, its exit status, and under another name.

use std::process::{Command, Output, Stdio};

use crate::world::{World, pairs};

fn run(world: &World, program: &std::path::Path, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .args(["-n", world.namespace(), "--installation", "perennial"])
        .env("KUBECONFIG", world.plane.kubeconfig_for_admin().unwrap())
        .env_remove("PERENNIAL_NAMESPACE")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_plain_when_piped_and_its_exit_status_tells() {
    let world = World::start().await;
    world.register("worker-1", &pairs([("team", "blue")])).await;
    world.recorded("worker-1", &pairs([("team", "blue")])).await;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_perennial"));
    let nodes = run(&world, program, &["nodes"]);
    let out = String::from_utf8(nodes.stdout).unwrap();
    assert!(out.starts_with("NODE       STATE     LABELS") && !out.contains('\u{1b}'), "{out}");
    assert_eq!((nodes.status.code(), String::from_utf8(nodes.stderr).unwrap().as_str()), (Some(0), ""));
    let coloured = run(&world, program, &["nodes", "--color", "always"]);
    assert!(String::from_utf8(coloured.stdout).unwrap().contains("\u{1b}[32mcurrent"));
    let missing = run(&world, program, &["show", "nobody"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(1), 0));
    assert_eq!(
        String::from_utf8(missing.stderr).unwrap(),
        "Error from server (NotFound): nodes \"nobody\" not found\n"
    );
    let asked = run(&world, program, &["forget", "worker-1"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(String::from_utf8(asked.stderr).unwrap().contains("nobody is there to ask"));
    assert_eq!(run(&world, program, &["diff"]).status.code(), Some(0));
    assert_eq!(run(&world, program, &["nodes", "--sort-by", "nothing"]).status.code(), Some(2));

    // As kubectl calls it.
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-perennial");
    std::os::unix::fs::symlink(program, &plugin).unwrap();
    let help = Command::new(&plugin).args(["nodes", "--help"]).output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("Usage: kubectl perennial nodes"));
    let names = run(&world, &plugin, &["nodes", "-o", "name"]);
    assert_eq!(String::from_utf8(names.stdout).unwrap(), "node/worker-1\n");
}

/// What the program says at a real terminal of this width.
fn at_terminal(world: &World, width: u16, words: &str, variables: &[(&str, &str)]) -> String {
    let (program, namespace) = (env!("CARGO_BIN_EXE_perennial"), world.namespace());
    let typed =
        format!("stty rows 40 cols {width}; {program} {words} -n {namespace} --installation perennial");
    let said = Command::new("script")
        .args(["-qec", &typed, "/dev/null"])
        .env("KUBECONFIG", world.plane.kubeconfig_for_admin().unwrap())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap().replace('\r', "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_colours_and_lines_that_fit() {
    let world = World::start().await;
    let name = "a-rather-long-name.of-a-worker.example.com";
    world.register(name, &pairs([("team", "blue")])).await;
    world.recorded(name, &pairs([("team", "blue")])).await;
    let wide = at_terminal(&world, 120, "nodes", &[]);
    assert!(wide.contains(name) && wide.contains("\u{1b}[32mcurrent\u{1b}[0m"), "{wide}");
    let narrow = at_terminal(&world, 50, "nodes", &[("NO_COLOR", "1")]);
    assert!(!narrow.contains('\u{1b}') && narrow.contains('…'), "{narrow}");
    let longest = narrow.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(50), "{longest:?}: {narrow}");
}
