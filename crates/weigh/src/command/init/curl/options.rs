//! The options of curl.

/// Options without a value that do not change the request.
pub(super) const SILENT: [&str; 28] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "--show-headers",
    "-f",
    "--fail",
    "--fail-with-body",
    "-O",
    "--remote-name",
    "-J",
    "--remote-header-name",
    "-N",
    "--no-buffer",
    "-#",
    "--progress-bar",
    "--no-progress-meter",
    "-n",
    "--netrc",
    "-q",
    "--path-as-is",
    "--parallel",
    "-Z",
    "--tcp-nodelay",
];

/// Options with a value that do not change the request.
pub(super) const SILENT_WITH_VALUE: [&str; 20] = [
    "-o",
    "--output",
    "-w",
    "--write-out",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "--retry-max-time",
    "-D",
    "--dump-header",
    "-c",
    "--cookie-jar",
    "--stderr",
    "--trace",
    "--trace-ascii",
    "--limit-rate",
    "--max-redirs",
    "--keepalive-time",
];

/// Options that the lab itself defines, with the advice.
pub(super) const OF_THE_LAB: [(&str, bool, &str); 21] = [
    ("-k", false, "write `insecure: on` below `load`"),
    ("--insecure", false, "write `insecure: on` below `load`"),
    ("-L", false, "redirects are not followed"),
    ("--location", false, "redirects are not followed"),
    ("--location-trusted", false, "redirects are not followed"),
    ("--http2", false, "write `http2: on` below `load`"),
    (
        "--http2-prior-knowledge",
        false,
        "write `http2: on` below `load`",
    ),
    ("--http3", false, "write `http3: on` below `load`"),
    ("--http3-only", false, "write `http3: on` below `load`"),
    ("--http1.1", false, "this is the default of a lab"),
    ("--http1.0", false, "a lab sends HTTP/1.1, HTTP/2 or HTTP/3"),
    ("-4", false, "the address of the target decides"),
    ("-6", false, "the address of the target decides"),
    (
        "-x",
        true,
        "a lab loads its target without a proxy of the user",
    ),
    (
        "--proxy",
        true,
        "a lab loads its target without a proxy of the user",
    ),
    ("--cacert", true, "write `ca` below `load`"),
    ("-E", true, "write `tls` below `load`"),
    ("--cert", true, "write `tls` below `load`"),
    ("--key", true, "write `tls` below `load`"),
    ("--resolve", true, "the address of the target decides"),
    ("--connect-to", true, "the address of the target decides"),
];

/// True if an option of curl takes a value.
pub(super) fn has_value(name: &str) -> bool {
    const VALUED: [&str; 27] = [
        "-H",
        "--header",
        "-u",
        "--user",
        "--oauth2-bearer",
        "--aws-sigv4",
        "-b",
        "--cookie",
        "--url",
        "-X",
        "--request",
        "-A",
        "--user-agent",
        "-e",
        "--referer",
        "-d",
        "--data",
        "--data-ascii",
        "--data-raw",
        "--data-binary",
        "--data-urlencode",
        "--json",
        "-F",
        "--form",
        "--form-string",
        "-T",
        "--upload-file",
    ];
    VALUED.contains(&name)
        || SILENT_WITH_VALUE.contains(&name)
        || OF_THE_LAB
            .iter()
            .any(|(known, takes, _)| *known == name && *takes)
}
