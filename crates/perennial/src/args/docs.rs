//! docs/flags.md, written from the command itself.

use std::fmt::Write as _;

use super::settings::Setting;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");

const INTRODUCTION: &str = "\
# Flags and variables

Generated from the binary: `UPDATE_DOCS=1 cargo test -p perennial --lib docs` writes it anew.

A flag wins over its variable, a variable over that of an older operator, and that over the default. An empty
variable counts as not given. Switches are given by their variable as `true` or `false`. Durations are `90s`,
`5m`, `1h30m`. A value that is not allowed stops the start, with the key, the value and what is allowed.
";

const OLDER: &str = "
## Coming from an older operator

These variables are honoured where nothing newer is given, and a line in the log says which were:

| variable | means |
| --- | --- |
| `PERSIST_LABEL_PREFIX` | a policy that keeps the labels whose keys begin so; not together with `--policy` |
| `OPERATOR_NAMESPACE` | `--namespace` |
| `RESYNC_INTERVAL_SECONDS` | `--resync`, in plain seconds |
| `LOG_LEVEL` | `--log-level`; `WARNING` and `CRITICAL` in any case are understood |
| `SERVICE_NAME`, `TEMPLATE_NAME`, `TEMPLATE_OUTPUT` | `--service`, `--template`, `--key` of `perennial list` |
| `BUCKET_NAME`, `BUCKET_URL`, `BUCKET_PRIVILEGE` | `--bucket`, `--bucket-url`, `--acl`; with `BUCKET_NAME` the defaults are that tool's: `public-read`, `index.template`, `index.html` |
| `BUCKET_KEY` and `BUCKET_SECRET`, `SPACES_KEY` and `SPACES_SECRET` | the bucket's credentials, as `PERENNIAL_BUCKET_KEY` and `PERENNIAL_BUCKET_SECRET` |
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let command = super::command();
    let run = command.find_subcommand("run").unwrap().get_arguments().filter_map(clap::Arg::get_long);
    let run: Vec<&str> = run.collect();
    let operations = super::operate::NAMES;
    for command in command.get_subcommands().filter(|command| !operations.contains(&command.get_name())) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        write!(page, "\n## `perennial {}`\n\n{about}.\n", command.get_name()).unwrap();
        let as_run = |arg: &clap::Arg| {
            command.get_name() == "check" && arg.get_long().is_some_and(|long| run.contains(&long))
        };
        if command.get_arguments().any(as_run) {
            page.push_str("\nAll flags of `perennial run`, and:\n");
        }
        let mut heading = None;
        for arg in command.get_arguments().filter(|arg| !as_run(arg)) {
            let Some(setting) = arg.get_long().and_then(Setting::of_flag) else { continue };
            if arg.get_help_heading() != heading {
                heading = arg.get_help_heading();
                let title = heading.unwrap_or("Others");
                write!(page, "\n### {title}\n\n| flag | variable | |\n| --- | --- | --- |\n").unwrap();
            }
            page.push_str(&row(arg, setting));
        }
    }
    page + OLDER
}

fn row(arg: &clap::Arg, setting: &Setting) -> String {
    let value = if arg.get_action().takes_values() { arg.get_value_names().unwrap_or_default() } else { &[] };
    let flag = std::iter::once(setting.flag).chain(value.iter().map(clap::builder::Str::as_str));
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.replace(&format!("[env: {}]", setting.variables()), "");
    let help = help.trim().replace('|', "\\|").replace("\n\n", "<br>");
    let variables = setting.older.map_or_else(String::new, |older| format!(", `{older}`"));
    format!("| `{}` | `{}`{variables} | {help} |\n", flag.collect::<Vec<_>>().join(" "), setting.env)
}

#[test]
fn the_page_of_flags_is_what_the_command_says() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "docs/flags.md is old: UPDATE_DOCS=1 cargo test -p perennial --lib docs");
}
