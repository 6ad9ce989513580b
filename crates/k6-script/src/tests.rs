use std::collections::BTreeMap;

use super::*;

mod streams;

/// Files in memory.
struct Texts(Vec<(&'static str, Vec<u8>)>);

impl FileSource for Texts {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        if !path.starts_with("/shop") {
            return Err(Unreadable::Refused(
                "it is outside of the folder".to_owned(),
            ));
        }
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found
            .map(|(_, text)| text.clone())
            .ok_or(Unreadable::Absent)
    }
}

fn run_with(
    files: &[(&'static str, &str)],
    environment: &[(&str, &str)],
) -> Result<ScriptRecording, ScriptError> {
    let entry = Path::new(files[0].0);
    let files = files
        .iter()
        .map(|(name, text)| (*name, text.as_bytes().to_vec()))
        .collect();
    let files: Arc<dyn FileSource> = Arc::new(Texts(files));
    let pairs = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    record(
        entry,
        &files,
        &pairs.collect::<BTreeMap<_, _>>(),
        Duration::from_secs(5),
    )
}

fn run(text: &str) -> ScriptRecording {
    match run_with(&[("/shop/test.js", text)], &[]) {
        Ok(recording) => recording,
        Err(error) => panic!("{error}"),
    }
}

/// A text with its placeholders in angle brackets.
fn shown(parts: &[TextPart]) -> String {
    let shown = parts.iter().map(|part| match part {
        TextPart::Plain(text) => text.clone(),
        TextPart::Answer {
            call, value, form, ..
        } => match form {
            AnswerForm::Text => format!("<{call} {value:?}>"),
            other => format!("<{call} {value:?} {other:?}>"),
        },
        TextPart::Computed(name) => format!("<? {name}>"),
        TextPart::Environment(name) => format!("<env {name}>"),
        TextPart::Column(name) => format!("<column {name}>"),
        TextPart::Range(name) => format!("<{name}>"),
        TextPart::Index => "<index>".to_owned(),
    });
    shown.collect()
}

fn line(call: &ScriptCall) -> String {
    let mut line = format!("{} {}", call.method, shown(&call.url));
    for (name, value) in &call.headers {
        line += &format!(" {name}: {}", shown(value));
    }
    match &call.body {
        Some(CallBody::Text(parts)) => line += &format!(" | {}", shown(parts)),
        Some(CallBody::Bytes(bytes)) => line += &format!(" | base64 {bytes}"),
        None => {}
    }
    if let Some(accepted) = &call.accepted {
        line += &format!(" -> {accepted:?}");
    }
    line
}

fn lines(recording: &ScriptRecording) -> Vec<String> {
    recording
        .scenarios
        .iter()
        .flat_map(|it| &it.calls)
        .map(line)
        .collect()
}

fn notes(recording: &ScriptRecording) -> Vec<String> {
    let all = recording.notes.iter().chain(&recording.unreached);
    all.map(|note| match &note.place {
        Some(place) => format!("{place}: {}", note.text),
        None => note.text.clone(),
    })
    .collect()
}

#[test]
fn a_script_runs_and_its_requests_are_recorded() {
    let recording = run(
        "import http from 'k6/http';\nimport { check, group } from 'k6';\n\
         const base = 'http://a';\nclass Stock { list() { return http.get(`${base}/stock`); } }\n\
         function home() { http.get(base + '/'); }\n\
         export default function () {\n  group('home', home);\n  const res = new Stock().list();\n\
           check(res, { ok: (r) => r.status === 404 });\n  ['/x', '/y'].forEach((it) => http.post(base + it, JSON.stringify({ it })));\n\
           http.put(`${base}/form`, { b: 'A B', a: 1 });\n}",
    );
    assert_eq!(
        lines(&recording),
        [
            "GET http://a/",
            "GET http://a/stock -> These([404])",
            "POST http://a/x | {\"it\":\"/x\"}",
            "POST http://a/y | {\"it\":\"/y\"}",
            "PUT http://a/form Content-Type: application/x-www-form-urlencoded | a=1&b=A+B",
        ]
    );
    assert_eq!(notes(&recording), Vec::<String>::new());
}

#[test]
fn a_value_of_an_answer_has_the_form_of_its_text() {
    let recording = run("import http from 'k6/http';
         export default function () {
           const id = http.get('http://a/').json('id');
           http.post('http://a/1', JSON.stringify({ id, text: `no. ${id}`, all: [id] }, null, 2));
           http.post('http://a/2', '{\"id\":\"' + id + '\"}');
           http.post('http://a/3', { id });
           http.post('http://a/4', JSON.stringify({ inner: JSON.stringify({ id }), plain: `${id}` }));
           http.post('http://a/5', JSON.stringify({ id: Number(id), query: `a=${encodeURIComponent(id)}` }));
           http.post('http://a/6', JSON.stringify(JSON.parse(JSON.stringify({ id }))));
           http.get(`http://a/7?q=${encodeURIComponent(encodeURIComponent(id))}`);
         }");
    let expected = [
        "GET http://a/",
        "POST http://a/1 | {\n  \"id\": <0 Json([\"id\"]) Json>,\n  \"text\": \"no. <0 Json([\"id\"]) Escaped>\",\n  \"all\": [\n    <0 Json([\"id\"]) Json>\n  ]\n}",
        "POST http://a/2 | {\"id\":\"<0 Json([\"id\"])>\"}",
        "POST http://a/3 Content-Type: application/x-www-form-urlencoded | id=<0 Json([\"id\"]) Encoded>",
        "POST http://a/4 | {\"inner\":\"{\\\"id\\\":\\\"<? json('id') of the answer to GET in line 3 in a JSON text within another text>\\\"}\",\"plain\":\"<0 Json([\"id\"]) Escaped>\"}",
        "POST http://a/5 | {\"id\":<0 Json([\"id\"])>,\"query\":\"a=<0 Json([\"id\"]) Encoded>\"}",
        "POST http://a/6 | {\"id\":<0 Json([\"id\"]) Json>}",
        "GET http://a/7?q=<? json('id') of the answer to GET in line 3 encoded twice>",
    ];
    assert_eq!(lines(&recording), expected);
}

#[test]
fn values_of_answers_are_traced_to_their_place() {
    let recording = run(
        "import http from 'k6/http';
         import { findBetween } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
         export function setup() { return { token: http.post('http://a/login').json('auth.token') }; }
         export default function (data) {
           const list = http.get('http://a/list', { headers: { Authorization: `Bearer ${data.token}` } });
           list.json().items.forEach((item) => http.get(`http://a/items/${item.id}`));
           const { next: [first] } = list.json();
           http.get('http://a' + encodeURIComponent(first));
           http.get(`http://a/c/${list.cookies.sid[0].value}/${list.headers['X-Id']}`);
           http.get(`http://a/p/${findBetween(list.body, '<b>', '</b>')}`);
           http.post('http://a/sum', String(list.json('count') + 1));
           http.post('http://a/cut', list.body.substring(1, 3));
           const changed = list.json().items[0]; changed.n = 2;
           http.put('http://a/put', JSON.stringify(changed));
         }",
    );
    assert_eq!(line(&recording.setup[0]), "POST http://a/login");
    assert_eq!(
        lines(&recording),
        [
            "GET http://a/list Authorization: Bearer <0 Json([\"auth\", \"token\"])>",
            "GET http://a/items/<1 Json([\"items\", \"0\", \"id\"])>",
            "GET http://a<1 Json([\"next\", \"0\"]) Encoded>",
            "GET http://a/c/<1 Header(\"Set-Cookie\", Some(\"sid=([^;]*)\"))>/<1 Header(\"X-Id\", None)>",
            "GET http://a/p/<1 Pattern(\"<b>(.*?)<\\\\/b>\")>",
            "POST http://a/sum | <? json('count') of the answer to GET in line 5 in a calculation with +>",
            "POST http://a/cut | <? the body of the answer to GET in line 5.substring(…)>",
            "PUT http://a/put | \"<? json() of the answer to GET in line 5.items.0, changed by the script>\"",
        ]
    );
    assert!(
        notes(&recording)[0].starts_with("line 6: the script goes through a list in an answer")
    );
}

#[test]
fn a_script_follows_successful_answers() {
    let recording = run(
        "import http from 'k6/http'; import { check, fail } from 'k6';
         export default function () {
           const res = http.post('http://a/orders');
           if (res.status !== 201) { fail('no order'); }
           if (res.status >= 400 || res.error_code) { http.get('http://a/error'); return; }
           switch (res.status) { case 201: http.get('http://a/made'); break; default: http.get('http://a/else'); }
           if (res.json('state') === 'open') { http.get('http://a/open'); }
           let turns = 0;
           while (res.json('state') !== 'done' && turns < 3) { turns += 1; http.get('http://a/wait'); }
           check(res, { quick: (r) => r.timings.duration < 500, listed: (r) => r.json().items.length > 0 });
           const ok = check(http.get('http://a/one-of'), { ok: (r) => [200, 404].includes(r.status) });
           if (!ok) { http.get('http://a/never'); }
         }",
    );
    assert_eq!(
        lines(&recording),
        [
            "POST http://a/orders",
            "GET http://a/made",
            "GET http://a/open",
            "GET http://a/one-of -> These([200, 404])",
        ]
    );
    let notes = notes(&recording);
    assert!(
        notes
            .iter()
            .any(|it| it.contains("line 7: the script decides by json('state')")),
        "{notes:?}"
    );
    let unreached: Vec<_> = notes
        .iter()
        .filter(|it| it.contains("not reached"))
        .collect();
    assert_eq!(unreached.len(), 4, "{unreached:?}");
    assert!(recording.has_checks);
}

#[test]
fn other_modules_are_named_and_their_calls_are_no_requests() {
    let recording = run(
        "import http from 'k6/http';\nimport kafka from 'k6/x/kafka';\nimport { htmlReport } from 'https://raw.example/bundle.js';\n\
         import * as faker from '@faker-js/faker';\nimport { browser } from 'k6/browser';\n\
         export default function () {\n  kafka.produce('ws://a/', {}, () => { http.get('http://a/in'); });\n\
           http.get('http://a/' + faker.name());\n  http.get('http://a/known');\n}\n\
         export function handleSummary(data) { return { 'x.html': htmlReport(data) }; }",
    );
    assert_eq!(
        lines(&recording),
        [
            "GET http://a/<? @faker-js/faker.name in line 8>",
            "GET http://a/known"
        ]
    );
    let left: Vec<String> = recording
        .modules
        .iter()
        .map(|it| format!("{} {}", it.place, it.module))
        .collect();
    assert_eq!(
        left,
        [
            "line 2 k6/x/kafka",
            "line 3 https://raw.example/bundle.js",
            "line 4 @faker-js/faker",
            "line 5 k6/browser",
        ]
    );
    let notes = notes(&recording);
    assert!(
        notes.contains(&"line 7: http.get is not reached".to_owned()),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|it| it.contains("line 7: k6/x/kafka.produce is left out")),
        "{notes:?}"
    );
}

#[test]
fn an_environment_without_values_is_undefined_for_decisions() {
    let text = "import http from 'k6/http';
        const base = __ENV.BASE || 'http://default';
        const { HOST = 'h', PORT } = __ENV;
        const mode = __ENV.MODE === 'smoke' ? 'smoke' : 'load';
        let rate = parseInt(__ENV.RATE) || 7;
        export const options = { vus: Number(__ENV.VUS) || 2 };
        export default function () {
          http.get(`${base}/${mode}/${rate}/${HOST}`);
          http.get(`http://${PORT}/x`);
          if (!__ENV.SKIP) http.get(`${__ENV.URL}/y`);
          if (typeof __ENV.ON === 'undefined' && __ENV.OFF === undefined) http.get('http://a/z');
        }";
    assert_eq!(
        lines(&run(text)),
        [
            "GET http://default/load/7/h",
            "GET http://<env PORT>/x",
            "GET <env URL>/y",
            "GET http://a/z"
        ]
    );
    let values = [
        ("BASE", "http://b"),
        ("MODE", "smoke"),
        ("RATE", "9"),
        ("URL", "http://u"),
        ("SKIP", ""),
        ("PORT", "p"),
    ];
    let recording = run_with(&[("/shop/test.js", text)], &values).expect("a recording");
    assert_eq!(
        lines(&recording),
        [
            "GET http://b/smoke/9/h",
            "GET http://p/x",
            "GET http://u/y",
            "GET http://a/z"
        ]
    );
}

#[test]
fn files_in_typescript_and_in_the_older_form_of_modules_are_read() {
    let recording = run_with(
        &[
            (
                "/shop/k6/test.ts",
                "import http, { type Response } from 'k6/http';\nimport { Kind, Client } from '../lib/client';\n\
                 import type { Options } from 'k6/options';\nimport rows from './rows.json';\n\
                 const old = require('../lib/old.js');\n\
                 export const options: Options = { vus: 1 };\n\n\
                 export default (): void => {\n  const client = new Client<string>('http://a');\n\
                   const res: Response = client.send(Kind.Second)!;\n  http.get(old.path(rows[1] as number));\n\
                   if (false) {\n    http.del('http://a/never');\n  }\n};\n",
            ),
            (
                "/shop/lib/client.ts",
                "import { post } from 'k6/http';\nexport enum Kind { First, Second = 'two' }\n\
                 export class Client<T> {\n  constructor(private readonly base: string) {}\n\
                   send(kind: Kind) { return post(`${this.base}/${kind}`, open('./body.txt')); }\n}\n",
            ),
            ("/shop/lib/body.txt", "body"),
            (
                "/shop/lib/old.js",
                "exports.path = (n) => `http://a/old/${n}`;",
            ),
            ("/shop/k6/rows.json", "[1, 2]"),
        ],
        &[],
    );
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        lines(&recording),
        ["POST http://a/two | body", "GET http://a/old/2"]
    );
    assert_eq!(notes(&recording), ["line 13: http.del is not reached"]);
    assert_eq!(
        recording.scenarios[0].calls[1]
            .place
            .as_ref()
            .map(|it| it.line),
        Some(11)
    );
}

#[test]
fn helpers_of_the_library_work() {
    let recording = run_with(
        &[
            (
                "/shop/test.js",
                "import http from 'k6/http'; import encoding from 'k6/encoding'; import crypto, { hmac } from 'k6/crypto';
                 import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
                 import { Httpx, Get } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
                 import { expect, describe } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
                 const rows = papaparse.parse(open('./u.csv'), { header: true }).data;
                 const session = new Httpx({ baseURL: 'http://a', headers: { A: '1' } });
                 session.addHeader('B', '2');
                 export default async function () {
                   http.get(`http://a/${encoding.b64encode('hi?>')}/${encoding.b64encode('hi?>', 'rawurl')}/${encoding.b64decode('aGk=', 'std', 's')}`);
                   http.get(`http://a/${crypto.sha1('x', 'hex')}/${hmac('sha256', 'k', 'x', 'base64rawurl')}`);
                   for (const row of rows) http.get(`http://a/${row.name}/${row.note}`);
                   describe('x', () => { expect(session.post('/p', { z: 1 }).status, 'status').to.be.oneOf([200, 409]); });
                   session.batch([new Get('/b')]);
                   await http.asyncRequest('PATCH', 'http://a/async', 'x');
                   http.post('http://a/file', { f: http.file('text', 'a.txt', 'text/plain'), n: '1' });
                   http.post('http://a/bin', open('./u.csv', 'b'));
                   http.get(http.url`http://a/t/${7}`);
                   const jar = http.cookieJar(); jar.set('http://a', 'sid', 's');
                   http.get('http://a/jar', { cookies: { own: 'o' } });
                 }",
            ),
            ("/shop/u.csv", "name,note\nann,\"a, \"\"b\"\"\"\nbob,c\n"),
        ],
        &[],
    );
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    let lines = lines(&recording);
    assert_eq!(
        lines[..7],
        [
            "GET http://a/aGk/Pg==/aGk_Pg/hi",
            "GET http://a/11f6ad8ec52a2984abaafd7c3b516503785c2072/w47ciBXISJ9kc4l49EAI-FljRVRfC6po72_PXFPlcYk",
            "GET http://a/ann/a, \"b\"",
            "GET http://a/bob/c",
            "GET http://a//undefined",
            "POST http://a/p A: 1 B: 2 Content-Type: application/x-www-form-urlencoded | z=1 -> These([200, 409])",
            "GET http://a/b A: 1 B: 2",
        ]
    );
    assert_eq!(lines[7], "PATCH http://a/async | x");
    assert!(
        lines[8].contains("multipart/form-data; boundary=")
            && lines[8].contains("filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ntext\r\n"),
        "{}",
        lines[8]
    );
    assert_eq!(
        lines[9],
        "POST http://a/bin | base64 bmFtZSxub3RlCmFubiwiYSwgIiJiIiIiCmJvYixjCg=="
    );
    assert_eq!(
        lines[10..],
        ["GET http://a/t/7", "GET http://a/jar Cookie: sid=s; own=o"]
    );
}

#[test]
fn loops_without_an_end_and_errors_are_reported() {
    let failed = |text: &str| match run_with(&[("/shop/test.js", text)], &[]) {
        Ok(recording) => panic!("{:?}", lines(&recording)),
        Err(error) => error.to_string(),
    };
    assert!(failed("export default () => { while (true) {} }").contains("did not end within 5 s"));
    assert!(failed("\nnull.x;\nexport default () => {};").contains("error in line 2: TypeError"));
    assert!(
        failed("export default () => new Promise(() => {})").contains("promise that never ends")
    );
    assert!(failed("import x from '../../x.js';").contains("outside of the folder"));
    assert!(failed("import x from './gone.js';").contains("`./gone.js` cannot be imported"));
    assert!(failed("const a: number = 1;").contains("mistake in line 1"));
    assert!(failed("const a = open('./gone.txt');").contains("`./gone.txt` cannot be read"));
    assert!(
        failed("export default () => {}; const a = []; for (;;) a.push(new Array(1e6).fill(1));")
            .contains("MiB of memory")
    );
}

#[test]
fn digests_and_urls_are_those_of_k6() {
    let recording = run("import http from 'k6/http';
         import crypto from 'k6/crypto';
         import encoding from 'k6/encoding';
         import { URL, URLSearchParams } from 'https://jslib.k6.io/url/1.0.0/index.js';
         export default function () {
           const own = [
             crypto.md5('abc', 'hex'), crypto.sha1('abc', 'hex'), crypto.sha256('abc', 'base64'),
             crypto.hmac('md5', 'Jefe', 'what do ya want for nothing?', 'hex'),
             crypto.hmac('sha256', 'Jefe', 'what do ya want for nothing?', 'hex'),
             crypto.createHash('md5').update('a').update('bc').digest('base64'),
             encoding.b64encode('a?>', 'rawurl'), encoding.b64decode('YT8-', 'rawurl', 's'),
           ];
           http.post('http://a/', own.join(' '));
           const url = new URL('https://ann@shop.example:443/x/../items?q=a b&p=1#z');
           url.searchParams.append('c', 'ü &');
           url.searchParams.set('p', 2);
           const id = http.get(url.toString()).json('id');
           const more = new URL('list?kept=%7e', 'http://a/b/c');
           http.get(`${more}&id=${id}`);
           const params = new URLSearchParams({ id, b: '1 2' });
           http.get(`http://a/?${params}`);
           http.get(`${url.origin} ${url.pathname} ${url.hash} ${more.host} ${params.get('b')} ${[...params.keys()]}`);
         }");
    let expected = [
        "POST http://a/ | 900150983cd24fb0d6963f7d28e17f72 a9993e364706816aba3e25717850c26c9cd0d89d ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0= 750c783e6ab0b503eaa86e310a5db738 5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843 kAFQmDzST7DWlj99KOF/cg== YT8- a?>",
        "GET https://ann@shop.example/items?q=a+b&p=2&c=%C3%BC+%26#z",
        "GET http://a/b/list?kept=%7e&id=<1 Json([\"id\"])>",
        "GET http://a/?id=<1 Json([\"id\"]) Encoded>&b=1+2",
        "GET https://shop.example /items #z a 1 2 id,b",
    ];
    assert_eq!(lines(&recording), expected);
}
