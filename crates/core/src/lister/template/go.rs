//! Templates of Go's text/template, as older tools had them, are recognised: MiniJinja's own errors about them would
//! help nobody.

use super::error::TemplateError;

/// Go's keywords that begin an action, and how to write them.
const ACTIONS: [(&str, &str); 9] = [
    ("range", "write {% for endpoint in endpoints %} … {% endfor %}"),
    ("if", "write {% if … %} … {% endif %}, with `==` and `and` between the values"),
    ("with", "write {% with name = … %} … {% endwith %}"),
    ("end", "close with {% endfor %}, {% endif %} or {% endwith %}"),
    ("else", "write {% else %} or {% elif … %}"),
    ("define", "put the text where it is used: a template is one file"),
    ("template", "put the text where it is used: a template is one file"),
    ("block", "put the text where it is used: a template is one file"),
    ("printf", "put the values together with `~`, or write them one after the other"),
];

/// What Go's syntax is found in the inside of a `{{ }}` tag, if any.
pub(super) fn check(inside: &str, line: usize) -> Result<(), TemplateError> {
    let text = inside.strip_prefix('-').unwrap_or(inside);
    let text = text.strip_suffix('-').unwrap_or(text).trim();
    let Some(hint) = hint(text) else { return Ok(()) };
    let shown: String = text.chars().take(60).collect();
    Err(TemplateError::Go { line, found: format!("{{{{ {shown} }}}}"), hint })
}

fn hint(text: &str) -> Option<&'static str> {
    if let Some(field) = text.strip_prefix('.') {
        let go = field.chars().next().is_none_or(|first| !first.is_ascii_digit());
        return go.then_some(
            "write a name without the leading dot, such as {{ service }}, or {{ endpoint.address }} in a loop",
        );
    }
    if text.starts_with('$') {
        return Some("write {% set name = … %}, and {{ name }} where it is used");
    }
    if text.starts_with("/*") {
        return Some("write comments as {# … #}");
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (_, hint) = ACTIONS.iter().find(|(action, _)| *action == word)?;
    // Alone, most of them could be somebody's variable. Before another value, none can.
    let value = |first: char| first.is_alphanumeric() || "._$\"`(".contains(first);
    let go = match rest.trim_start().chars().next() {
        None => matches!(word, "end" | "else"),
        Some(first) => value(first) && !rest.trim_start().starts_with("if ") || word == "else",
    };
    go.then_some(*hint)
}
