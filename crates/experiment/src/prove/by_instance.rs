//! The proof by balancers: every instance responds, and their responses add up to all responses.

use model::InvalidKind;
use recording::ProofSeen;

use super::RequestCounts;
use crate::invalid::Invalid;
use crate::systems::Shares;

/// The name of this proof in the report.
const PROOF: &str = "requests by instance";

/// Requests per instance that exclude chance. With fewer requests, an instance may receive no request by
/// chance.
const REQUESTS_TELLING: u64 = 10;

/// Compares the responses of the target's instances with the counts of the generator. `None` if the target
/// has no balancer.
///
/// # Errors
///
/// An instance without a response, or too few or too many responses.
pub(crate) fn by_instance(
    shares: &[Shares],
    target: &str,
    counts: RequestCounts,
) -> Option<Result<ProofSeen, Invalid>> {
    let shares = shares.iter().find(|shares| shares.system == target)?;
    let instances = &shares.instances;
    let answers: Vec<String> = instances
        .iter()
        .map(|instance| instance.answers.to_string())
        .collect();
    let sum: u64 = instances.iter().map(|instance| instance.answers).sum();
    let idle = instances.iter().find(|instance| instance.answers == 0);
    // With few requests, an instance may receive no request by chance.
    let is_telling = counts.answered >= REQUESTS_TELLING * instances.len() as u64;
    let RequestCounts { answered, sent } = counts;
    let seen = format!("{} = {sum} answers to {sent} requests", answers.join(" + "));
    // Any sum in between is possible, because failed requests may or may not have arrived.
    let wrong = if !(answered..=sent).contains(&sum) {
        Some(
            "expected the answers of the instances to add up to the answers of the generator"
                .to_owned(),
        )
    } else {
        idle.filter(|_| is_telling).map(|instance| {
            format!(
                "expected every instance to serve, but `{}` did not",
                instance.name
            )
        })
    };
    Some(match wrong {
        None => Ok(ProofSeen {
            proof: PROOF.to_owned(),
            seen,
        }),
        Some(expected) => Err(Invalid::new(
            InvalidKind::NotProven,
            format!("did not do the work: {PROOF}: {expected}. Found {seen}"),
        )),
    })
}

#[cfg(test)]
mod tests {
    use recording::InstanceUsage;

    use super::*;

    fn shares(answers: &[u64]) -> Shares {
        let instance = |(number, answers): (u32, &u64)| InstanceUsage {
            name: format!("limiter-{number}"),
            answers: *answers,
            cpu_us: None,
        };
        Shares {
            system: "limiter".to_owned(),
            instances: (1..).zip(answers).map(instance).collect(),
        }
    }

    fn words(answers: &[u64], answered: u64, sent: u64) -> String {
        let counts = RequestCounts { answered, sent };
        match by_instance(&[shares(answers)], "limiter", counts).unwrap() {
            Ok(seen) => seen.seen,
            Err(invalid) => invalid.reason,
        }
    }

    #[test]
    fn the_answers_of_all_instances_sum_up() {
        insta::assert_snapshot!(words(&[20, 21], 41, 41), @"20 + 21 = 41 answers to 41 requests");
        // One request failed. It may or may not have been answered.
        insta::assert_snapshot!(words(&[20, 21], 40, 41), @"20 + 21 = 41 answers to 41 requests");
        insta::assert_snapshot!(words(&[20, 20], 41, 41), @"did not do the work: requests by instance: expected the answers of the instances to add up to the answers of the generator. Found 20 + 20 = 40 answers to 41 requests");
        insta::assert_snapshot!(words(&[21, 21], 41, 41), @"did not do the work: requests by instance: expected the answers of the instances to add up to the answers of the generator. Found 21 + 21 = 42 answers to 41 requests");
    }

    #[test]
    fn an_instance_without_a_request_is_named_when_there_were_enough() {
        insta::assert_snapshot!(words(&[20, 0], 20, 20), @"did not do the work: requests by instance: expected every instance to serve, but `limiter-2` did not. Found 20 + 0 = 20 answers to 20 requests");
        insta::assert_snapshot!(words(&[19, 0], 19, 19), @"19 + 0 = 19 answers to 19 requests");
    }

    #[test]
    fn other_systems_are_counted_and_not_judged() {
        let counts = RequestCounts {
            answered: 1,
            sent: 1,
        };
        assert!(by_instance(&[shares(&[7])], "gateway", counts).is_none());
    }
}
