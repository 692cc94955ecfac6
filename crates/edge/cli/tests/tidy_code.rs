//! Rules for code that neither the compiler nor clippy checks: short functions, comments that say something, no dead files,
//! no options of the command line in pure crates.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, ExprLit, Field, ImplItemFn, Item, ItemFn, ItemMod, Lit, Macro, Meta};
use syn::{TraitItemFn, Variant, Visibility};

/// Lines of a body at most.
const MOST_LINES: usize = 70;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// All sources of the workspace with their paths in it.
fn all_sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    found.into_iter().map(named).collect()
}

/// Bodies of functions that are too long.
#[derive(Default)]
struct Long(Vec<String>);

impl Long {
    fn look(&mut self, name: &syn::Ident, body: &Block) {
        let braces = body.brace_token.span;
        let lines = braces.close().start().line - braces.open().start().line;
        // The line of the opening brace is the signature's.
        if lines > MOST_LINES + 1 {
            self.0.push(format!("{name}, line {}, has {} lines", name.span().start().line, lines - 1));
        }
    }
}

impl<'ast> Visit<'ast> for Long {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.look(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.look(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        item.default.iter().for_each(|body| self.look(&item.sig.ident, body));
        visit::visit_trait_item_fn(self, item);
    }
}

fn long_functions(text: &str) -> Vec<String> {
    let mut long = Long::default();
    long.visit_file(&syn::parse_file(text).unwrap());
    long.0
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let all = all_sources();
    assert!(all.len() > 500, "the sources are not found");
    let long = all.iter().flat_map(|(path, text)| {
        long_functions(text).into_iter().map(move |function| format!("{path}: {function}"))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "split these, {MOST_LINES} lines at most:\n{}", long.join("\n"));
}

#[test]
fn a_function_of_71_lines_is_found() {
    let body = |lines| format!("impl X {{\n    fn f() {{\n{}    }}\n}}", "        x();\n".repeat(lines));
    assert!(long_functions(&body(70)).is_empty());
    assert_eq!(long_functions(&body(71)), ["f, line 2, has 71 lines"]);
}

/// Words that name nothing.
const EMPTY: [&str; 22] = [
    "which", "what", "why", "where", "who", "whom", "when", "how", "of", "one", "given", "so", "it",
    "itself", "the", "a", "an", "its", "their", "that", "this", "whose",
];

/// The words of a comment of one line, in small letters.
fn comment(attributes: &[Attribute]) -> Vec<String> {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let [line] = lines.as_slice() else { return Vec::new() };
    let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Comments that name nothing, or on what nobody else sees repeat its name.
struct Labels {
    found: Vec<String>,
    /// Whether the item around is public, so that its parts must have comments.
    public: bool,
}

impl Labels {
    fn look(&mut self, attributes: &[Attribute], name: Option<&syn::Ident>, must_be_told: bool) {
        let words = comment(attributes);
        if words.is_empty() || words.len() > 2 {
            return;
        }
        let name = name.map(ToString::to_string).unwrap_or_default().to_lowercase();
        let parts: Vec<&str> = name.split('_').collect();
        let empty = |word: &String| EMPTY.contains(&word.as_str());
        let repeats = |word: &String| parts.contains(&word.as_str()) && !must_be_told;
        if words.iter().all(|word| empty(word) || repeats(word)) {
            let line = attributes.first().map_or(0, |attribute| attribute.pound_token.span.start().line);
            self.found.push(format!("line {line}: {:?} of {name}", words.join(" ")));
        }
    }
}

impl<'ast> Visit<'ast> for Labels {
    fn visit_item(&mut self, item: &'ast Item) {
        let (visibility, attributes, name) = match item {
            Item::Struct(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Enum(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
            Item::Const(item) => (&item.vis, &item.attrs, &item.ident),
            _ => return visit::visit_item(self, item),
        };
        let public = matches!(visibility, Visibility::Public(_));
        self.look(attributes, Some(name), public);
        let outside = std::mem::replace(&mut self.public, public);
        visit::visit_item(self, item);
        self.public = outside;
    }

    fn visit_field(&mut self, field: &'ast Field) {
        // Those of a public enum's variants are as public as it.
        let public = matches!(field.vis, Visibility::Public(_))
            || (self.public && matches!(field.vis, Visibility::Inherited));
        let clap = field.attrs.iter().any(|attribute| attribute.path().is_ident("arg"));
        if !clap {
            self.look(&field.attrs, field.ident.as_ref(), public);
        }
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.look(&variant.attrs, Some(&variant.ident), true);
        visit::visit_variant(self, variant);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.look(&item.attrs, Some(&item.sig.ident), matches!(item.vis, Visibility::Public(_)));
        visit::visit_impl_item_fn(self, item);
    }
}

fn labels(text: &str) -> Vec<String> {
    let mut labels = Labels { found: Vec::new(), public: false };
    labels.visit_file(&syn::parse_file(text).unwrap());
    labels.found
}

#[test]
fn no_comment_is_a_mere_label() {
    let found = all_sources();
    let found = found
        .iter()
        .flat_map(|(path, text)| labels(text).into_iter().map(move |label| format!("{path}, {label}")));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "say something or leave it out:\n{}", found.join("\n"));
}

#[test]
fn a_comment_that_names_nothing_or_repeats_a_private_name_is_found() {
    let found = |text: &str| labels(text).len();
    assert_eq!(
        found("pub enum E { /// A.\n Failed { /// Which.\n path: P, /// Of the file.\n size: u64 } }"),
        2
    );
    assert_eq!(found("struct S { /// Its size.\n size: u64, /// Bytes.\n len: u64 }"), 1);
    assert_eq!(found("pub struct S { /// Its size.\n pub size: u64 }"), 0, "the compiler wants one");
}

/// Follows modules from a target's root file.
struct Reached<'a> {
    files: &'a mut BTreeSet<PathBuf>,
    /// The file that is read, and the folder in which its modules lie.
    file: PathBuf,
    folder: PathBuf,
}

/// The file that `#[path]` or `include!` names.
fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

fn reach(file: &Path, is_root: bool, files: &mut BTreeSet<PathBuf>) {
    if !files.insert(file.to_owned()) {
        return;
    }
    let parsed = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let parent = file.parent().unwrap();
    let is_mod = file.file_name().is_some_and(|name| name == "mod.rs");
    let folder = if is_root || is_mod { parent.to_owned() } else { file.with_extension("") };
    Reached { files, file: file.to_owned(), folder }.visit_file(&parsed);
}

impl<'ast> Visit<'ast> for Reached<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() {
            let inner = self.folder.join(&name);
            let outer = std::mem::replace(&mut self.folder, inner);
            visit::visit_item_mod(self, module);
            self.folder = outer;
            return;
        }
        let path = module.attrs.iter().find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => literal(&pair.value),
            _ => None,
        });
        let beside = self.file.parent().unwrap();
        let places = match path {
            Some(path) => vec![beside.join(path)],
            None => vec![self.folder.join(format!("{name}.rs")), self.folder.join(&name).join("mod.rs")],
        };
        for place in places.iter().filter_map(|place| place.canonicalize().ok()) {
            reach(&place, false, self.files);
        }
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        if item.path.is_ident("include")
            && let Some(name) = item.parse_body::<Expr>().ok().as_ref().and_then(literal)
            && let Ok(place) = self.file.parent().unwrap().join(name).canonicalize()
        {
            reach(&place, false, self.files);
        }
    }
}

#[test]
fn every_source_file_is_compiled() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let mut reached = BTreeSet::new();
    for target in metadata.packages.iter().flat_map(|package| &package.targets) {
        reach(target.src_path.as_std_path(), true, &mut reached);
    }
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    let dead: Vec<&PathBuf> = found.iter().filter(|path| !reached.contains(*path)).collect();
    assert!(dead.is_empty(), "no mod, #[path] or target leads to {dead:?}");
    assert!(reached.len() > 500, "the targets are not found");
}

#[test]
fn a_file_without_a_module_is_not_reached() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().canonicalize().unwrap().join(name);
    fs::create_dir(place("a")).unwrap();
    for (name, text) in [
        ("lib.rs", "mod a;\n#[path = \"c_tests.rs\"]\nmod tests;"),
        ("a.rs", "mod b;"),
        ("a/b.rs", ""),
        ("c_tests.rs", ""),
        ("dead.rs", ""),
    ] {
        fs::write(place(name), text).unwrap();
    }
    let mut reached = BTreeSet::new();
    reach(&place("lib.rs"), true, &mut reached);
    let names: Vec<PathBuf> = ["a/b.rs", "a.rs", "c_tests.rs", "lib.rs"].map(place).into();
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), names);
}

/// Options of the command line that a text names: two dashes and letters behind a space, a quote or a bracket.
fn options(text: &str) -> Vec<&str> {
    let begins = text.match_indices("--").filter(|(at, _)| {
        // Variables of style sheets begin likewise.
        let before = text[..*at].chars().next_back().filter(|_| !text[..*at].ends_with("var("));
        before.is_some_and(|letter| letter.is_whitespace() || "\"'`(/".contains(letter))
    });
    let named =
        begins.filter(|(at, _)| text[at + 2..].starts_with(|letter: char| letter.is_ascii_lowercase()));
    named.map(|(at, _)| text[at..].split_whitespace().next().unwrap_or_default()).collect()
}

#[test]
fn pure_crates_name_no_options() {
    let found = all_sources();
    let pure = found.iter().filter(|(path, _)| {
        // Tests beside the code run programs of others.
        path.starts_with("crates/pure/") && path.contains("/src/") && !path.ends_with("_tests.rs")
    });
    let named = pure
        .flat_map(|(path, text)| options(text).into_iter().map(move |option| format!("{path}: {option}")));
    let named: Vec<String> = named.collect();
    assert!(
        named.is_empty(),
        "name the field; crates/edge/cli/src/exit.rs knows its option:\n{}",
        named.join("\n")
    );
}

#[test]
fn an_option_in_a_message_or_a_comment_is_found() {
    assert_eq!(
        options("/// As `--slo` has it.\nformat!(\"--rate {x}\") (--model)"),
        ["--slo`", "--rate", "--model)"]
    );
    assert!(options("var(--ink) x--y 1 -- 2 a --> b :root{--native:red} ---").is_empty());
}

/// Drivers of users keep response times in `Responses` alone, which cannot leave out what a server did not answer. A driver whose
/// operations are timed from outside joins the list when it takes the type over.
#[test]
fn drivers_cannot_forget_what_was_due() {
    const DRIVERS: [&str; 2] = ["crates/edge/oltp/src/", "crates/edge/users/src/"];
    let sources = all_sources();
    for driver in DRIVERS {
        let of_driver: Vec<_> = sources.iter().filter(|(name, _)| name.starts_with(driver)).collect();
        assert!(
            of_driver.iter().any(|(_, text)| text.contains("Responses")),
            "{driver} counts without Responses"
        );
        let past: Vec<&str> = of_driver
            .iter()
            .filter(|(_, text)| text.contains("LatencyRecorder"))
            .map(|(name, _)| name.as_str())
            .collect();
        assert!(past.is_empty(), "response times are kept by Responses: {past:?}");
    }
}
