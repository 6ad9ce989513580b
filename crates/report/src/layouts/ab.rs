//! Layout of ApacheBench's report, in whole milliseconds. `Total` is latency.
//!
//! `Length` failures are responses with another body, with GraphQL errors or with another header. `Receive`
//! failures are connections that ended early, and `Exceptions` are all other failures. A status other than
//! expected is under `Non-2xx responses`, as in ab.

use std::fmt::Write as _;

use recording::float;
use stats::Histogram;

use super::merged::{Merged, max_ms, mean_ms, min_ms, quantile_ms, stddev_ms};

pub(super) fn ab(merged: &Merged<'_>) -> String {
    let url = merged.url();
    let (host, port) = host_and_port(&url);
    let proof = merged
        .recording
        .variant(merged.name)
        .and_then(|variant| variant.proof.as_ref());
    let answer = proof.and_then(|proof| proof.answers.first());
    let server = answer.and_then(|answer| {
        let mut headers = answer.headers.iter();
        headers.find(|header| header.name.eq_ignore_ascii_case("server"))
    });
    let answers = merged.outcomes.completed();
    // ab uses the length of the first response. The proof contains it. Without a proof, the mean length
    // replaces it.
    let length = answer.map_or_else(
        || merged.bytes_in_bodies.checked_div(answers).unwrap_or(0),
        |answer| answer.body_bytes,
    );
    let mut out = format!(
        "Server Software:        {}\nServer Hostname:        {host}\nServer Port:            {port}\n\n\
         Document Path:          {}\nDocument Length:        {length} bytes\n\n",
        server.map_or("", |header| &header.value),
        merged.request().map_or("", |request| &request.path),
    );
    out += &counts(merged);
    out += &connection_times(merged);
    out += &percentages(&merged.latency);
    out
}

fn counts(merged: &Merged<'_>) -> String {
    let seconds = merged.seconds();
    let done = merged.sent();
    let per_request_ms = if done == 0 {
        0.0
    } else {
        seconds * 1e3 / float(done)
    };
    // ab's mean is run time times connections, divided by requests. This is valid only for a closed loop. An
    // open loop has its own mean.
    let mean_ms = if merged.recording.load.model.is_open() {
        mean_ms(&merged.latency)
    } else {
        per_request_ms * f64::from(merged.connections())
    };
    let mut out = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "{label:<24}{value}");
    };
    line("Concurrency Level:", merged.connections().to_string());
    line("Time taken for tests:", format!("{seconds:.3} seconds"));
    line("Complete requests:", done.to_string());
    for (label, value) in failures(merged) {
        line(&label, value);
    }
    if merged.recording.keeps_connections(merged.name) {
        line(
            "Keep-Alive requests:",
            merged.outcomes.completed().to_string(),
        );
    }
    line("Total transferred:", format!("{} bytes", merged.bytes_in));
    let has_body = merged.bytes_out_bodies() > 0.0;
    if has_body {
        line("Total body sent:", merged.bytes_out.to_string());
    }
    line(
        "HTML transferred:",
        format!("{} bytes", merged.bytes_in_bodies),
    );
    line(
        "Requests per second:",
        format!("{:.2} [#/sec] (mean)", merged.per_second(done)),
    );
    line("Time per request:", format!("{mean_ms:.3} [ms] (mean)"));
    line(
        "Time per request:",
        format!("{per_request_ms:.3} [ms] (mean, across all concurrent requests)"),
    );
    let kilobytes = |bytes: u64| merged.per_second(bytes) / 1024.0;
    line(
        "Transfer rate:",
        format!("{:.2} [Kbytes/sec] received", kilobytes(merged.bytes_in)),
    );
    if has_body {
        line("", format!("{:.2} kb/s sent", kilobytes(merged.bytes_out)));
        line(
            "",
            format!(
                "{:.2} kb/s total",
                kilobytes(merged.bytes_in + merged.bytes_out)
            ),
        );
    }
    out + "\n"
}

fn failures(merged: &Merged<'_>) -> Vec<(String, String)> {
    let (mismatched, failed) = (&merged.outcomes.mismatched, &merged.outcomes.failed);
    let length = mismatched.body + mismatched.graphql + mismatched.header;
    let receive = failed.reset + failed.closed + failed.closed_idle;
    let exceptions = failed.timeout + failed.protocol + failed.too_large;
    let connect = failed.connect + failed.local_port;
    let all = connect + receive + length + exceptions;
    let mut lines = vec![("Failed requests:".to_owned(), all.to_string())];
    if all > 0 {
        let kinds = format!(
            "   (Connect: {}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})",
            connect
        );
        lines.push((kinds, String::new()));
    }
    let other = merged.outcomes.completed() - merged.class(2);
    if other > 0 {
        lines.push(("Non-2xx responses:".to_owned(), other.to_string()));
    }
    lines
}

fn connection_times(merged: &Merged<'_>) -> String {
    let mut out = "Connection Times (ms)\n              min  mean[+/-sd] median   max\n".to_owned();
    let rows = [
        ("Connect:", &merged.connect_per_request()),
        ("Processing:", &merged.service),
        ("Waiting:", &merged.first_byte),
        ("Total:", &merged.latency),
    ];
    for (label, times) in rows {
        let _ = writeln!(
            out,
            "{label:<12}{:>5.0} {:>4.0} {:>5.1} {:>6.0} {:>7.0}",
            min_ms(times),
            mean_ms(times),
            stddev_ms(times),
            quantile_ms(times, 0.5),
            max_ms(times),
        );
    }
    out + "\n"
}

fn percentages(latency: &Histogram) -> String {
    let mut out = "Percentage of the requests served within a certain time (ms)\n".to_owned();
    for percent in [50u32, 66, 75, 80, 90, 95, 98, 99] {
        let ms = quantile_ms(latency, f64::from(percent) / 100.0);
        let _ = writeln!(out, "  {percent}%  {ms:>5.0}");
    }
    let _ = writeln!(out, " 100%  {:>5.0} (longest request)", max_ms(latency));
    out
}

/// Host and port of a URL. If the URL has no port, it is the default port of the scheme.
fn host_and_port(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let default = match scheme {
        "https" => "443",
        "http" => "80",
        _ => "0",
    };
    // The colons of an IPv6 address are inside its brackets.
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') && !scheme.is_empty() => (host, port),
        _ => (authority, default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_of_urls() {
        assert_eq!(
            host_and_port("http://127.0.0.1:8080/graphql"),
            ("127.0.0.1", "8080")
        );
        assert_eq!(
            host_and_port("http://example.test?q=a:b"),
            ("example.test", "80")
        );
        assert_eq!(host_and_port("https://u:p@[::1]/x"), ("[::1]", "443"));
        assert_eq!(host_and_port("http://[::1]:81/x"), ("[::1]", "81"));
    }
}
