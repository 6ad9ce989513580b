//! Tests of pasted commands.

use super::*;

fn read_one(text: &str) -> Requests {
    read(&[text.to_owned()], Path::new(""), None).expect("a command")
}

#[test]
fn a_command_copied_from_a_browser_becomes_a_request() {
    let requests = read_one(
        "curl 'https://shop.example/api/items?q=a%20b' \\\n  -H 'accept: application/json' \\\n  \
         -H 'cookie: sid=123456789' -H 'authorization: Bearer abcdefghij' \\\n  \
         --data-raw $'{\"a\":\"it\\'s \\u0021\"}' -H 'content-type: application/json' --compressed -sSL -k",
    );
    insta::assert_snapshot!(requests.load(), @r#"
    # Omitted because they may be secret: cookie, authorization.
    # Use a setting to keep a credential out of files, `settings: {token: none}` next to `load`:
    #   headers: {Authorization: "Bearer {{token}}"}   and   weigh lab … --with token=…
    # From curl, in rotation.
    requests:
      - name: "POST /api/items?q=a%20b"
        method: "POST"
        path: "/api/items?q=a%20b"
        headers:
          "accept": "application/json"
          "content-type": "application/json"
          "Accept-Encoding": "deflate, gzip, br, zstd"
        body: "requests/1.json"
      # Left out:
      # - -L: redirects are not followed
      # - -k: write `insecure: on` below `load`
    "#);
    let bodies: Vec<_> = requests.files().map(|(_, body)| body).collect();
    assert_eq!(bodies, [br#"{"a":"it's !"}"#.to_vec()]);
}

#[test]
fn bodies_and_methods_are_those_of_curl() {
    let body = |text: &str| {
        let mut requests = Requests::of("curl");
        let mut found = Vec::new();
        add(text, Path::new(""), &mut found, &mut requests).expect("a command");
        let (_, given) = found.remove(0);
        let header = |name: &str| {
            let found = given
                .headers
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let body = given.body.clone().unwrap_or_default();
        format!(
            "{} {} | {} | {}",
            given.method,
            given.path,
            header("content-type"),
            String::from_utf8_lossy(&body)
        )
    };
    let form = "application/x-www-form-urlencoded";
    for (text, expected) in [
        ("curl localhost:8080", "GET / |  | ".to_owned()),
        (
            "curl -d a=1 -d 'b=2 3' http://h/x",
            format!("POST /x | {form} | a=1&b=2 3"),
        ),
        (
            "curl -Gd a=1 --data-urlencode 'b=2 3&' http://h/x?y=0",
            "GET /x?y=0&a=1&b=2%203%26 |  | ".to_owned(),
        ),
        (
            "curl -XPUT --json '{\"a\":1}' http://h/",
            "PUT / | application/json | {\"a\":1}".to_owned(),
        ),
        ("curl -I http://h/", "HEAD / |  | ".to_owned()),
        (
            "curl --request=PATCH --data-raw @x http://h/",
            format!("PATCH / | {form} | @x"),
        ),
        (
            "curl -d x -H 'Content-Type:' http://h/",
            "POST / |  | x".to_owned(),
        ),
        (
            "curl --url http://h/q --data-urlencode 'a b'",
            format!("POST /q | {form} | a%20b"),
        ),
    ] {
        assert_eq!(body(text), expected, "{text}");
    }
    let parts = body("curl -F 'a=1;type=text/plain' -F b=2 http://h/");
    assert!(
        parts.starts_with("POST / | multipart/form-data; boundary="),
        "{parts}"
    );
    assert!(
        parts.contains("name=\"a\"\r\nContent-Type: text/plain\r\n\r\n1\r\n"),
        "{parts}"
    );
}

#[test]
fn files_are_read_and_credentials_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("b.json"), "{\n\"a\": 1}\n").expect("a file");
    let read = |text: &str| read(&[text.to_owned()], folder.path(), None);
    let requests =
        read("curl -u ann:pw -b s=1 --data-binary @b.json http://bob:pw@h/").expect("a command");
    let bodies: Vec<_> = requests.files().map(|(_, body)| body).collect();
    assert_eq!(bodies, [b"{\n\"a\": 1}\n".to_vec()]);
    let text = requests.load();
    assert!(
        text.contains("may be secret: Authorization, Cookie."),
        "{text}"
    );
    assert!(!text.contains("pw"), "{text}");
    let joined = read("curl -d @b.json http://h/").expect("a command");
    let bodies: Vec<_> = joined.files().map(|(_, body)| body).collect();
    assert_eq!(bodies, [b"{\"a\": 1}".to_vec()], "-d removes line ends");
    assert!(
        read("curl -d @missing http://h/")
            .unwrap_err()
            .contains("`missing` cannot be read")
    );
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let refused = |text: &str| read(&[text.to_owned()], Path::new(""), None).unwrap_err();
    assert!(refused("curl --frobnicate http://h/").contains("`--frobnicate`"));
    assert!(refused("curl -sQ x http://h/").contains("`-Q`"));
    assert!(refused("curl \"http://h/\" ^\n -H ^\"a: b^\"").contains("Windows"));
    let left = |text: &str| read_one(text).summary();
    assert!(left("curl http://h/ -d \"$BODY\"").contains("`$BODY` of the shell"));
    assert!(left("curl 'http://h/{a,b}'").contains("pattern of several URLs"));
    assert!(left("curl -X DELETE http://h/1").contains("deleted object"));
    let token = left("curl http://h/ -H \"Authorization: Bearer $TOKEN\" | jq .");
    assert!(token.contains("`jq`: it is no command of curl"), "{token}");
    assert!(token.contains("may be secret: Authorization"), "{token}");
}

#[test]
fn several_commands_are_several_requests() {
    let requests = read_one(
        "curl http://h/a ;\ncurl http://h/b &\ncurl http://h/c http://h/d --next -d x http://h/e",
    );
    assert_eq!(requests.counts(), (5, 5));
    assert!(requests.load().contains("POST /e"));
}

#[test]
fn a_media_type_of_the_user_gets_the_boundary_of_a_body_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.png"), "x").expect("a file");
    let command = "curl -H 'content-type: multipart/form-data' -F f=@a.png -F n=1 http://h/";
    let requests = read(&[command.to_owned()], folder.path(), None).expect("a command");
    let load = requests.load();
    assert!(
        load.contains("\"content-type\": \"multipart/form-data; boundary=weigh-part-"),
        "{load}"
    );
    let body = &requests.texts()[0];
    assert!(
        body.contains("filename=\"a.png\"\r\nContent-Type: image/png\r\n"),
        "{body}"
    );
    assert!(body.contains("name=\"n\"\r\n\r\n1\r\n"), "{body}");
}
