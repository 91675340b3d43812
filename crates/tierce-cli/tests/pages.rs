//! The pages: every link between them leads somewhere, the table of contents of the site has each of them once, and the commands of
//! tutorials and of other pages print what is shown there.
//!
//! A `toml` or `csv` block whose first line is `# NAME` is a file of that name, and a `console` block is run: a line
//! `$ COMMAND` by the shell, in one folder per page, and what follows is its output, in which a line `...` stands for any lines.
//! `UPDATE=1 cargo test -p tierce-cli --test pages` writes the outputs that have no such line anew. Commands that need root or a
//! virtual machine stand in `sh` blocks and are not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages, by their path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![root().join("docs")];
    let mut files: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "HACKING.md"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        pages.insert(file.strip_prefix(root()).unwrap().to_path_buf(), text);
    }
    pages
}

/// The lines of a page that are not code, with what stands between backquotes left in.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    })
}

/// The anchor that a heading has, on the site and where the repository is shown.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len() && heading.starts_with(' ')).then(|| anchor(heading))
    });
    let mut anchors = BTreeSet::new();
    for heading in headings {
        let mut numbered = (1..).map(|number| format!("{heading}-{number}"));
        let mut name = heading.clone();
        while !anchors.insert(name) {
            name = numbered.next().unwrap();
        }
    }
    anchors
}

/// Where links and pictures lead, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = vec![];
    for (number, line) in prose(text).chain(indented_links(text)) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            if let Some(end) = rest.find(')') {
                links.push((number + 1, &rest[..end]));
            }
        }
    }
    links
}

/// Lists may be indented like code: lines that begin with a bullet.
fn indented_links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bullet = |line: &&str| line.starts_with("    ") && line.trim_start().starts_with("- [");
    text.lines().enumerate().filter(move |(_, line)| bullet(line))
}

/// A path without `.` and `..`; none that leaves the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => plain.pop().then_some(())?,
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// Why a link of a page leads nowhere, if so.
fn dead(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return None;
    }
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, part)| (path, Some(part)));
    let target = match path {
        "" => page.to_path_buf(),
        path => match plain(&page.parent().unwrap().join(path)) {
            Some(target) => target,
            None => return Some("outside of the repository".into()),
        },
    };
    let Some(fragment) = fragment else {
        return match root().join(&target) {
            path if path.is_dir() => Some("a folder, which is no page of the site".into()),
            path if path.exists() => None,
            _ => Some("does not exist".into()),
        };
    };
    match pages.get(&target) {
        None => Some("an anchor in what is no page".into()),
        Some(text) if anchors(text).contains(fragment) => None,
        Some(_) => Some(format!("{} has no heading with the anchor #{fragment}", target.display())),
    }
}

#[test]
fn no_link_is_dead() {
    let pages = pages();
    let mut found = String::new();
    let mut checked = 0;
    for (page, text) in &pages {
        for (line, link) in links(text) {
            checked += 1;
            if let Some(why) = dead(&pages, page, link) {
                writeln!(found, "{}:{line}: {link}: {why}", page.display()).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "\n{found}");
    assert!(checked > 200, "only {checked} links were found");
}

#[test]
fn a_dead_link_is_found() {
    let pages = pages();
    let why = |link| dead(&pages, Path::new("docs/run.md"), link);
    assert_eq!(why("vm.md"), None);
    assert_eq!(why("vm.md#three-ways-to-run"), None);
    assert_eq!(why("#what-it-costs"), None);
    assert_eq!(why("../README.md"), None);
    assert_eq!(why("https://www.litmus-rt.org"), None);
    assert!(why("no-such-page.md").unwrap().contains("does not exist"));
    assert!(why("vm.md#no-such-heading").unwrap().contains("no heading"));
    assert!(why("#no-such-heading").unwrap().contains("no heading"));
    assert!(why("timeline.png#part").unwrap().contains("no page"));
    assert!(why("../examples").unwrap().contains("a folder"));
    assert!(why("../../elsewhere.md").unwrap().contains("outside"));
    let text = "# One thing: `tierce ctl`\n[x](a.md)\n```\n[y](b.md)\n# no\n```\n    - [z](c.md)\n## Same\n## Same\n";
    assert_eq!(links(text), [(2, "a.md"), (7, "c.md")]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["one-thing-tierce-ctl", "same", "same-1"]);
}

#[test]
fn the_summary_has_every_page_once() {
    let pages = pages();
    let summary = Path::new("docs/SUMMARY.md");
    let mut left: BTreeSet<_> = pages.keys().filter(|page| *page != summary).cloned().collect();
    for (line, link) in links(&pages[summary]) {
        let target = plain(&summary.parent().unwrap().join(link)).unwrap();
        assert!(left.remove(&target), "docs/SUMMARY.md:{line}: {link}: no page, or there twice");
    }
    assert!(left.is_empty(), "not in docs/SUMMARY.md: {left:?}");
}

#[test]
fn every_example_is_in_the_list_of_examples() {
    let list = fs::read_to_string(root().join("docs/examples.md")).unwrap();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let named = list.contains(&format!("(../examples/{name})"));
        assert!(named || !name.ends_with(".toml"), "docs/examples.md lacks {name}");
    }
}

/// A fenced block: its language, the line after the fence, its lines.
fn blocks(text: &str) -> Vec<(&str, usize, Vec<&str>)> {
    let mut blocks = vec![];
    let mut inside: Option<(&str, usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut inside, line.strip_prefix("```")) {
            (None, Some(language)) => inside = Some((language, number + 1, vec![])),
            (Some(_), Some(_)) => blocks.extend(inside.take()),
            (Some((_, _, lines)), None) => lines.push(line),
            (None, None) => {}
        }
    }
    blocks
}

/// Does the output have these lines, where `...` stands for any?
fn fits(shown: &[&str], said: &[&str]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((&"...", rest)) => (0..=said.len()).any(|skipped| fits(rest, &said[skipped..])),
        Some((line, rest)) => {
            said.split_first().is_some_and(|(first, said)| first == line && fits(rest, said))
        }
    }
}

/// What a command prints in the folder of a page. It has to end well.
fn said(command: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_tierce")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command}: {}\n{text}", output.status);
    text
}

/// Run a page; what it should have been, and what differs.
fn play(text: &str, folder: &Path) -> (String, String) {
    let mut lines: Vec<Vec<String>> = text.lines().map(|line| vec![line.to_string()]).collect();
    let mut differs = String::new();
    for (language, first, block) in blocks(text) {
        if let ("toml" | "csv", Some(name)) =
            (language, block.first().and_then(|line| line.strip_prefix("# ")))
        {
            assert!(
                name.ends_with(language) && !name.contains(['/', ' ']),
                "line {first}: a file's name: {name}"
            );
            fs::write(folder.join(name), block[1..].join("\n") + "\n").unwrap();
        }
        if language != "console" {
            continue;
        }
        let commands: Vec<_> = (0..block.len()).filter(|&at| block[at].starts_with("$ ")).collect();
        assert_eq!(commands.first(), Some(&0), "line {first}: a console begins with a command");
        for (index, &at) in commands.iter().enumerate() {
            let end = commands.get(index + 1).copied().unwrap_or(block.len());
            let (shown, said) = (&block[at + 1..end], said(&block[at][2..], folder));
            let said: Vec<_> = said.lines().map(str::trim_end).collect();
            if fits(shown, &said) {
                continue;
            }
            writeln!(differs, "line {}: {}\n{}", first + at + 1, block[at], said.join("\n")).unwrap();
            if !shown.contains(&"...") {
                lines[first + at].extend(said.iter().map(|line| line.to_string()));
                lines[first + at + 1..first + end].iter_mut().for_each(Vec::clear);
            }
        }
    }
    (lines.concat().join("\n") + "\n", differs)
}

#[test]
fn pages_show_what_their_commands_print() {
    let mut differs = String::new();
    let is_played =
        |page: &Path, text: &str| page.starts_with("docs/tutorials") || text.contains("```console\n");
    for (page, text) in pages().iter().filter(|(page, text)| is_played(page, text)) {
        let name = page.file_stem().unwrap().to_str().unwrap();
        let folder = env::temp_dir().join(format!("tierce-pages-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for shared in ["examples", "bench"] {
            std::os::unix::fs::symlink(root().join(shared), folder.join(shared)).unwrap();
        }
        let (new, of_page) = play(text, &folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!(text.contains("```console\n"), "{}: no command is run", page.display());
        if env::var_os("UPDATE").is_some() {
            fs::write(root().join(page), new).unwrap();
        } else if !of_page.is_empty() {
            writeln!(differs, "{}: {of_page}", page.display()).unwrap();
        }
    }
    assert!(differs.is_empty(), "what the commands print (UPDATE=1 writes it):\n{differs}");
}

#[test]
fn an_output_that_is_not_shown_is_found() {
    let folder = env::temp_dir().join(format!("tierce-pages-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let page =
        "```csv\n# a.csv\n1,2\n3\n```\n```console\n$ cat a.csv\n1,2\nx\n$ cat a.csv\n...\n3\n```\nend\n";
    let (new, differs) = play(page, &folder);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(new, page.replace("\nx\n", "\n3\n"));
    assert_eq!(differs, "line 7: $ cat a.csv\n1,2\n3\n");
    assert!(fits(&["a", "...", "d"], &["a", "b", "c", "d"]) && fits(&["..."], &[]));
    assert!(!fits(&["a", "..."], &["b"]) && !fits(&["a"], &["a", "b"]) && !fits(&["a", "b"], &["a"]));
}
