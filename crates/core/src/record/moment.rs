//! Times as numbers, for what only this process reads again.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    time.as_nanosecond().serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    Timestamp::from_nanosecond(i128::deserialize(from)?).map_err(D::Error::custom)
}

pub(crate) mod optional {
    use super::{Deserializer, Serializer, Timestamp};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Serialize as _};

    #[expect(clippy::ref_option, reason = "serde passes every field by reference")]
    pub(crate) fn serialize<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        time.map(Timestamp::as_nanosecond).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let time = Option::<i128>::deserialize(from)?;
        time.map(Timestamp::from_nanosecond).transpose().map_err(D::Error::custom)
    }
}
