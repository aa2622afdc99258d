//! Presses lines: every field in its place, and what many have in common only once.

use super::entry::Entry;

/// So many lines make a dictionary.
const SAMPLES: u64 = 8;
/// Longer ones are no samples: a dictionary is read with every line that is pressed.
const LONGEST: usize = 1 << 10;

/// Presses lines against samples of others. Each time that twice as many were pressed there are new samples, from all over
/// the fleet: what lines are while they are listed is not what they are when they rest.
#[derive(Debug, Default)]
pub(super) struct Press {
    /// What lines were pressed against; what is pressed says which.
    dictionaries: Vec<Vec<u8>>,
    /// The dictionary to come.
    samples: Vec<u8>,
    /// How many were pressed.
    pressed: u64,
    buffer: Vec<u8>,
}

impl Press {
    pub(super) fn press(&mut self, entry: &Entry) -> Box<[u8]> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let plain = postcard::to_extend(entry, buffer).expect("a line can be written to memory");
        self.learn(&plain);
        let dictionary = self.dictionaries.last().map_or(&[][..], Vec::as_slice);
        let mut pressed = lz4_flex::block::compress_prepend_size_with_dict(&plain, dictionary);
        // There are no more than a number has bits.
        pressed.push(u8::try_from(self.dictionaries.len()).unwrap_or(u8::MAX));
        self.buffer = plain;
        pressed.into_boxed_slice()
    }

    pub(super) fn open(&self, pressed: &[u8]) -> Box<Entry> {
        let opened = || {
            let (which, pressed) = pressed.split_last()?;
            let dictionary: &[u8] = match which.checked_sub(1) {
                Some(which) => self.dictionaries.get(usize::from(which))?,
                None => &[],
            };
            let plain = lz4_flex::block::decompress_size_prepended_with_dict(pressed, dictionary).ok()?;
            postcard::from_bytes(&plain).ok()
        };
        Box::new(opened().expect("what was pressed here can be opened here"))
    }

    fn learn(&mut self, plain: &[u8]) {
        self.pressed += 1;
        let twice = 1 << self.pressed.ilog2();
        if self.pressed == twice {
            self.dictionaries.push(std::mem::take(&mut self.samples));
        }
        if (self.pressed - twice).is_multiple_of((twice / SAMPLES).max(1)) && plain.len() <= LONGEST {
            self.samples.extend_from_slice(plain);
        }
    }
}
