//! Tests of imported requests as a part of a lab.

use experiment::files::Unwritten;
use serde_json::json;

use super::*;

fn get(path: &str) -> Given {
    Given {
        method: "GET".to_owned(),
        path: path.to_owned(),
        ..Given::default()
    }
}

/// The lab of the requests, checked as `weigh init` does.
fn lab(requests: &Requests) -> lab::Lab {
    let rate = match requests.is_scenario() {
        true => "rate: 10/s\n  duration: 5s",
        false => "rate: auto",
    };
    let text = format!(
        "question: q\ntarget: server\nload:\n  {rate}\n{}\nbaseline: {{name: a}}\n\
         variants: [{{name: b}}]\nsystems: {{server: {{run: 'serve {{{{addr}}}}'}}}}\n",
        requests.load()
    );
    let path = PathBuf::from("first.yaml");
    let mut files: Vec<(PathBuf, Vec<u8>)> = requests.files().collect();
    files.push((path.clone(), text.clone().into_bytes()));
    match lab::parse(&path, &Unwritten(files)) {
        Ok(lab) => lab,
        Err(mistakes) => panic!("{mistakes}\n{text}"),
    }
}

/// Rows of users.
fn users() -> Rows {
    Rows {
        columns: vec!["user".to_owned(), "age".to_owned()],
        rows: vec![
            vec!["an\"n".to_owned(), "7".to_owned()],
            vec!["bob, the first".to_owned(), "8".to_owned()],
        ],
        is_random: true,
    }
}

/// A step that captures a token and a number.
fn log_in() -> Given {
    Given {
        name: "log in".to_owned(),
        method: "POST".to_owned(),
        path: "/login".to_owned(),
        json: Some(json!({"user": "{{user}}", "age": "{{age}}"})),
        places: vec!["user".to_owned(), "age".to_owned()],
        captures: vec![
            Captured {
                name: "token".to_owned(),
                from: CapturedFrom::Json("/token".to_owned()),
                regex: None,
            },
            Captured {
                name: "number".to_owned(),
                from: CapturedFrom::Body,
                regex: Some("id=([0-9]+)".to_owned()),
            },
        ],
        ..Given::default()
    }
}

#[test]
fn a_login_and_its_token_become_a_scenario() {
    let mut requests = Requests::of("shop.yaml");
    requests.follow_each_other();
    requests.set_data(users());
    requests.add(log_in());
    let with_token = Given {
        headers: vec![
            ("Authorization".to_owned(), "Bearer {{token}}".to_owned()),
            ("X-Api-Key".to_owned(), "abcdefghij".to_owned()),
        ],
        status: vec!["200".to_owned(), "404".to_owned()],
        places: vec!["token".to_owned(), "number".to_owned()],
        pause: Duration::from_millis(1500),
        ..get("/items/{{number}}?token={{token}}&key=abcdefghij")
    };
    requests.add_times(with_token, 2);
    insta::assert_snapshot!(requests.load(), @r#"
    # Omitted because they may be secret: ?key=, X-Api-Key.
    # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
    #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
    # The values of shop.yaml.
    data: {file: data.csv, order: random}
    # From shop.yaml, one after another. An iteration sends all of them.
    scenario:
      - name: "log in"
        method: "POST"
        path: "/login"
        json: {"age":"{{age}}","user":"{{user}}"}
        capture:
          "token": {json: "/token"}
          "number": {regex: "id=([0-9]+)"}
      - name: "GET /items/{{raw:number}}?token={{raw:token}}"
        method: "GET"
        path: "/items/{{raw:number}}?token={{raw:token}}"
        pause: 1500ms
        headers:
          "Authorization": "Bearer {{token}}"
        expect: {status: [200, 404]}
      - name: "GET /items/{{raw:number}}?token={{raw:token}} (2)"
        method: "GET"
        path: "/items/{{raw:number}}?token={{raw:token}}"
        pause: 1500ms
        headers:
          "Authorization": "Bearer {{token}}"
        expect: {status: [200, 404]}
    "#);
    let lab = lab(&requests);
    let variant = &lab.baseline;
    assert_eq!(variant.requests.len(), 3);
    let bodies = requests.files().map(|(_, body)| body);
    let texts: Vec<String> = bodies
        .map(|body| String::from_utf8_lossy(&body).into_owned())
        .collect();
    assert_eq!(texts, ["user,age\n\"an\"\"n\",7\n\"bob, the first\",8\n"]);
    assert_eq!(
        String::from_utf8_lossy(&variant.requests[0].body),
        r#"{"age":{{age}},"user":"{{escaped:user}}"}"#,
        "numbers have no quotes"
    );
}

#[test]
fn braces_of_the_file_are_no_placeholders() {
    let mut requests = Requests::of("shop.yaml");
    requests.set_data(Rows {
        columns: vec!["token".to_owned()],
        rows: vec![vec!["1".to_owned()]],
        is_random: false,
    });
    for body in ["{{name}}", "{{token}} {{ name }}", "{{token", "{{ token }}"] {
        requests.add(Given {
            method: "POST".to_owned(),
            body: Some(body.as_bytes().to_vec()),
            places: vec!["token".to_owned()],
            ..get("/")
        });
    }
    assert_eq!(requests.counts(), (1, 4));
    assert!(requests.summary().contains(
        "Took 1 of 4 requests of shop.yaml, left out 3:\n  POST /: `{{` in a path or a body"
    ));
}

#[test]
fn a_step_without_the_value_that_it_needs_is_left_out() {
    let mut requests = Requests::of("shop.yaml");
    requests.follow_each_other();
    let token = Captured {
        name: "token".to_owned(),
        from: CapturedFrom::Header("X-Token".to_owned()),
        regex: None,
    };
    let list = || Given {
        places: vec!["token".to_owned()],
        ..get("/items/{{token}}")
    };
    requests.add(list());
    requests.add(Given {
        captures: vec![token],
        ..get("/login")
    });
    requests.remark("Steps of `before` run in each iteration.");
    requests.add(list());
    assert_eq!(requests.counts(), (2, 3));
    assert_eq!(lab(&requests).baseline.requests.len(), 2);
    let text = requests.load();
    assert!(text.contains("\"token\": {header: \"X-Token\"}"), "{text}");
    assert!(text.contains("# - GET /items/{{token}}: no request before it"));
}

#[test]
fn each_request_is_counted_once() {
    let mut requests = Requests::of("a.har");
    for number in 0..120 {
        requests.add(get(&format!("/{number}")));
    }
    requests.add_times(get("/0"), 5);
    for line in 1..=15 {
        requests.leave_out_request(Some(line), "GET /x?token=1", "it has no answer");
    }
    requests.leave_out_requests(4, "4 requests", "to another server");
    requests.leave_out("think", "the load defines the times of requests");
    assert_eq!(requests.counts(), (101, 140));
    insta::assert_snapshot!(requests.summary(), @r#"
    Took 101 of 140 requests of a.har, left out 39:
      line 1: GET /x: it has no answer
      line 2: GET /x: it has no answer
      line 3: GET /x: it has no answer
      line 4: GET /x: it has no answer
      line 5: GET /x: it has no answer
      line 6: GET /x: it has no answer
      line 7: GET /x: it has no answer
      line 8: GET /x: it has no answer
      line 9: GET /x: it has no answer
      line 10: GET /x: it has no answer
      … and 8 more
    "#);
    let text = requests.load();
    assert_eq!(text.matches("line ").count(), 15, "all are in the lab");
    assert_eq!(text.matches("after the first 100").count(), 1);
    assert!(text.contains("weight: 6"));
}

#[test]
fn equal_requests_with_other_statuses_accept_both() {
    let mut requests = Requests::of("a.har");
    requests.add(get("/"));
    requests.add(Given {
        status: vec!["304".to_owned()],
        ..get("/")
    });
    let text = requests.load();
    assert!(text.contains("expect: {status: [2xx, 304], same-as: baseline}"));
    assert_eq!(lab(&requests).baseline.requests.len(), 1);
    assert_eq!(requests.summary(), "Took all 2 requests of a.har.\n");
    let mut none = Requests::of("a.http");
    assert_eq!(none.summary(), "Took no request of a.http.\n");
    none.leave_out("setup", "it is not part of the load");
    assert_eq!(
        none.summary(),
        "Took no request of a.http:\n  setup: it is not part of the load\n"
    );
    none.leave_out_request(Some(3), "GET /", "it is a tunnel");
    assert_eq!(
        none.summary(),
        "Took no request of a.http, left out the only request:\n  line 3: GET /: it is a tunnel\n  \
         setup: it is not part of the load\n"
    );
}

#[test]
fn names_are_unique() {
    let mut requests = Requests::of("a.har");
    for name in ["a", "a (2)", "a"] {
        requests.add(Given {
            name: name.to_owned(),
            ..get(&format!("/{}", requests.sent.len()))
        });
    }
    let text = requests.load();
    assert!(text.contains("name: \"a (3)\""), "{text}");
}
