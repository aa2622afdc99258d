//! The index of a history as a page for people.

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::index::{Index, Version};

/// What stands for itself in a link.
const IN_A_LINK: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid #d8dee4}\
td.n,th.n{text-align:right}code{color:#57606a}a{color:#0969da}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}a{color:#58a6ff}code{color:#8b949e}}";

/// Renders it. `up` leads from the index to the folder of the page.
pub(super) fn render(index: &Index, up: &str) -> String {
    let file = index.page().rsplit('/').next().unwrap_or_default();
    let (title, current) = (escape(file), link(&format!("{up}{file}")));
    let mut rows = String::new();
    for Version { name, endpoints } in index.versions() {
        let (path, at) = (link(&name.to_string()), name.at().strftime("%Y-%m-%d %H:%M:%S%.3f UTC"));
        let (digest, endpoints) = (escape(name.digest()), endpoints.map(|number| number.to_string()));
        // Writing to a text cannot fail.
        let _ = writeln!(
            rows,
            "<tr><td><a href=\"{path}\">{at}</a></td><td class=\"n\">{}</td><td><code>{digest}</code></td></tr>",
            endpoints.unwrap_or_default()
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>History of {title}</title>\n\
         <style>{STYLE}</style>\n<h1>History of {title}</h1>\n\
         <p><a href=\"{current}\">The current page</a></p>\n\
         <table>\n<tr><th>Published</th><th class=\"n\">Endpoints</th><th>Digest</th></tr>\n{rows}</table>\n</html>\n"
    )
}

fn link(path: &str) -> String {
    utf8_percent_encode(path, IN_A_LINK).to_string()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::name::Name;
    use super::*;

    #[test]
    fn it_links_to_the_page_and_to_every_version() {
        let mut index = Index::new("team/index.html");
        let path = "2026/11/15/2026-11-15T12-00-00.123Z-0a1b2c3d.html";
        index.add(&Name::parse(path).unwrap(), Some(3));
        let page = render(&index, "../");
        assert!(page.contains(r#"<a href="../index.html">The current page</a>"#), "{page}");
        let row = format!(
            r#"<td><a href="{path}">2026-11-15 12:00:00.123 UTC</a></td><td class="n">3</td><td><code>0a1b2c3d</code></td>"#
        );
        assert!(page.contains(&row), "{page}");
    }

    proptest! {
        #[test]
        fn no_name_of_a_page_breaks_out(name in "[a-z<>\"'&/ ]{0,30}") {
            let plain = render(&Index::new("x"), "../").matches(['<', '>', '"']).count();
            prop_assert_eq!(render(&Index::new(&name), "../").matches(['<', '>', '"']).count(), plain);
        }
    }
}
