//! Sends ten thousand malformed bodies from several clients at once.

use std::thread;

use test_client::TestClient;

use crate::server::start;

const BODY: &[u8] = include_bytes!("../../../../labs/webhook/requests/route.json");
const ANSWER: &str = include_str!("../../../../labs/webhook/expected/today.json");
const MEMORY_MAX: u64 = 64 << 20;
const CLIENTS: usize = 8;
const BODIES: usize = 10_000;

/// A body with some bytes changed, omitted or repeated, or with many more bytes.
fn spoiled(number: usize) -> Vec<u8> {
    let mut random = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |most: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap() % most
    };
    let mut body = BODY.to_vec();
    for _ in 0..=below(3) {
        let at = below(body.len());
        let piece = &b"\"{}[]:,\\u0nt\xff-19e "[below(18)..];
        match below(4) {
            0 => body[at] = piece[0],
            1 => drop(body.drain(at..(at + below(40)).min(body.len()))),
            2 => drop(body.splice(at..at, piece.iter().copied())),
            _ => {
                let again = body[at..(at + 30).min(body.len())].repeat(below(500));
                drop(body.splice(at..at, again));
            }
        }
        if body.is_empty() {
            body = BODY.to_vec();
        }
    }
    body
}

fn flood(client: &mut TestClient, numbers: impl Iterator<Item = usize>) -> [usize; 2] {
    let mut counts = [0; 2];
    for number in numbers {
        let body = spoiled(number);
        let response = client.post("/webhook/sync", &body);
        match response.status {
            200 => counts[0] += 1,
            400 => counts[1] += 1,
            _ => panic!("{response:?} for {}", String::from_utf8_lossy(&body)),
        }
    }
    counts
}

#[test]
fn ten_thousand_spoiled_bodies_are_answered_in_little_memory() {
    let server = start(&["--workers", "2"]);
    let counts = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|first| {
                let numbers = (first..BODIES).step_by(CLIENTS);
                let mut client = server.client();
                scope.spawn(move || flood(&mut client, numbers))
            })
            .collect();
        let counts = clients.into_iter().map(|client| client.join().unwrap());
        counts.fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]])
    });
    // Both kinds must be common enough for the test to be meaningful.
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    assert_eq!(counts[0] + counts[1], BODIES);
    let peak = server.memory_peak();
    assert!(peak < MEMORY_MAX, "{peak} bytes");
    assert_eq!(server.client().post("/sync", BODY).body, ANSWER);
}

#[test]
fn bodies_of_hostile_shapes_take_no_multiple_of_their_size() {
    let server = start(&["--workers", "1"]);
    let mut client = server.client();
    let size = 4 << 20;
    let zeros = "0,".repeat(size / 2 - 200);
    let deep = "[".repeat(size / 2 - 200);
    let closed = "]".repeat(size / 2 - 200);
    let text = String::from_utf8(BODY.to_vec()).unwrap();
    let labels = r#""a":0,"#.repeat(size / 6 - 500);
    for body in [
        text.replacen(r#""labels":{"#, &format!(r#""labels":{{{labels}"#), 1),
        format!("[{zeros}0]"),
        format!(r#"{{"parent":[{zeros}0]}}"#),
        text.replace(
            r#""env":["#,
            &format!(r#""env":[{}"#, &zeros[..size - 4000]),
        ),
        format!(r#"{{"parent":{deep}{closed},"children":{{}}}}"#),
        format!(
            "[{}0]",
            format!("{}{},", "[".repeat(30), "]".repeat(30)).repeat(size / 61 - 200)
        ),
        format!("[{}0]", "[],".repeat(size / 3 - 200)),
        deep,
    ] {
        let response = client.post("/sync", body.as_bytes());
        assert_eq!(response.status, 400, "{}", &response.body);
    }
    let peak = server.memory_peak();
    assert!(peak < MEMORY_MAX, "{peak} bytes");
}
