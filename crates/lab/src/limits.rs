//! The limits of a system: a value, `none`, or a template that becomes one of them.

use yaml_with_places::{At, Finding};

use crate::experiment::Limits;
use crate::formats::Verbatim;
use crate::quantities::{Bytes, Cores, Limit, NONE, Quantity};
use crate::reading::Reading;
use crate::scope::Scope;
use crate::wire::LimitsFile;

/// Returns the limits of a system within a variant.
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
        let help = "use a setting with a limit or `none` as its value";
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
        // An empty value comes from a reported mistake.
        Err(wrong) if !text.is_empty() => {
            let finding = Finding::new(*place, wrong.message).help_if(wrong.help);
            reading.findings.add(finding);
            None
        }
        Err(_) => None,
    }
}
