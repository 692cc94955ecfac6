//! Rules of the repository: what the code and the documents must keep to.

mod circles;
mod documents;
mod tidy;
mod tidy_code;
