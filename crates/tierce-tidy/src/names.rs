//! Modules of a crate and the names in them, read as tokens: comments and texts in quotes are none.

use crate::graph::Uses;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Words before the name of an item.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// What may follow the name of an item of which that word is the begin of something else.
const NOT_NAMES: [&str; 3] = ["fn", "unsafe", "extern"];

/// A name that a `use` brings in, and the path that it stands for.
struct Import {
    name: String,
    path: Vec<String>,
    public: bool,
}

#[derive(Default)]
struct Module {
    /// `crate::resolve::edges`, without `crate`.
    path: Vec<String>,
    children: BTreeMap<String, usize>,
    parent: Option<usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Modules of which everything is brought in.
    globs: Vec<Vec<String>>,
    /// Paths of two words or more outside of `use`, and words alone.
    paths: Vec<Vec<String>>,
    words: BTreeSet<String>,
}

/// The modules of a crate; the first is the root.
pub struct Crate(Vec<Module>);

type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

impl Crate {
    pub fn read(root: &Path, read: Read) -> Result<Self, String> {
        let mut all = Self(vec![Module::default()]);
        let folder = root.parent().unwrap_or(Path::new("")).to_path_buf();
        all.file(0, root, &folder, read)?;
        Ok(all)
    }

    /// `folder`: where the files of its children are.
    fn file(&mut self, module: usize, file: &Path, folder: &Path, read: Read) -> Result<(), String> {
        let text = read(file).ok_or_else(|| format!("{}: no such file", file.display()))?;
        let tokens = TokenStream::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut declared = Vec::new();
        self.0[module].items(tokens, &mut declared);
        for (name, path) in declared {
            let (own, inner) = (folder.join(format!("{name}.rs")), folder.join(&name));
            let (file, folder) = match path {
                Some(path) => {
                    let file = file.parent().unwrap_or(Path::new("")).join(path);
                    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
                    (file, folder)
                }
                None if read(&own).is_some() => (own, inner),
                None => (inner.join("mod.rs"), inner),
            };
            let child = self.0.len();
            let path = [&self.0[module].path[..], std::slice::from_ref(&name)].concat();
            self.0.push(Module { path, parent: Some(module), ..Module::default() });
            self.0[module].children.insert(name, child);
            self.file(child, &file, &folder, read)?;
        }
        Ok(())
    }

    pub fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (index, module) in self.0.iter().enumerate() {
            let mut add = |found: Option<(usize, String)>| {
                let Some((to, name)) = found.filter(|(to, _)| *to != index) else { return };
                let names = uses.entry((self.name(index), self.name(to))).or_default();
                if !names.contains(&name) {
                    names.push(name);
                }
            };
            for import in &module.imports {
                // What is only handed on is nothing that this module needs.
                if !import.public || module.words.contains(&import.name) {
                    add(self.defining(index, &import.path, 0));
                }
            }
            for path in &module.paths {
                add(self.defining(index, path, 0));
            }
            for glob in &module.globs {
                let Some(of) = self.module(index, glob) else { continue };
                for word in &module.words {
                    add(self.member(of, std::slice::from_ref(word), 0));
                }
            }
        }
        uses
    }

    fn name(&self, module: usize) -> String {
        match self.0[module].path.as_slice() {
            [] => "crate".into(),
            path => path.join("::"),
        }
    }

    /// The module that a path leads to, if it is one.
    fn module(&self, from: usize, path: &[String]) -> Option<usize> {
        let (mut at, mut rest) = self.begin(from, path)?;
        while let Some((first, more)) = rest.split_first() {
            (at, rest) = match self.0[at].children.get(first) {
                Some(child) => (*child, more),
                None => {
                    let import = self.0[at].imports.iter().find(|import| import.name == *first)?;
                    (self.module(at, &import.path)?, more)
                }
            };
        }
        Some(at)
    }

    /// Where a path begins, and the rest of it; nothing for what is of another crate.
    fn begin<'p>(&self, from: usize, path: &'p [String]) -> Option<(usize, &'p [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((0, rest)),
            "self" => Some((from, rest)),
            "super" => {
                let (mut at, mut rest) = (self.0[from].parent?, rest);
                while let Some(("super", more)) =
                    rest.split_first().map(|(first, more)| (first.as_str(), more))
                {
                    (at, rest) = (self.0[at].parent?, more);
                }
                Some((at, rest))
            }
            name => self.0[from].children.get(name).map(|child| (*child, rest)),
        }
    }

    /// The module that defines what a path names, and the name there.
    fn defining(&self, from: usize, path: &[String], depth: u32) -> Option<(usize, String)> {
        if let Some((at, rest)) = self.begin(from, path) {
            return self.member(at, rest, depth);
        }
        // By a name that a `use` brought in.
        let (first, rest) = path.split_first()?;
        let import = self.0[from].imports.iter().find(|import| import.name == *first)?;
        if import.path.first() == Some(first) {
            return None; // of another crate
        }
        let whole = [&import.path[..], rest].concat();
        (depth < 8).then(|| self.defining(from, &whole, depth + 1))?
    }

    /// The same of a path in a module. A module by itself is not a use: only what it has.
    fn member(&self, at: usize, path: &[String], depth: u32) -> Option<(usize, String)> {
        let (first, rest) = path.split_first()?;
        let module = &self.0[at];
        // A module and a function may have one name.
        let child = module.children.get(first).filter(|_| !rest.is_empty());
        if let Some(child) = child {
            return self.member(*child, rest, depth);
        }
        if module.items.contains(first) {
            return Some((at, first.clone()));
        }
        if depth >= 8 {
            return None;
        }
        if let Some(import) = module.imports.iter().find(|import| import.name == *first) {
            let whole = [&import.path[..], rest].concat();
            if self.begin(at, &whole).is_some() {
                return self.defining(at, &whole, depth + 1);
            }
        }
        module.globs.iter().find_map(|glob| self.member(self.module(at, glob)?, path, depth + 1))
    }
}

impl Module {
    /// What is between the braces of the file, item by item. `declared`: modules in files of their own, with their `path` if they
    /// have one.
    fn items(&mut self, tokens: TokenStream, declared: &mut Vec<(String, Option<PathBuf>)>) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let (mut at, mut only_tests, mut path, mut public) = (0, false, None, false);
        while at < tokens.len() {
            let text = word(&tokens[at]);
            match (text.as_deref(), tokens.get(at + 1)) {
                (Some("#"), Some(TokenTree::Group(group))) if group.delimiter() == Delimiter::Bracket => {
                    let attribute: String = group.stream().to_string().split_whitespace().collect();
                    only_tests |= attribute == "cfg(test)";
                    if let Some(given) = attribute.strip_prefix("path=") {
                        path = Some(PathBuf::from(given.trim_matches('"')));
                    }
                    at += 2;
                    continue;
                }
                (Some("#"), Some(sign)) if punct(sign) == Some('!') => {
                    at += 3; // of the whole file
                    continue;
                }
                (Some("pub"), _) => {
                    public = true;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let end = end_of_item(&tokens, at);
            let item = &tokens[at..end];
            if !only_tests {
                match (text.as_deref(), item.get(1).and_then(word)) {
                    (Some("mod"), Some(name)) if !item.iter().any(is_body) => {
                        declared.push((name, path.take()))
                    }
                    (Some("use"), _) => self.import(&item[1..], public),
                    _ => {
                        self.define(item);
                        self.walk(item.iter().cloned().collect());
                    }
                }
            }
            (only_tests, path, public) = (false, None, false);
            at = end;
        }
    }

    fn define(&mut self, item: &[TokenTree]) {
        for pair in item.windows(2) {
            let (Some(kind), Some(name)) = (word(&pair[0]), word(&pair[1])) else { continue };
            if ITEMS.contains(&kind.as_str()) && !NOT_NAMES.contains(&name.as_str()) {
                self.items.insert(name);
                return;
            }
        }
        if let [first, _, third, ..] = item {
            if word(first).as_deref() == Some("macro_rules") {
                self.items.extend(word(third));
            }
        }
    }

    fn import(&mut self, tree: &[TokenTree], public: bool) {
        for (path, name) in leaves(tree, &[]) {
            match name {
                Some(name) => self.imports.push(Import { name, path, public }),
                None => self.globs.push(path),
            }
        }
    }

    /// Paths and words, at any depth.
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let TokenTree::Group(group) = &tokens[at] {
                self.walk(group.stream());
            }
            let Some(first) = ident(&tokens[at]) else {
                at += 1;
                continue;
            };
            if first == "use" {
                // Within a function.
                let end = end_of_item(&tokens, at);
                self.import(&tokens[at + 1..end], false);
                at = end;
                continue;
            }
            let mut path = vec![first];
            at += 1;
            while let [a, b, c, ..] = &tokens[at..] {
                match (punct(a), punct(b), ident(c)) {
                    (Some(':'), Some(':'), Some(next)) => path.push(next),
                    _ => break,
                }
                at += 3;
            }
            self.words.insert(path[0].clone());
            if path.len() > 1 {
                self.paths.push(path);
            }
        }
    }
}

/// Paths of a `use`, and what each is called here; `None`: everything that is there.
fn leaves(tree: &[TokenTree], before: &[String]) -> Vec<(Vec<String>, Option<String>)> {
    let mut path = before.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match &tree[at] {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let parts = inner.split(|token| punct(token) == Some(','));
                return parts.filter(|part| !part.is_empty()).flat_map(|part| leaves(part, &path)).collect();
            }
            token if punct(token) == Some('*') => return vec![(path, None)],
            token => {
                if let Some(name) = ident(token) {
                    if name == "as" {
                        let name = tree.get(at + 1).and_then(ident).unwrap_or_default();
                        return vec![(path, Some(name))];
                    }
                    path.push(name);
                }
            }
        }
        at += 1;
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = path.last().cloned();
    name.map(|name| (path, Some(name))).into_iter().collect()
}

/// One after the last token of the item that begins there: its `;`, or its body in braces.
fn end_of_item(tokens: &[TokenTree], begin: usize) -> usize {
    let is_use = word(&tokens[begin]).as_deref() == Some("use");
    let has_value = matches!(word(&tokens[begin]).as_deref(), Some("const" | "static" | "type"))
        && tokens.get(begin + 1).and_then(word).is_none_or(|next| next != "fn" && next != "unsafe");
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        if punct(token) == Some(';') || is_body(token) && !is_use && !has_value {
            return at + 1;
        }
    }
    tokens.len()
}

fn is_body(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn punct(token: &TokenTree) -> Option<char> {
    match token {
        TokenTree::Punct(punct) => Some(punct.as_char()),
        _ => None,
    }
}

/// A word, or a sign alone.
fn word(token: &TokenTree) -> Option<String> {
    ident(token).or_else(|| punct(token).map(String::from))
}
