//! Anything at all for the slices of a Service: in whatever order they come, they make the same list.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::lister::{Select, Slice, merge};

fuzz_target!(|text: &str| {
    let Ok(slices) = serde_json::from_str::<Vec<Slice>>(text) else { return };
    let all = merge(&slices, Select::All);
    assert!(all.windows(2).all(|two| (&two[0].address, &two[0].uid) < (&two[1].address, &two[1].uid)));
    assert_eq!(merge(slices.iter().rev(), Select::All), all);
    let ready = merge(&slices, Select::Ready);
    assert!(ready.iter().all(|endpoint| all.contains(endpoint)));
});
