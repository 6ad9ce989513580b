//! Any bytes, in any pieces: the response parser neither panics nor hangs, and the cuts between reads have no
//! effect.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::{Bounds, End, Head, ParseError, Parsed, Parser, Sink};

/// All parts that a parser reports.
#[derive(Debug, Default, PartialEq)]
struct Taken {
    heads: Vec<(u16, Vec<(String, Vec<u8>)>)>,
    body: Vec<u8>,
}

impl Sink for Taken {
    fn head(&mut self, head: &Head<'_>) {
        let headers = head
            .headers()
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
        self.heads.push((head.status, headers));
    }

    fn body(&mut self, part: &[u8]) {
        self.body.extend_from_slice(part);
    }
}

/// The end of the response: complete after this number of bytes, or by the end of the connection.
#[derive(Debug, PartialEq)]
enum Ended {
    Complete { used: usize, reusable: bool },
    Open(End),
}

fn parse<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    bodiless: bool,
) -> Result<(Ended, Taken), ParseError> {
    let mut parser = Parser::new(Bounds::default());
    let mut taken = Taken::default();
    parser.start(bodiless);
    let mut before = 0;
    for piece in pieces {
        match parser.feed(piece, &mut taken)? {
            Parsed::Complete { used, reusable } => {
                assert!(used <= piece.len());
                let used = before + used;
                return Ok((Ended::Complete { used, reusable }, taken));
            }
            Parsed::More => before += piece.len(),
        }
    }
    Ok((Ended::Open(parser.end()), taken))
}

// The first byte contains two values: if the request was a HEAD, and how many of the next bytes are lengths
// of reads. The rest is the response, so the words of a dictionary stay whole.
fuzz_target!(|input: &[u8]| {
    let Some((flags, rest)) = input.split_first() else {
        return;
    };
    let bodiless = flags & 1 != 0;
    let (cuts, bytes) = rest.split_at(usize::from(flags >> 4).min(rest.len()));
    let whole = parse(std::iter::once(bytes), bodiless);
    let mut rest = bytes;
    let mut cuts = cuts.iter().cycle();
    let pieces = std::iter::from_fn(|| {
        if rest.is_empty() {
            return None;
        }
        let length = cuts.next().map_or(1, |cut| usize::from(*cut) + 1);
        let (piece, more) = rest.split_at(length.min(rest.len()));
        rest = more;
        Some(piece)
    });
    assert_eq!(whole, parse(pieces, bodiless));
});
