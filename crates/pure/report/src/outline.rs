//! What a page says and draws, whatever it is written as.

use maud::{Markup, html};
use virtbench_record::Provenance;

use crate::figures::Figure;
use crate::format::shell_line;
use crate::page;
use crate::takeaway::Takeaway;

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
        page::section(self.id, self.title, self.nothing, &self.figures)
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
        page::opening(&self.title, &self.place, &self.takeaway, key_figures)
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
