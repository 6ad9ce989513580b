//! Metrics in the text format of Prometheus.

/// Returns the sum of all series with a name and labels, or `None` if there is no such series.
pub(crate) fn metric(wanted: &str, text: &str) -> Option<f64> {
    let (name, labels) = series(wanted);
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let end = match line.rfind('}') {
                Some(end) => end + 1,
                // A series without labels ends at the first space.
                None => line.find(char::is_whitespace)?,
            };
            let (found, found_labels) = series(&line[..end]);
            let is_it = found == name && labels.iter().all(|label| found_labels.contains(label));
            // A timestamp may follow the value.
            let value = line[end..].split_whitespace().next()?;
            is_it.then(|| value.parse::<f64>().ok()).flatten()
        })
        .reduce(|sum, value| sum + value)
}

/// Splits `name{a="b",c="d"}` into its name and its labels.
fn series(text: &str) -> (&str, Vec<&str>) {
    let Some((name, labels)) = text.trim().split_once('{') else {
        return (text.trim(), Vec::new());
    };
    let labels = labels.trim_end().trim_end_matches('}');
    // A label ends with its closing quote, because its value may contain a comma.
    let labels = labels
        .split_inclusive('"')
        .collect::<Vec<_>>()
        .chunks(2)
        .scan(0, |at, pair| {
            let length: usize = pair.iter().map(|part| part.len()).sum();
            let label = &labels[*at..*at + length];
            *at += length;
            Some(label.trim_start_matches([',', ' ']))
        })
        .filter(|label| !label.is_empty())
        .collect();
    (name.trim(), labels)
}
