//! Broken policies: each is refused, and told by key, value and what is allowed.

use crate::policy::{Policy, PolicyError};

/// The paths that are refused.
fn refused(yaml: &str) -> Vec<String> {
    let error = Policy::parse(yaml).expect_err(yaml);
    assert_eq!(error.kind(), "policy_values", "{yaml}: {error}");
    error.problems().iter().map(|problem| problem.path.clone()).collect()
}

#[test]
fn what_is_not_yaml_is_refused_with_its_line() {
    for (yaml, line) in [
        ("[", Some(1)),
        ("rules: [\n", Some(1)),
        ("retention: 1d\nrules: }\n", Some(2)),
        ("retention: 1d\nretention: 2d\n", Some(2)),
        ("retention: 1d\n---\nretention: 2d\n", Some(3)),
        ("rules: &a [*a]", Some(1)),
        ("rules: *nobody", Some(1)),
        ("\u{0}", Some(1)),
        ("brake: {share: .nan}", Some(1)),
    ] {
        match Policy::parse(yaml) {
            Err(PolicyError::Yaml { line: found, .. }) => assert_eq!(found, line, "{yaml:?}"),
            other => panic!("{yaml:?}: {other:?}"),
        }
    }
}

#[test]
fn a_wrong_type_is_refused_in_every_field() {
    let shapes = ["text", "5", "1.5", "true", "[a]", "[[a]]", "[5]", "[~]", "{a: b}"];
    let fields: [(&str, &[&str]); 22] = [
        ("@", &[]),
        ("rules: @", &[]),
        ("rules: [@]", &[]),
        ("rules: [{name: @}]", &["text"]),
        ("rules: [{selector: @}]", &["text"]),
        ("rules: [{labels: @}]", &[]),
        ("rules: [{labels: {include: @}}]", &["[a]"]),
        ("rules: [{labels: {exclude: @}}]", &["[a]"]),
        ("rules: [{labels: {excludeDefaults: @}}]", &["true"]),
        ("rules: [{annotations: {include: @}}]", &["[a]"]),
        ("rules: [{annotations: {excludeDefaults: @}}]", &["true"]),
        ("rules: [{taints: {include: @}}]", &["[a]"]),
        ("rules: [{taints: {excludeDefaults: @}}]", &[]),
        ("rules: [{cordon: @}]", &["true"]),
        ("rules: [{merge: @}]", &[]),
        ("rules: [{merge: {overwrite: @}}]", &["[a]"]),
        ("rules: [{identity: @}]", &[]),
        ("rules: [{privileged: {withoutProviderID: @}}]", &["true"]),
        ("retention: @", &[]),
        ("maxAbsent: @", &["5"]),
        ("brake: {atLeast: @}", &["5"]),
        ("brake: {share: @}", &[]),
    ];
    for (field, good) in fields {
        for shape in shapes {
            let yaml = field.replace('@', shape);
            assert_eq!(Policy::parse(&yaml).is_ok(), good.contains(&shape), "{yaml}");
        }
    }
}

#[test]
fn a_problem_names_the_key_the_value_and_what_is_allowed() {
    for (yaml, expected) in [
        (
            "rules: [{identity: host}]",
            r#"rules[0].identity: "host" must be one of `name`, `provider`, `machine`"#,
        ),
        ("rules: [{merge: keep}]", r#"rules[0].merge: "keep" must be one of `missing`, `overwrite`"#),
        ("narrow: Now", r#"narrow: "Now" must be one of `atNextChange`, `now`"#),
        ("maxAbsent: 0", r#"maxAbsent: "0" must be a whole number from 1 to 2147483648"#),
        ("maxAbsent: 99999999999", r#"maxAbsent: "99999999999" must be a whole number from 1 to 2147483648"#),
        ("brake: {atLeast: -1}", r#"brake.atLeast: "-1" must be a whole number from 0 to 2147483648"#),
        (
            "brake: {share: 7}",
            r#"brake.share: "7" must be a number from 0 to 1, or a percentage from 0% to 100%"#,
        ),
        (
            "rules: [{labels: {inlcude: [a]}}]",
            r#"rules[0].labels.inlcude: "[\"a\"]" is an unknown key; known are"#,
        ),
        (
            "rules: [{labels: {include: [a, '[']}}]",
            r#"rules[0].labels.include[1]: "[" unclosed character class"#,
        ),
        ("rules: [{labels: {include: [~, '[']}}]", r#"rules[0].labels.include[1]: "[" unclosed"#),
        ("rules: [{taints: {include: [node.kubernetes.io/not-ready]}}]", "is never kept"),
        ("rules: [{selector: 'a,,b'}]", r#"rules[0].selector: "a,,b" has an empty term"#),
        ("rules: []", "leave `rules` out for the defaults"),
        (
            "rules: [{name: a, selector: x}, {name: a}]",
            "rules[1].name: \"a\" must be a name of its own; rules[0]",
        ),
        ("rules: [{name: ''}]", "rules[0].name: \"\" must be 1 to 63 letters"),
    ] {
        let said = Policy::parse(yaml).expect_err(yaml).to_string();
        assert!(said.contains(expected), "{yaml}: {said}");
    }
}

#[test]
fn durations_that_make_no_sense_are_refused() {
    for text in
        ["30", "'30'", "-30d", "0s", "1mo", "1y", "forever", "''", "36501d", "1d12", "9999999999999999h"]
    {
        assert_eq!(refused(&format!("retention: {text}")), ["retention"], "{text}");
        assert_eq!(refused(&format!("emptyRetention: {text}")), ["emptyRetention"], "{text}");
    }
}

#[test]
fn shares_that_make_no_sense_are_refused() {
    for text in ["7", "-0.1", "1.01", "101%", "-1%", "'%'", "half", "''", "NaN", "'inf'"] {
        assert_eq!(refused(&format!("brake: {{share: {text}}}")), ["brake.share"], "{text}");
    }
}

#[test]
fn a_rule_that_no_node_can_reach_is_refused() {
    for (yaml, expected) in [
        ("rules: [{name: all}, {selector: a}]", vec!["rules[1].selector"]),
        (
            "rules: [{selector: a}, {selector: ''}, {selector: b}, {}]",
            vec!["rules[2].selector", "rules[3].selector"],
        ),
        ("rules: [{selector: 'a=b'}, {selector: 'a in (b)'}]", vec!["rules[1].selector"]),
        // A selector that is refused itself does not make the next one unreachable.
        ("rules: [{selector: 'a=='}, {selector: '==a'}, {selector: b}]", vec!["rules[1].selector"]),
        ("rules: [{selector: 5}, {selector: b}]", vec!["rules[0].selector"]),
    ] {
        assert_eq!(refused(yaml), expected, "{yaml}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let paths = refused(
        "rules: [{name: a b, selector: '!', labels: {include: ['[', 5], exclude: ['']}, colour: red, cordon: maybe, \
         merge: {overwrite: ['{']}, identity: x}]\nretention: x\nemptyRetention: 5\nmaxAbsent: x\n\
         brake: {atLeast: -1, share: 7}\nnarrow: x\n",
    );
    let mut sorted: Vec<&str> = paths.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            "brake.atLeast",
            "brake.share",
            "emptyRetention",
            "maxAbsent",
            "narrow",
            "retention",
            "rules[0].colour",
            "rules[0].cordon",
            "rules[0].identity",
            "rules[0].labels.exclude[0]",
            "rules[0].labels.include[0]",
            "rules[0].labels.include[1]",
            "rules[0].merge.overwrite[0]",
            "rules[0].name",
            "rules[0].selector",
        ]
    );
}

#[test]
fn a_policy_beyond_the_limits_is_refused() {
    let large = format!("# {}\n", "x".repeat(256 * 1024));
    assert_eq!(Policy::parse(&large).unwrap_err().kind(), "policy_too_large");

    let rules = |count: usize| {
        let rules: Vec<String> = (0..count).map(|index| format!("{{selector: pool=p{index}}}")).collect();
        format!("rules: [{}]", rules.join(", "))
    };
    assert!(Policy::parse(&rules(256)).is_ok());
    assert_eq!(refused(&rules(257)), ["rules"]);

    let patterns = |count: usize| {
        let globs: Vec<String> = (0..count).map(|index| format!("'*.p{index}/*'")).collect();
        format!("rules: [{{labels: {{include: [{}]}}}}]", globs.join(", "))
    };
    assert!(Policy::parse(&patterns(1000)).is_ok());
    assert_eq!(refused(&patterns(1001)), ["rules"]);
}

#[test]
fn a_long_value_is_cut_where_it_is_shown() {
    let error = Policy::parse(&format!("narrow: {}", "ü".repeat(1000))).unwrap_err();
    assert!(error.to_string().len() < 400, "{error}");
}
