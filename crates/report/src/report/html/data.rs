//! What the page's script and the download need.

use crate::report::figures::{FOOT, Plot, bounds, is_bound, is_histogram, is_line, thin, x_in_bytes};
use base64::Engine;
use serde_json::{Value, json};

/// The figures as JSON that may stand inside a script element; of long series, every stretch keeps its lowest and its highest.
pub fn figures(plots: &[Plot]) -> String {
    let all: Vec<Value> = plots
        .iter()
        .map(|p| {
            let f = &p.figure;
            let xy = |points: &[(f64, f64)]| {
                let kept: Vec<(f64, f64)> = points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
                let mut kept = thin(&kept, p.detail.script);
                nandscope_stats::ascending(&mut kept, |a| a.0);
                kept.iter().map(|&(x, y)| [short(x), short(y)]).collect::<Vec<_>>()
            };
            let series: Vec<Value> = f
                .series
                .iter()
                .filter(|s| !is_bound(s) && !s.points.is_empty())
                .map(|s| {
                    let mut v = json!({ "name": s.name, "line": is_line(s), "p": xy(&s.points) });
                    if let Some((low, high)) = bounds(f, &s.name) {
                        v["low"] = json!(xy(&low.points));
                        v["high"] = json!(xy(&high.points));
                    }
                    v
                })
                .collect();
            json!({ "name": p.name, "title": f.title, "x": f.x, "y": f.y, "logX": f.log_x, "logY": f.log_y, "bytes": x_in_bytes(f), "foot": is_histogram(f).then_some(FOOT), "series": series })
        })
        .collect();
    script(&Value::Array(all))
}

/// JSON that may stand inside a script element, where only "</" and "<!" could end it.
pub fn script(v: &Value) -> String {
    v.to_string().replace('<', "\\u003c")
}

/// Six significant digits are more than a plot shows.
fn short(v: f64) -> f64 {
    format!("{v:.6e}").parse().unwrap_or(v)
}

/// The address of a file inside the page.
pub fn address(mime: &str, content: &str) -> String {
    format!("data:{mime};base64,{}", base64::engine::general_purpose::STANDARD.encode(content))
}
