//! Anything at all in place of an admission review: it is refused, or answered with what the API server can apply.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::admission::{Answer, Asked, Comer};
use perennial_core::keeper::born::{Birth, is_gated, stamped};
use perennial_core::kept::Pairs;

fuzz_target!(|body: &[u8]| {
    if let Ok(asked) = Asked::to_delete(body) {
        assert_eq!(Answer::Yes.to(&asked.uid)["response"]["uid"], asked.uid.as_str());
    }
    let Ok(Asked { node: Some(comer), .. }) = Asked::<Comer>::to_create(body) else { return };
    // Given what it brings, and something else: all of it is in the stamp.
    let labels = Pairs::from([("example.com/rack~7".to_owned(), "7".to_owned())]);
    let Answer::With(patch) = Answer::born(&comer, &Birth { labels: labels.clone(), owed: true }, "x") else {
        panic!("it was given something")
    };
    let set = patch.iter().find_map(|one| {
        let value = &one["value"];
        value["born.perennial.dev/x"].as_str().or(value.as_str().filter(|text| text.ends_with("gated")))
    });
    let annotations = Pairs::from([("born.perennial.dev/x".to_owned(), set.expect("a stamp").to_owned())]);
    assert!(is_gated(&annotations, "x"));
    assert_eq!(stamped(&labels, &annotations, "x"), labels);
});
