//! What every page has in common: the head, the sentences it opens with, sections of figures.

pub(crate) mod native_vs_vm;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use virtbench_chart::KeyEntry;
use virtbench_record::Provenance;

use crate::figures::{Drawing, Figure, Table, Values};
use crate::format::shell_line;
use crate::takeaway::Takeaway;

const STYLE: &str = include_str!("../assets/report.css");

const SCRIPT: &str = include_str!("../assets/page.js");

/// SHA-256 of [`SCRIPT`], by which a browser knows it.
const SCRIPT_SHA256: &str = "ce0hWG2gblaNEzvUhRM/lEiIiFAWM8Z915Zj6bxNk+Y=";

/// Nothing but what the page itself carries: no network, and no script but its own, whatever its data holds.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{SCRIPT_SHA256}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

/// A whole page. `content` is what stands between its head and its foot.
pub(crate) fn document(title: &str, version: &str, content: &Markup) -> String {
    noted("1 MB = 1,000,000 bytes, 1 KB = 1,000 bytes, 1 KiB = 1,024 bytes.", title, version, content)
}

/// The same with a note of its own at the foot.
pub(crate) fn noted(note: &str, title: &str, version: &str, content: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="virtbench";
                title { (title) }
                style { (PreEscaped(virtbench_chart::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
                footer { p { (note) " Written by virtbench " (version) "." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

/// What a reader takes away, under the title and where it was measured.
pub(crate) fn opening(title: &str, place: &str, takeaway: &Takeaway, key_figures: &Markup) -> Markup {
    html! {
        header {
            h1 { (title) }
            p.where { (place) }
            p.headline { (unbroken(&takeaway.headline)) }
            (key_figures)
            @for detail in &takeaway.details { p.detail { (unbroken(detail)) } }
            @if !takeaway.cautions.is_empty() {
                aside.cautions aria-label="Before you use these figures" {
                    h2 { "Before you use these figures" }
                    ul { @for caution in &takeaway.cautions { li { (unbroken(caution)) } } }
                }
            }
        }
    }
}

/// A number and its percent sign stay on one line.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

pub(crate) fn section(id: &str, title: &str, nothing: &str, figures: &[Figure]) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            @if figures.is_empty() { p { (nothing) } }
            @for item in figures { (figure(item, figures.len() > 1)) }
        }
    }
}

/// `named` where a title must tell it from its neighbours.
pub(crate) fn figure(figure: &Figure, named: bool) -> Markup {
    let shared = figure.shared_key();
    let columns = match figure.drawings.len() {
        0 | 1 => "plots",
        count if count % 3 == 0 => "plots three",
        _ => "plots two",
    };
    html! {
        figure {
            @if named { h3 { (figure.title) } }
            @if let Some(key) = &shared { (names(key)) }
            div class=(columns) {
                @for one in &figure.drawings {
                    div.drawing id=(one.id) data-choice=[(one.variants.len() > 1).then_some(one.choice)] {
                        @if shared.is_none() { (names(&one.key())) }
                        (drawing(one, &figure.title, figure.drawings.len() > 1))
                    }
                }
            }
            figcaption {
                (unbroken(&figure.caption))
                @if let Values::Under(title) = figure.values { " Values: the table under " (title) "." }
            }
            @if let Some(table) = figure.table() { (values(&figure.title, &table)) }
        }
    }
}

/// A key, which a single series does not need.
fn names(key: &[KeyEntry]) -> Markup {
    html! {
        @if key.len() > 1 {
            ul.names { @for entry in key { li { (PreEscaped(entry.sample())) (entry.name) } } }
        }
    }
}

/// The variant that is shown large, and the others folded away.
fn drawing(drawing: &Drawing, title: &str, named: bool) -> Markup {
    let others = drawing.variants.len() - 1;
    let variant = |index: usize| {
        let heading = drawing.heading(index);
        html! {
            div.variant data-at=(index) {
                @if (named || others > 0) && !heading.is_empty() { h4 { (heading) } }
                (PreEscaped(drawing.svg(index, title)))
            }
        }
    };
    html! {
        div.shown { (variant(drawing.first)) }
        @if others > 0 {
            details.others {
                summary { @if others == 1 { "The other " (drawing.choice) } @else { "The other " (others) ", by " (drawing.choice) } }
                div.multiples {
                    @for index in (0..drawing.variants.len()).filter(|index| *index != drawing.first) { (variant(index)) }
                }
            }
        }
    }
}

fn values(title: &str, table: &Table) -> Markup {
    let class = |column: usize| (column >= table.names).then_some("number");
    let rows = html! {
        table {
            thead { tr {
                @for (column, text) in table.header.iter().enumerate() { th scope="col" class=[class(column)] { (text) } }
            } }
            tbody {
                @for row in &table.rows {
                    tr { @for (column, text) in row.iter().enumerate() {
                        @if column < table.names { th scope="row" { (text) } } @else { td.number { (text) } }
                    } }
                }
            }
        }
    };
    html! {
        details.values {
            summary { "Values" }
            @if !table.note.is_empty() { p.hint { (table.note) } }
            (scroll(&format!("Values of {title}"), &rows))
        }
    }
}

/// A table that scrolls by itself where the window is too narrow for it.
pub(crate) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A title with its figures.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Unique in the page.
    id: &'static str,
    title: &'static str,
    /// Said where there is no figure.
    nothing: &'static str,
    figures: Vec<Figure>,
    /// Whether the verdict is read from it.
    leads: bool,
}

impl Section {
    pub(crate) fn new(
        id: &'static str,
        title: &'static str,
        nothing: &'static str,
        figures: impl IntoIterator<Item = Figure>,
    ) -> Self {
        Self { id, title, nothing, figures: figures.into_iter().collect(), leads: false }
    }

    /// The same as that from which the verdict is read; where no section is, the first one is.
    pub(crate) fn leading(self) -> Self {
        Self { leads: true, ..self }
    }

    pub(crate) fn markup(&self) -> Markup {
        self::section(self.id, self.title, self.nothing, &self.figures)
    }
}

/// What a page says first, and the sections in which it draws, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Head<const N: usize> {
    pub(crate) title: String,
    /// Where and when it was measured.
    pub(crate) place: String,
    pub(crate) takeaway: Takeaway,
    pub(crate) sections: [Section; N],
}

impl<const N: usize> Head<N> {
    /// The beginning of the page, with the numbers to remember.
    pub(crate) fn opening(&self, key_figures: &Markup) -> Markup {
        opening(&self.title, &self.place, &self.takeaway, key_figures)
    }

    /// The beginning of a page without such numbers.
    pub(crate) fn plain_opening(&self) -> Markup {
        self.opening(&html! {})
    }

    /// The same without the page.
    pub(crate) fn outline(self, provenance: &Provenance) -> Outline {
        let before =
            self.sections.iter().take_while(|section| !section.leads).map(|section| section.figures.len());
        let lead = if self.sections.iter().any(|section| section.leads) { before.sum() } else { 0 };
        let quoted = |word: &String| shell_line(std::slice::from_ref(word));
        Outline {
            line: self.takeaway.headline.clone(),
            title: self.title,
            place: self.place,
            takeaway: self.takeaway,
            figures: self.sections.into_iter().flat_map(|section| section.figures).collect(),
            lead,
            command: provenance.command.iter().map(quoted).collect(),
            version: provenance.version.clone(),
        }
    }
}

/// A run as its page tells it: what summaries in other forms are written from.
#[derive(Debug, Clone)]
pub struct Outline {
    /// What the run is about.
    pub title: String,
    /// Where and when it was measured.
    pub place: String,
    /// The verdict, how sure it is, and what a careful reader must know.
    pub takeaway: Takeaway,
    /// Those of the page, in its order.
    pub(crate) figures: Vec<Figure>,
    /// Which of them the verdict is read from.
    lead: usize,
    /// The command line that measures it again, each word as a shell reads it.
    pub command: Vec<String>,
    /// The version of virtbench that measured.
    pub version: String,
    /// All of it in one line.
    line: String,
}

impl Outline {
    /// The same with another line for all of it.
    pub(crate) fn in_line(self, line: String) -> Self {
        Self { line, ..self }
    }

    /// All of it in one line of text.
    #[must_use]
    pub fn line(&self) -> String {
        let line = self.line.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        format!("{}\n", line.collect::<String>())
    }

    /// The figure that the verdict is read from; none where nothing was measured.
    pub(crate) fn lead(&self) -> Option<&Figure> {
        self.figures.get(self.lead).or_else(|| self.figures.first())
    }
}
