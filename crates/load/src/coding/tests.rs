use super::*;

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];
const MOST: usize = 1024 * 1024;

fn content() -> Vec<u8> {
    let rows =
        (0..2000).map(|row| format!("{{\"id\":{row},\"name\":\"row {}\"}}", row * 7919 % 997));
    rows.collect::<Vec<_>>().join(",").into_bytes()
}

#[test]
fn each_coding_gives_back_what_was_put_into_it() {
    let content = content();
    for coding in CODINGS
        .into_iter()
        .chain(["GZIP", "x-gzip", "identity, br"])
    {
        let body = encoded(coding, &content).unwrap();
        assert!(body.len() < content.len() / 2, "{coding} does not compress");
        assert_eq!(decoded(coding, &body, MOST).unwrap(), content, "{coding}");
        assert_eq!(decoded(coding, &[], MOST).unwrap(), b"", "{coding}");
        let nothing = encoded(coding, b"").unwrap();
        assert_eq!(decoded(coding, &nothing, MOST).unwrap(), b"", "{coding}");
    }
}

#[test]
fn several_codings_are_undone_from_the_last_to_the_first() {
    let content = content();
    let body = encoded("deflate, gzip", &content).unwrap();
    assert_eq!(body[..2], [0x1f, 0x8b], "gzip was put on last");
    assert_eq!(decoded("deflate, gzip", &body, MOST).unwrap(), content);
    assert_eq!(
        decoded("deflate", &decoded("gzip", &body, MOST).unwrap(), MOST).unwrap(),
        content
    );
    let wrong = decoded("gzip, deflate", &body, MOST).unwrap_err();
    assert!(matches!(wrong, CodingError::Damaged { .. }), "{wrong}");
    let many = decoded("gzip, gzip, gzip, gzip, gzip", &body, MOST);
    assert_eq!(many, Err(CodingError::Many(5)));
}

#[test]
fn raw_deflate_is_read_as_clients_read_it() {
    let content = content();
    let mut encoder =
        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&content).unwrap();
    let body = encoder.finish().unwrap();
    assert_eq!(decoded("deflate", &body, MOST).unwrap(), content);
    let cut = decoded("deflate", &body[..body.len() / 2], MOST).unwrap_err();
    assert!(matches!(cut, CodingError::Truncated { .. }), "{cut}");
}

#[test]
fn gzip_of_several_members_is_one_body() {
    let mut body = encoded("gzip", b"one").unwrap();
    body.extend(encoded("gzip", b"two").unwrap());
    assert_eq!(decoded("gzip", &body, MOST).unwrap(), b"onetwo");
}

#[test]
fn a_body_that_is_cut_says_so_wherever_it_is_cut() {
    let content = content();
    for coding in CODINGS {
        let body = encoded(coding, &content).unwrap();
        for end in [1, 2, body.len() / 2, body.len() - 1] {
            let cut = decoded(coding, &body[..end], MOST).unwrap_err();
            let expected = CodingError::Truncated {
                coding: coding.to_owned(),
                bytes: end,
            };
            assert_eq!(cut, expected, "{coding} cut at {end}");
        }
    }
    let cut = decoded("gzip", &encoded("gzip", b"abc").unwrap()[..15], MOST);
    insta::assert_snapshot!(cut.unwrap_err(), @"the body is truncated: its 15 bytes of `Content-Encoding: gzip` end before the content does");
}

#[test]
fn a_damaged_body_and_plain_text_are_no_content() {
    let content = content();
    for coding in CODINGS {
        let text = decoded(coding, b"<html>not encoded at all</html>", MOST);
        assert!(
            matches!(text, Err(CodingError::Damaged { .. })),
            "{coding}: {text:?}"
        );
        let mut body = encoded(coding, &content).unwrap();
        body.push(0x55);
        let longer = decoded(coding, &body, MOST);
        assert!(
            matches!(
                longer,
                Err(CodingError::Damaged { .. } | CodingError::Truncated { .. })
            ),
            "{coding}: {longer:?}"
        );
    }
    // The checksum of gzip.
    let mut body = encoded("gzip", &content).unwrap();
    let at = body.len() - 6;
    body[at] ^= 1;
    let wrong = decoded("gzip", &body, MOST).unwrap_err();
    assert!(matches!(wrong, CodingError::Damaged { .. }), "{wrong}");
}

#[test]
fn a_bomb_is_refused_with_its_size() {
    // 100 MB of zeros are some 100 kB of gzip, and some 100 bytes of gzip in gzip.
    let zeros = vec![0; 100_000_000];
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, gzip"] {
        let body = encoded(coding, &zeros).unwrap();
        assert!(body.len() < 200_000, "{coding}");
        let bomb = decoded(coding, &body, 64 * 1024 * 1024).unwrap_err();
        let expected = CodingError::TooLarge {
            coding: coding.to_owned(),
            bytes: body.len(),
            most: 64 * 1024 * 1024,
        };
        assert_eq!(bomb, expected);
    }
}

#[test]
fn a_ratio_is_no_limit() {
    let zeros = vec![0; MOST];
    let body = encoded("br", &zeros).unwrap();
    assert!(body.len() < 100, "a ratio of 10,000: {}", body.len());
    assert_eq!(decoded("br", &body, MOST).unwrap(), zeros);
    assert!(decoded("br", &body, MOST - 1).is_err());
}

#[test]
fn an_unknown_coding_is_refused_by_its_name() {
    let refused = decoded("gzip, aws-chunked", b"abc", MOST).unwrap_err();
    insta::assert_snapshot!(refused, @"the body has the content coding `aws-chunked`, which cannot be decoded. Supported codings are gzip, deflate, br and zstd");
    let escaped = decoded("\u{1b}[31m", b"abc", MOST).unwrap_err();
    assert!(!escaped.to_string().contains('\u{1b}'), "{escaped}");
}

#[test]
fn header_lines_are_one_list() {
    let join = |lines: &[&str]| joined(lines.iter().map(|line| line.as_bytes()));
    assert_eq!(join(&[]), None);
    assert_eq!(join(&["identity", ""]), None);
    assert_eq!(
        join(&["GZip , identity", "BR"]).as_deref(),
        Some("gzip, br")
    );
}

#[test]
fn the_trailer_of_gzip_is_known_from_the_content() {
    let content = content();
    let body = encoded("gzip", &content).unwrap();
    assert!(body.ends_with(&gzip_trailer(&content)));
}
