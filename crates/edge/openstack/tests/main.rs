//! The client, on a small cloud.
