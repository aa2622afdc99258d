use std::path::Path;

use kube::CustomResourceExt as _;

use super::Listing;

/// The custom resource's definition as YAML, below a line that says where it comes from.
fn definition() -> String {
    let yaml = serde_saphyr::to_string(&Listing::crd()).unwrap();
    format!(
        "# Made from crates/perennial/src/lister/listing.rs: UPDATE_DOCS=1 cargo test -p perennial --lib crd\n{yaml}"
    )
}

#[test]
fn the_crd_is_the_one_that_is_shipped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["deploy/crds", "charts/perennial/files"] {
        let path = root.join(folder).join("listings.perennial.dev.yaml");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, definition()).unwrap();
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(shipped, definition(), "{folder}: run UPDATE_DOCS=1 cargo test -p perennial --lib crd");
    }
}
