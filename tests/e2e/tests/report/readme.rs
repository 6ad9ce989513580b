//! The first example of the README.

use std::fs;

use e2e::{Run, weigh_command};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_first_example_is_what_its_command_prints() {
    let readme = fs::read_to_string(format!("{ROOT}/README.md")).expect("the README");
    let (_, example) = readme
        .split_once("```console\n$ weigh ")
        .expect("an example");
    let (command, shown) = example.split_once('\n').expect("a command");
    let (shown, _) = shown.split_once("```").expect("the end of the example");
    let run = weigh_command()
        .args(command.split(' '))
        .current_dir(ROOT)
        .output();
    let run = Run::of(run.expect("weigh starts")).ran();
    assert_eq!(run.answer().trim_end(), shown.trim_end());
}
