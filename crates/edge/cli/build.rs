//! How the command is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Sixty thousand addresses are set at the start: this table of them takes a twentieth of the room. glibc reads it from 2.36 on.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
