//! Presses lines: every field in its place, and what many have in common only once.

use lz4_flex::block::{compress_into_with_dict, decompress_with_dict, get_maximum_output_size};

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
    /// Room to work in.
    plain: Vec<u8>,
    buffer: Vec<u8>,
}

/// What stands before a line that was pressed: the dictionary, counted from one, and how long it was.
type Head = (u8, u32);

impl Press {
    pub(super) fn press(&mut self, entry: &Entry) -> Box<[u8]> {
        let empty = |room: &mut Vec<u8>| {
            room.clear();
            std::mem::take(room)
        };
        let plain =
            postcard::to_extend(entry, empty(&mut self.plain)).expect("a line can be written to memory");
        self.learn(&plain);
        let dictionary = self.dictionaries.last().map_or(&[][..], Vec::as_slice);
        let which = u8::try_from(self.dictionaries.len()).expect("no more than a number has bits");
        let head: Head = (which, u32::try_from(plain.len()).expect("a few records at most"));
        let mut buffer =
            postcard::to_extend(&head, empty(&mut self.buffer)).expect("two numbers can be, too");
        let begin = buffer.len();
        buffer.resize(begin + get_maximum_output_size(plain.len()), 0);
        let end =
            compress_into_with_dict(&plain, &mut buffer[begin..], dictionary).expect("there is room for it");
        let pressed = buffer[..begin + end].into();
        (self.plain, self.buffer) = (plain, buffer);
        pressed
    }

    pub(super) fn open(&self, pressed: &[u8]) -> Box<Entry> {
        let opened = || {
            let ((which, length), pressed) = postcard::take_from_bytes::<Head>(pressed).ok()?;
            let dictionary: &[u8] = match usize::from(which).checked_sub(1) {
                Some(which) => self.dictionaries.get(which)?,
                None => &[],
            };
            let plain = decompress_with_dict(pressed, length as usize, dictionary).ok()?;
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
