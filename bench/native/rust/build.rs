//! Links the static libmillrace, which `zig build lib` puts into `zig-out/lib`.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let library = format!("{root}/../../../zig-out/lib");
    println!("cargo:rustc-link-search=native={library}");
    println!("cargo:rustc-link-lib=static=millrace");
    println!("cargo:rerun-if-changed={library}/libmillrace.a");
}
