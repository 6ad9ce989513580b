//! The readers of all formats, by their names in the JSON Schema.

use std::time::Duration;

use model::{Gate, Goal, Rate};

use crate::formats::{
    ChoiceName, FileName, Format, HeaderName, HeaderValue, HostName, Method, Misspelling, Name,
    Pattern, Pointer, RequestPath, ServiceName, SettingPath, StatusName, Title, UrlPath,
    VariableName,
};
use crate::fraction::Fraction;
use crate::level::Level;
use crate::quantities::{Bytes, Cores, Limit, LoadRate, LongerThanZero, Numbers, PositiveRate};
use crate::template::{Command, Template};

/// Every format, for the structural check.
const READERS: &[(&str, Check)] = &[
    reader::<Duration>(),
    reader::<LongerThanZero>(),
    reader::<Bytes>(),
    reader::<Limit<Cores>>(),
    reader::<Limit<Bytes>>(),
    reader::<PositiveRate>(),
    reader::<LoadRate>(),
    reader::<Rate>(),
    reader::<Level>(),
    reader::<Method>(),
    reader::<StatusName>(),
    reader::<UrlPath>(),
    reader::<RequestPath>(),
    reader::<Pointer>(),
    reader::<Numbers>(),
    reader::<Pattern>(),
    reader::<HeaderName>(),
    reader::<HeaderValue>(),
    reader::<Name>(),
    reader::<ChoiceName>(),
    reader::<ServiceName>(),
    reader::<SettingPath>(),
    reader::<Title>(),
    reader::<Fraction>(),
    reader::<VariableName>(),
    reader::<FileName>(),
    reader::<HostName>(),
    reader::<Template>(),
    reader::<Command>(),
    reader::<Goal>(),
    reader::<Gate>(),
];

type Check = fn(&str) -> Result<(), Misspelling>;

const fn reader<F: Format>() -> (&'static str, Check) {
    (F::NAME, |text| F::read(text).map(|_| ()))
}

/// Checks a text against the format of this name. `None` if the name is not a format of ours.
pub(crate) fn read(name: &str, text: &str) -> Option<Result<(), Misspelling>> {
    let (_, read) = READERS.iter().find(|(known, _)| *known == name)?;
    Some(read(text))
}

#[cfg(test)]
mod tests;
