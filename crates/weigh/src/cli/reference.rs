//! `docs/commands.md`: every command with its flags, made from the command line itself.

use std::fmt::Write as _;

use clap::{Arg, Command};
use experiment::exit;

/// Line that the page starts with.
const HEAD: &str = "<!-- Made from crates/weigh by `cargo xtask schema`; do not edit. -->

# Commands

This page lists every command of `weigh` with its arguments, and the exit codes.
`weigh COMMAND --help` prints the same text.
Results go to stdout. Diagnostics go to stderr.
";

/// The page for `command`, the whole program.
fn page(mut command: Command) -> String {
    command.build();
    let mut text = HEAD.to_owned();
    text += "\n| command | purpose |\n|---|---|\n";
    let shown = || command.get_subcommands().filter(|it| is_shown(it));
    for sub in shown() {
        let name = sub.get_name();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            text,
            "| [`weigh {name}`](#weigh-{name}) | {} |",
            cell(&about)
        );
    }
    text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
    for line in exit::TABLE.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap_or((line, ""));
        let _ = writeln!(text, "| {code} | {} |", cell(meaning));
    }
    text += "\n## Flags of every command\n\n";
    for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
        text += &item(argument);
    }
    for sub in shown() {
        text += &section(sub);
    }
    text
}

/// True for a command that people type. The internal generator and clap's `help` are left out.
fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Heading, purpose, usage and arguments of one command.
fn section(command: &Command) -> String {
    let mut text = format!("\n## weigh {}\n\n", command.get_name());
    let about = command.get_long_about().or(command.get_about());
    text += &escaped(&about.map(ToString::to_string).unwrap_or_default());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(text, "\n\n```text\n{usage}\n```\n\n");
    let arguments = command
        .get_arguments()
        .filter(|it| !it.is_hide_set() && !it.is_global_set() && it.get_id() != "help");
    let mut heading = None;
    for argument in arguments {
        let of = argument.get_help_heading();
        if let Some(of) = of.filter(|_| of != heading) {
            let _ = write!(text, "\n**{of}**\n\n");
        }
        heading = of;
        text += &item(argument);
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(text, "\n```text\n{}\n```\n", after.to_string().trim_end());
    }
    text
}

/// A list item for one argument.
fn item(argument: &Arg) -> String {
    let mut text = format!("* `{}`", spelled(argument));
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let paragraphs: Vec<String> = help.split("\n\n").map(paragraph).collect();
    let _ = write!(text, ": {}", paragraphs.join("\n\n  "));
    match text.ends_with("```") {
        true => text += "\n\n ",
        false if !text.ends_with(['.', '?', ':']) => text.push('.'),
        false => {}
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let values: Vec<_> = defaults.iter().map(|it| it.to_string_lossy()).collect();
        let _ = write!(text, " Default: `{}`.", values.join(" "));
    }
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let names: Vec<String> = values
            .iter()
            .map(|it| format!("`{}`", it.get_name()))
            .collect();
        let _ = write!(text, " Values: {}.", names.join(", "));
    }
    if let Some(variable) = argument.get_env().filter(|_| !argument.is_hide_env_set()) {
        let _ = write!(text, " Environment: `{}`.", variable.to_string_lossy());
    }
    text + "\n"
}

/// A paragraph of a list item. Text in columns becomes a code block, which keeps them.
fn paragraph(text: &str) -> String {
    let has_columns = text.lines().any(|line| line.trim().contains("  "));
    match has_columns {
        true => format!("```text\n  {}\n  ```", text.replace('\n', "\n  ")),
        false => escaped(text).replace('\n', "\n  "),
    }
}

/// `-z, --duration <TIME>`, or `<FILE>` for a positional argument.
fn spelled(argument: &Arg) -> String {
    let shown = argument.to_string();
    match argument.get_short() {
        Some(short) if argument.get_long().is_some() => format!("-{short}, {shown}"),
        _ => shown,
    }
}

/// Help text as Markdown: angle brackets outside code are no markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        match index % 2 {
            0 => out += &part.replace('<', "\\<").replace('*', "\\*"),
            _ => out += part,
        }
    }
    out
}

/// Text of a table cell.
fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use generated::assert_generated;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_page_of_commands_is_up_to_date() {
        assert_generated("docs/commands.md", &page(Cli::command()));
    }

    #[test]
    fn a_flag_has_its_spellings_help_and_default() {
        let flag = Arg::new("rate").short('r').long("rate").value_name("RATE");
        let help = "Requests per second, <1> or `<more>`.\n\nUNIT  /s\nMORE  k/s";
        let flag = flag.default_value("100/s").help(help);
        let mut command = Command::new("weigh").arg(flag);
        command.build();
        let mut arguments = command.get_arguments();
        let flag = arguments.find(|it| it.get_id() == "rate").unwrap();
        assert_eq!(
            item(flag),
            "* `-r, --rate <RATE>`: Requests per second, \\<1> or `<more>`.\n\n  \
             ```text\n  UNIT  /s\n  MORE  k/s\n  ```\n\n  Default: `100/s`.\n"
        );
    }
}
