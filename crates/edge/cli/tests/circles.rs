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
    /// Which names a module has from elsewhere, as absolute paths.
    imports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        read_module(root, root.parent().unwrap(), Vec::new(), &mut files);
        let mut all = Self { files, imports: BTreeMap::new() };
        let modules: Vec<Module> = all.files.keys().cloned().collect();
        for module in modules {
            let mut found = Uses {
                module: module.clone(),
                depth: 0,
                of: &all,
                paths: Vec::new(),
                names: BTreeMap::new(),
            };
            found.visit_file(&all.files[&module]);
            let names = found.names;
            all.imports.insert(module, names);
        }
        all
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
                if !self.files.contains_key(&child) {
                    return None;
                }
                module.to_vec()
            }
        };
        while rest.first().is_some_and(|word| word == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The file in which what an absolute path names is defined.
    fn defines(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        for _ in 0..16 {
            let mut file = path.len();
            while !self.files.contains_key(&path[..file]) {
                file -= 1;
            }
            let (module, rest) = path.split_at(file);
            let Some(name) = rest.first() else { return module.to_vec() };
            match self.imports.get(module).and_then(|names| names.get(name)) {
                Some(from) => path = [from, &rest[1..]].concat(),
                None => return module.to_vec(),
            }
        }
        panic!("re-exports of {path:?} lead in a ring");
    }

    /// Which file needs which.
    fn needs(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let needed = |module: &Module| {
            let mut found = Uses {
                module: module.clone(),
                depth: 0,
                of: self,
                paths: Vec::new(),
                names: BTreeMap::new(),
            };
            found.visit_file(&self.files[module]);
            found.paths.iter().map(|path| self.defines(path)).filter(|other| other != module).collect()
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
    /// How many modules that are written out lie around it.
    depth: usize,
    of: &'a Crate,
    paths: Vec<Module>,
    names: BTreeMap<String, Module>,
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

    fn note(&mut self, path: &[String], name: Option<String>, hands_on: bool) {
        let Some(absolute) = self.of.absolute(&self.module, path) else { return };
        if let Some(name) = name.filter(|_| self.depth == 0) {
            self.names.insert(name, absolute.clone());
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
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
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
        if words.len() > 1
            && let Some(absolute) = self.of.absolute(&self.module, &words)
        {
            self.paths.push(absolute);
        }
        visit::visit_path(self, path);
    }
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
