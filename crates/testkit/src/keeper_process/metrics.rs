//! Metrics as Prometheus writes them.

use std::collections::BTreeMap;

use anyhow::Context;

/// Every sample by its name and labels, as they stand in the text: `name{label="value"}`.
pub(super) fn parse(text: &str) -> anyhow::Result<BTreeMap<String, f64>> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(sample).collect()
}

fn sample(line: &str) -> anyhow::Result<(String, f64)> {
    // An exemplar may follow, and a timestamp.
    let line = line.split(" # ").next().unwrap_or(line);
    let end = line.rfind('}').map_or_else(|| line.find(' ').unwrap_or(line.len()), |brace| brace + 1);
    let (name, rest) = line.split_at(end);
    let value = rest.split_whitespace().next().with_context(|| format!("no value in {line:?}"))?;
    Ok((name.to_owned(), value.parse().with_context(|| format!("not a number in {line:?}"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_kept_as_written() {
        let text = "# HELP nodes How many.\n# TYPE nodes gauge\nnodes 3\n\
                    errors_total{kind=\"a b}\",verb=\"get\"} 2 1700000000\n\
                    seconds_bucket{le=\"+Inf\"} +Inf # {trace=\"x\"} 1.0\n# EOF\n";
        let metrics = parse(text).unwrap();
        assert_eq!(metrics.len(), 3);
        assert!((metrics["nodes"] - 3.0).abs() < f64::EPSILON);
        assert!((metrics["errors_total{kind=\"a b}\",verb=\"get\"}"] - 2.0).abs() < f64::EPSILON);
        assert!(metrics["seconds_bucket{le=\"+Inf\"}"].is_infinite());
    }

    #[test]
    fn what_is_no_metric_is_told() {
        assert!(parse("nodes many").unwrap_err().to_string().contains("nodes many"));
        assert!(parse("nodes").unwrap_err().to_string().contains("no value"));
    }
}
