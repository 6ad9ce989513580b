//! The end-to-end claims that run together, several at a time.
//!
//! A claim of `tests/e2e` runs alone, unless `tests/e2e/together.txt` lists it. A new claim is therefore
//! never wrong by default, only slower than necessary.
//!
//! A claim may run together with other claims if it also holds while other programs use all cores. Such a
//! claim only waits, counts or reads. It checks a text, a refusal, an exit code that a noisy machine does not
//! change, the number of requests, a proof, or the end of processes.
//!
//! These claims stay alone:
//!
//! * claims about a figure, an interval, a verdict or a gate, because other programs change them
//! * claims about the checks of the machine, because other programs raise them
//! * claims that are NOT RUN on a busy machine, because they would not run any more
//! * claims that fill the cores, pin programs to a core, or choose a rate by measuring
//! * claims about all processes with the name of a program, or about times of tens of milliseconds
//! * claims that need an engine or a cluster, because there is one of each
//!
//! The two groups are two runs of `cargo test`, and the second skips the claims of the first. So libtest
//! itself ensures that each claim is in exactly one group. A lock in the claims would also separate them, but
//! claims that wait for their turn would then occupy the threads of the claims that could run.

use std::collections::BTreeSet;

/// The claims, one in each line: `PROGRAM::MODULE::NAME`.
const LIST: &str = include_str!("../../tests/e2e/together.txt");

/// Number of claims that run at the same time. They mostly wait, so there are more claims than cores.
pub(crate) const THREADS: usize = 4;

/// The variable that makes a claim fail if it measures although it runs together with other claims.
pub(crate) const VARIABLE: (&str, &str) = ("WEIGHBRIDGE_TOGETHER", "1");

/// The arguments of libtest for both groups.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) together: Vec<&'static str>,
    pub(crate) alone: Vec<&'static str>,
}

impl Groups {
    pub(crate) fn read() -> Groups {
        let claims: BTreeSet<&str> = LIST.lines().filter_map(as_libtest_names_it).collect();
        let skip = claims.iter().flat_map(|claim| ["--skip", claim]);
        let alone = ["--exact"].into_iter().chain(skip).collect();
        let together = ["--exact"].into_iter().chain(claims.iter().copied());
        Groups {
            together: together.collect(),
            alone,
        }
    }
}

/// `MODULE::NAME` of a line of the list.
fn as_libtest_names_it(line: &str) -> Option<&str> {
    line.split_once("::").map(|(_, claim)| claim)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::repository::root;

    const PROGRAMS: [&str; 4] = ["lab", "load", "report", "systems"];

    /// Words of a claim that measures.
    const MEASURING: [&str; 9] = [
        "ATTEMPTS",
        "Hogs::",
        "MACHINE_UNFIT",
        "believed(",
        "freeze(",
        "is_found(",
        "is_machine_unfit",
        ".number_for(",
        "verdict_of(",
    ];

    /// The claims of the end-to-end tests, each with the text of its function.
    fn claims() -> BTreeMap<String, String> {
        let folder = root().join("tests/e2e/tests");
        let mut found = BTreeMap::new();
        for program in PROGRAMS {
            for file in fs::read_dir(folder.join(program)).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_none_or(|it| it != "rs") {
                    continue;
                }
                let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let text = fs::read_to_string(&path).unwrap();
                for part in text.split("\n#[test]\n").skip(1) {
                    let (_, claim) = part.split_once("fn ").unwrap();
                    let (name, _) = claim.split_once('(').unwrap();
                    let (_, body) = claim.split_once('{').unwrap();
                    let (body, _) = body.split_once("\n}").unwrap();
                    found.insert(format!("{program}::{module}::{name}"), body.to_owned());
                }
            }
        }
        found
    }

    #[test]
    fn the_list_is_sorted_and_names_claims_that_exist() {
        let listed: Vec<&str> = LIST.lines().collect();
        assert!(
            listed.is_sorted_by(|one, next| one < next),
            "sort tests/e2e/together.txt, and name each claim once"
        );
        let claims = claims();
        let gone: Vec<_> = listed
            .iter()
            .filter(|it| !claims.contains_key(**it))
            .collect();
        assert!(gone.is_empty(), "no test has these names: {gone:#?}");
    }

    #[test]
    fn no_listed_claim_measures() {
        let claims = claims();
        for claim in LIST.lines() {
            let measures = MEASURING.iter().find(|word| claims[claim].contains(*word));
            assert_eq!(
                measures, None,
                "{claim} measures: remove it from tests/e2e/together.txt"
            );
        }
    }

    /// CI runs only the four programs, because it selects them by their names.
    #[test]
    fn the_library_of_the_end_to_end_tests_has_no_tests_of_its_own() {
        let folder = root().join("tests/e2e");
        let programs = fs::read_dir(folder.join("tests")).unwrap();
        let mut programs: Vec<_> = programs.map(|it| it.unwrap().file_name()).collect();
        programs.sort();
        assert_eq!(programs, PROGRAMS);
        for file in ["src", "src/bin", "examples"] {
            for file in fs::read_dir(folder.join(file)).unwrap() {
                let path = file.unwrap().path();
                let text = fs::read_to_string(&path).unwrap_or_default();
                assert!(!text.contains("#[test]"), "{}", path.display());
            }
        }
    }

    /// libtest does not know the program, so a skipped name is skipped in all programs.
    #[test]
    fn a_name_that_two_programs_have_is_listed_for_both() {
        let listed: BTreeSet<&str> = LIST.lines().collect();
        let names: BTreeSet<_> = LIST.lines().filter_map(as_libtest_names_it).collect();
        for claim in claims().keys() {
            let is_skipped = as_libtest_names_it(claim).is_some_and(|name| names.contains(name));
            assert_eq!(
                is_skipped,
                listed.contains(claim.as_str()),
                "{claim}: rename it, or list it too"
            );
        }
    }

    #[test]
    fn both_groups_name_the_same_claims() {
        let Groups { together, alone } = Groups::read();
        assert_eq!((together[0], alone[0]), ("--exact", "--exact"));
        let skipped: Vec<_> = alone[1..].chunks(2).map(|pair| pair[1]).collect();
        assert_eq!(skipped, together[1..]);
        assert!(alone[1..].chunks(2).all(|pair| pair[0] == "--skip"));
        assert!(together.contains(&"help::the_long_help_says_it_all"));
    }
}
