//! One SVG file for each drawing, for slides and papers.

use virtbench_chart::Name;

use crate::figures::{Drawing, Figure, Picture};
use crate::outline::Outline;

/// Of a file's name what says which variant it is gets no more letters.
const SLUG: usize = 40;

/// A drawing as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgFile {
    /// Its name: letters, digits and dashes, unique in its run.
    pub name: String,
    /// The document.
    pub text: String,
}

impl Outline {
    /// Every drawing of the page, with all its variants.
    #[must_use]
    pub fn svgs(&self) -> Vec<SvgFile> {
        let drawings =
            self.figures.iter().flat_map(|figure| figure.drawings.iter().map(move |one| (figure, one)));
        drawings
            .flat_map(|(figure, drawing)| {
                (0..drawing.variants.len()).map(move |index| file(figure, drawing, index))
            })
            .collect()
    }
}

fn file(figure: &Figure, drawing: &Drawing, index: usize) -> SvgFile {
    let variant = &drawing.variants[index];
    let stem = match drawing.variants.len() {
        1 => drawing.id.clone(),
        _ => format!("{}-{:02}{}", drawing.id, index + 1, slug(&variant.name)),
    };
    let title = match variant.name.as_str() {
        "" => figure.title.clone(),
        name => format!("{}: {name}", figure.title),
    };
    let id = format!("{}-{index}", drawing.id);
    let name = Name { id: &id, title: &title, description: &drawing.label };
    let text = match &variant.picture {
        Picture::Chart(chart) => chart.svg_file(&name),
        Picture::Heat(map) => map.svg_file(&name),
    };
    SvgFile { name: format!("{stem}.svg"), text }
}

/// A dash, then the letters and digits of a name with dashes between its words; nothing of a name without any.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() { String::new() } else { format!("-{slug}") }
}
