//! No two files need each other, by whatever way round: what both use has a file of its own.
//!
//! Every path in the code of a crate is followed to the file that defines what it names, through re-exports. Tests are left
//! out: those that live beside a file use it and are used by nothing.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, ItemUse, UseTree};

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// The files of one target of a crate, each a module.
struct Crate {
    files: BTreeMap<Module, File>,
    /// Which names a module has from elsewhere, as absolute paths; those of modules that are written out in a file too.
    imports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        read_module(root, root.parent().unwrap(), Vec::new(), &mut files);
        let mut all = Self { files, imports: BTreeMap::new() };
        // Once more, since an import may begin with the name of another.
        for _ in 0..2 {
            let found: Vec<_> = all.files.keys().map(|module| all.uses(module).names).collect();
            all.imports = found.into_iter().flatten().collect();
        }
        all
    }

    /// What a file names.
    fn uses(&self, module: &Module) -> Uses<'_> {
        let names = BTreeMap::from([(module.clone(), BTreeMap::new())]);
        let mut found = Uses { module: module.clone(), of: self, paths: Vec::new(), names };
        found.visit_file(&self.files[module]);
        found
    }

    /// The absolute path of one that is written in `module`; nothing where it leads out of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        let mut rest = path;
        let mut at = match path.first()?.as_str() {
            "crate" => {
                rest = &rest[1..];
                Vec::new()
            }
            "self" => {
                rest = &rest[1..];
                module.to_vec()
            }
            "super" => module.to_vec(),
            first => {
                let mut child = module.to_vec();
                child.push(first.to_owned());
                if self.files.contains_key(&child) {
                    module.to_vec()
                } else {
                    rest = &rest[1..];
                    self.imports.get(module)?.get(first)?.clone()
                }
            }
        };
        while rest.first().is_some_and(|word| word == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The files that an absolute path written in `from` leads to: the one that defines what it names, and on the way to it those of
    /// other folders that hand it on. Within a folder its own file is no more than a sign.
    fn leads_to(&self, from: &Module, path: &[String]) -> Vec<Module> {
        let mut path = path.to_vec();
        let mut through = Vec::new();
        for _ in 0..16 {
            let mut file = path.len();
            while !self.files.contains_key(&path[..file]) {
                file -= 1;
            }
            let (module, rest) = path.split_at(file);
            let known = rest.first().and_then(|name| self.imports.get(module)?.get(name));
            if known.is_none() || !from.starts_with(module) {
                through.push(module.to_vec());
            }
            match known {
                Some(elsewhere) => path = [elsewhere, &rest[1..]].concat(),
                None => return through,
            }
        }
        panic!("re-exports of {path:?} lead in a ring");
    }

    /// Which file needs which.
    fn needs(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let needed = |module: &Module| {
            let found = self.uses(module);
            found
                .paths
                .iter()
                .flat_map(|path| self.leads_to(module, path))
                .filter(|other| other != module)
                .collect()
        };
        self.files.keys().map(|module| (module.clone(), needed(module))).collect()
    }
}

fn read_module(path: &Path, folder: &Path, module: Module, files: &mut BTreeMap<Module, File>) {
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    for item in &file.items {
        if let Item::Mod(child @ ItemMod { content: None, .. }) = item
            && !is_test(&child.attrs)
        {
            let name = child.ident.to_string();
            let flat = folder.join(format!("{name}.rs"));
            let nested = folder.join(&name).join("mod.rs");
            let named = child.attrs.iter().find_map(path_of).map(|name| path.parent().unwrap().join(name));
            let path = named.unwrap_or(if flat.exists() { flat } else { nested });
            let mut at = module.clone();
            at.push(name.clone());
            // What another build has in its place is a file of its own.
            if files.contains_key(&at) {
                at.pop();
                at.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
            read_module(&path, &folder.join(name), at, files);
        }
    }
    files.insert(module, file);
}

/// The value of a `path` attribute.
fn path_of(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let condition = list.tokens.to_string();
            list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test ,"))
        }
        _ => false,
    })
}

/// What a file names of its crate.
struct Uses<'a> {
    /// Where it is looked at: the file, or a module that is written out in it.
    module: Module,
    of: &'a Crate,
    paths: Vec<Module>,
    /// What each module of the file, written out or the file itself, imports.
    names: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Uses<'_> {
    /// Takes a `use`; one that only hands names on is no need of the file itself.
    fn take(&mut self, tree: &UseTree, before: &[String], hands_on: bool) {
        let join = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.take(&path.tree, &join(&path.ident), hands_on),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take(tree, before, hands_on);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                let known = before.last().cloned();
                self.note(before, known, hands_on);
            }
            UseTree::Name(name) => self.note(&join(&name.ident), Some(name.ident.to_string()), hands_on),
            UseTree::Rename(name) => self.note(&join(&name.ident), Some(name.rename.to_string()), hands_on),
            UseTree::Glob(_) => self.note(before, None, hands_on),
        }
    }

    /// Takes a path outside of imports. A single word is one only where it was imported: a file that hands a name on and uses
    /// it needs it.
    fn name(&mut self, words: &[String]) {
        let is_imported =
            |name: &str| self.of.imports.get(&self.module).is_some_and(|names| names.contains_key(name));
        if words.len() == 1 && !is_imported(&words[0]) {
            return;
        }
        if let Some(absolute) = self.of.absolute(&self.module, words) {
            self.paths.push(absolute);
        }
    }

    fn note(&mut self, path: &[String], name: Option<String>, hands_on: bool) {
        let Some(absolute) = self.of.absolute(&self.module, path) else { return };
        if let Some(name) = name {
            self.names.entry(self.module.clone()).or_default().insert(name, absolute.clone());
        }
        if !hands_on {
            self.paths.push(absolute);
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.take(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(&words);
        visit::visit_path(self, path);
    }

    /// A macro may have a grammar of its own: every path in it counts.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        for words in paths_in(&call.tokens.to_string()) {
            self.name(&words);
        }
    }

    /// An attribute is no item of the crate; what stands in it may be.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        for words in paths_in(&list.tokens.to_string()).iter().filter(|words| words.len() > 1) {
            self.name(words);
        }
    }
}

/// The paths in the text of tokens, outside of its strings. Of single words, which are variables for the most part, those that are
/// called or begin as types do.
fn paths_in(tokens: &str) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found: Vec<Vec<String>> = Vec::new();
    let (mut is_string, mut is_path, mut last) = (false, false, ' ');
    let mut rest = tokens;
    while let Some(first) = rest.chars().next() {
        let mut taken = first.len_utf8();
        if is_string {
            taken += if first == '\\' { rest[1..].chars().next().map_or(0, char::len_utf8) } else { 0 };
            is_string = first != '"';
        } else if is_word(first) {
            taken = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
            let after = rest[taken..].trim_start();
            let is_named = after.starts_with('(') || after.starts_with("::") || first.is_uppercase();
            match found.last_mut().filter(|_| is_path) {
                Some(path) => path.push(rest[..taken].to_owned()),
                None if is_named && last != '.' => found.push(vec![rest[..taken].to_owned()]),
                None => {}
            }
            is_path = after.starts_with("::") && last != '.';
        } else {
            is_string = first == '"';
            is_path &= first == ':' || first.is_whitespace();
        }
        last = if first.is_whitespace() { last } else { first };
        rest = &rest[taken..];
    }
    found
}

/// The files that can be reached from one and lead back to it.
fn circle(of: &Module, needs: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let reach = |from: &Module| {
        let mut found = BTreeSet::new();
        let mut next: Vec<&Module> = needs[from].iter().collect();
        while let Some(module) = next.pop() {
            if found.insert(module.clone()) {
                next.extend(&needs[module]);
            }
        }
        found
    };
    reach(of).into_iter().filter(|other| reach(other).contains(of)).collect()
}

/// The circles of a target: the files of each, and a line for each of them that says whom it needs.
fn circles(target: &Crate) -> Vec<(String, String)> {
    let needs = target.needs();
    let all: BTreeSet<BTreeSet<Module>> =
        needs.keys().map(|module| circle(module, &needs)).filter(|found| !found.is_empty()).collect();
    let words = |module: &Module| if module.is_empty() { "root".to_owned() } else { module.join("::") };
    let both = |found: &BTreeSet<Module>| {
        let ties = found.iter().map(|module| {
            let others = needs[module].iter().filter(|other| found.contains(*other)).map(words);
            format!("\n  {} needs {}", words(module), others.collect::<Vec<_>>().join(", "))
        });
        (found.iter().map(words).collect::<Vec<_>>().join(", "), ties.collect())
    };
    all.iter().map(both).collect()
}

fn roots() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folders = ["pure", "edge"].into_iter().flat_map(|part| fs::read_dir(crates.join(part)).unwrap());
    let mut roots: Vec<PathBuf> = folders
        .flatten()
        .flat_map(|folder| ["src/lib.rs", "src/main.rs"].map(|name| folder.path().join(name)))
        .filter(|path| path.exists())
        .collect();
    roots.sort();
    roots
}

#[test]
fn no_file_needs_one_that_needs_it() {
    let roots = roots();
    assert!(roots.len() > 15, "{roots:?}");
    let mut found = String::new();
    for root in roots {
        let name = root.ancestors().nth(2).unwrap().file_name().unwrap().to_string_lossy();
        for (_, ties) in circles(&Crate::read(&root)) {
            found.push_str(&format!("\n{name}:{ties}"));
        }
    }
    assert!(found.is_empty(), "files that need each other: give what they share a file of its own:{found}");
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    write("a.rs", "pub struct A; fn f() { crate::b::g(); }");
    write("b.rs", "use super::A; pub fn g() {} fn h(_: A) {}");
    write("c.rs", "use crate::A; #[cfg(test)] mod tests { use crate::b; }");
    let found = circles(&Crate::read(&folder.path().join("lib.rs")));
    assert_eq!(found, [("a, b".into(), "\n  a needs b\n  b needs a".into())]);
}

#[test]
fn what_a_module_in_a_file_names_is_the_file_s_need() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; pub struct Root;");
    write("a.rs", "pub struct A; mod inner { use super::A; fn f() { crate::b::g(); } }");
    write("b.rs", "pub fn g() {} #[cfg(all(test, unix))] mod tests { use crate::a; }");
    assert_eq!(circles(&Crate::read(&folder.path().join("lib.rs"))), []);
    write("b.rs", "pub fn g() {} mod inner { use super::super::a::A; }");
    let found = circles(&Crate::read(&folder.path().join("lib.rs")));
    assert_eq!(found, [("a, b".into(), "\n  a needs b\n  b needs a".into())]);
}

#[test]
fn a_path_through_an_imported_module_is_followed() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::create_dir(folder.path().join("figures")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod figures; mod page; pub struct Root;");
    write("figures/mod.rs", "pub mod bars;");
    write("figures/bars.rs", "use crate::page::Page; pub fn draw(_: Page) {}");
    let expected =
        [("figures::bars, page".into(), "\n  figures::bars needs page\n  page needs figures::bars".into())];
    for text in [
        "use crate::figures; pub struct Page; fn f() { figures::bars::draw(Page); }",
        "use crate::figures as drawn; pub struct Page; fn f() { drawn::bars::draw(Page); }",
        "use crate::figures; use figures::bars as drawn; pub struct Page; fn f() { drawn::draw(Page); }",
        "use crate::figures; pub struct Page; fn f() { html! { p { (figures::bars::draw(Page)) } } }",
        "pub struct Page; mod inner { use crate::figures; fn f() { figures::bars::draw(super::Page); } }",
    ] {
        write("page.rs", text);
        assert_eq!(circles(&Crate::read(&folder.path().join("lib.rs"))), expected, "{text}");
    }
    write("page.rs", "use crate::figures; pub struct Page; fn f() { html! { p { \"figures::bars\" } } }");
    assert_eq!(circles(&Crate::read(&folder.path().join("lib.rs"))), []);
}

#[test]
fn a_module_that_uses_what_it_hands_on_needs_it() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::create_dir(folder.path().join("cache")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod cache;");
    write("cache/config.rs", "use super::Size; pub struct Config(Size);");
    write("cache/mod.rs", "mod config; pub use config::Config; pub struct Size;");
    assert_eq!(circles(&Crate::read(&folder.path().join("lib.rs"))), [], "it hands it on, and no more");
    write("cache/mod.rs", "mod config; pub use config::Config; pub struct Size; fn f(_: Config) {}");
    let found = circles(&Crate::read(&folder.path().join("lib.rs")));
    let ties = "\n  cache needs cache::config\n  cache::config needs cache";
    assert_eq!(found, [("cache, cache::config".into(), ties.into())]);
}
