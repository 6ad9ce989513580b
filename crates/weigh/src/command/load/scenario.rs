//! `--scenario`: requests that follow one another, from a file.

use std::path::Path;

use experiment::exit::Failure;
use experiment::files::Disk;
use experiment::sending;
use http::Uri;
use load::Job;

use super::{Args, empty_job, with_credentials, with_headers};

/// The job that the flags and the scenario describe.
///
/// # Errors
///
/// When the scenario has mistakes. The message contains all of them.
pub(super) fn job(args: &Args, path: &Path, url: &Uri) -> Result<(Uri, Job), Failure> {
    let scenario = lab::scenario(path, &Disk).map_err(|mistakes| {
        Failure::bad_input(format!(
            "the scenario has mistakes\n{}",
            mistakes.render(false)
        ))
    })?;
    let requests = scenario.requests.iter().map(|asked| {
        let request = sending::request(asked, &scenario.expect);
        let request = with_credentials(request, args, url)?;
        Ok(load::Request {
            headers: with_headers(request.headers, args),
            ..request
        })
    });
    let job = Job {
        requests: requests.collect::<Result<_, Failure>>()?,
        steps: scenario.steps.clone(),
        data: Some(sending::data(scenario.data.as_ref(), args.seed)),
        ..empty_job(args, url)?
    };
    Ok((url.clone(), job))
}
