//! No two modules of a crate import each other; and the check that says so sees a circle where there is one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tierce_tidy::{at_the_top, circles, uses, uses_by, Circle};

/// Circles that are left, as crate and modules, each with the reason.
const LEFT: &[(&str, &[&str], &str)] = &[];

/// Roots of the crates of the workspace and of the programs of `bench/`.
fn roots() -> Vec<(String, PathBuf)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["crates", "bench"] {
        let all = std::fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        for folder in all {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let roots = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file));
            found.extend(roots.into_iter().filter(|root| root.is_file()).map(|root| (name.clone(), root)));
        }
    }
    found.sort();
    found
}

#[test]
fn no_modules_import_each_other() {
    let roots = roots();
    assert!(roots.len() > 10, "{roots:?}");
    let (mut left, mut new, mut all) = (LEFT.to_vec(), String::new(), 0);
    for (name, root) in roots {
        let uses = uses(&root).unwrap();
        all += uses.len();
        for circle in circles(&uses).into_iter().chain(circles(&at_the_top(&uses))) {
            match left.iter().position(|(own, modules, _)| *own == name && *modules == circle.modules) {
                Some(known) => drop(left.remove(known)),
                None => new += &format!("{name}: {circle}"),
            }
        }
    }
    assert!(all > 200, "{all} uses of one module by another");
    assert!(new.is_empty(), "{new}");
    assert!(left.is_empty(), "no longer circles, to be taken out of the list: {left:?}");
}

/// Circles of a crate of these files; the first is its root.
fn of(files: &[(&str, &str)]) -> Vec<Circle> {
    let texts: BTreeMap<&Path, &str> = files.iter().map(|(file, text)| (Path::new(*file), *text)).collect();
    let read = |path: &Path| texts.get(path).map(ToString::to_string);
    circles(&uses_by(Path::new(files[0].0), &read).unwrap())
}

/// The modules of the only circle; empty: there is none.
fn modules(files: &[(&str, &str)]) -> Vec<String> {
    let found = of(files);
    assert!(found.len() < 2, "{found:?}");
    found.into_iter().flat_map(|circle| circle.modules).collect()
}

#[test]
fn a_circle_is_found_however_the_names_are_written() {
    let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::B;");
    let a = ("a.rs", "use crate::b::B; pub struct A(B);");
    for b in [
        "use crate::a::A; pub struct B(Box<A>);",
        "use crate::{c, a::{self, A as Other}}; pub struct B(Box<Other>);",
        "pub struct B; fn f(_: &crate::a::A) {}",
        "pub struct B; fn f(_: &super::a::A) {}",
        "pub struct B; fn f(_: &crate::A) {}", // re-exported by the root
        "use crate::a; pub struct B; fn f() { a::g() }",
        "pub struct B; fn f() { println!(\"{}\", crate::a::g()) }",
        "pub struct B; fn f() { use crate::a::A; }",
        "use crate::a::*; pub struct B; fn f(_: &A) {}",
    ] {
        let a = (a.0, format!("{} pub fn g() {{}}", a.1));
        let files = [root, (a.0, &a.1), ("b.rs", b), ("c.rs", "pub fn c() {}")];
        assert_eq!(modules(&files), ["a", "b"], "{b}");
    }
    // Through a third.
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "pub struct C; const SIZE: usize = size_of::<crate::a::A>();"),
    ];
    assert_eq!(modules(&files), ["a", "b", "c"]);
    let text = of(&files)[0].to_string();
    assert!(text.contains("c uses of a: A"), "{text}");
}

#[test]
fn folders_that_import_each_other_are_found_where_no_files_do() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "pub mod one; pub mod two;"),
        ("a/one.rs", "use crate::b::four::Four; pub struct One(Four);"),
        ("a/two.rs", "pub struct Two;"),
        ("b/mod.rs", "pub mod three; pub mod four;"),
        ("b/three.rs", "use crate::a::two::Two; pub struct Three(Two);"),
        ("b/four.rs", "pub struct Four;"),
    ];
    let texts: BTreeMap<&Path, &str> = files.iter().map(|(file, text)| (Path::new(*file), *text)).collect();
    let read = |path: &Path| texts.get(path).map(ToString::to_string);
    let uses = uses_by(Path::new("lib.rs"), &read).unwrap();
    assert_eq!(circles(&uses), []);
    assert_eq!(circles(&at_the_top(&uses))[0].modules, ["a", "b"]);
}

#[test]
fn what_is_no_use_makes_no_circle() {
    let root = ("lib.rs", "mod a; mod b; pub use a::A;");
    let a = ("a.rs", "use crate::b::B; pub struct A(B);");
    for b in [
        "pub struct B; // crate::a::A",
        "pub struct B; const TEXT: &str = \"crate::a::A\";",
        "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        "use other::a::A; pub struct B(A);",
        "use crate::a; pub struct B;", // the module alone, and nothing of it
    ] {
        assert_eq!(modules(&[root, a, ("b.rs", b)]), [""; 0], "{b}");
    }
}

#[test]
fn a_parent_and_its_child_are_a_circle_only_if_each_needs_the_other() {
    let child = "use super::Parent; pub struct Child(Parent); pub fn help() {}";
    let of = |parent: &str| modules(&[("lib.rs", "mod p;"), ("p/mod.rs", parent), ("p/child.rs", child)]);
    assert_eq!(of("mod child; pub struct Parent;"), [""; 0]);
    assert_eq!(of("mod child; pub use child::Child; pub struct Parent;"), [""; 0]);
    let sibling = "use super::run::go; pub struct S;"; // of the child `run`, not of the function
    let parent = "pub mod run; mod s; pub fn run(_: s::S) {}";
    let files =
        [("lib.rs", "mod p;"), ("p/mod.rs", parent), ("p/run.rs", "pub fn go() {}"), ("p/s.rs", sibling)];
    assert_eq!(modules(&files), [""; 0]);
    assert_eq!(of("mod child; pub struct Parent; fn f() { child::help() }"), ["p", "p::child"]);
    assert_eq!(of("mod child; pub use child::Child; pub struct Parent(Child);"), ["p", "p::child"]);
}

#[test]
fn a_file_that_is_not_there_is_refused() {
    let refused =
        uses_by(Path::new("lib.rs"), &|path| (path == Path::new("lib.rs")).then(|| "mod a;".into()));
    assert_eq!(refused.unwrap_err(), "a/mod.rs: no such file");
}
