//! Rules of the repository: what the code and the documents must keep to.

mod circles;
mod decisions;
mod documents;
mod drawing;
mod fence_keys;
mod options;
mod tidy;
mod tidy_code;
mod tidy_words;
