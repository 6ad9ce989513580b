//! Labs with files and results that are larger than an object of a cluster. They run on the real node of
//! `ci/cluster/cluster.sh`, or are NOT RUN.

use std::fmt::Write as _;
use std::fs;

use tempfile::TempDir;

use crate::kubernetes::{counted, node, recording};

/// An image of the server that checks rows.
const SHOP: &str = "localhost/shop:test";
/// Number of rows of 100 characters: more than 3 MiB that no compression makes a third shorter.
const ROWS: usize = 30_000;
/// Number of requests in the rotation with a path of their own. As many requests contain a row.
const REQUESTS: usize = 350;
/// Length of the end of each path.
const END: usize = 4_000;

/// Letters and digits without an order.
struct Noise(u64);

impl Noise {
    fn text(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let next = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(LETTERS[usize::try_from(self.0 >> 58).expect("6 bits")])
        };
        std::iter::repeat_with(next).take(length).collect()
    }
}

/// The sum that the server requires: FNV-1a.
fn sum(text: &str) -> String {
    let sum = text.bytes().fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("x{sum:08x}")
}

#[test]
fn files_and_results_of_several_mebibytes_pass_a_real_cluster() {
    let Some(node) = node() else { return };
    node.image(SHOP, &e2e::shop());
    let folder = TempDir::new().expect("a folder");
    let mut noise = Noise(7);
    let mut rows = "text,sum\n".to_owned();
    for _ in 0..ROWS {
        // The first letter, so that no text is a number.
        let text = format!("t{}", noise.text(99));
        writeln!(rows, "{text},{}", sum(&text)).expect("a text");
    }
    assert!(rows.len() > 3 << 20, "{}", rows.len());
    fs::write(folder.path().join("rows.csv"), rows).expect("a file");
    let mut lab = format!(
        "question: Do large files and results pass?
target: shop
generators: 2
systems:
  shop: {{settings: {{who: a}}, image: '{SHOP}', pull: never, port: 8080, command: '--listen {{{{addr}}}} --name {{{{who}}}}', limits: {{cpus: 0.2, memory: 64MiB}}}}
baseline: {{name: one}}
variants: [{{name: other, with: {{shop.who: b}}}}]
expect: {{status: 200}}
proof:
  - {{ask: '{{{{shop.url}}}}/seen', json: /requests, exactly-per-request: 1}}
  - {{ask: '{{{{shop.url}}}}/seen', json: /by_path/~1row, at-least-per-request: 0.002}}
load:
  rate: 200/s
  duration: 2s
  data: {{file: rows.csv, order: random}}
  requests:
    - {{path: /row, json: {{text: '{{{{text}}}}', sum: '{{{{sum}}}}'}}, weight: {REQUESTS}}}
"
    );
    for number in 0..REQUESTS {
        writeln!(lab, "    - {{path: '/{number}-{}'}}", noise.text(END)).expect("a text");
    }
    fs::write(folder.path().join("two.yaml"), lab).expect("a file");
    let weigh = node.start(folder.path(), 1);
    let output = weigh.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}{shown}");
    let recording = recording(folder.path());
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 2, "two variants in one round: {said}");
    for round in rounds {
        assert_eq!(round["planned"], 400);
        // A row with the wrong sum would not pass, and the first proof counts the requests at the server. The proof
        // before the load sends each request twice, so the second one expects few rows.
        assert_eq!(round["outcomes"]["passed"], 400, "{}", round["outcomes"]);
        assert_eq!(round["generators"].as_array().map(Vec::len), Some(2));
    }
    // Each generator has sent all paths back, and they are noise.
    let requests = recording["load"]["requests"].as_array().expect("requests");
    let paths = requests.iter().filter_map(|it| it["path"].as_str());
    let sent: usize = paths.map(str::len).sum();
    assert!(sent > REQUESTS * END, "{sent} bytes of paths");
    assert_eq!(node.left(), "");
}
