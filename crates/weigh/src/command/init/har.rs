//! Requests that a browser has recorded, from the HAR format of its developer tools.

use experiment::address;
use http::Uri;
use serde::Deserialize;
use serde_json::Value;

use super::origins::{Origins, origin};
use super::requests::{Given, Requests};

/// A request and its response.
#[derive(Debug, Deserialize)]
struct Entry {
    request: Sent,
    #[serde(default)]
    response: Answer,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<Body>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

#[derive(Debug, Default, Deserialize)]
struct Answer {
    /// The status, or 0 without a response.
    #[serde(default)]
    status: u16,
}

/// Reads the requests of a HAR file to its most frequent server.
///
/// # Errors
/// A sentence, if it is not a HAR file.
pub(super) fn read(source: &str, text: &str) -> Result<Requests, String> {
    let not_har = |why: &str| format!("expected a HAR file, JSON with `log.entries`, found {why}");
    // Some browsers write a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut archive: Value =
        serde_json::from_str(text).map_err(|error| not_har(&format!("invalid JSON: {error}")))?;
    let Some(Value::Array(entries)) = archive.pointer_mut("/log/entries").map(Value::take) else {
        return Err(not_har("JSON without `log.entries`"));
    };
    let mut requests = Requests::of(source);
    let mut found: Vec<(Entry, Uri)> = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let what = || format!("entry {}", index + 1);
        match serde_json::from_value::<Entry>(entry) {
            Err(error) => requests.leave_out_request(None, &what(), &error.to_string()),
            Ok(entry) => match address::url(&entry.request.url) {
                Ok(url) => found.push((entry, url)),
                Err(_) => {
                    requests.leave_out_request(None, &what(), "its URL is neither http nor https")
                }
            },
        }
    }
    let mut origins = Origins::default();
    for (_, url) in &found {
        origins.count(&origin(url));
    }
    let most = origins.most();
    for (entry, url) in found {
        if most.as_ref() == Some(&origin(&url)) {
            match given(entry, &url) {
                Ok(given) => requests.add(given),
                Err((what, why)) => requests.leave_out_request(None, &what, why),
            }
        }
    }
    origins.leave_out_others(&mut requests);
    Ok(requests)
}

/// A request as it was sent. If it is left out, its name and the reason.
fn given(entry: Entry, url: &Uri) -> Result<Given, (String, &'static str)> {
    let Entry { request, response } = entry;
    let path = address::path(url);
    let what = format!("{} {path}", request.method);
    match response.status {
        0 => return Err((what, "it has no answer")),
        101 => return Err((what, "it opens a WebSocket or another protocol")),
        _ => {}
    }
    let mut headers: Vec<(String, String)> = request
        .headers
        .into_iter()
        .map(|Pair { name, value }| (name, value))
        .collect();
    let mut body = None;
    if let Some(posted) = request.post_data {
        let is_form = posted
            .mime_type
            .starts_with("application/x-www-form-urlencoded");
        body = match posted.text {
            Some(text) if !text.is_empty() => Some(text.into_bytes()),
            _ if posted.params.is_empty() => None,
            _ if is_form => Some(form(&posted.params).into_bytes()),
            _ => {
                return Err((what, "the file contains only the parts of its body"));
            }
        };
        let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        if body.is_some() && !posted.mime_type.is_empty() && !headers.iter().any(has_type) {
            headers.push(("Content-Type".to_owned(), posted.mime_type));
        }
    }
    let status = Some(response.status).filter(|status| !(200..300).contains(status));
    let status = status.iter().map(u16::to_string).collect();
    Ok(Given {
        method: request.method,
        path,
        headers,
        body,
        status,
        ..Given::default()
    })
}

/// A form body from its parameters. Names and values in the archive are already encoded.
fn form(parameters: &[Pair]) -> String {
    let pairs = parameters
        .iter()
        .map(|Pair { name, value }| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(method: &str, url: &str, status: u16) -> Value {
        json!({
            "request": {"method": method, "url": url, "headers": [
                {"name": ":path", "value": "/"},
                {"name": "Accept", "value": "*/*"},
                {"name": "Referer", "value": "https://shop.example/?token=abcdefghij"},
                {"name": "Cookie", "value": "session=123456789"},
                {"name": "Authorization", "value": "Bearer abcdefghij"},
            ]},
            "response": {"status": status},
        })
    }

    fn load(entries: &[Value]) -> String {
        let archive = json!({"log": {"entries": entries}}).to_string();
        read("shop.har", &archive).expect("a HAR file").load()
    }

    #[test]
    fn requests_to_one_server_are_taken_without_what_may_be_secret() {
        let mut posted = entry("POST", "https://shop.example/items?token=abc&page=2", 201);
        posted["request"]["postData"] =
            json!({"mimeType": "application/json", "text": "{\"password\":\"x\"}"});
        let text = load(&[
            entry("GET", "https://cdn.example/logo.png", 200),
            entry("GET", "https://shop.example/items", 200),
            entry("GET", "https://shop.example:443/items", 200),
            posted,
            entry("GET", "https://shop.example/old", 302),
            entry("GET", "https://shop.example/aborted?token=123456789", 0),
            entry("GET", "wss://shop.example/live", 101),
            json!({"request": {}}),
        ]);
        insta::assert_snapshot!(text, @r#"
        # Omitted because they may be secret: Referer, Cookie, Authorization, ?token=.
        # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
        #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
        headers:
          "Accept": "*/*"
        # From shop.har, in rotation.
        requests:
          - name: "GET /items"
            method: "GET"
            path: "/items"
            weight: 2
          # its body contains `password` from shop.har
          - name: "POST /items?page=2"
            method: "POST"
            path: "/items?page=2"
            headers:
              "Content-Type": "application/json"
            body: "requests/2.json"
          - name: "GET /old"
            method: "GET"
            path: "/old"
            expect: {status: 302, same-as: baseline}
          # Left out:
          # - entry 7: its URL is neither http nor https
          # - entry 8: missing field `method`
          # - GET /aborted: it has no answer
          # - 1 request: to cdn.example:443, but most requests go to shop.example:443
        "#);
        assert!(!text.contains("123456789") && !text.contains("abcdefghij"));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let refused = |text: &str| read("x.har", text).map(|_| ()).unwrap_err();
        assert!(refused("{").contains("found invalid JSON"));
        assert!(refused("{\"log\":{}}").contains("found JSON without `log.entries`"));
    }

    #[test]
    fn text_that_would_be_a_place_or_another_line_of_the_lab_is_no_part_of_it() {
        let mut odd = entry("GET", "https://shop.example/a", 200);
        odd["request"]["headers"] =
            json!([{"name": "X-A", "value": "a\nb"}, {"name": "X-B", "value": "{{c}}"}]);
        let mut places = entry("POST", "https://shop.example/b", 200);
        places["request"]["postData"] = json!({"mimeType": "text/plain", "text": "{{name}}"});
        let broken =
            json!({"request": {"method": "GET", "url": "https://shop.example/\nrounds: 1"}});
        insta::assert_snapshot!(load(&[odd, places, broken]), @r#"
        # From shop.har, in rotation.
        requests:
          # without its header `X-A`, which a lab cannot contain
          # without its header `X-B`, which a lab cannot contain
          - name: "GET /a"
            method: "GET"
            path: "/a"
          # Left out:
          # - entry 3: its URL is neither http nor https
          # - POST /b: `{{` in a path or a body would be a placeholder of the lab
        "#);
    }
}
