//! Templates that try to take more than their page is worth. Were they not stopped, each would take about a hundred
//! megabytes, many seconds or the whole stack: enough to see it, not enough to hurt whoever runs the tests.

use super::*;

fn stopped(source: &str) {
    let error = error(source);
    assert!(matches!(error, TemplateError::TooMuch { .. }), "{source:.200}\n{error:?}");
}

fn refused(source: &str) {
    let error = error(source);
    assert!(
        matches!(error, TemplateError::Syntax { .. } | TemplateError::Values { .. }),
        "{source:.200}\n{error:?}"
    );
}

/// A template that makes `x` from itself so many times.
fn again(first: &str, next: &str, times: usize) -> String {
    format!("{{% set x = {first} %}}{}{{{{ x }}}}", format!("{{% set x = {next} %}}").repeat(times))
}

#[test]
fn texts_cannot_be_multiplied() {
    for source in [
        "{{ 'x' * 100000000 }}",
        "{{ 100000000 * 'x' }}",
        "{{ service * 100000000 }}",
        "{{ ('x' ~ service) * 100000000 }}",
        "{{ [1] * 100000000 }}",
        "{{ ([1] * 100000000)|length }}",
        "{{ (1, 2) * 100000000 }}",
        "{{ endpoints * 100000000 }}",
        "{% set n = 100000000 %}{{ n * service }}",
    ] {
        refused(source);
    }
}

#[test]
fn nothing_can_be_doubled_for_ever() {
    for (first, next) in [
        ("'x'", "x ~ x"),
        ("'x'", "x + x"),
        ("[1]", "x + x"),
        ("(1, 2)", "x + x"),
        ("[service]", "[x, x]"),
        ("(service, 1)", "(x, x)"),
        ("{'a': service}", "{'a': x, 'b': x}"),
        ("service", "[x, x]|join"),
        ("service", "[x, x]|join(d=x)"),
        ("service", "[x, x]|join(x)"),
        ("service", "x|replace('', x)"),
        ("'xx'", "x|replace('x', 'xx')"),
        ("service", "[none, none]|map('default', x, true)|list"),
        ("service", "[{}, {}]|map(attribute='a', default=x)|list"),
        ("service", "{'a': x}|items|list + [x]"),
        ("[service]", "[{'a': x}, {'a': x}]|groupby('a')"),
        ("service", "[x, x]|tojson"),
        ("service", "[x, x]|string"),
    ] {
        stopped(&again(first, next, 24));
    }
    let block = "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(24);
    stopped(&format!("{{% set x = service %}}{block}{{{{ x|length }}}}"));
    let filter = "{% filter replace('x', 'xx') %}".repeat(24);
    stopped(&format!("{filter}x{}", "{% endfilter %}".repeat(24)));
    let with = "{% with x = x ~ x %}".repeat(24);
    stopped(&format!("{{% set x = service %}}{with}{{{{ x }}}}{}", "{% endwith %}".repeat(24)));
}

/// A letter is a byte in a text, and a value of its own in a list.
#[test]
fn texts_cannot_be_taken_apart_for_nothing() {
    let text = "{% set x = x ~ x %}".repeat(18);
    for last in [
        "x|list",
        "x|split('')",
        "x|split('a')",
        "x|sort",
        "x|unique",
        "x|join('')",
        "x|map('upper')|list",
        "x|select|list",
    ] {
        stopped(&format!("{{% set x = 'a' %}}{text}{{{{ ({last})|length }}}}"));
    }
    let quotes = format!("{{% set x = '\"' %}}{}", "{% set x = x ~ x %}".repeat(19));
    for last in ["x|e|e|length", "x|replace('\"', 'xxxxxxxxxx')|length"] {
        stopped(&format!("{quotes}{{{{ {last} }}}}"));
    }
}

#[test]
fn what_is_doubled_cannot_be_compared_or_searched_either() {
    for last in
        ["x == y", "x != y", "x < y", "x in [y]", "'z' in x", "x is eq(y)", "[x]|select('eq', y)|list"]
    {
        let double = "{% set x = x ~ x %}{% set y = y ~ y %}".repeat(18);
        let all = format!("{{% set x = 'a' %}}{{% set y = 'a' %}}{double}");
        let source = format!("{all}{{% for i in range(10000) %}}{{{{ 1 if {last} }}}}{{% endfor %}}");
        stopped(&source);
    }
}

#[test]
fn nothing_can_be_nested_for_ever() {
    for next in ["[x]", "(x, 1)", "{'a': x}", "[x]|list", "[[[[x]]]]", "{'a': x}|items"] {
        stopped(&again("service", next, 40));
    }
}

#[test]
fn looks_at_looks_are_lists() {
    let turned = again("addresses", "x[0:]", 2000);
    assert_eq!(text(&turned), text("{{ addresses[0:] }}"));
    let turned = again("addresses", "x|reverse", 1000);
    assert_eq!(text(&turned), text("{{ addresses|list }}"));
}

#[test]
fn loops_end() {
    let loops = |depth: usize| {
        format!("{}x{}", "{% for i in range(10000) %}".repeat(depth), "{% endfor %}".repeat(depth))
    };
    stopped(&loops(3));
    stopped(&loops(50));
    let raw = "0123456789".repeat(1000);
    stopped(&format!("{{% for i in range(10000) %}}{raw}{{% endfor %}}"));
    stopped(&format!("{{% for i in range(10000) %}}{{{{ '{raw}' }}}}{{% endfor %}}"));
    stopped(&format!("{{% set x %}}{{% for i in range(10000) %}}{raw}{{% endfor %}}{{% endset %}}"));
}

#[test]
fn many_endpoints_are_no_excuse() {
    let all = "{% for a in endpoints %}{% for b in endpoints %}{% for c in endpoints %}x{% endfor %}{% endfor %}{% endfor %}";
    let sorted =
        "{% for a in endpoints %}{% for b in endpoints|sort(attribute='pod') %}{% endfor %}{% endfor %}";
    for source in [all, sorted] {
        let error = render(source, Format::Text, 1000).unwrap_err();
        assert!(matches!(error, TemplateError::TooMuch { .. }), "{error:?}");
    }
}

#[test]
fn a_range_is_short() {
    for source in [
        "{{ range(100000000)|length }}",
        "{{ range(0, 100000000)|length }}",
        "{{ range(-9223372036854775807, 9223372036854775807)|length }}",
        "{{ range(0, 100, 7)|length }}",
        "{{ range(99999999999999999999)|length }}",
    ] {
        refused(source);
    }
    assert_eq!(text("{{ range(3)|join }} {{ range(2, 5)|join }} {{ range(5, 2)|join }}"), "012 234 ");
}

#[test]
fn filters_that_make_any_size_are_not_offered() {
    for source in [
        "{{ 'x'|indent(100000000) }}",
        "{{ '%0100000000d'|format(1) }}",
        "{{ '%*d'|format(100000000, 1) }}",
        "{{ 'x'|center(100000000) }}",
        "{{ 'x'|ljust(100000000) }}",
        "{{ [1]|slice(100000000) }}",
        "{{ [1]|batch(100000000, 0) }}",
        "{{ [1]|tojson(indent=100000000) }}",
        "{{ [1]|tojson(100000000) }}",
        "{{ ['a']|map('indent', 100000000)|list }}",
        "{{ [[1]]|sum(start=[]) }}",
        "{{ ['a', 'b']|sum(none, 'c') }}",
        "{{ [1, 2]|join(endpoints) }}",
        "{{ 'x'|replace('x', endpoints) }}",
        "{{ endpoints|replace('x', 'y') }}",
        "{{ 'x'|chain('y') }}",
        "{{ debug() }}",
        "{{ namespace(a=1) }}",
        "{{ dict(a=1) }}",
        "{{ lipsum() }}",
    ] {
        refused(source);
    }
}

#[test]
fn a_template_cannot_call_itself_or_others() {
    for source in [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'template' %}",
        "{% extends 'template' %}",
        "{% import 'template' as t %}",
        "{% from 'template' import t %}",
        "{% block b %}{{ self.b() }}{% endblock %}",
        "{% for x in [[1]] recursive %}{{ loop(x) }}{% endfor %}",
        "{% for x in [1] %}{{ loop([[1]]) }}{% endfor %}",
        "{% call x() %}{% endcall %}",
        "{% do range(3) %}",
        "{{ super() }}",
        "{{ service.upper() }}",
        "{{ endpoints.append(1) }}",
        "{{ range(3)(4) }}",
        "{{ 'a weighed value'(1) }}",
        "{% set a.b = 1 %}",
    ] {
        refused(source);
    }
}

#[test]
fn long_chains_are_refused_before_they_take_the_stack() {
    let many = 20_000;
    for source in [
        format!("{{{{ a{} }}}}", " ~ a".repeat(many)),
        format!("{{{{ a{} }}}}", ".a".repeat(many)),
        format!("{{{{ a{} }}}}", "[0]".repeat(many)),
        format!("{{{{ a{} }}}}", "|e".repeat(many)),
        format!("{{{{ a{} }}}}", " is odd".repeat(many)),
        format!("{{{{ {}1 }}}}", "-".repeat(many)),
        format!("{{{{ {}1 }}}}", "not ".repeat(many)),
        format!("{{{{ {}1{} }}}}", "(".repeat(many), ")".repeat(many)),
        format!("{{{{ {}1{} }}}}", "[".repeat(many), "]".repeat(many)),
        format!("{{{{ {}1{} }}}}", "{1:".repeat(many), "}".repeat(many)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(many)),
        format!("{{{{ 1{} }}}}", " < 1".repeat(many)),
        format!("{{% set {}a{} = 1 %}}", "(".repeat(many), ")".repeat(many)),
        format!("{{% for {}a{} in [] %}}{{% endfor %}}", "(".repeat(many), ")".repeat(many)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(many)),
        format!("{}{}", "{% if 1 %}".repeat(many / 2), "{% endif %}".repeat(many / 2)),
        format!("{}{}", "{% for a in [] %}".repeat(8000), "{% endfor %}".repeat(8000)),
    ] {
        let error = error(&source);
        assert!(matches!(error, TemplateError::Syntax { .. }), "{source:.60}\n{error:?}");
    }
}

/// Half the stack that a thread has by default, so that whoever calls has some too.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(run);
    thread.unwrap().join().unwrap();
}

#[test]
fn the_longest_chains_that_are_allowed_fit_the_stack() {
    on_a_small_stack(|| {
        let nested =
            |depth| "{% if true %}".repeat(depth) + "{{ (((((1))))) }}" + &"{% endif %}".repeat(depth);
        assert_eq!(text(&nested(50)), "1");
        assert!(error(&nested(51)).to_string().contains("too many blocks"));
        let elifs = |count| format!("{{% if false %}}{}{{% endif %}}", "{% elif false %}".repeat(count));
        assert_eq!(text(&elifs(49).repeat(3)), "");
        assert!(error(&elifs(50)).to_string().contains("too many blocks"));
        assert_eq!(text(&format!("{{{{ 1{} }}}}", " - 1".repeat(198))), "-197");
        assert_eq!(text(&format!("{{{{ 'a'{} }}}}", "|e".repeat(198))), "a");
        assert_eq!(text(&format!("{{{{ {}1 }}}}", "-".repeat(396))), "1");
        assert_eq!(text(&format!("{{{{ {}1 }}}}", "not ".repeat(396))), "True");
        assert_eq!(text(&format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(99))), "1");
        assert_eq!(text(&format!("{{{{ {}1{} }}}}", "(".repeat(16), ")".repeat(16))), "1");
        assert!(
            error(&format!("{{{{ {}1{} }}}}", "(".repeat(17), ")".repeat(17)))
                .to_string()
                .contains("brackets")
        );
        let deepest = format!("{{{{ {}{}1{} }}}}", "[".repeat(15), "-".repeat(360), "]".repeat(15));
        let source = "{% if true %}".repeat(50) + &deepest + &"{% endif %}".repeat(50);
        assert!(text(&source).contains("[1]"));
    });
}

#[test]
fn large_templates_are_not_read() {
    let error = error(&"x".repeat(MAX_TEMPLATE + 1));
    assert_eq!(error.to_string(), "the template has 262145 bytes; at most 262144 are allowed");
    assert_eq!(text(&"x".repeat(MAX_TEMPLATE)).len(), MAX_TEMPLATE);
    assert_eq!(text(&"\n".repeat(MAX_TEMPLATE)).len(), MAX_TEMPLATE);
}

#[test]
fn large_pages_are_not_made() {
    let source = "{% for e in endpoints %}".to_owned() + &"x".repeat(4000) + "{% endfor %}";
    let error = render(&source, Format::Text, 4200).unwrap_err();
    assert!(matches!(error, TemplateError::PageTooLarge { bytes: 16_800_000, .. }), "{error:?}");
    assert!(render(&source, Format::Text, 4000).is_ok());
}

#[test]
fn numbers_do_not_overflow() {
    for source in [
        "{{ 9223372036854775807 * 9223372036854775807 * 9223372036854775807 }}",
        "{{ 170141183460469231731687303715884105727 + 1 }}",
        "{{ 2 ** 100000000 }}",
        "{{ 1 / 0 }}",
        "{{ 1 // 0 }}",
        "{{ 1 % 0 }}",
        "{{ 'abc'[::-1] }}",
        "{{ 'abc'[0:2:-1] }}",
        "{{ 'abc'[::-9223372036854775808] }}",
    ] {
        refused(source);
    }
    assert_eq!(text("{{ 'abc'[-9223372036854775807:9223372036854775807] }}"), "abc");
}
