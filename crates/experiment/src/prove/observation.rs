//! Proofs by counters of other systems. The counters are read before and after some requests, and their
//! growth is compared with the number of requests.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use lab::{ProofWhat, SeenNumber, SeenRule, Text, Variant};
use load::{Answer, Request, Target};
use recording::ProofSeen;
use serde_json::Value;

use super::compression::CONTENT_MAX;
use super::{RequestCounts, not_proven, printable, shortened};
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::prometheus_text::metric;
use crate::stop::StopSignal;
use crate::systems::{RunningSystems, url_of};

/// Time limit of one reading.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The pause between two readings of a number that arrives late, and between two looks at Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until no earlier request can change a number of these variants: the longest `within` of their proofs.
///
/// # Errors
///
/// When the user stops the run.
pub(crate) fn let_earlier_arrive<'v>(
    variants: impl Iterator<Item = &'v Variant>,
    stop: &StopSignal,
) -> Result<(), Invalid> {
    let within = |proof: &lab::Proof| match &proof.what {
        // A value that must be equal has no first reading.
        ProofWhat::Seen {
            rule: SeenRule::PerRequest { .. },
            within,
            ..
        } => Some(*within),
        _ => None,
    };
    let longest = variants.flat_map(|it| &it.proofs).filter_map(within).max();
    match wait(longest.unwrap_or_default(), instant(), stop) {
        true => Ok(()),
        false => Err(Invalid::interrupted()),
    }
}

/// Waits until a time after `since` has passed. False if the user stops the run.
fn wait(time: Duration, since: Instant, stop: &StopSignal) -> bool {
    loop {
        let left = time.saturating_sub(instant().duration_since(since));
        if left.is_zero() {
            return true;
        }
        if stop.is_asked() {
            return false;
        }
        thread::park_timeout(left.min(PAUSE));
    }
}

/// The proofs by counters, with their first readings.
pub(crate) struct Observer<'a> {
    proofs: Vec<CounterProof<'a>>,
}

/// The results of the second readings.
#[derive(Default)]
pub(crate) struct Observed {
    /// One result for each proof. Failed proofs are included as evidence.
    pub(crate) seen: Vec<ProofSeen>,
    /// The first failed proof.
    pub(crate) failed: Option<Invalid>,
}

/// One proof by a counter, with its first reading.
struct CounterProof<'a> {
    name: &'a str,
    /// The addresses to read: every instance of a system with several.
    targets: Vec<Target>,
    path: String,
    number: &'a SeenNumber,
    rule: &'a SeenRule,
    /// The longest time after the load until the number is right.
    within: Duration,
    before: f64,
}

impl<'a> Observer<'a> {
    /// Takes the first readings.
    ///
    /// # Errors
    ///
    /// When a system does not return its counter.
    pub(crate) fn begin(
        variant: &'a Variant,
        systems: &RunningSystems,
    ) -> Result<Observer<'a>, Invalid> {
        let mut proofs = Vec::new();
        for proof in &variant.proofs {
            let ProofWhat::Seen {
                url,
                number,
                rule,
                within,
            } = &proof.what
            else {
                continue;
            };
            let (targets, path) =
                locate(url, systems).map_err(|reason| not_proven(&proof.name, reason))?;
            let mut one = CounterProof {
                name: &proof.name,
                targets,
                path,
                number,
                rule,
                within: *within,
                before: 0.0,
            };
            // A value that must be equal is read once, at the end.
            if matches!(rule, SeenRule::PerRequest { .. }) {
                one.before = one.count().map_err(|reason| not_proven(one.name, reason))?;
            }
            proofs.push(one);
        }
        Ok(Observer { proofs })
    }

    /// Takes the second readings, and compares their growth with the requests in between. `ended` is the end
    /// of these requests. `None` if the user stops the run while a proof waits for its number.
    pub(crate) fn end(
        self,
        counts: RequestCounts,
        ended: Instant,
        stop: &StopSignal,
    ) -> Option<Observed> {
        let mut seen = Vec::new();
        let mut failed = None;
        for proof in &self.proofs {
            let (words, is_right) = match proof.judge_in_time(counts, ended, stop)? {
                Ok(words) => (words, true),
                Err(words) => (words, false),
            };
            // All proofs are judged and kept as evidence. The first failure is the reason.
            if !is_right && failed.is_none() {
                failed = Some(not_proven(proof.name, words.clone()));
            }
            seen.push(ProofSeen {
                proof: proof.name.to_owned(),
                seen: words,
            });
        }
        Some(Observed { seen, failed })
    }
}

impl CounterProof<'_> {
    fn ask(&self, target: &Target) -> Result<Answer, String> {
        let request = Request::get(&self.path);
        let shown = format!("`{}{}`", url_of(target), self.path);
        tracing::debug!(url = shown, within = ?ANSWER_WITHIN, "asking what a system saw");
        let answer = load::exchange(target, &request, ANSWER_WITHIN)
            .map_err(|failure| format!("{shown} does not answer: {failure}"))?;
        load::check(&request.expect, &answer)
            .map_err(|mismatch| format!("{shown} has a wrong answer: {mismatch}"))?;
        Ok(answer)
    }

    fn value(&self, target: &Target, pointer: &str) -> Result<Option<Value>, String> {
        let answer = self.ask(target)?;
        let content = answer.content(CONTENT_MAX).map_err(|it| it.to_string())?;
        let body: Value = serde_json::from_slice(&content).map_err(|_| {
            format!(
                "expected JSON from `{}`, found `{}`",
                self.path,
                shortened(&printable(&content))
            )
        })?;
        Ok(body.pointer(pointer).cloned())
    }

    /// The current number, summed over instances. A missing counter is 0.
    fn count(&self) -> Result<f64, String> {
        let mut sum = 0.0;
        for target in &self.targets {
            sum += self.count_of(target)?;
        }
        Ok(sum)
    }

    fn count_of(&self, target: &Target) -> Result<f64, String> {
        match self.number {
            SeenNumber::Json(pointer) => match self.value(target, pointer)? {
                None | Some(Value::Null) => Ok(0.0),
                Some(value) => value.as_f64().ok_or_else(|| {
                    let found = shortened(&value.to_string());
                    format!("expected a number at `{pointer}`, found `{found}`")
                }),
            },
            SeenNumber::Metric(series) => {
                let answer = self.ask(target)?;
                let content = answer.content(CONTENT_MAX).map_err(|it| it.to_string())?;
                // A metric appears only after its first count.
                Ok(metric(series, &String::from_utf8_lossy(&content)).unwrap_or(0.0))
            }
        }
    }

    /// The result of the proof in words as soon as it holds, or as an error when its time has passed. `None` if
    /// the user stops the run before.
    fn judge_in_time(
        &self,
        counts: RequestCounts,
        ended: Instant,
        stop: &StopSignal,
    ) -> Option<Result<String, String>> {
        // More can arrive until the end, so a number below its upper limit proves nothing before.
        let is_limited = matches!(self.rule, SeenRule::PerRequest { most: Some(_), .. });
        if is_limited && !wait(self.within, ended, stop) {
            return None;
        }
        loop {
            let judged = self.judge(counts);
            let passed = instant().duration_since(ended);
            if judged.is_ok() || passed >= self.within {
                let late = |words| match self.within.is_zero() {
                    true => words,
                    false => format!("{words}, {:?} after the requests", self.within),
                };
                return Some(judged.map_err(late));
            }
            if !wait(self.within.min(passed + PAUSE), ended, stop) {
                return None;
            }
        }
    }

    /// The result of the proof in words, as an error if it fails.
    fn judge(&self, counts: RequestCounts) -> Result<String, String> {
        match (self.rule, self.number) {
            (SeenRule::Equals(expected), SeenNumber::Json(pointer)) => {
                let mut words = String::new();
                for target in &self.targets {
                    // Every instance must have the value. All results are then equal, so the last one
                    // represents all.
                    words = equals(expected, pointer, self.value(target, pointer)?)?;
                }
                Ok(words)
            }
            (SeenRule::Equals(_), SeenNumber::Metric(_)) => {
                unreachable!("a lab compares metrics with requests only")
            }
            (SeenRule::PerRequest { least, most }, _) => {
                let after = self.count()?;
                growth(*least, *most, after - self.before, counts)
            }
        }
    }
}

/// Compares the growth of a counter with the number of requests.
fn growth(
    least: Option<f64>,
    most: Option<f64>,
    grown: f64,
    counts: RequestCounts,
) -> Result<String, String> {
    // Counts are whole numbers. A deviation of less than 0.5 comes from the division.
    let (answered, sent) = (counts.answered as f64, counts.sent as f64);
    let requests = match counts.sent {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    };
    let words = format!("{grown} in {requests}");
    let expected = match (least, most) {
        (Some(least), Some(most)) if least == most => format!("exactly {least}"),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => return Ok(words),
    };
    let is_enough = least.is_none_or(|least| grown >= least * answered - 0.5);
    let is_little_enough = most.is_none_or(|most| grown <= most * sent + 0.5);
    if is_enough && is_little_enough {
        Ok(words)
    } else {
        Err(format!("expected {expected} per request, found {words}"))
    }
}

/// Compares the value at a JSON pointer with the expected value.
fn equals(expected: &str, pointer: &str, found: Option<Value>) -> Result<String, String> {
    let is_equal = serde_json::from_str::<Value>(expected)
        .is_ok_and(|expected| found.as_ref() == Some(&expected));
    let shown = found.map_or_else(|| "nothing".to_owned(), |it| format!("`{it}`"));
    let shown = shortened(&shown);
    if is_equal {
        return Ok(format!("{shown} at `{pointer}`"));
    }
    Err(format!(
        "expected `{expected}` at `{pointer}`, found {shown}"
    ))
}

/// The targets of a URL with the address of a system: each of its instances.
fn locate(url: &Text, systems: &RunningSystems) -> Result<(Vec<Target>, String), String> {
    let asked = url.systems().next().unwrap_or_default();
    let mut targets = Vec::new();
    let mut place = "/".to_owned();
    for own in systems.addresses_of(asked) {
        let find = |system: &str| match system == asked {
            true => Some(own.into()),
            false => systems.find(system),
        };
        let url = url.render(&find)?;
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let address: SocketAddr = host
            .parse()
            .map_err(|_| format!("expected an address such as `127.0.0.1:8080`, found `{host}`"))?;
        if !path.is_empty() {
            path.clone_into(&mut place);
        }
        targets.push(systems.target_at(address));
    }
    if targets.is_empty() {
        return Err(format!(
            "`{asked}` does not run, so the proof cannot ask it"
        ));
    }
    Ok((targets, place))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A counter that has one of these numbers at each reading, and then always the last.
    fn counter(numbers: Vec<u64>) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for (index, socket) in listener.incoming().enumerate() {
                let mut socket = socket.unwrap();
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).unwrap();
                let body = format!("{{\"n\": {}}}", numbers[index.min(numbers.len() - 1)]);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}", body.len());
                let answer = format!("{head}\r\nConnection: close\r\n\r\n{body}");
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        Target {
            address: load::Address::Tcp(address),
            host: address.to_string(),
            protocol: load::Protocol::default(),
        }
    }

    /// Judges ten answered requests by a counter that starts at 0.
    fn judged(
        numbers: Vec<u64>,
        rule: &SeenRule,
        within: Duration,
        stop: &StopSignal,
    ) -> Option<Result<String, String>> {
        let proof = CounterProof {
            name: "n",
            targets: vec![counter(numbers)],
            path: "/".to_owned(),
            number: &SeenNumber::Json("/n".to_owned()),
            rule,
            within,
            before: 0.0,
        };
        let counts = RequestCounts {
            answered: 10,
            sent: 10,
        };
        proof.judge_in_time(counts, instant(), stop)
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(120);

    #[test]
    fn a_number_that_arrives_late_is_right_as_soon_as_it_arrives() {
        let at_least = SeenRule::PerRequest {
            least: Some(1.0),
            most: None,
        };
        let began = instant();
        let go = StopSignal::unasked();
        let late = judged(vec![0, 3, 10], &at_least, LONG, &go);
        assert_eq!(late, Some(Ok("10 in 10 requests".to_owned())));
        assert!(began.elapsed() < LONG);
        let equal = judged(vec![0, 7], &SeenRule::Equals("7".to_owned()), LONG, &go);
        assert_eq!(equal, Some(Ok("`7` at `/n`".to_owned())));
        // Without a time, there is one reading.
        let once = judged(vec![0, 10], &at_least, Duration::ZERO, &go);
        let words = "expected at least 1 per request, found 0 in 10 requests";
        assert_eq!(once, Some(Err(words.to_owned())));
        let never = judged(vec![0], &at_least, SHORT, &go);
        let words = format!("{words}, 120ms after the requests");
        assert_eq!(never, Some(Err(words)));
    }

    #[test]
    fn an_upper_limit_is_judged_when_nothing_can_arrive_any_more() {
        let exactly = SeenRule::PerRequest {
            least: Some(1.0),
            most: Some(1.0),
        };
        let began = instant();
        let right = judged(vec![10], &exactly, SHORT, &StopSignal::unasked());
        assert_eq!(right, Some(Ok("10 in 10 requests".to_owned())));
        assert!(began.elapsed() >= SHORT);
    }

    #[test]
    fn a_person_who_stops_the_run_does_not_wait_for_a_number() {
        let at_least = SeenRule::PerRequest {
            least: Some(1.0),
            most: None,
        };
        let stop = StopSignal::asked();
        assert_eq!(judged(vec![0], &at_least, LONG, &stop), None);
    }

    #[test]
    fn series_are_summed_over_the_labels_that_were_not_named() {
        let text = "# HELP x y\nx{a=\"1\",b=\"u, v\"} 2\nx{a=\"1\",b=\"w\"} 3 1700000000\n\
                    x{a=\"2\"} 10\nxy 100\nplain 7\nbroken{ \n";
        for (wanted, sum) in [
            ("x", Some(15.0)),
            ("x{a=\"1\"}", Some(5.0)),
            ("x{b=\"u, v\"}", Some(2.0)),
            ("x{b=\"w\",a=\"1\"}", Some(3.0)),
            ("plain", Some(7.0)),
            ("none", None),
        ] {
            assert_eq!(metric(wanted, text), sum, "{wanted}");
        }
    }

    #[test]
    fn a_growth_is_held_against_what_was_answered_and_what_was_sent() {
        let check = |least: Option<f64>, most: Option<f64>, grown: f64| {
            let counts = RequestCounts {
                answered: 98,
                sent: 100,
            };
            growth(least, most, grown, counts).unwrap_or_else(|wrong| wrong)
        };
        // Two requests failed. They may or may not have arrived.
        assert_eq!(check(Some(1.0), Some(1.0), 98.0), "98 in 100 requests");
        assert_eq!(check(Some(1.0), Some(1.0), 100.0), "100 in 100 requests");
        insta::assert_snapshot!(check(Some(1.0), None, 97.0), @"expected at least 1 per request, found 97 in 100 requests");
        insta::assert_snapshot!(check(Some(0.0), Some(0.0), 1.0), @"expected exactly 0 per request, found 1 in 100 requests");
        insta::assert_snapshot!(check(Some(1.0), Some(2.0), 201.0), @"expected 1 to 2 per request, found 201 in 100 requests");
    }
}
