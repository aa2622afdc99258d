//! What a template can say, so that a new version of the engine cannot quietly take it away.

use super::*;

#[test]
fn everything_an_endpoint_has_is_there() {
    let source = "{% for e in endpoints[:1] %}{{ e.address }} {{ e.host }} {{ e.family }} {{ e.pod }} {{ e.node }} \
                  {{ e.zone }} [{{ e.hostname }}] {{ e.ready }} {{ e.serving }} {{ e.terminating }}\
                  {% for p in e.ports %} {{ p.port }} {{ p.name }} {{ p.protocol }} [{{ p.app_protocol }}]{% endfor %}{% endfor %}";
    let expected = "10.0.0.0 10.0.0.0 ipv4 web-5d8f9-0 worker-0 zone-0 [] True True False 8080 http TCP []";
    assert_eq!(text(source), expected);
    assert_eq!(text("{{ service }}.{{ namespace }} {{ count }} {{ history is none }}"), "web.shop 3 True");
}

#[test]
fn an_upstream_for_nginx() {
    let source = "upstream {{ service }} {\n{% for e in endpoints %}  server {{ e.host }}:{{ e.ports[0].port }};\n{% endfor %}}\n";
    let expected =
        "upstream web {\n  server 10.0.0.0:8080;\n  server 10.0.0.1:8080;\n  server 10.0.0.2:8080;\n}\n";
    assert_eq!(text(source), expected);
}

#[test]
fn what_people_use() {
    for (source, expected) in [
        ("{{ addresses|join(', ') }}", "10.0.0.0, 10.0.0.1, 10.0.0.2"),
        ("{{ addresses|join }}", "10.0.0.010.0.0.110.0.0.2"),
        ("{{ endpoints|map(attribute='node')|join('|') }}", "worker-0|worker-1|worker-2"),
        ("{{ endpoints|join(', ', attribute='pod')|length }}", "37"),
        ("{{ endpoints|map(attribute='zone')|unique|sort(reverse=true)|join(' ') }}", "zone-2 zone-1 zone-0"),
        ("{{ endpoints|selectattr('zone', 'eq', 'zone-1')|map(attribute='address')|first }}", "10.0.0.1"),
        ("{{ endpoints|rejectattr('ready')|list|length }} {{ endpoints|length }}", "0 3"),
        (
            "{% for zone, list in endpoints|groupby('zone') %}{{ zone }}={{ list|length }} {% endfor %}",
            "zone-0=1 zone-1=1 zone-2=1 ",
        ),
        (
            "{{ addresses[0] }} {{ addresses[-1] }} {{ (addresses|last)[:2] }} {{ addresses[1:]|length }}",
            "10.0.0.0 10.0.0.2 10 2",
        ),
        (
            "{% set url = 'http://' ~ addresses[0] ~ ':' ~ 80 %}{{ url|upper|lower|replace('http', 'https') }}",
            "https://10.0.0.0:80",
        ),
        (
            "{% for a in addresses %}{{ loop.index }}/{{ loop.length }}{{ ';' if not loop.last }}{% else %}none{% endfor %}",
            "1/3;2/3;3/3",
        ),
        ("{% for e in endpoints if e.zone == 'zone-2' %}{{ e.pod }}{% endfor %}", "web-5d8f9-2"),
        ("{% for e in [] %}{% else %}none{% endfor %}", "none"),
        (
            "{% if count > 2 and 'zone-1' in endpoints|map(attribute='zone') %}yes{% elif count == 1 %}one{% else %}no{% endif %}",
            "yes",
        ),
        (
            "{{ (count * 100 + 1) // 2 - 1 }} {{ 7 % 4 }} {{ 2 ** 3 }} {{ -count }} {{ 1 + 1.5 }} {{ 10 / 4 }}",
            "149 3 8 -3 2.5 2.5",
        ),
        (
            "{{ endpoints[0].hostname or 'nobody' }} {{ endpoints[0].hostname|default('x', true) }}",
            "nobody x",
        ),
        ("{% with x = count, y = 2 %}{{ x + y }}{% endwith %}", "5"),
        ("{% set a, b = (1, 2) %}{{ a }}{{ b }}", "12"),
        ("{% set x %}{{ service }}!{% endset %}{{ x }}{{ x|length }}", "web!4"),
        ("{% filter upper %}{{ service }}{% endfilter %}", "WEB"),
        ("{{ [1, 2] + [3] }} {{ (1, 2) }} {{ {'a': 1}.a }} {{ [[1]][0][0] }}", "[1, 2, 3] (1, 2) 1 1"),
        (
            "{{ 1 < 2 < 3 }} {{ not false }} {{ 'a' if false else 'b' }} {{ 3 is odd }} {{ nobody is defined }}",
            "True True b True False",
        ),
        (
            "{{ [3, 1, 2]|sum }} {{ endpoints|sum(attribute='nothing') }} {{ [3, 1]|max }} {{ [1.26]|first|round(1) }}",
            "6 0 3 1.3",
        ),
        ("{{ {'b': 1, 'a': 2}|dictsort|first|join('=') }} {{ {'a': 1}|items|list|length }}", "a=2 1"),
        (
            "{{ 'a,b'|split(',')|last }} {{ ' x '|trim }} {{ 'ab'|first }} {{ '12'|int + 1 }} {{ 'x'|tojson }}",
            "b x a 13 \"x\"",
        ),
        ("a{# {{ not read }} #}b{% raw %}{{ not.read }}{% endraw %}", "ab{{ not.read }}"),
        ("a\n{%- if true %}\nb\n{%- endif %}\n", "a\nb\n"),
        ("{% for i in range(3) %}{{ loop.cycle('odd', 'even') }} {% endfor %}", "odd even odd "),
        (
            "{% for e in endpoints %}{% if loop.changed(e.zone) %}{{ e.zone }} {% endif %}{% endfor %}",
            "zone-0 zone-1 zone-2 ",
        ),
        ("{% autoescape 'html' %}{{ '<' }}{% endautoescape %}{{ '<' }}", "&lt;<"),
        ("{{ '<b>'|e }}", "&lt;b&gt;"),
    ] {
        assert_eq!(text(source), expected, "{source}");
    }
}

#[test]
fn values_are_escaped_by_what_the_page_is_written_in() {
    let source = "{% set x = '<\"&>' %}{{ x }} {{ history }}";
    assert_eq!(render(source, Format::Html, 0).unwrap(), "&lt;&quot;&amp;&gt; ");
    assert_eq!(render(source, Format::Text, 0).unwrap(), "<\"&> ");
    let json =
        render("[{{ '<\"&>' }}, {{ history }}, {{ count }}, {{ addresses }}]", Format::Json, 1).unwrap();
    let expected = json!(["<\"&>", null, 1, ["10.0.0.0"]]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), expected, "{json}");
    assert_eq!(render("{{ '<b>'|safe }}", Format::Html, 0).unwrap(), "<b>");
}

#[test]
fn equal_facts_give_equal_bytes() {
    let many = endpoints(50);
    for format in [Format::Html, Format::Json, Format::Text] {
        let page = || Template::standard(format).render(&facts(&many));
        assert_eq!(page(), page());
    }
}
