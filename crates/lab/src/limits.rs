//! What a system may use of the machine: a value, `none`, or a template that becomes one of them.

use yaml_with_places::{At, Finding};

use crate::experiment::Limits;
use crate::formats::{Format, Misspelling, Verbatim};
use crate::include::Reading;
use crate::quantities::Bytes;
use crate::scope::Scope;
use crate::template::{Part, Template};
use crate::wire::LimitsFile;

/// What is written where there is no limit.
const NONE: &str = "none";
const CORES_MIN: f64 = 0.01;
const CORES_MAX: f64 = 1024.0;

/// Cores, also parts of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cores(f64);

impl Format for Cores {
    const NAME: &'static str = "cores";
    const EXAMPLE: Option<&'static str> = Some("0.25");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let wrong = |message: String| Err(Misspelling::new(message, "write for example `0.25`"));
        match text.parse() {
            Ok(cores) if cores < CORES_MIN => {
                wrong(format!("expected at least {CORES_MIN}, found `{text}`"))
            }
            Ok(cores) if cores > CORES_MAX => {
                wrong(format!("expected at most {CORES_MAX}, found `{text}`"))
            }
            // `NaN` is read as a number and is neither below nor above a bound.
            Ok(cores) if f64::is_finite(cores) => Ok(Cores(cores)),
            _ => wrong(format!("expected a number of cores, found `{text}`")),
        }
    }
}

/// A limit as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit<F> {
    /// No limit.
    Off,
    Given(F),
    /// What it is depends on settings.
    Open(Template),
}

/// The names of limits in the schema; a format of its own for each quantity.
trait Quantity: Format {
    const LIMIT: &'static str;
}

impl Quantity for Cores {
    const LIMIT: &'static str = "cores-or-none";
}

impl Quantity for Bytes {
    const LIMIT: &'static str = "size-or-none";
}

impl<F: Quantity> Format for Limit<F> {
    const NAME: &'static str = F::LIMIT;
    const EXAMPLE: Option<&'static str> = F::EXAMPLE;

    fn read(text: &str) -> Result<Self, Misspelling> {
        let template = Template::read(text)?;
        let is_open = |part: &Part| matches!(part, Part::Reference(_));
        if template.parts.iter().any(is_open) {
            return Ok(Limit::Open(template));
        }
        if text == NONE {
            return Ok(Limit::Off);
        }
        F::read(text).map(Limit::Given)
    }
}

/// The limits of a system within a variant.
pub(crate) fn limits(
    system: &str,
    file: &LimitsFile,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Limits {
    let cpus = value(system, file.cpus.as_ref(), scope, reading);
    let memory = value(system, file.memory.as_ref(), scope, reading);
    Limits {
        cpus: cpus.map(|Cores(cores)| cores),
        memory: memory.map(|Bytes(bytes)| bytes),
    }
}

fn value<F: Quantity + Clone>(
    system: &str,
    limit: Option<&At<Verbatim<Limit<F>>>>,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<F> {
    let At { place, value } = limit?;
    let template = match &value.0 {
        Limit::Off => return None,
        Limit::Given(quantity) => return Some(quantity.clone()),
        Limit::Open(template) => template,
    };
    let text = scope.text(system, template, *place, reading);
    if text.systems().next().is_some() {
        let message = "a limit cannot hold an address";
        let help = "give a setting whose value is a limit or `none`";
        reading
            .findings
            .add(Finding::new(*place, message).help(help));
        return None;
    }
    let text = text.to_string();
    if text == NONE {
        return None;
    }
    match F::read(&text) {
        Ok(quantity) => Some(quantity),
        // What is empty was wrong before, and that is reported.
        Err(wrong) if !text.is_empty() => {
            let finding = Finding::new(*place, wrong.message).help_if(wrong.help);
            reading.findings.add(finding);
            None
        }
        Err(_) => None,
    }
}
