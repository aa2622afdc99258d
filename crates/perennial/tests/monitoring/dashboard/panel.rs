//! One panel, in the words that Grafana has for it.

use serde_json::{Value, json};

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One number, now.
    Stat,
    /// One bar for each of a few, over the whole time that is shown.
    Ranking,
    Lines,
    /// Lines upon each other.
    Stack,
    /// Bars upon each other: how often.
    Bars,
    Heatmap,
}

/// One panel; where it stands is up to the page.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) kind: Kind,
    pub(crate) width: u32,
    pub(crate) height: u32,
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    queries: Vec<(String, &'static str)>,
    /// From which value on which colour; green below.
    steps: Vec<(f64, &'static str)>,
    lowest: &'static str,
}

/// What `{}` stands for in an expression: what the variables on the page choose.
const CHOSEN: &str = r#"{cluster=~"$cluster",namespace=~"$namespace",job=~"$job"}"#;

impl Panel {
    pub(crate) fn new(kind: Kind, title: &'static str, about: &'static str) -> Self {
        let (width, height) = match kind {
            Kind::Stat => (4, 4),
            Kind::Ranking | Kind::Lines | Kind::Stack | Kind::Bars | Kind::Heatmap => (8, 7),
        };
        let (unit, queries, steps) = ("short", Vec::new(), Vec::new());
        Self { kind, width, height, title, about, unit, queries, steps, lowest: "green" }
    }

    /// Shows this, under this name; `{{label}}` in it is the label's value.
    pub(crate) fn of(mut self, expression: &str, name: &'static str) -> Self {
        self.queries.push((expression.replace("{}", CHOSEN), name));
        self
    }

    /// Shows the median, and what 99 of 100 stay below.
    pub(crate) fn quantiles(mut self, histogram: &str, window: &str) -> Self {
        for (quantile, name) in [("0.5", "median"), ("0.9", "90 %"), ("0.99", "99 %")] {
            let buckets = format!("sum by (le) (rate({histogram}_bucket{{}}[{window}]))");
            self = self.of(&format!("histogram_quantile({quantile}, {buckets})"), name);
        }
        self
    }

    pub(crate) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) fn wide(mut self, width: u32) -> Self {
        self.width = width;
        self
    }

    /// Turns to this colour from this value on.
    pub(crate) fn from(mut self, value: f64, colour: &'static str) -> Self {
        self.steps.push((value, colour));
        self
    }

    /// Is bad to begin with, and better from the steps on.
    pub(crate) fn low_is_bad(mut self) -> Self {
        self.lowest = "red";
        self
    }

    /// As Grafana reads it.
    pub(crate) fn json(&self, id: usize, x: u32, y: u32) -> Value {
        json!({
            "id": id,
            "type": self.plugin(),
            "title": self.title,
            "description": self.about,
            "datasource": source(),
            "gridPos": { "x": x, "y": y, "w": self.width, "h": self.height },
            "fieldConfig": { "defaults": self.field(), "overrides": [] },
            "options": self.options(),
            "targets": self.targets(),
        })
    }

    fn plugin(&self) -> &'static str {
        match self.kind {
            Kind::Stat => "stat",
            Kind::Ranking => "bargauge",
            Kind::Lines | Kind::Stack | Kind::Bars => "timeseries",
            Kind::Heatmap => "heatmap",
        }
    }

    fn targets(&self) -> Vec<Value> {
        let now = matches!(self.kind, Kind::Stat | Kind::Ranking);
        let numbered = self.queries.iter().zip('A'..);
        numbered
            .map(|((expression, name), letter)| {
                json!({
                    "refId": letter,
                    "expr": expression,
                    "legendFormat": name,
                    "format": if self.kind == Kind::Heatmap { "heatmap" } else { "time_series" },
                    "instant": now,
                    "range": !now,
                })
            })
            .collect()
    }

    fn field(&self) -> Value {
        let steps = self.steps.iter().map(|(value, colour)| json!({ "color": colour, "value": value }));
        let steps: Vec<Value> =
            std::iter::once(json!({ "color": self.lowest, "value": null })).chain(steps).collect();
        let lines = json!({ "drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never" });
        let custom = match self.kind {
            Kind::Lines => lines,
            Kind::Stack => {
                let mut stack = lines;
                stack["fillOpacity"] = json!(40);
                stack["stacking"] = json!({ "mode": "normal", "group": "A" });
                stack
            }
            Kind::Bars => json!({
                "drawStyle": "bars", "lineWidth": 0, "fillOpacity": 80, "showPoints": "never",
                "stacking": { "mode": "normal", "group": "A" },
            }),
            Kind::Stat | Kind::Ranking | Kind::Heatmap => json!({}),
        };
        let coloured =
            if matches!(self.kind, Kind::Stat | Kind::Ranking) { "thresholds" } else { "palette-classic" };
        json!({
            "unit": self.unit,
            "min": 0,
            "color": { "mode": coloured },
            "thresholds": { "mode": "absolute", "steps": steps },
            "custom": custom,
        })
    }

    fn options(&self) -> Value {
        let last = json!({ "calcs": ["lastNotNull"], "fields": "", "values": false });
        match self.kind {
            Kind::Stat => json!({
                "reduceOptions": last, "colorMode": "background", "graphMode": "none", "justifyMode": "auto",
                "orientation": "auto", "textMode": "value", "wideLayout": true,
            }),
            Kind::Ranking => json!({
                "reduceOptions": last, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": true,
                "valueMode": "color",
            }),
            Kind::Lines | Kind::Stack | Kind::Bars => json!({
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
                "tooltip": { "mode": "multi", "sort": "desc" },
            }),
            Kind::Heatmap => json!({
                "calculate": false,
                "cellGap": 1,
                "color": { "mode": "scheme", "scheme": "Blues", "exponent": 0.5, "fill": "dark-blue", "reverse": false, "steps": 64 },
                "yAxis": { "axisPlacement": "left", "unit": "s" },
                "legend": { "show": true },
                "tooltip": { "mode": "single", "yHistogram": false },
                "showValue": "never",
                "rowsFrame": { "layout": "auto" },
                "exemplars": { "color": "rgba(255,0,255,0.7)" },
            }),
        }
    }
}

/// The Prometheus that the page's own variable chooses.
pub(crate) fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}
