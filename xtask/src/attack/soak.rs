//! `cargo xtask soak`: checks if a service takes more and more memory or descriptors.
//!
//! Main idea: the unit is a minute, and the figure is the increase from the end of one minute to the end of
//! the next. Memory grows in steps. A median slope within a minute, or a median minute, would miss a step,
//! and the mean of all minutes does not. Each minute's load has connections of its own. So the samples are
//! taken shortly before the end of a minute, when these are open, and not at its beginning. Minutes are
//! written to a file as they end. A soak of an hour can consist of pieces on different days, and an
//! interrupted soak loses one minute.
//!
//! It sends POSTs from four connections that stay open. A GraphQL service receives 25 operations in turn,
//! half of them with variables, and its caches soon contain them. Each eighth request has an operation that
//! was never sent before. At 100/s these are 750 a minute. Caches of hundreds are full within minutes. Memory
//! grows until then, and afterwards caches must evict. Other services receive one and the same request. All
//! requests get good responses, and the task keeps no request in memory.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::attacks::Attack;
use super::exchange::{ATTACKER, Connection, HOST, post};
use super::services::{Running, Service};
use crate::bench;
use crate::clock::{now, wait_until};
use crate::process::Process;

/// Service, and the length and rate of its load.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Service that receives the load.
    #[arg(long, value_name = "NAME", value_enum)]
    service: Service,
    /// Number of minutes of this piece, in addition to one minute of warm-up.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Use the services from this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// File with the minutes of earlier pieces, which receives the minutes of this piece [default:
    /// target/soak/SERVICE.csv].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Requests per second. The default is unreliable if other programs use the machine [default:
    /// half of the rate that the service reaches at full speed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

/// Number of connections of the load.
const CONNECTIONS: usize = 4;

/// Time for measuring the capacity of the service at full speed. The load is half of the capacity.
const CAPACITY: Duration = Duration::from_secs(5);

const MINUTE: Duration = Duration::from_secs(60);

const CONFIDENCE: f64 = 0.95;

/// The changes from the level of one minute to the level of the next, and the outcomes of the requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Minute {
    memory_kib: f64,
    descriptors: f64,
    answered: u64,
    failed: u64,
}

const HEADING: &str = "memory_kib_per_minute,descriptors_per_minute,answered,failed\n";

impl Minute {
    fn line(self) -> String {
        format!(
            "{},{},{},{}\n",
            self.memory_kib, self.descriptors, self.answered, self.failed
        )
    }

    /// The minute as a sentence.
    fn told(self) -> String {
        format!(
            "{} answered, {} failed, memory {:+} KiB, descriptors {:+}",
            self.answered, self.failed, self.memory_kib, self.descriptors
        )
    }

    fn read(line: &str) -> Option<Minute> {
        let mut cells = line.split(',');
        let minute = Minute {
            memory_kib: cells.next()?.parse().ok()?,
            descriptors: cells.next()?.parse().ok()?,
            answered: cells.next()?.parse().ok()?,
            failed: cells.next()?.parse().ok()?,
        };
        cells.next().is_none().then_some(minute)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let stop = super::stop_signal()?;
    let programs = super::programs(args.programs.as_deref())?;
    if let Some(why) = args.service.missing(&programs) {
        bail!("{} cannot be soaked: {why}", args.service.word());
    }
    let usual =
        || crate::repository::root().join(format!("target/soak/{}.csv", args.service.word()));
    let record = args.record.clone().unwrap_or_else(usual);
    let mut minutes = read(&record)?;
    let running = Running::start(args.service, Attack::Load, &programs, &stop)?;
    let load = Load::new(&running);
    let rate = match args.rate {
        Some(rate) => rate,
        None => load.half_of_capacity(&stop)?,
    };
    let mut before: Option<(f64, f64)> = None;
    for number in 0..=args.minutes {
        let (answered, failed, seen) = load.watched(&running.process, rate, &stop)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let level = |samples| level(samples).context("a minute has samples");
        let (memory, descriptors) = (level(&seen.0)?, level(&seen.1)?);
        // The first minute fills caches and pools.
        let Some(before) = before.replace((memory, descriptors)) else {
            continue;
        };
        let minute = Minute {
            memory_kib: memory - before.0,
            descriptors: descriptors - before.1,
            answered,
            failed,
        };
        append(&record, minute)?;
        minutes.push(minute);
        bench::say(&format!(
            "minute {number} of {}: {}",
            args.minutes,
            minute.told()
        ));
    }
    bench::say(&told(&minutes));
    Ok(())
}

/// The level of a minute: its last sample but two, when the load was certainly present.
fn level(samples: &[f64]) -> Option<f64> {
    samples.iter().rev().nth(2).copied()
}

/// The minutes of earlier pieces.
fn read(record: &Path) -> anyhow::Result<Vec<Minute>> {
    let text = match fs::read_to_string(record) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("`{}` cannot be read", record.display()))?,
    };
    let expected = format!(
        "`{}` is no record of a soak, which begins with `{}`; name another file",
        record.display(),
        HEADING.trim_end()
    );
    let lines = text.strip_prefix(HEADING).context(expected)?;
    let minute = |(at, line)| {
        let wrong = || {
            format!(
                "`{}`, line {}: four numbers expected, found {line:?}",
                record.display(),
                at + 2
            )
        };
        Minute::read(line).with_context(wrong)
    };
    lines.lines().enumerate().map(minute).collect()
}

fn append(record: &Path, minute: Minute) -> anyhow::Result<()> {
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder)?;
    }
    let is_new = !record.exists();
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(record)?;
    if is_new {
        file.write_all(HEADING.as_bytes())?;
    }
    Ok(file.write_all(minute.line().as_bytes())?)
}

/// The slopes with their intervals, as text.
fn told(minutes: &[Minute]) -> String {
    let slope = |of: fn(&Minute) -> f64| {
        let values: Vec<f64> = minutes.iter().map(of).collect();
        match stats::blocks::mean(&values, CONFIDENCE).map(|it| (it.value, it.interval)) {
            Some((value, Some(interval))) => {
                format!("{value:.2} ({:.2} to {:.2})", interval.low, interval.high)
            }
            Some((value, None)) => format!("{value:.2} (no interval: too few minutes)"),
            None => "not known".to_owned(),
        }
    };
    let answered: u64 = minutes.iter().map(|minute| minute.answered).sum();
    let failed: u64 = minutes.iter().map(|minute| minute.failed).sum();
    format!(
        "{} minutes, {answered} requests answered, {failed} failed\n\
         memory: {} KiB a minute; descriptors: {} a minute; 95 % intervals",
        minutes.len(),
        slope(|minute| minute.memory_kib),
        slope(|minute| minute.descriptors)
    )
}

/// Memory in KiB and descriptors, once a second.
type Samples = (Vec<f64>, Vec<f64>);

/// Ordinary requests from a few connections.
struct Load<'a> {
    running: &'a Running,
    /// Number of requests sent. It selects the next request.
    sent: AtomicUsize,
}

impl<'a> Load<'a> {
    fn new(running: &'a Running) -> Self {
        Load {
            running,
            sent: AtomicUsize::new(0),
        }
    }

    /// Returns the next request of the cycle.
    fn request(&self) -> Vec<u8> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let victim = self.running.victim();
        let ordinary = victim.dialect.map(|dialect| dialect.ordinary(number));
        post(
            victim.path,
            HOST,
            ordinary.as_deref().unwrap_or(victim.body),
        )
    }

    /// Half of the responses per second at full speed.
    fn half_of_capacity(&self, stop: &AtomicBool) -> anyhow::Result<u64> {
        let (answered, _) = self.during(CAPACITY, None, stop)?;
        let rate = (answered / CAPACITY.as_secs() / 2).max(1);
        bench::say(&format!("{rate} requests/s, half of what it answered"));
        Ok(rate)
    }

    /// Runs the load for a minute and samples the resources of the process.
    fn watched(
        &self,
        process: &Process,
        rate: u64,
        stop: &AtomicBool,
    ) -> anyhow::Result<(u64, u64, Samples)> {
        let (counted, samples) = thread::scope(|scope| {
            let load = scope.spawn(|| self.during(MINUTE, Some(rate), stop));
            let (mut samples, mut due) = (Samples::default(), now());
            let end = due + MINUTE;
            // Includes the end, so that two minutes have no gap between them.
            while due <= end && !stop.load(Ordering::Relaxed) {
                wait_until(due);
                due += Duration::from_secs(1);
                if let Some(held) = process.holding() {
                    samples.0.push(float(held.memory / 1024));
                    samples.1.push(float(held.descriptors));
                }
            }
            (load.join(), samples)
        });
        let counted = counted.map_err(|_| anyhow::anyhow!("the load has panicked"))?;
        let (answered, failed) = counted?;
        if process.holding().is_none() {
            bail!("the service has ended");
        }
        Ok((answered, failed, samples))
    }

    /// Sends requests for this time, at this rate or at full speed. Returns the number of good and failed
    /// responses.
    fn during(
        &self,
        length: Duration,
        rate: Option<u64>,
        stop: &AtomicBool,
    ) -> anyhow::Result<(u64, u64)> {
        let (answered, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        let start = now();
        let count = u32::try_from(CONNECTIONS)?;
        let period = rate.map(|rate| Duration::from_secs_f64(1.0 / float(rate)) * count);
        let work = || {
            let (mut due, mut kept) = (start, None);
            while due < start + length && !stop.load(Ordering::Relaxed) {
                wait_until(due);
                if self.once(&mut kept) {
                    answered.fetch_add(1, Ordering::Relaxed);
                } else {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                // A late request is not caught up with, because the load must be half of the capacity without
                // bursts.
                due = period.map_or_else(now, |period| (due + period).max(now() - period));
            }
        };
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(work);
            }
        });
        Ok((answered.into_inner(), failed.into_inner()))
    }

    fn once(&self, kept: &mut Option<Connection>) -> bool {
        let until = now() + Duration::from_secs(10);
        let connection = match kept.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(ATTACKER, self.running.address, until),
        };
        let Ok(mut connection) = connection else {
            return false;
        };
        let Ok(answer) = connection.exchange(&self.request(), until) else {
            return false;
        };
        if answer.is_kept {
            *kept = Some(connection);
        }
        answer.status == 200 && !answer.has_errors
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "kibibytes and counts are below 2^53"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(memory_kib: f64) -> Minute {
        Minute {
            memory_kib,
            descriptors: 0.0,
            answered: 100,
            failed: 0,
        }
    }

    #[test]
    fn pieces_add_up_and_a_foreign_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("deep/soak.csv");
        assert_eq!(read(&record).unwrap(), []);
        append(&record, minute(1.5)).unwrap();
        append(&record, minute(-2.0)).unwrap();
        assert_eq!(read(&record).unwrap(), [minute(1.5), minute(-2.0)]);
        let refused = |text: &str| {
            fs::write(&record, text).unwrap();
            read(&record).unwrap_err().to_string()
        };
        let foreign = refused("a,b\n");
        assert!(foreign.contains("no record of a soak"), "{foreign}");
        let wide = refused(&format!("{HEADING}1,2,3,4\n1,2,3,4,5\n"));
        assert!(wide.contains("line 3: four numbers expected"), "{wide}");
        // A folder instead of a file. An unreadable record must not count as new, because it would be
        // overwritten.
        let unreadable = read(folder.path()).unwrap_err().to_string();
        assert!(unreadable.contains("cannot be read"), "{unreadable}");
    }

    #[test]
    fn a_leak_is_told_with_its_interval_and_few_minutes_have_none() {
        let leaking: Vec<Minute> = (0..10).map(|it| minute(100.0 + f64::from(it))).collect();
        let text = told(&leaking);
        assert!(
            text.contains("10 minutes, 1000 requests answered, 0 failed"),
            "{text}"
        );
        // They grow from minute to minute, so they are not independent samples.
        assert!(text.contains("memory: 104.50 (95.06 to 113.94)"), "{text}");
        assert!(told(&leaking[..2]).contains("too few minutes"), "{text}");
        assert!(told(&[]).contains("not known"), "{text}");
    }

    #[test]
    fn a_minute_is_told_in_words() {
        let told = minute(-84.0).told();
        assert_eq!(
            told,
            "100 answered, 0 failed, memory -84 KiB, descriptors +0"
        );
    }

    #[test]
    fn a_minute_comes_to_what_was_held_before_its_connections_end() {
        assert_eq!(level(&[24.0, 28.0, 28.0, 28.0, 26.0, 24.0]), Some(28.0));
        assert_eq!(level(&[24.0, 28.0]), None);
    }

    #[test]
    fn memory_that_grows_by_seldom_steps_is_told() {
        let steps: Vec<Minute> = (0..60)
            .map(|it| minute(if it % 5 == 0 { 2048.0 } else { 0.0 }))
            .collect();
        let text = told(&steps);
        assert!(text.contains("memory: 409.60 (196."), "{text}");
    }
}
