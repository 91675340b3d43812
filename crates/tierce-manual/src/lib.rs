//! Man pages and shell completions of the programs, made from what they say about their arguments.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::roff::{bold, italic, roman, Roff};
use clap_mangen::Man;
use std::fs;
use std::path::Path;

const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");

/// The programs that users install. `tierce manager` runs `tierce-manager`, whose page is the one of that name.
pub fn programs() -> Vec<Command> {
    vec![
        tierce_cli::command(),
        tierce_cli::manager::command(),
        tierce_cli::top::command(),
        tierce_cli::draw::command(),
        tierce_sweep::program::command(),
        tierce_recording::program::command(),
    ]
}

/// Write `man/PAGE.1`, `bash/PROGRAM`, `zsh/_PROGRAM` and `fish/PROGRAM.fish` into a folder.
pub fn write(out: &Path) -> Result<()> {
    for folder in ["man", "bash", "zsh", "fish"] {
        fs::create_dir_all(out.join(folder)).with_context(|| format!("{}", out.display()))?;
    }
    for program in programs() {
        let name = program.get_name().to_owned();
        let paged = if name == "tierce" { with_plan(program.clone()) } else { program.clone() };
        for page in pages(paged) {
            let name = page.get_display_name().unwrap_or(page.get_name()).to_owned();
            fs::write(out.join("man").join(format!("{name}.1")), man(page)?)?;
        }
        let mut program = if name == "tierce" { with_siblings(program) } else { program };
        for (shell, file) in [
            (Shell::Bash, format!("bash/{name}")),
            (Shell::Zsh, format!("zsh/_{name}")),
            (Shell::Fish, format!("fish/{name}.fish")),
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut program, &name, &mut script);
            fs::write(out.join(file), script)?;
        }
    }
    Ok(())
}

/// `tierce design plan` with the arguments of the program that it runs.
fn with_plan(program: Command) -> Command {
    let recording = tierce_recording::program::command();
    let plan = recording.find_subcommand("plan").cloned().unwrap_or_else(|| Command::new("plan"));
    program.mut_subcommand("design", |design| {
        design.mut_subcommand("plan", |_| plan.bin_name("tierce design plan"))
    })
}

/// `tierce` as it is typed: with the arguments of the programs that some of its commands run, and without the commands that help does not
/// list.
pub fn with_siblings(program: Command) -> Command {
    let program = with_plan(program);
    let siblings = [
        ("manager", tierce_cli::manager::command()),
        ("top", tierce_cli::top::command()),
        ("sweep", tierce_sweep::program::command()),
        ("recording", tierce_recording::program::command()),
    ];
    let typed = |command: &Command| {
        let name = command.get_name();
        match siblings.iter().find(|(of, _)| *of == name) {
            Some((of, sibling)) => sibling.clone().name(*of).bin_name(format!("tierce {of}")),
            None => command.clone(),
        }
    };
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("tierce")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments().cloned())
        .subcommands(shown.map(typed).collect::<Vec<_>>())
}

/// A program and its commands, down to the last, without those that help does not list.
pub fn pages(program: Command) -> Vec<Command> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut all = vec![program];
    let mut next = 0;
    while next < all.len() {
        let shown = all[next].get_subcommands().filter(|command| !command.is_hide_set());
        all.extend(shown.cloned().collect::<Vec<_>>());
        next += 1;
    }
    all
}

/// Version and date of the newest version in the changelog: `## [0.1.0] - 2026-01-31`.
pub fn newest() -> (&'static str, &'static str) {
    let heading = CHANGELOG.lines().find_map(|line| line.strip_prefix("## [")?.split_once("] - "));
    heading.expect("CHANGELOG.md has a version")
}

fn man(command: Command) -> Result<String> {
    let (version, date) = newest();
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let more = command.get_subcommands().any(|command| !command.is_hide_set());
    // The page of a program names those of its commands, these name the program's.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let parent = name.rsplit_once('-').map_or("tierce-manager", |(parent, _)| parent).to_owned();
    let page = Man::new(command).date(date).source(format!("Tierce {version}")).manual("Tierce");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if more {
        page.render_subcommands_section(&mut text)?;
    }
    let mut end = Roff::default();
    examples(&help, &mut end);
    end.control("SH", ["SEE ALSO"]);
    end.text([bold(parent), roman("(1), the pages in "), italic("/usr/share/doc/tierce")]);
    end.to_writer(&mut text)?;
    // The list of an option's values: one empty line above it is what both breaks mean.
    Ok(String::from_utf8(text)?.replace(".br\n\n.br\n", ".sp\n"))
}

/// What stands below the options of `--help`: examples as they are, exit codes as a section.
fn examples(help: &str, page: &mut Roff) {
    let (examples, codes) = match help.split_once("Exit codes: ") {
        Some((examples, codes)) => (examples, codes.split_once("\n\n").unwrap_or((codes, ""))),
        None => (help, ("", "")),
    };
    for (title, text) in [("EXIT STATUS", codes.0), ("EXAMPLES", examples), ("NOTES", codes.1)] {
        let text = text.trim_matches('\n');
        let text = text.strip_prefix("Examples:\n").unwrap_or(text);
        if text.is_empty() {
            continue;
        }
        page.control("SH", [title]);
        let as_is = title != "EXIT STATUS";
        if as_is {
            page.control("nf", []);
        }
        for line in text.lines() {
            page.text([roman(line)]);
        }
        if as_is {
            page.control("fi", []);
        }
    }
}
