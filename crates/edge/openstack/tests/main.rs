//! The client, on a small cloud that is a fake.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod operations;
