//! Templates that are wrong: what is said of them names the place and helps.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_undefined_is_named_with_its_line() {
    for (source, expected) in [
        ("a\nb {{ servise }}", "line 2: `servise` is undefined"),
        ("{% for e in endpoints %}\n{{ e.adress }}{% endfor %}", "line 2: `e.adress` is undefined"),
        ("{{ endpoints[0].ports[0].prot }}", "line 1: `endpoints[0].ports[0].prot` is undefined"),
        ("{% for e in endpoint %}{% endfor %}", "`endpoint` is undefined"),
        ("{% if servise == 'x' %}{% endif %}", "`servise` is undefined"),
        ("{% if servise %}{% endif %}", "`servise` is undefined"),
        ("{{ servise|upper }}", "undefined"),
        ("{{ 'x' ~ servise }}", "`servise` is undefined"),
        ("{{ endpoints[7].address }}", "`endpoints[7]` is undefined"),
    ] {
        let error = error(source);
        assert!(matches!(error, TemplateError::Values { line: Some(_), .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{source}\n{error}");
    }
}

#[test]
fn wrong_syntax_is_named_with_its_line() {
    for (source, line) in [
        ("\n{{ service", 2),
        ("\n\n{% if %}", 3),
        ("{% for e in endpoints %}", 1),
        ("{% endfor %}", 1),
        ("{% nonsense %}", 1),
        ("{{ 1 + }}", 1),
        ("{{ 'open }}", 1),
        ("{{ a b }}", 1),
        ("\n{# open", 2),
        ("{% raw %}", 1),
        ("x\n{{ service|nonsense }}", 2),
        ("x\n{{ service is nonsense }}", 2),
        ("x\n{{ nonsense() }}", 2),
    ] {
        let error = Template::new(source, Format::Html).unwrap_err();
        assert!(matches!(error, TemplateError::Syntax { .. }), "{source}\n{error:?}");
        assert_eq!(error.line(), Some(line), "{source}\n{error}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
    }
}

#[test]
fn values_that_do_not_fit_are_told() {
    for source in [
        "{{ service + 1 }}",
        "{{ endpoints - 1 }}",
        "{{ service|join(1, 2, 3, 4) }}",
        "{{ count|join }}",
        "{{ -service }}",
        "{% for x in count %}{% endfor %}",
        "{% set a, b = [1] %}",
        "{{ 1 in 2 }}",
        "{{ [1]|map('nonsense') }}",
        "{{ [1]|select('nonsense')|list }}",
    ] {
        let error = error(source);
        assert!(matches!(error, TemplateError::Values { line: Some(1), .. }), "{source}\n{error:?}");
        assert_eq!(error.kind(), "template_values");
    }
}

#[test]
fn go_is_recognised_with_a_hint() {
    for (source, line, hint) in [
        ("<ul>\n{{ range .Items }}<li>{{ .Name }}</li>{{ end }}</ul>", 2, "{% for endpoint in endpoints %}"),
        ("{{range .Addresses}}{{.}}{{end}}", 1, "{% for endpoint in endpoints %}"),
        ("{{- range $i, $e := .Items -}}{{ end }}", 1, "{% for endpoint in endpoints %}"),
        ("{{ range $.Items }}", 1, "{% for endpoint in endpoints %}"),
        ("<p>{{ .Service.Name }}</p>", 1, "without the leading dot"),
        ("{{ . }}", 1, "without the leading dot"),
        ("{{ .Name | upper }}", 1, "without the leading dot"),
        ("{{ $x := 1 }}", 1, "{% set name"),
        ("{{ $x }}", 1, "{% set name"),
        ("{{- with .Pod }}x{{ end }}", 1, "{% with name"),
        ("{{ if eq .A .B }}x{{ end }}", 1, "{% if"),
        ("{{ if (eq 1 1) }}x{{ end }}", 1, "{% if"),
        ("{{ else }}", 1, "{% else %}"),
        ("{{ else if .X }}", 1, "{% else %}"),
        ("{{ end }}", 1, "{% endfor %}"),
        ("{{- end -}}", 1, "{% endfor %}"),
        ("{{ define \"page\" }}x{{ end }}", 1, "one file"),
        ("{{ template \"page\" . }}", 1, "one file"),
        ("{{ block \"page\" . }}", 1, "one file"),
        ("{{ printf \"%s\" .Name }}", 1, "`~`"),
        ("{{/* a comment */}}", 1, "{# … #}"),
        ("{{- /* a comment */ -}}", 1, "{# … #}"),
        ("{{ if true }}{{ range .Items", 1, "{% if"),
    ] {
        let error = Template::new(source, Format::Html).unwrap_err();
        let TemplateError::Go { line: found, .. } = error else { panic!("{source}\n{error}") };
        assert_eq!((found, error.kind()), (line, "template_go"));
        assert!(
            error.to_string().contains(hint) && error.to_string().contains("Go's template syntax"),
            "{error}"
        );
    }
}

#[test]
fn what_only_looks_like_go_is_let_through() {
    for source in [
        "{% raw %}{{ range .Items }}{% endraw %}",
        "{# {{ .Name }} #}",
        "{{ 'range .Items' }}",
        "{% set block = 1 %}{{ block }}{{ block + 1 }}{{ block if true }}",
        "{% set ranges = 1 %}{{ ranges }}",
        "{% set endpoint = 'x' %}{{ endpoint }}",
        "{{ range(3)|length }}",
        "{% set with = 2 %}{{ with * 2 }}",
    ] {
        assert_eq!(Template::new(source, Format::Text).map(|_| ()), Ok(()), "{source}");
        text(source);
    }
}

#[test]
fn long_messages_are_cut() {
    let long = "x".repeat(10_000);
    let error = error(&format!("{{{{ {long} }}}}"));
    assert!(error.to_string().len() < 400 && error.to_string().ends_with('…'), "{error}");
    let go = Template::new(format!("{{{{ .{long} }}}}"), Format::Html).unwrap_err();
    assert!(go.to_string().len() < 400, "{go}");
}

/// Pieces of templates, thrown together.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "~",
        "+",
        "*",
        "**",
        "/",
        "//",
        "%",
        "|",
        ".",
        ",",
        ":",
        "=",
        "==",
        "<",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        " ",
        "\n",
        "0",
        "1",
        "-1",
        "9999999999999999999",
        "1e308",
        "x",
        "endpoints",
        "addresses",
        "service",
        "count",
        "loop",
        "range",
        "for x in ",
        "endfor",
        "if ",
        "elif ",
        "else",
        "endif",
        "set x = ",
        "endset",
        "with x = ",
        "endwith",
        "filter upper",
        "endfilter",
        "raw",
        "endraw",
        "in ",
        "is ",
        "not ",
        "and ",
        "or ",
        "join",
        "replace",
        "map",
        "sort",
        "groupby",
        "default",
        "length",
        "tojson",
        "recursive",
        "ü",
        "\u{0}",
        "{{ .Name }}",
        "{% for e in endpoints %}",
        "{{ e.address }}",
        "{% endfor %}",
        "{% if x %}",
        "{% endif %}",
        "{{ x }}",
        "{% set x = 1 %}",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_gives_a_page_or_an_error(source in prop_oneof!["\\PC{0,60}", pieces()]) {
        for format in [Format::Html, Format::Json, Format::Text] {
            let page = render(&source, format, 2);
            prop_assert_ne!(page, Err(TemplateError::Engine));
        }
    }

    #[test]
    fn any_expression_gives_a_page_or_an_error(inside in pieces()) {
        for source in [format!("{{{{ {inside} }}}}"), format!("{{% set y = {inside} %}}{{{{ y }}}}")] {
            prop_assert_ne!(render(&source, Format::Html, 2), Err(TemplateError::Engine));
        }
    }
}
