//! The reference in docs/cli.md, written from the commands themselves.

use std::fmt::Write as _;

use clap::{Arg, Command};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
/// What stands above this line is written by hand.
const MARK: &str =
    "<!-- From here on made from the binary: UPDATE_DOCS=1 cargo test -p perennial --lib docs -->\n";

fn reference() -> String {
    let command = crate::args::command();
    let mut page = format!("{MARK}\n# Reference\n\nEvery command also has:\n\n| flag | |\n| --- | --- |\n");
    let nodes = command.find_subcommand("nodes").unwrap();
    let shared = |arg: &&Arg| arg.get_help_heading() == Some("Cluster");
    nodes.get_arguments().filter(shared).for_each(|arg| page.push_str(&row(arg)));
    for name in super::NAMES {
        let command = command.find_subcommand(name).unwrap();
        let below: Vec<&Command> = command.get_subcommands().collect();
        if below.is_empty() {
            page.push_str(&section(name, command));
        }
        for one in below {
            page.push_str(&section(&format!("{name} {}", one.get_name()), one));
        }
    }
    page
}

fn section(name: &str, command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about()).unwrap().to_string();
    let full = if about.ends_with('.') { "" } else { "." };
    let mut text = format!("\n## `perennial {name}`\n\n{about}{full}\n");
    let mut own = command.get_arguments().filter(|arg| arg.get_help_heading() != Some("Cluster")).peekable();
    if own.peek().is_some() {
        text.push_str("\n| argument | |\n| --- | --- |\n");
    }
    own.for_each(|arg| text.push_str(&row(arg)));
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let examples = examples.strip_prefix("Examples:\n").unwrap_or(&examples);
        let lines = examples.lines().map(|line| match line.strip_prefix("    ") {
            Some(typed) => format!("{typed}\n"),
            None if line.trim().is_empty() => "\n".to_owned(),
            None => format!("# {}\n", line.trim().trim_end_matches(':')),
        });
        write!(text, "\n```sh\n{}```\n", lines.collect::<String>()).unwrap();
    }
    text
}

fn row(arg: &Arg) -> String {
    let values =
        if arg.get_action().takes_values() { arg.get_value_names().unwrap_or_default() } else { &[] };
    let value = values.first().map(|value| format!(" {value}")).unwrap_or_default();
    let flag = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (None, Some(long)) => format!("--{long}{value}"),
        _ => value.trim().to_owned(),
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let possible: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    let switch = !arg.get_action().takes_values();
    let possible =
        if possible.is_empty() || switch { String::new() } else { format!(": {}", possible.join(", ")) };
    format!("| `{flag}` | {}{possible} |\n", help.replace('|', "\\|"))
}

#[test]
fn the_page_of_commands_is_what_the_commands_say() {
    let written = std::fs::read_to_string(PAGE).unwrap();
    let (by_hand, made) = written.split_once(MARK).expect("the line after which it is made");
    let reference = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, format!("{by_hand}{reference}")).unwrap();
        return;
    }
    assert_eq!(
        format!("{MARK}{made}"),
        reference,
        "docs/cli.md is old: UPDATE_DOCS=1 cargo test -p perennial --lib docs"
    );
}
