//! Anything at all in a record's ConfigMap: it is refused, or it is a record that is written back as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::kept::Pairs;
use perennial_core::record::{Record, Summary};

fuzz_target!(|text: &str| {
    if let Ok(record) = Record::parse("worker-1", Some(text)) {
        let again = Record::parse("worker-1", Some(&record.to_json()));
        assert_eq!(again.as_ref().ok(), Some(&record), "{again:?}");
        assert_eq!(Summary::from_annotations(&record.annotations()), Some(record.summary()));
    }
    // The same in place of the summary that its annotations carry.
    let annotations = Pairs::from([("perennial.dev/summary".to_owned(), text.to_owned())]);
    let uid = Summary::uid_hint(&annotations);
    if let Some(summary) = Summary::from_annotations(&annotations) {
        assert_eq!(Some(summary.uid), uid);
    }
});
