//! Bodies in parts (multipart/form-data).

/// The line between parts. It is always the same, so that every import has the same bytes.
const BOUNDARY: &str = "weigh-part-7d3f9a51c2e84b60";

/// A part of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) content: Vec<u8>,
}

/// The content type and the bytes of a body.
///
/// # Errors
/// A sentence, if a part contains the line between parts.
pub(super) fn body(parts: &[Part]) -> Result<(String, Vec<u8>), String> {
    let mut body = Vec::new();
    let boundary = BOUNDARY.as_bytes();
    for part in parts {
        let mut contents = part.content.windows(boundary.len());
        if contents.any(|window| window == boundary) {
            return Err("a part of its body contains the line between parts".to_owned());
        }
        let quoted = |text: &str| {
            text.replace('"', "%22")
                .replace('\r', "%0D")
                .replace('\n', "%0A")
        };
        let mut head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"",
            quoted(&part.name)
        );
        if let Some(name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(name)));
        }
        let usual = part
            .file_name
            .as_ref()
            .map(|_| "application/octet-stream".to_owned());
        if let Some(kind) = part.content_type.clone().or(usual) {
            head.push_str(&format!("\r\nContent-Type: {kind}"));
        }
        head.push_str("\r\n\r\n");
        body.extend(head.into_bytes());
        body.extend(&part.content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
    Ok((format!("multipart/form-data; boundary={BOUNDARY}"), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_and_types() {
        let parts = [
            Part {
                name: "a\"b".to_owned(),
                content: b"1".to_vec(),
                ..Part::default()
            },
            Part {
                name: "f".to_owned(),
                file_name: Some("x.png".to_owned()),
                content_type: Some("image/png".to_owned()),
                content: vec![0, 255],
            },
        ];
        let (kind, bytes) = body(&parts).expect("a body");
        assert_eq!(kind, format!("multipart/form-data; boundary={BOUNDARY}"));
        let mut expected = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n1\r\n\
             --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.png\"\r\n\
             Content-Type: image/png\r\n\r\n"
        )
        .into_bytes();
        expected.extend([0, 255]);
        expected.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
        assert_eq!(bytes, expected);
        let own = Part {
            content: BOUNDARY.into(),
            ..Part::default()
        };
        assert!(body(&[own]).is_err());
    }
}
