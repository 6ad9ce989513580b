//! Events of the cluster: the reasons why an object does not progress.

use serde_json::Value;

/// A message of a controller, a scheduler or a kubelet about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The reason as one word, such as `FailedCreate`.
    pub reason: String,
    /// The message.
    pub message: String,
    /// True if it reports trouble.
    pub is_warning: bool,
    /// The time of the last occurrence. `None` if the event has no time.
    pub at: Option<jiff::Timestamp>,
}

impl Event {
    /// Returns the event from the JSON of the API.
    #[must_use]
    pub fn of(event: &Value) -> Event {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let times = [
            &event["series"]["lastObservedTime"],
            &event["lastTimestamp"],
            &event["eventTime"],
            &event["firstTimestamp"],
        ];
        let mut times = times.into_iter().filter_map(Value::as_str);
        Event {
            reason: text(&event["reason"]),
            message: text(&event["message"]),
            is_warning: event["type"] == "Warning",
            at: times.find_map(|time| time.parse().ok()),
        }
    }
}

/// Returns the newest warning with one of these reasons. An empty list accepts every reason.
#[must_use]
pub fn last_warning<'e>(events: &'e [Event], reasons: &[&str]) -> Option<&'e Event> {
    let is_meant = |event: &&Event| {
        event.is_warning && (reasons.is_empty() || reasons.contains(&event.reason.as_str()))
    };
    events.iter().filter(is_meant).max_by_key(|event| event.at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_warning_with_the_reason_is_found() {
        let event = |reason: &str, message: &str, at: &str| {
            Event::of(
                &json!({"type": "Warning", "reason": reason, "message": message,
                "lastTimestamp": at}),
            )
        };
        let events = [
            event("FailedCreate", "newest", "2026-01-01T00:00:09Z"),
            event("FailedCreate", "older", "2026-01-01T00:00:01Z"),
            event("FailedMount", "no volume", "2026-01-01T00:00:10Z"),
            Event::of(
                &json!({"type": "Normal", "reason": "FailedCreate", "message": "no trouble",
                "eventTime": "2026-01-01T00:01:00.000000Z"}),
            ),
        ];
        let found = last_warning(&events, &["FailedCreate"]).map(|event| &*event.message);
        assert_eq!(found, Some("newest"));
        let found = last_warning(&events, &[]).map(|event| &*event.message);
        assert_eq!(found, Some("no volume"));
        assert_eq!(last_warning(&events, &["Unhealthy"]), None);
    }
}
