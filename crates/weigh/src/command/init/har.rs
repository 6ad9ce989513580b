//! Requests that a browser or a proxy has recorded, in the HAR format.
//!
//! Tools keep different parts of a body. A body is taken only if it has the size of the request's body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::secrets::is_secret;
use serde_json::Value;

use super::json_lines::lines;
use super::multipart::{self, Part};
use super::origins::{Located, Origins, located};
use super::requests::{Given, Requests};
use super::values::{encoded, plain};

/// Reads the requests of a HAR file to the server of the user, or to its most frequent server.
///
/// # Errors
/// A sentence, if it is not a HAR file.
pub(super) fn read(source: &str, text: &str, host: Option<&str>) -> Result<Requests, String> {
    let not_har = |why: &str| format!("expected a HAR file, JSON with `log.entries`, found {why}");
    // Some browsers write a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let mut archive: Value =
        serde_json::from_str(text).map_err(|error| not_har(&format!("invalid JSON: {error}")))?;
    let Some(Value::Array(entries)) = archive.pointer_mut("/log/entries").map(Value::take) else {
        return Err(not_har("JSON without `log.entries`"));
    };
    let mut requests = Requests::of(source);
    let mut found: Vec<(Value, Located, Option<usize>)> = Vec::new();
    let lines = lines(text, 3);
    let mut unsent = Unsent::default();
    for (index, entry) in entries.into_iter().enumerate() {
        let what = format!("entry {}", index + 1);
        let line = lines.get(&format!("/log/entries/{index}")).copied();
        if unsent.has(&entry) {
            continue;
        }
        let url = text_of(&entry, "/request/url");
        match (url.as_str(), text_of(&entry, "/request/method").as_str()) {
            ("", _) => requests.leave_out_request(line, &what, "it has no `url`"),
            (_, "") => requests.leave_out_request(line, &what, "it has no `method`"),
            (url, _) if !is_http(url) => {
                requests.leave_out_request(line, &what, "its URL is neither http nor https");
            }
            (url, _) => match located(url) {
                Ok(located) => found.push((entry, located, line)),
                Err(why) => requests.leave_out_request(line, &what, &why),
            },
        }
    }
    unsent.tell(&mut requests);
    let mut origins = Origins::default();
    for (_, located, _) in &found {
        origins.count(&located.origin);
    }
    let taken = origins.chosen(host)?.unwrap_or_default();
    let variables = Variables::of(found.iter().map(|(entry, ..)| entry));
    for (entry, located, line) in found {
        if located.origin != taken {
            continue;
        }
        if located.has_credentials {
            requests.hide("Authorization");
        }
        let method = text_of(&entry, "/request/method").to_ascii_uppercase();
        let what = format!("{method} {}", located.path);
        let path = with_query(&entry, located.path);
        match given(&entry, method, path).and_then(|given| variables.without(given)) {
            Ok(given) => requests.add(Given { line, ..given }),
            Err(why) => requests.leave_out_request(line, &what, &why),
        }
    }
    origins.leave_out_others(&taken, &mut requests);
    if variables.has_checks {
        requests.leave_out("checks of entries", "a lab has rules of its own");
    }
    Ok(requests)
}

/// The path with the parameters of `queryString`, if the URL has no query. Some tools write them only there.
fn with_query(entry: &Value, path: String) -> String {
    let listed = entry
        .pointer("/request/queryString")
        .and_then(Value::as_array);
    let pairs: Vec<String> = listed
        .into_iter()
        .flatten()
        .map(|pair| {
            let (name, value) = (text_of(pair, "/name"), text_of(pair, "/value"));
            format!("{}={}", encoded(&name), encoded(&value))
        })
        .collect();
    match path.contains('?') || pairs.is_empty() {
        true => path,
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// Values that some recorders capture from answers, and write as `${name}` into later entries.
struct Variables {
    names: Vec<String>,
    has_checks: bool,
}

impl Variables {
    fn of<'a>(entries: impl Iterator<Item = &'a Value> + Clone) -> Variables {
        let lists = |key: &'static str| {
            let lists = entries
                .clone()
                .filter_map(move |it| it.get(key)?.as_array());
            lists.flatten()
        };
        Variables {
            names: lists("variables").map(|it| text_of(it, "/name")).collect(),
            has_checks: lists("checks").next().is_some(),
        }
    }

    /// The request without secret headers that contain a variable, or the reason for leaving it out.
    fn without(&self, given: Given) -> Result<Given, String> {
        let body = String::from_utf8_lossy(given.body.as_deref().unwrap_or_default()).into_owned();
        let headers = given.headers.iter().filter(|(name, _)| !is_secret(name));
        let texts = headers.map(|(_, value)| value).chain([&given.path, &body]);
        for text in texts {
            // A path has the braces percent-encoded.
            let has = |name: &&String| {
                text.contains(&format!("${{{name}}}")) || text.contains(&format!("$%7B{name}%7D"))
            };
            if let Some(name) = self.names.iter().find(has) {
                return Err(format!(
                    "it contains `${{{name}}}`, which the recorder captures from an answer"
                ));
            }
        }
        Ok(given)
    }
}

/// A part of an entry as text. Empty without it.
fn text_of(entry: &Value, pointer: &str) -> String {
    entry.pointer(pointer).map(plain).unwrap_or_default()
}

fn is_http(url: &str) -> bool {
    let scheme = url.split("://").next().unwrap_or_default();
    ["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Entries that no page asked a server for.
#[derive(Default)]
struct Unsent {
    cached: usize,
    local: usize,
    preflights: usize,
    tunnels: usize,
}

impl Unsent {
    /// Counts the entry, if it is one of these.
    fn has(&mut self, entry: &Value) -> bool {
        let method = text_of(entry, "/request/method");
        let url = text_of(entry, "/request/url");
        let is_on = |key: &str| {
            entry
                .get(key)
                .is_some_and(|it| !it.is_null() && *it != false)
        };
        // Safari names the cache in its own key.
        let is_cached = is_on("_fromCache")
            || is_on("_servedFromCache")
            || text_of(entry, "/_fetchType").contains("Cache");
        let is_preflight = method.eq_ignore_ascii_case("OPTIONS")
            && (text_of(entry, "/_resourceType") == "preflight"
                || header(entry, "access-control-request-method").is_some());
        let count = if is_cached {
            &mut self.cached
        } else if url.starts_with("data:") || url.starts_with("blob:") {
            &mut self.local
        } else if is_preflight {
            &mut self.preflights
        } else if method.eq_ignore_ascii_case("CONNECT") {
            &mut self.tunnels
        } else {
            return false;
        };
        *count += 1;
        true
    }

    fn tell(&self, requests: &mut Requests) {
        for (count, why) in [
            (self.cached, "answered by the browser's cache"),
            (self.local, "data that the page contains"),
            (self.preflights, "preflights of the browser (CORS)"),
            (self.tunnels, "tunnels of a proxy (CONNECT)"),
        ] {
            match count {
                0 => {}
                1 => requests.leave_out("1 entry", why),
                many => requests.leave_out(&format!("{many} entries"), why),
            }
        }
    }
}

/// The value of a header of the request.
fn header(entry: &Value, name: &str) -> Option<String> {
    let headers = entry.pointer("/request/headers").and_then(Value::as_array);
    let mut headers = headers.into_iter().flatten();
    let found = headers.find(|header| text_of(header, "/name").eq_ignore_ascii_case(name));
    found.map(|header| text_of(header, "/value"))
}

/// A request as it was sent, or the reason for leaving it out.
fn given(entry: &Value, method: String, path: String) -> Result<Given, String> {
    let status = match entry.pointer("/response/status") {
        // Some tools write requests without their answers.
        None => Vec::new(),
        Some(status) => match plain(status).parse::<i32>() {
            Ok(101) => return Err("it opens a WebSocket or another protocol".to_owned()),
            Ok(200..300) => Vec::new(),
            Ok(status @ 100..600) => vec![status.to_string()],
            _ => return Err("it has no answer".to_owned()),
        },
    };
    if method == "DELETE" {
        return Err("the next request would not find the deleted object".to_owned());
    }
    let headers = entry.pointer("/request/headers").and_then(Value::as_array);
    let headers = headers.into_iter().flatten();
    let mut headers: Vec<(String, String)> = headers
        .map(|header| (text_of(header, "/name"), text_of(header, "/value")))
        .collect();
    let body = body(entry, &mut headers)?;
    Ok(Given {
        method,
        path,
        headers,
        body,
        status,
        ..Given::default()
    })
}

/// The body, if it has the size of the request. The media type is added to the headers if it is missing.
fn body(entry: &Value, headers: &mut Vec<(String, String)>) -> Result<Option<Vec<u8>>, String> {
    const LOST: &str = "the file does not hold its body as it was sent";
    let length = header(entry, "content-length").and_then(|it| it.trim().parse::<usize>().ok());
    let size = entry.pointer("/request/bodySize").and_then(Value::as_u64);
    let size = size
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0);
    let wanted = length.or(size);
    let posted = entry
        .pointer("/request/postData")
        .filter(|it| !it.is_null());
    let Some(posted) = posted else {
        return match wanted {
            None | Some(0) => Ok(None),
            Some(_) => Err(LOST.to_owned()),
        };
    };
    if posted.get("_file").is_some() {
        return Err("its body is in another file".to_owned());
    }
    let kind = text_of(posted, "/mimeType");
    let text = text_of(posted, "/text");
    let params = posted.get("params").and_then(Value::as_array);
    let params = params.map(Vec::as_slice).unwrap_or_default();
    let mut own_kind = None;
    let body = if text.is_empty() {
        if params.is_empty() {
            return match wanted {
                None | Some(0) => Ok(None),
                Some(_) => Err(LOST.to_owned()),
            };
        }
        let (kind, body) = of_params(params, &kind)?;
        own_kind = kind;
        body
    } else {
        let encoding = text_of(posted, "/encoding");
        let body = match encoding.as_str() {
            "" => text.clone().into_bytes(),
            "base64" => STANDARD
                .decode(text.trim())
                .map_err(|_| "its body is no base64".to_owned())?,
            other => return Err(format!("its body has the unknown encoding `{other}`")),
        };
        // Some browsers count characters in `bodySize`.
        let is_counted = |wanted: usize| {
            let has_characters =
                wanted == text.chars().count() || wanted == text.encode_utf16().count();
            wanted == body.len() || (length.is_none() && encoding.is_empty() && has_characters)
        };
        match wanted {
            Some(wanted) if !is_counted(wanted) => one_byte_each(&text, wanted).ok_or(LOST)?,
            _ => body,
        }
    };
    if let Some(encoding) = header(entry, "content-encoding")
        && !is_encoded(&encoding, &body)
    {
        return Err(format!(
            "its body was sent in {encoding}, but the file holds it decoded"
        ));
    }
    let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    if let Some(kind) = own_kind {
        headers.retain(|header| !has_type(header));
        headers.push(("Content-Type".to_owned(), kind));
    } else if !kind.is_empty() && !headers.iter().any(has_type) {
        headers.push(("Content-Type".to_owned(), kind));
    }
    Ok(Some(body))
}

/// A body with one character for each byte, if this gives the wanted size.
fn one_byte_each(text: &str, wanted: usize) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text
        .chars()
        .map(|it| u8::try_from(u32::from(it)).ok())
        .collect();
    bytes.filter(|bytes| bytes.len() == wanted)
}

/// True if the bytes can be in the encoding, by their first bytes.
fn is_encoded(encoding: &str, body: &[u8]) -> bool {
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => true,
        "gzip" | "x-gzip" => body.starts_with(&[0x1f, 0x8b]),
        "deflate" => body.first().is_some_and(|first| first & 0x0f == 8),
        "zstd" => body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
        // Brotli has no mark, but its output is no text.
        _ => std::str::from_utf8(body).is_err(),
    }
}

/// A body of parameters: its own media type, if it differs, and its bytes.
fn of_params(params: &[Value], kind: &str) -> Result<(Option<String>, Vec<u8>), String> {
    if kind.starts_with("multipart/form-data") {
        let mut parts = Vec::new();
        for param in params {
            if param.get("fileName").is_some() || param.get("value").is_none() {
                return Err("the file does not hold the files of its body".to_owned());
            }
            parts.push(Part {
                name: text_of(param, "/name"),
                content: text_of(param, "/value").into_bytes(),
                ..Part::default()
            });
        }
        let (kind, body) = multipart::body(&parts)?;
        return Ok((Some(kind), body));
    }
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err("the file contains only the parts of its body".to_owned());
    }
    let pairs = params.iter().map(|param| {
        let part = |pointer: &str| of_form(&text_of(param, pointer));
        format!("{}={}", part("/name"), part("/value"))
    });
    Ok((None, pairs.collect::<Vec<_>>().join("&").into_bytes()))
}

/// Encodes characters that a part of a form cannot contain. Some tools write the parts encoded, and others decoded.
fn of_form(text: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let is_escape = || {
            let digits = text.as_bytes().get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        match byte {
            b' ' => encoded.push('+'),
            b'&' | b'=' | b'#' => encoded.push_str(&format!("%{byte:02X}")),
            b'%' if !is_escape() => encoded.push_str("%25"),
            byte if byte.is_ascii_graphic() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
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
        read("shop.har", &archive, None).expect("a HAR file").load()
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
        # Servers that the lab does not take: cdn.example:443 (1). Choose a server with `--host`.
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
          # - line 1: entry 7: its URL is neither http nor https
          # - line 1: entry 8: it has no `url`
          # - line 1: GET /aborted: it has no answer
          # - 1 request: to cdn.example:443, but the lab takes shop.example:443
        "#);
        assert!(!text.contains("123456789") && !text.contains("abcdefghij"));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let refused = |text: &str| read("x.har", text, None).map(|_| ()).unwrap_err();
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
          # - line 1: entry 3: its URL contains a control character
          # - line 1: POST /b: `{{` in a path or a body would be a placeholder of the lab
        "#);
    }

    #[test]
    fn bodies_are_taken_only_as_they_were_sent() {
        let requests =
            read("bodies.har", include_str!("fixtures/har/bodies.har"), None).expect("a HAR file");
        let bodies: Vec<Vec<u8>> = requests.files().map(|(_, body)| body).collect();
        assert_eq!(
            bodies,
            [
                b"{\"title\":\"foo\"}".to_vec(),
                b"\x00\x00\x00\x00\x03\x08\x96\x01".to_vec(),
                b"a=1+2&b=x%26y%3Dz".to_vec(),
                b"{\"query\":\"{ a { b } }\",\"variables\":{}}".to_vec(),
            ]
        );
        assert_eq!(requests.counts(), (4, 9));
        let text = requests.load();
        for reason in [
            "POST /replaced: the file does not hold its body as it was sent",
            "POST /upload: the file does not hold its body as it was sent",
            "POST /nobody: the file does not hold its body as it was sent",
            "POST /file: its body is in another file",
            "POST /gz: the file does not hold its body as it was sent",
        ] {
            assert!(text.contains(reason), "{reason}\n{text}");
        }
    }

    #[test]
    fn a_recording_of_a_browser_is_read_in_its_parts() {
        let requests =
            read("chrome.har", include_str!("fixtures/har/chrome.har"), None).expect("a HAR file");
        insta::assert_snapshot!(requests.load(), @r#"
        # Omitted because they may be secret: cookie.
        # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
        #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
        headers:
          "accept": "*/*"
          "accept-encoding": "gzip, deflate, br, zstd"
          "if-none-match": "W/\"1\""
          "priority": "u=1, i"
          "sec-fetch-mode": "cors"
        # From chrome.har, in rotation.
        requests:
          - name: "GET /page"
            method: "GET"
            path: "/page"
          - name: "GET /api?x=%7B%22a%22%3A1%7D"
            method: "GET"
            path: "/api?x=%7B%22a%22%3A1%7D"
            expect: {status: 304, same-as: baseline}
          - name: "GET /odd?q=a|b%7Bc%7D%22d%22%3Ce%3E"
            method: "GET"
            path: "/odd?q=a|b%7Bc%7D%22d%22%3Ce%3E"
          - name: "GET /%C3%BCnicode"
            method: "GET"
            path: "/%C3%BCnicode"
          - name: "GET /err"
            method: "GET"
            path: "/err"
            expect: {status: 500, same-as: baseline}
          # Left out:
          # - 2 entries: answered by the browser's cache
          # - 2 entries: data that the page contains
          # - 1 entry: preflights of the browser (CORS)
          # - 1 entry: tunnels of a proxy (CONNECT)
          # - line 475: GET /blocked: it has no answer
          # - line 554: GET /broken: it has no answer
          # - line 712: GET /sock: it opens a WebSocket or another protocol
          # - line 825: DELETE /api/1: the next request would not find the deleted object
        "#);
        assert_eq!(requests.counts(), (5, 9));
    }

    #[test]
    fn sizes_in_characters_and_bytes_are_both_right() {
        let mut posted = entry("POST", "https://shop.example/a", 200);
        posted["request"]["postData"] = json!({"mimeType": "text/plain", "text": "größe"});
        for (size, is_taken) in [(5, true), (7, true), (6, false), (0, true), (-1, true)] {
            posted["request"]["bodySize"] = json!(size);
            let archive = json!({"log": {"entries": [posted]}}).to_string();
            let requests = read("shop.har", &archive, None).expect("a HAR file");
            assert_eq!(!requests.is_empty(), is_taken, "{size}");
        }
    }

    #[test]
    fn archives_without_answers_are_read() {
        let mut plain = entry("GET", "https://shop.example/a", 200);
        plain.as_object_mut().expect("an entry").remove("response");
        let mut encoded = entry("POST", "https://shop.example/b", 200);
        encoded["request"]["headers"] = json!([{"name": "Content-Encoding", "value": "gzip"}]);
        encoded["request"]["postData"] = json!({"mimeType": "text/plain", "text": "plain"});
        let mut form = entry("POST", "https://shop.example/c", 200);
        form["request"]["postData"] = json!({"mimeType": "multipart/form-data; boundary=x",
            "params": [{"name": "a", "value": "1"}]});
        let mut file = form.clone();
        file["request"]["postData"]["params"][0]["fileName"] = json!("a.png");
        let text = load(&[plain, encoded, form, file]);
        assert!(text.contains("path: \"/a\"\n"), "{text}");
        assert!(
            text.contains("POST /b: its body was sent in gzip"),
            "{text}"
        );
        assert!(text.contains("boundary=weigh-part"), "{text}");
        assert!(
            text.contains("POST /c: the file does not hold the files"),
            "{text}"
        );
    }

    #[test]
    fn parameters_beside_the_url_are_sent_and_variables_of_recorders_are_named() {
        let mut listed = entry("GET", "https://shop.example/find", 200);
        listed["request"]["queryString"] =
            json!([{"name": "q", "value": "a b"}, {"name": "q", "value": "c"}]);
        listed["variables"] = json!([{"name": "token", "type": 0, "expression": "$.t"}]);
        listed["checks"] = json!([{"type": 0}]);
        let mut twice = entry("GET", "https://shop.example/find?q=1", 200);
        twice["request"]["queryString"] = json!([{"name": "q", "value": "1"}]);
        let mut hidden = entry("GET", "https://shop.example/a", 200);
        hidden["request"]["headers"] =
            json!([{"name": "Authorization", "value": "Bearer ${token}"}]);
        let used = entry("GET", "https://shop.example/b/${token}", 200);
        let other = entry("GET", "https://shop.example/c/${price}", 200);
        let archive = json!({"log": {"entries": [listed, twice, hidden, used, other]}});
        let requests = read("a.har", &archive.to_string(), None).expect("a HAR file");
        let text = requests.load();
        for path in ["/find?q=a%20b&q=c", "/find?q=1", "/a", "/c/$%7Bprice%7D"] {
            assert!(
                text.contains(&format!("path: \"{path}\"")),
                "{path}\n{text}"
            );
        }
        assert_eq!(requests.counts(), (4, 5));
        let summary = requests.summary();
        for words in [
            "it contains `${token}`, which the recorder captures from an answer",
            "checks of entries: a lab has rules of its own",
            "may be secret: Referer, Cookie, Authorization.",
        ] {
            assert!(summary.contains(words), "{words}\n{summary}");
        }
    }
}
