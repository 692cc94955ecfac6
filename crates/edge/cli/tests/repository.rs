//! Rules of the repository: what the code and the documents must keep to.

mod circles;
mod decisions;
mod documents;
mod drawing;
mod options;
mod tidy;
mod tidy_code;
mod tidy_words;
