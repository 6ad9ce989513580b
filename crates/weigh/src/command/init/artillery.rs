//! Reads the requests of an Artillery test that do not depend on values at run time.

use serde_json::{Map, Value};

use super::requests::{Given, Requests};
use super::tree::Tree;
use super::values::{encoded, plain};

/// The supported methods. `delete` is missing, because it deletes objects that other requests need.
const METHODS: [&str; 6] = ["get", "head", "options", "post", "put", "patch"];

/// Maximum depth of nested loops.
const DEPTH_MAX: usize = 8;

/// Reads the scenarios of a test in YAML or JSON.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn read(source: &str, text: &str, color: bool) -> Result<Requests, String> {
    let root = Tree::read(source, text, color)?.root;
    let config = root.get("config").unwrap_or(&Value::Null);
    let target = config.get("target").map(plain).unwrap_or_default();
    let Some(scenarios) = root.get("scenarios").and_then(Value::as_array) else {
        return Err(
            "expected a test of Artillery with a list of `scenarios`, found none".to_owned(),
        );
    };
    let test = Test {
        target: target.trim_end_matches('/'),
        variables: config.get("variables").and_then(Value::as_object),
        defaults: headers(config.pointer("/http/defaults/headers"))
            .chain(headers(config.pointer("/defaults/headers")))
            .collect(),
    };
    let mut requests = Requests::of(source);
    for (number, scenario) in (1..).zip(scenarios) {
        let name = scenario.get("name").map(plain).unwrap_or_default();
        let name = match name.as_str() {
            "" => format!("scenario {number}"),
            name => name.to_owned(),
        };
        let engine = scenario.get("engine").map(plain).unwrap_or_default();
        if !["", "http"].contains(&engine.as_str()) {
            requests.leave_out(&name, &format!("its engine is `{engine}` and not HTTP"));
            continue;
        }
        let weight = scenario.get("weight").and_then(Value::as_u64).unwrap_or(1);
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let flow = scenario.get("flow").and_then(Value::as_array);
        let within = Within {
            name: &name,
            times: weight,
            depth: 0,
        };
        test.flow(within, flow, &mut requests);
    }
    for key in ["phases", "payload", "plugins", "processor", "ensure", "tls"] {
        if config.get(key).is_some() {
            requests.leave_out(&format!("config.{key}"), "keys of the lab define this");
        }
    }
    Ok(requests)
}

/// The position of requests in the test.
#[derive(Clone, Copy)]
struct Within<'a> {
    /// Name of the scenario.
    name: &'a str,
    /// Number of repetitions of each request.
    times: u32,
    /// Number of enclosing loops.
    depth: usize,
}

/// The settings that all requests of a test share.
struct Test<'a> {
    target: &'a str,
    variables: Option<&'a Map<String, Value>>,
    defaults: Vec<(String, String)>,
}

impl Test<'_> {
    fn flow(&self, within: Within<'_>, flow: Option<&Vec<Value>>, requests: &mut Requests) {
        let steps = flow.into_iter().flatten().filter_map(Value::as_object);
        for (key, step) in steps.flatten() {
            let what = format!("{}: {key}", within.name);
            match key.as_str() {
                method if METHODS.contains(&method) => {
                    let url = step.get("url").map(plain).unwrap_or_default();
                    match self.request(method, step, requests) {
                        Ok(given) => requests.add_times(given, within.times),
                        Err(why) => {
                            requests.leave_out_request(None, &format!("{what} {url}"), &why);
                        }
                    }
                }
                "delete" => {
                    let why = "the next request would not find the deleted object";
                    requests.leave_out_request(None, &what, why);
                }
                // The number of turns of a loop, next to the key `loop`.
                "count" | "over" | "whileTrue" => {}
                "loop" if within.depth == DEPTH_MAX => {
                    requests.leave_out(&what, "it is nested too deeply")
                }
                "loop" => {
                    let turns = flow
                        .into_iter()
                        .flatten()
                        .filter(|it| it.get("loop") == Some(step))
                        .find_map(|it| it.get("count")?.as_u64());
                    match turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)) {
                        Some(0) => {}
                        Some(turns) => {
                            let inner = Within {
                                times: within.times.saturating_mul(turns),
                                depth: within.depth + 1,
                                ..within
                            };
                            self.flow(inner, step.as_array(), requests);
                        }
                        None => requests
                            .leave_out(&what, "the number of turns is known only at run time"),
                    }
                }
                "think" => requests.leave_out(&what, "the load defines the times of requests"),
                _ => requests.leave_out(&what, "it is not a request with fixed contents"),
            }
        }
    }

    fn request(
        &self,
        method: &str,
        step: &Value,
        requests: &mut Requests,
    ) -> Result<Given, String> {
        let url = self.filled(&step.get("url").map(plain).unwrap_or_default())?;
        let mut given = Given {
            method: method.to_ascii_uppercase(),
            path: self.path(&url)?,
            ..Given::default()
        };
        for (name, value) in headers(step.get("headers")) {
            given.headers.push((name, self.filled(&value)?));
        }
        for (name, value) in &self.defaults {
            let is_own = given
                .headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name));
            if !is_own {
                given.headers.push((name.clone(), self.filled(value)?));
            }
        }
        let query = self.pairs(step.get("qs"))?;
        if !query.is_empty() {
            let sign = if given.path.contains('?') { '&' } else { '?' };
            given.path = format!("{}{sign}{query}", given.path);
        }
        self.add_body(&mut given, step)?;
        for (key, header) in [("auth", "Authorization"), ("cookie", "Cookie")] {
            if step.get(key).is_some() {
                requests.hide(header);
            }
        }
        for (key, note) in [
            ("ifTrue", "sent always, without its condition"),
            (
                "capture",
                "without the values that it captures for later requests",
            ),
            ("beforeRequest", "without the function before it"),
        ] {
            if step.get(key).is_some() {
                given.notes.push(note.to_owned());
            }
        }
        Ok(given)
    }

    fn add_body(&self, given: &mut Given, step: &Value) -> Result<(), String> {
        let (kind, body) = if let Some(json) = step.get("json") {
            ("application/json", self.filled_in(json)?.to_string())
        } else if let Some(form) = step.get("form") {
            ("application/x-www-form-urlencoded", self.pairs(Some(form))?)
        } else if let Some(body) = step.get("body") {
            ("", self.filled(&plain(body))?)
        } else if step.get("formData").is_some() {
            return Err("its body is in parts".to_owned());
        } else {
            return Ok(());
        };
        let mut names = given.headers.iter().map(|(name, _)| name);
        if !kind.is_empty() && !names.any(|name| name.eq_ignore_ascii_case("content-type")) {
            given
                .headers
                .push(("Content-Type".to_owned(), kind.to_owned()));
        }
        given.body = Some(body.into_bytes());
        Ok(())
    }

    /// The path and query of a URL of the test, relative to its target.
    fn path(&self, url: &str) -> Result<String, String> {
        let below = match url
            .strip_prefix(self.target)
            .filter(|_| !self.target.is_empty())
        {
            Some(rest) => rest,
            None if url.contains("://") => return Err("it goes to another server".to_owned()),
            None => url,
        };
        let base = self.target.split_once("://").map_or("", |(_, rest)| rest);
        let base = base.find('/').map_or("", |begin| &base[begin..]);
        let path = format!("{base}{below}");
        Ok(if path.is_empty() {
            "/".to_owned()
        } else {
            path
        })
    }

    /// Encodes a mapping as `a=1&b=2`.
    fn pairs(&self, pairs: Option<&Value>) -> Result<String, String> {
        let pairs = pairs.and_then(Value::as_object).into_iter().flatten();
        let pair = |(name, value): (&String, &Value)| {
            Ok(format!(
                "{}={}",
                encoded(name),
                encoded(&self.filled(&plain(value))?)
            ))
        };
        let pairs: Result<Vec<String>, String> = pairs.map(pair).collect();
        Ok(pairs?.join("&"))
    }

    /// Fills in every text of a value separately, so that a variable cannot break the JSON around it.
    fn filled_in(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.filled(text)?),
            Value::Array(items) => {
                let items: Result<_, String> = items.iter().map(|it| self.filled_in(it)).collect();
                Value::Array(items?)
            }
            Value::Object(members) => {
                let filled =
                    |(name, it): (&String, &Value)| Ok((name.clone(), self.filled_in(it)?));
                let members: Result<_, String> = members.iter().map(filled).collect();
                Value::Object(members?)
            }
            other => other.clone(),
        })
    }

    /// Replaces variables that have exactly one value.
    fn filled(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("a `{{` is not closed")?;
            let name = name.trim();
            let value = self.variables.and_then(|known| known.get(name));
            let value = match value {
                Some(Value::Array(values)) if values.len() == 1 => plain(&values[0]),
                Some(Value::Array(_)) => return Err(format!("`{name}` has several values")),
                Some(value) => plain(value),
                None => return Err(format!("`{name}` is known only at run time")),
            };
            out += before;
            out += &value;
            rest = after;
        }
        Ok(out + rest)
    }
}

/// The headers of a mapping.
fn headers(written: Option<&Value>) -> impl Iterator<Item = (String, String)> {
    let headers = written.and_then(Value::as_object).into_iter().flatten();
    headers.map(|(name, value)| (name.clone(), plain(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "\
config:
  target: https://shop.example/v1/
  phases: [{duration: 60, arrivalRate: 5}]
  variables: {kind: 'te\"a', size: [small, large]}
  http: {defaults: {headers: {Accept: application/json}}}
scenarios:
  - name: browse
    weight: 3
    flow:
      - get: {url: '/items?kind=tea', qs: {page: 1}}
      - think: 2
      - loop:
          - get: {url: /items/7, headers: {Authorization: Bearer x, accept: text/html}}
        count: 2
      - get: {url: '/items?size={{ size }}'}
      - get: {url: '/items/{{ id }}'}
  - name: order
    flow:
      - post: {url: /orders, json: {item: 7, note: '{{ kind }}'}, capture: {json: $.id, as: order}}
      - delete: {url: '/orders/{{ order }}'}
      - get: {url: 'https://elsewhere.example/'}
  - engine: ws
    flow: [{send: hello}]
";

    #[test]
    fn what_is_known_beforehand_becomes_requests_and_the_rest_is_named() {
        let requests = read("shop.yaml", SHOP, false).expect("a test");
        insta::assert_snapshot!(requests.load(), @r#"
        # Omitted because they may be secret: Authorization.
        # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
        #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
        # From shop.yaml, in rotation.
        requests:
          - name: "GET /v1/items?kind=tea&page=1"
            method: "GET"
            path: "/v1/items?kind=tea&page=1"
            headers:
              "Accept": "application/json"
            weight: 3
          - name: "GET /v1/items/7"
            method: "GET"
            path: "/v1/items/7"
            headers:
              "accept": "text/html"
            weight: 6
          # without the values that it captures for later requests
          - name: "POST /v1/orders"
            method: "POST"
            path: "/v1/orders"
            headers:
              "Accept": "application/json"
              "Content-Type": "application/json"
            body: "requests/3.json"
          # Left out:
          # - browse: think: the load defines the times of requests
          # - browse: get /items: `size` has several values
          # - browse: get /items/{{ id }}: `id` is known only at run time
          # - order: delete: the next request would not find the deleted object
          # - order: get https://elsewhere.example/: it goes to another server
          # - scenario 3: its engine is `ws` and not HTTP
          # - config.phases: keys of the lab define this
        "#);
        let bodies: Vec<_> = requests.files().map(|(_, body)| body).collect();
        assert_eq!(bodies, [br#"{"item":7,"note":"te\"a"}"#.to_vec()]);
    }

    #[test]
    fn loops_in_loops_cost_nothing_and_other_files_are_refused() {
        let mut flow = "{get: {url: /}}".to_owned();
        for _ in 0..20 {
            flow = format!("{{loop: [{flow}], count: 1000000000}}");
        }
        let text = format!("config: {{target: 'http://x'}}\nscenarios: [{{flow: [{flow}]}}]");
        let requests = read("x", &text, false).expect("a test");
        assert!(requests.is_empty());
        assert!(requests.summary().contains("too deep"));
        let refused = |text: &str| read("x", text, false).map(|_| ()).unwrap_err();
        assert!(refused("a: b").contains("a list of `scenarios`"));
        assert!(refused("a: [").contains("it has mistakes"));
    }
}
