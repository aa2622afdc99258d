//! What the values of a template weigh, and how much of it there may be.
//!
//! The weight of a value is about the bytes it takes when it is written out: a list that holds another twice weighs
//! it twice, though it takes no memory. So no small value can stand for a huge one. Weight is never given back: what
//! was made in all bounds both memory and time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{DynObject, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// The deepest value: each level is a call when it is written, compared or dropped.
const MAX_DEPTH: usize = 16;

/// What any value takes, and what is written around it.
const EACH: u64 = 24;

/// What a template may still spend.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    left: Arc<AtomicU64>,
    /// What to say when there is nothing left.
    spent: &'static str,
}

/// What a text weighs.
#[derive(Clone, Copy)]
enum Text {
    /// As it is.
    Plain,
    /// As it may be when it is escaped.
    Escaped,
}

impl Budget {
    /// So much for the values that a template makes.
    pub(super) fn of_values(weight: u64) -> Self {
        let spent = "the texts and lists it makes are too large for the number of endpoints";
        Self { left: Arc::new(AtomicU64::new(weight)), spent }
    }

    /// So much for what it writes.
    pub(super) fn of_output(weight: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(weight)), spent: "it writes too much" }
    }

    /// Spends some.
    pub(super) fn spend(&self, weight: u64) -> Result<(), Error> {
        let spend = |left: u64| left.checked_sub(weight);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::OutOfFuel, self.spent)),
        }
    }

    /// Spends the weight of a value. It stops where the budget ends, however large the value is.
    pub(super) fn weigh(&self, value: &Value) -> Result<(), Error> {
        self.weigh_at(value, Text::Plain, 0)
    }

    /// Spends the weight of a value that is written out, and so may be escaped.
    pub(super) fn weigh_written(&self, value: &Value) -> Result<(), Error> {
        self.weigh_at(value, if value.is_safe() { Text::Plain } else { Text::Escaped }, 0)
    }

    fn weigh_at(&self, value: &Value, as_text: Text, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::OutOfFuel, "a value is nested too deep"));
        }
        if let Some(text) = value.as_str() {
            let escapes = match as_text {
                Text::Plain => 0,
                Text::Escaped => escapes(text),
            };
            return self.spend(EACH + text.len() as u64 + escapes);
        }
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                self.spend(EACH)?;
                value.try_iter()?.try_for_each(|item| self.weigh_at(&item, as_text, depth + 1))
            }
            ValueKind::Map => {
                self.spend(EACH)?;
                let pairs = value.as_object().and_then(DynObject::try_iter_pairs);
                pairs.into_iter().flatten().try_for_each(|(key, value)| {
                    self.weigh_at(&key, as_text, depth + 1)?;
                    self.weigh_at(&value, as_text, depth + 1)
                })
            }
            ValueKind::Bytes => self.spend(EACH + value.as_bytes().map_or(0, |bytes| bytes.len() as u64)),
            // Large ones are written with hundreds of digits.
            ValueKind::Number if !value.is_integer() => self.spend(15 * EACH),
            _ => self.spend(EACH),
        }
    }

    /// Spends what a text takes when it is taken apart, letter by letter.
    pub(super) fn weigh_letters(&self, value: &Value) -> Result<(), Error> {
        let bytes = value.as_str().map_or(0, |text| text.len() as u64);
        self.spend(bytes.saturating_mul(2 * EACH))
    }

    /// Weighs a value that was just made. What is made anew at each look becomes a list: looks at looks at looks
    /// would be calls in calls in calls.
    pub(super) fn settle(&self, value: Value) -> Result<Value, Error> {
        self.weigh(&value)?;
        if value.kind() == ValueKind::Iterable {
            return Ok(value.try_iter()?.collect());
        }
        Ok(value)
    }
}

/// What a text grows by when it is escaped, at most: `"` becomes `&quot;`.
fn escapes(text: &str) -> u64 {
    let grows = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'&' | b'\'' | b'/' | b'<' | b'>' | b'\\');
    5 * text.bytes().filter(grows).count() as u64
}
