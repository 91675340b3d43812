//! Every command has a page and completions, and those who read them find nothing wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tierce_manual::{newest, pages, programs, write};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::remove_dir_all(&folder).or_else(|_| fs::create_dir_all(&folder)).unwrap();
    write(&folder).unwrap();
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// What the program says about the files.
fn says(words: &[&str], files: &[PathBuf]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).args(files).output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; scripts/setup test installs it", words[0]));
    let said = [output.stdout, output.stderr].concat();
    let failed = if output.status.success() { "" } else { "failed\n" };
    format!("{failed}{}", String::from_utf8_lossy(&said))
}

#[test]
fn every_command_has_a_page() {
    let folder = folder("pages");
    let mut names: Vec<String> = programs()
        .into_iter()
        .flat_map(pages)
        .map(|page| format!("{}.1", page.get_display_name().unwrap_or(page.get_name())))
        .collect();
    names.sort();
    names.dedup();
    let found: Vec<String> = files(&folder.join("man"))
        .iter()
        .map(|file| file.file_name().unwrap().to_str().unwrap().into())
        .collect();
    assert_eq!(found, names);
    for name in ["tierce.1", "tierce-run.1", "tierce-ctl-reserve.1", "tierce-manager.1"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert!(!names.iter().any(|name| name.contains("scenario")), "hidden commands have no page");
    for page in files(&folder.join("man")) {
        let text = fs::read_to_string(&page).unwrap();
        for wanted in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", newest().1] {
            assert!(text.contains(wanted), "{}: no {wanted}", page.display());
        }
    }
    let manager = fs::read_to_string(folder.join("man/tierce-manager.1")).unwrap();
    assert!(manager.contains("dry\\-run"), "the page of the program, not of the command that runs it");
    let plan = fs::read_to_string(folder.join("man/tierce-design-plan.1")).unwrap();
    assert!(plan.contains("importance") && plan.contains("tierce design plan"), "{plan}");
}

#[test]
fn pages_are_sound() {
    let mut pages = files(&folder("sound").join("man"));
    pages.extend(files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libtierce/man")));
    // Lines of examples are as long as they are (a matter of style to mandoc).
    for checker in
        [&["groff", "-ww", "-k", "-man", "-Tutf8", "-z"] as &[&str], &["mandoc", "-Tlint", "-Wwarning"]]
    {
        // Pages of one line name the page that they are (.so), by its path from the folder of all pages.
        let pages: Vec<PathBuf> = pages
            .iter()
            .filter(|page| !fs::read_to_string(page).unwrap().starts_with(".so "))
            .cloned()
            .collect();
        assert_eq!(says(checker, &pages), "", "{checker:?}");
    }
}

#[test]
fn shells_read_their_completions() {
    let folder = folder("shells");
    for (shell, options) in [("bash", &["-n"]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let files = files(&folder.join(shell));
        assert_eq!(files.len(), programs().len(), "{shell}");
        for file in files {
            let words = [&[shell], options as &[&str]].concat();
            let said = says(&words, std::slice::from_ref(&file));
            assert_eq!(said, "", "{shell} of {}", file.display());
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                !text.contains("demo-table") && !text.contains("scenario\""),
                "hidden: {}",
                file.display()
            );
        }
    }
    // Bash completes for real, the commands that other programs do, too.
    for (words, completed) in [
        ("tierce che", "check"),
        ("tierce sweep --outp", "--output"),
        ("tierce design plan --fro", "--from"),
        ("tierce recording wri", "write"),
        ("tierce top --js", "--json"),
        ("tierce sce", ""),
    ] {
        let script =
            "source \"$0\"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); last=${COMP_WORDS[-1]}; \
                      _tierce tierce \"$last\" tierce; echo \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", script]).arg(folder.join("bash/tierce")).arg(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{completed}\n"), "{words}");
    }
}

#[test]
fn the_changelog_begins_with_this_version() {
    let (version, date) = newest();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert!(date.len() == 10 && date.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()), "{date}");
}
