//! Which source wins, what the defaults are, and what every broken value is told.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::*;
use crate::args::{Args, Command, settings};
use crate::log::Filter;
use crate::members::Role;

/// Surroundings with these variables, outside a pod, without a terminal.
fn around(variables: &[(&str, &str)]) -> Surroundings {
    let variables: HashMap<String, OsString> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
    Surroundings::new(move |name| variables.get(name).cloned(), "/nonexistent/namespace".into(), false)
}

fn typed(flags: &[&str]) -> RunArgs {
    match Args::try_from_list(["perennial", "run"].iter().chain(flags)).unwrap().command {
        Command::Run(args) => *args,
        _ => panic!("run was typed"),
    }
}

fn check(flags: &[&str], variables: &[(&str, &str)]) -> Result<Config, Error> {
    Config::check(&typed(flags), &around(variables))
}

fn told(flags: &[&str], variables: &[(&str, &str)]) -> String {
    check(flags, variables).expect_err("a broken value passed").to_string()
}

#[test]
fn nothing_given_is_a_working_configuration() {
    let config = check(&[], &[]).unwrap();
    assert_eq!(config.connect, Connect::default());
    assert_eq!(config.namespace, "perennial");
    assert_eq!(config.admin, Some("[::]:8080".parse().unwrap()));
    assert_eq!(config.log, LogConfig { format: Format::Json, filter: Filter::default(), color: false });
    let KeeperConfig {
        namespace,
        installation,
        policy,
        resync,
        concurrency,
        capture,
        restore,
        dry_run,
        close_after,
        open_after,
        collect_every,
        retry_slowly,
        tracer,
        window,
        door,
        gate,
        condition,
        seals,
    } = config.keeper;
    assert!(seals.is_none(), "nothing is sealed unless there is a key");
    assert!(!condition, "nothing is written to a status unless somebody wants it");
    assert!(gate.is_none(), "no taint is put anywhere unless somebody wants it");
    assert!(door.is_none() && config.webhook.is_none(), "nobody is asked unless somebody wants it");
    assert!(tracer.is_none() && config.traces.is_none(), "nothing is sent unless asked for");
    assert_eq!((namespace.as_str(), installation.as_str()), ("perennial", "perennial"));
    assert_eq!(**policy.borrow(), Policy::default());
    assert_eq!((resync, concurrency), (Duration::from_mins(5), 64));
    assert_eq!((capture, restore, dry_run), (true, true, false));
    assert_eq!((close_after, open_after), (Duration::from_secs(3), Duration::from_secs(5)));
    assert_eq!((collect_every, retry_slowly), (Duration::from_mins(1), Duration::from_mins(1)));
    assert!(config.page.is_some_and(|page| !page.values) && window.is_some());
    assert!(config.honoured.is_empty());
    let MembersConfig { namespace, name, roles, policy, takeover, lease } = config.members;
    assert_eq!(**policy.borrow(), Policy::default());
    assert_eq!(namespace, "perennial");
    assert!(name.ends_with(&format!("-{}", std::process::id())), "{name}");
    assert_eq!(roles, [Role::Capture, Role::Restore]);
    assert_eq!((takeover, lease), (Duration::from_secs(5), Duration::from_secs(15)));
}

#[test]
fn a_webhook_is_asked_by_the_name_of_its_service() {
    let config = check(&["--webhook-address=:8443", "--namespace=ops"], &[]).unwrap();
    assert!(config.keeper.door.is_some());
    let webhook = config.webhook.unwrap();
    assert_eq!((webhook.address, webhook.own), ("[::]:8443".parse().unwrap(), true));
    assert_eq!((webhook.namespace.as_str(), webhook.name.as_str()), ("ops", "perennial-webhook"));
    assert_eq!(webhook.hosts, ["perennial-webhook.ops.svc"]);
    let more =
        ["--webhook-name=hook", "--webhook-hosts=a.example.com, 10.0.0.7", "--webhook-certificates=given"];
    let config = check(&[&["--webhook-address=127.0.0.1:1"], more.as_slice()].concat(), &[]).unwrap();
    let webhook = config.webhook.unwrap();
    assert_eq!((webhook.name.as_str(), webhook.own), ("hook", false));
    assert_eq!(webhook.hosts, ["a.example.com", "10.0.0.7"]);
}

#[test]
fn metrics_are_guarded_where_somebody_wants_it() {
    assert!(check(&[], &[]).unwrap().metrics.is_none());
    let config = check(&["--metrics-address=:8444", "--namespace=ops"], &[]).unwrap();
    let metrics = config.metrics.unwrap();
    assert_eq!((metrics.address, metrics.own), ("[::]:8444".parse().unwrap(), true));
    assert_eq!((metrics.namespace.as_str(), metrics.name.as_str()), ("ops", "perennial-metrics"));
    assert_eq!(metrics.hosts, ["perennial-metrics.ops.svc"]);
    assert!(check(&["--metrics-address=8444"], &[]).is_err());
    for broken in ["--metrics-name=Not A Name", "--metrics-certificates=mine", "--dry-run"] {
        assert!(check(&["--metrics-address=:1", broken], &[]).is_err(), "{broken}");
    }
    let given = ["--metrics-address=:1", "--metrics-certificates=given", "--dry-run"];
    assert!(check(&given, &[]).unwrap().metrics.is_some_and(|metrics| !metrics.own));
}

#[test]
fn a_webhook_that_could_not_answer_is_refused_or_not_there() {
    for broken in [
        "--webhook-name=Not A Name",
        "--webhook-hosts=a b",
        "--webhook-hosts=",
        "--webhook-certificates=mine",
    ] {
        assert!(check(&["--webhook-address=:1", broken], &[]).is_err(), "{broken}");
    }
    assert!(check(&["--webhook-address=8443"], &[]).is_err());
    let error = check(&["--webhook-address=:1", "--roles=lister"], &[]).unwrap_err().to_string();
    assert!(error.contains("--webhook-address"), "{error}");
    assert!(check(&["--webhook-address=off"], &[]).unwrap().webhook.is_none());
    assert!(check(&["--webhook-address=:1", "--dry-run"], &[]).unwrap().webhook.is_none());
}

#[test]
fn a_gate_has_its_time_or_is_not_there() {
    assert_eq!(check(&["--gate=90s"], &[]).unwrap().keeper.gate, Some(Duration::from_secs(90)));
    assert_eq!(check(&["--gate=off"], &[]).unwrap().keeper.gate, None);
    for broken in ["--gate=", "--gate=1s", "--gate=2h", "--gate=on"] {
        assert!(check(&[broken], &[]).is_err(), "{broken}");
    }
}

#[test]
fn keys_are_read_from_a_file_and_never_quoted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let argument = format!("--record-key={}", file.path().display());
    std::fs::write(file.path(), "0123456789abcdef0123456789abcdef\n").unwrap();
    assert!(check(&[&argument], &[]).unwrap().keeper.seals.is_some());
    assert!(check(&[&argument, "--accept-unsealed"], &[]).unwrap().keeper.seals.is_some());
    for broken in ["", "too-short"] {
        std::fs::write(file.path(), broken).unwrap();
        let error = check(&[&argument], &[]).unwrap_err().to_string();
        assert!(error.starts_with("--record-key: ") && !error.contains("too-short"), "{error}");
    }
    let error = check(&["--record-key=/nowhere/at/all"], &[]).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
    assert!(check(&["--accept-unsealed"], &[]).unwrap_err().to_string().contains("--record-key"));
}

#[test]
fn only_who_records_and_gives_back_can_say_that_a_node_has_its_own() {
    assert!(check(&["--condition"], &[]).unwrap().keeper.condition);
    for half in ["--no-restore", "--no-capture"] {
        assert!(check(&["--condition", half], &[]).unwrap_err().to_string().contains(half));
    }
}

#[test]
fn the_status_page_can_be_switched_off_and_shows_values_only_where_that_is_asked_for() {
    let off = check(&["--page=off"], &[]).unwrap();
    assert!(off.page.is_none() && off.keeper.window.is_none());
    let values = check(&["--page-values"], &[("PERENNIAL_PAGE", "on")]).unwrap();
    assert!(values.page.is_some_and(|page| page.values));
    assert!(check(&["--page=perhaps"], &[]).unwrap_err().to_string().contains("on or off"));
    let named = check(&["--page-hosts=Fleet.example.com, *.corp.example"], &[]).unwrap();
    assert!(
        named.page.is_some_and(|page| page
            .hosts
            .starts_with(&["fleet.example.com".into(), "*.corp.example".into()]))
    );
    for broken in ["a..b", "http://a.b", "a.b:80", "*a.b", "a.b,"] {
        let broken = format!("--page-hosts={broken}");
        assert!(check(&[&broken], &[]).unwrap_err().to_string().contains("--page-hosts"), "{broken}");
    }
    let both = check(&["--page=off", "--page-hosts=a.b"], &[]).unwrap_err().to_string();
    assert!(both.contains("--page-hosts"), "{both}");
    let both = check(&["--page=off"], &[("PERENNIAL_PAGE_VALUES", "true")]).unwrap_err().to_string();
    assert!(both.contains("exclude each other"), "{both}");
}

#[test]
fn members_are_named_and_timed_and_have_the_roles_that_are_left() {
    let flags =
        ["--member=pod-7.b", "--takeover=1s", "--lease-duration=3s", "--no-restore", "--namespace=keep"];
    let MembersConfig { namespace, name, roles, policy: _, takeover, lease } =
        check(&flags, &[]).unwrap().members;
    assert_eq!((namespace.as_str(), name.as_str()), ("keep", "pod-7.b"));
    assert_eq!(roles, [Role::Capture]);
    assert_eq!((takeover, lease), (Duration::from_secs(1), Duration::from_secs(3)));
}

#[test]
fn broken_names_of_members_are_refused() {
    let long = "a".repeat(201);
    for name in
        ["", " ", "Pod", "a_b", "-a", "a-", "a..b", "a.-b", "a-.b", ".", "a/b", "\u{e9}", long.as_str()]
    {
        let words = told(&[&format!("--member={name}")], &[]);
        assert!(words.starts_with("--member: ") && words.contains("lowercase letters"), "{words}");
    }
    for duration in ["0s", "999ms", "6m", "15", ""] {
        let words = told(&["--lease-duration", duration], &[]);
        assert!(words.starts_with("--lease-duration: "), "{words}");
    }
}

#[test]
fn any_host_has_a_name_that_a_member_may_have() {
    let names = [
        ("Node_1.Example.COM-12", "node-1.example.com-12"),
        ("-12", "12"),
        ("h\u{f6}st--7", "h-st--7"),
        ("...", "replica"),
        ("a.-.b", "a.b"),
    ];
    for (host, name) in names {
        assert_eq!(check::as_member(host), name);
        assert!(check::member(name).is_ok(), "{name}");
    }
    let long = check::as_member(&format!("{}.b", "a".repeat(199)));
    assert!(check::member(&long).is_ok(), "{long}");
}

#[test]
fn every_flag_is_taken() {
    let config = check(
        &[
            "--kubeconfig=/k/config",
            "--context=blue",
            "--namespace=keep",
            "--installation=Blue_1.x",
            "--resync=1h30m",
            "--concurrency=1024",
            "--no-capture",
            "--dry-run",
            "--admin-address=127.0.0.1:9",
            "--log-format=TEXT",
            "--log-level=perennial=debug,warn",
            "--close-after=0s",
            "--open-after=250ms",
            "--collect-every=1s",
        ],
        &[],
    )
    .unwrap();
    assert_eq!(config.connect.kubeconfig, Some("/k/config".into()));
    assert_eq!(config.connect.context.as_deref(), Some("blue"));
    assert_eq!(config.admin, Some("127.0.0.1:9".parse().unwrap()));
    assert_eq!(config.log.format, Format::Text);
    let keeper = config.keeper;
    assert_eq!((keeper.namespace.as_str(), keeper.installation.as_str()), ("keep", "Blue_1.x"));
    assert_eq!((keeper.resync, keeper.concurrency), (Duration::from_mins(90), 1024));
    assert_eq!((keeper.capture, keeper.restore, keeper.dry_run), (false, true, true));
    assert_eq!((keeper.close_after, keeper.open_after), (Duration::ZERO, Duration::from_millis(250)));
    assert_eq!(keeper.collect_every, Duration::from_secs(1));
}

#[test]
fn every_variable_is_taken() {
    let config = check(
        &[],
        &[
            ("PERENNIAL_KUBECONFIG", "/k/config"),
            ("PERENNIAL_CONTEXT", "blue"),
            ("PERENNIAL_NAMESPACE", "keep"),
            ("PERENNIAL_INSTALLATION", "blue"),
            ("PERENNIAL_RESYNC", "90s"),
            ("PERENNIAL_CONCURRENCY", "1"),
            ("PERENNIAL_NO_CAPTURE", "false"),
            ("PERENNIAL_NO_RESTORE", "TRUE"),
            ("PERENNIAL_DRY_RUN", "1"),
            ("PERENNIAL_ADMIN_ADDRESS", "OFF"),
            ("PERENNIAL_LOG_FORMAT", "text"),
            ("PERENNIAL_LOG", "trace"),
            ("PERENNIAL_CLOSE_AFTER", "1s"),
            ("PERENNIAL_OPEN_AFTER", "2s"),
            ("PERENNIAL_COLLECT_EVERY", "3s"),
        ],
    )
    .unwrap();
    assert_eq!(
        config.connect,
        Connect { kubeconfig: Some("/k/config".into()), context: Some("blue".into()) }
    );
    assert_eq!(config.admin, None);
    assert_eq!(config.log.format, Format::Text);
    assert_eq!(config.log.filter, Filter::parse("trace").unwrap());
    let keeper = config.keeper;
    assert_eq!((keeper.namespace.as_str(), keeper.installation.as_str()), ("keep", "blue"));
    assert_eq!((keeper.resync, keeper.concurrency), (Duration::from_secs(90), 1));
    assert_eq!((keeper.capture, keeper.restore, keeper.dry_run), (true, false, true));
    let timing = [keeper.close_after, keeper.open_after, keeper.collect_every];
    assert_eq!(timing, [1, 2, 3].map(Duration::from_secs));
}

#[test]
fn a_flag_wins_over_its_variable_and_that_over_the_older_one() {
    let older = ("OPERATOR_NAMESPACE", "older");
    let newer = ("PERENNIAL_NAMESPACE", "newer");
    let by_flag = check(&["--namespace=typed"], &[newer, older]).unwrap();
    assert_eq!((by_flag.namespace.as_str(), by_flag.honoured.len()), ("typed", 0));
    let by_variable = check(&[], &[newer, older]).unwrap();
    assert_eq!((by_variable.namespace.as_str(), by_variable.honoured.len()), ("newer", 0));
    let by_older = check(&[], &[older]).unwrap();
    assert_eq!(by_older.namespace, "older");
    assert_eq!(by_older.honoured, ["OPERATOR_NAMESPACE"]);
}

#[test]
fn an_older_operators_environment_works_as_it_is() {
    let config = check(
        &[],
        &[
            ("PERSIST_LABEL_PREFIX", "example.com/"),
            ("OPERATOR_NAMESPACE", "node-labels"),
            ("RESYNC_INTERVAL_SECONDS", "300"),
            ("LOG_LEVEL", "WARNING"),
        ],
    )
    .unwrap();
    assert_eq!(config.namespace, "node-labels");
    assert_eq!(config.keeper.resync, Duration::from_mins(5));
    assert_eq!(config.log.filter, Filter::parse("warn").unwrap());
    assert_eq!(**config.keeper.policy.borrow(), Policy::for_label_prefix("example.com/").unwrap());
    let mut honoured = config.honoured;
    honoured.sort_unstable();
    assert_eq!(
        honoured,
        ["LOG_LEVEL", "OPERATOR_NAMESPACE", "PERSIST_LABEL_PREFIX", "RESYNC_INTERVAL_SECONDS"]
    );
}

#[test]
fn an_empty_variable_counts_as_not_given_but_an_empty_flag_does_not() {
    for setting in settings::RUN {
        check(&[], &[(setting.env, "")]).unwrap();
        let empty = format!("{}=", setting.flag);
        let switch = [
            "--no-capture",
            "--no-restore",
            "--dry-run",
            "--condition",
            "--accept-unsealed",
            "--page-values",
        ]
        .contains(&setting.flag);
        assert!(switch || told(&[&empty], &[]).starts_with(setting.flag), "{}", setting.flag);
    }
    check(&[], &[("PERSIST_LABEL_PREFIX", ""), ("RESYNC_INTERVAL_SECONDS", "")]).unwrap();
}

#[test]
fn a_pod_knows_its_namespace() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "kept\n").unwrap();
    let path = file.path().to_owned();
    let pod = Surroundings::new(|_| None, path.clone(), false);
    let config = Config::check(&typed(&[]), &pod).unwrap();
    assert_eq!((config.namespace.as_str(), config.keeper.installation.as_str()), ("kept", "kept"));
    assert_eq!(Config::check(&typed(&["--namespace=other"]), &pod).unwrap().namespace, "other");
    std::fs::write(path, "").unwrap();
    assert_eq!(Config::check(&typed(&[]), &pod).unwrap().namespace, "perennial");
}

#[test]
fn a_person_at_a_terminal_gets_coloured_text_unless_told_otherwise() {
    let terminal = Surroundings::new(|_| None, "/nonexistent".into(), true);
    let log = Config::check(&typed(&[]), &terminal).unwrap().log;
    assert!(log.format == Format::Text && log.color);
    assert_eq!(Config::check(&typed(&["--log-format=json"]), &terminal).unwrap().log.format, Format::Json);
    let plain =
        Surroundings::new(|name| (name == "NO_COLOR").then(|| "1".into()), "/nonexistent".into(), true);
    assert!(!Config::check(&typed(&[]), &plain).unwrap().log.color);
}

#[test]
fn a_broken_value_is_told_with_its_flag_or_variable_and_what_is_allowed() {
    let long = "a".repeat(64);
    let broken = [
        (&settings::NAMESPACE, "Upper", "lowercase"),
        (&settings::NAMESPACE, "-dash", "beginning and ending"),
        (&settings::NAMESPACE, "a.b", "lowercase letters, digits and dashes"),
        (&settings::NAMESPACE, &long, "1 to 63"),
        (&settings::INSTALLATION, "a/b", "letters, digits"),
        (&settings::INSTALLATION, "end.", "beginning and ending"),
        (&settings::INSTALLATION, "ä", "letters, digits"),
        (&settings::INSTALLATION, &long, "1 to 63"),
        (&settings::POLICY, "/nonexistent/policy.yaml", "cannot read"),
        (&settings::RESYNC, "300", "from 1s to 24h, such as 90s"),
        (&settings::RESYNC, "-5m", "a duration"),
        (&settings::RESYNC, "0s", "from 1s"),
        (&settings::RESYNC, "25h", "to 24h"),
        (&settings::RESYNC, "soon", "a duration"),
        (&settings::RESYNC, "1mo", "a duration"),
        (&settings::CONCURRENCY, "0", "1 to 1024"),
        (&settings::CONCURRENCY, "1025", "1 to 1024"),
        (&settings::CONCURRENCY, "many", "1 to 1024"),
        (&settings::CONCURRENCY, "-1", "1 to 1024"),
        (&settings::CONCURRENCY, "99999999999999999999999", "1 to 1024"),
        (&settings::ADMIN_ADDRESS, "localhost:8080", "127.0.0.1:8080"),
        (&settings::ADMIN_ADDRESS, "8080", ":8080 for every address"),
        (&settings::ADMIN_ADDRESS, ":65536", "off"),
        (&settings::ADMIN_ADDRESS, "on", "off"),
        (&settings::LOG_FORMAT, "xml", "text or json"),
        (&settings::LOG_LEVEL, "loud", "error, warn, info"),
        (&settings::CLOSE_AFTER, "11m", "from 0s to 10m"),
        (&settings::CLOSE_AFTER, "3", "a duration"),
        (&settings::OPEN_AFTER, "1h", "from 0s to 10m"),
        (&settings::COLLECT_EVERY, "10ms", "from 1s to 24h"),
    ];
    for (setting, value, allowed) in broken {
        for (key, error) in [
            (setting.flag, told(&[&format!("{}={value}", setting.flag)], &[])),
            (setting.env, told(&[], &[(setting.env, value)])),
        ] {
            assert!(error.starts_with(&format!("{key}: ")), "{key}={value}: {error}");
            assert!(error.contains(value) && error.contains(allowed), "{key}={value}: {error}");
        }
    }
}

#[test]
fn a_broken_older_variable_is_told_under_its_own_name() {
    for (name, value, allowed) in [
        ("OPERATOR_NAMESPACE", "Not Valid", "lowercase"),
        ("RESYNC_INTERVAL_SECONDS", "5m", "whole seconds from 1 to 86400"),
        ("RESYNC_INTERVAL_SECONDS", "0", "whole seconds"),
        ("RESYNC_INTERVAL_SECONDS", "-3", "whole seconds"),
        ("LOG_LEVEL", "VERBOSE", "error, warn, info"),
        ("PERSIST_LABEL_PREFIX", " , ", "prefixes"),
    ] {
        let error = told(&[], &[(name, value)]);
        assert!(error.contains(name) && error.contains(allowed), "{name}={value}: {error}");
    }
}

#[test]
fn a_broken_switch_is_told() {
    for setting in [&settings::NO_CAPTURE, &settings::NO_RESTORE, &settings::DRY_RUN, &settings::CONDITION] {
        let error = told(&[], &[(setting.env, "maybe")]);
        assert_eq!(error, format!("{}: \"maybe\" is not allowed; allowed: true or false", setting.env));
    }
}

#[test]
fn bytes_that_are_no_text_are_told() {
    for name in settings::RUN.iter().map(|setting| setting.env).chain(["PERSIST_LABEL_PREFIX", "LOG_LEVEL"]) {
        let bytes = move |asked: &str| (asked == name).then(|| OsString::from_vec(vec![b'a', 0xff]));
        let around = Surroundings::new(bytes, "/nonexistent".into(), false);
        let error = Config::check(&typed(&[]), &around).unwrap_err().to_string();
        assert!(error.starts_with(name) && error.contains("UTF-8"), "{error}");
    }
}

#[test]
fn a_keeper_with_nothing_to_do_is_refused() {
    let error = told(&["--no-capture"], &[("PERENNIAL_NO_RESTORE", "true")]);
    assert!(error.contains("--no-capture and --no-restore exclude each other"), "{error}");
}

#[test]
fn a_policy_file_and_an_older_prefix_exclude_each_other() {
    let error = told(&["--policy=/etc/policy.yaml"], &[("PERSIST_LABEL_PREFIX", "example.com/")]);
    assert!(error.contains("--policy and PERSIST_LABEL_PREFIX exclude each other"), "{error}");
}

#[test]
fn a_policy_file_is_in_force_from_the_start_and_a_broken_one_stops_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let flag = format!("--policy={}", file.path().display());
    std::fs::write(file.path(), "retention: 2d\n").unwrap();
    let config = check(&[&flag], &[]).unwrap();
    assert_eq!(**config.keeper.policy.borrow(), Policy::parse("retention: 2d\n").unwrap());
    assert_eq!(config.policy.path(), Some(file.path()));
    std::fs::write(file.path(), "no-such-key: 1\n").unwrap();
    let error = told(&[&flag], &[]);
    assert!(error.starts_with("--policy: ") && error.contains("no-such-key"), "{error}");
}

#[test]
fn roles_say_what_a_replica_does() {
    let config = check(&["--roles", "lister, keeper", "--listing-namespace", "shop"], &[]).unwrap();
    assert!(config.keeps);
    assert_eq!(config.lister.unwrap().namespace.as_deref(), Some("shop"));
    assert_eq!(config.members.roles, [Role::Capture, Role::Restore, Role::List]);
    let lister = check(&[], &[("PERENNIAL_ROLES", "lister")]).unwrap();
    assert!(!lister.keeps && lister.lister.is_some());
    assert_eq!(lister.members.roles, [Role::List]);
    let keeper = check(&[], &[]).unwrap();
    assert!(keeper.keeps && keeper.lister.is_none());
}

#[test]
fn roles_that_are_none_are_refused() {
    for roles in ["", ",", "singer", "keeper,", "keeper lister"] {
        let told = told(&["--roles", roles], &[]);
        assert!(told.starts_with("--roles: ") && told.contains("keeper,lister"), "{told}");
    }
    assert!(told(&["--roles", "keeper,lister", "--dry-run"], &[]).contains("no dry run"));
    assert!(
        told(&["--roles", "lister", "--listing-namespace", "No"], &[]).starts_with("--listing-namespace")
    );
}
