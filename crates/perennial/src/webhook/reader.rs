//! Reads questions, so that nobody has to wait until somebody else's has come.
//!
//! | a question | what it takes |
//! | --- | --- |
//! | an ordinary one | is its connection's, which has one at a time |
//! | a longer one | is of a room that all of those share, by what has come of it; where that is full, it is refused at once |

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use http::StatusCode;
use http_body_util::BodyExt as _;
use perennial_core::admission::Broken;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The most that an ordinary question takes: some times a Node with all its images. There are no more of them than connections.
const ORDINARY: usize = 128 * 1024;
/// The most that any may take: more than the API server would store of a Node, twice.
const MOST: usize = 4 * 1024 * 1024;
/// What those that are longer may take together.
const ROOM: usize = 16 * 1024 * 1024;
/// How long one may take to come.
const COMES: Duration = Duration::from_secs(5);

/// Why a question is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("say how long the request's body is, by Content-Length")]
    Unmeasured,
    #[error("the request's body takes more than {MOST} bytes")]
    Long,
    #[error("too much is asked at once; try again")]
    Crowded,
    #[error("the request's body did not come in time")]
    Slow,
    #[error("the request's body did not come whole: {0}")]
    Cut(#[from] axum::Error),
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Unread {
    /// How it is told by HTTP.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unmeasured => StatusCode::LENGTH_REQUIRED,
            Self::Long => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Cut(_) | Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Whoever reads all questions.
pub(super) struct Reader {
    room: Semaphore,
}

impl Default for Reader {
    fn default() -> Self {
        Self { room: Semaphore::new(ROOM) }
    }
}

impl Reader {
    /// Reads a question. The room that it took is free again once it is understood.
    pub(super) async fn read<T>(
        &self,
        body: Body,
        parse: impl FnOnce(&[u8]) -> Result<T, Broken>,
    ) -> Result<T, Unread> {
        let length = body.size_hint().exact().ok_or(Unread::Unmeasured)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= MOST).ok_or(Unread::Long)?;
        let (whole, _room) = timeout(COMES, self.whole(body, length)).await.map_err(|_| Unread::Slow)??;
        Ok(parse(&whole)?)
    }

    /// Takes room for what has come, and none for what is only announced.
    async fn whole(&self, mut body: Body, length: usize) -> Result<(Vec<u8>, SemaphorePermit<'_>), Unread> {
        let (mut whole, mut room) = (Vec::new(), self.take(0)?);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            let needed = whole.len() + data.len();
            if needed > whole.capacity() {
                let size = (2 * whole.capacity()).min(length).max(needed);
                room.merge(self.take(size.saturating_sub(ORDINARY + room.num_permits()))?);
                whole.reserve_exact(size - whole.len());
            }
            whole.extend_from_slice(&data);
        }
        Ok((whole, room))
    }

    fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Unread> {
        let bytes = u32::try_from(bytes).map_err(|_| Unread::Long)?;
        self.room.try_acquire_many(bytes).map_err(|_| Unread::Crowded)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use futures::FutureExt as _;
    use hyper::body::{Frame, SizeHint};

    use super::*;

    /// A body that announces so much, and of which so much comes.
    struct Announced {
        length: usize,
        comes: usize,
    }

    impl hyper::body::Body for Announced {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let some = self.comes.min(10_000);
            if some == 0 {
                return if self.length == 0 { Poll::Ready(None) } else { Poll::Pending };
            }
            (self.length, self.comes) = (self.length - some, self.comes - some);
            Poll::Ready(Some(Ok(Frame::data(vec![b'x'; some].into()))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.length as u64)
        }
    }

    fn announced(length: usize, comes: usize) -> Body {
        Body::new(Announced { length, comes })
    }

    /// As long as it is.
    async fn read(reader: &Reader, body: Body) -> Result<usize, Unread> {
        reader.read(body, |whole| Ok(whole.len())).await
    }

    #[tokio::test]
    async fn a_question_is_read_whole_and_leaves_nothing_taken() {
        let reader = Reader::default();
        for length in [0, 1, 9_999, ORDINARY, ORDINARY + 1, MOST] {
            assert_eq!(read(&reader, announced(length, length)).await.unwrap(), length);
            assert_eq!(read(&reader, vec![0; length].into()).await.unwrap(), length);
            assert_eq!(reader.room.available_permits(), ROOM, "{length}");
        }
    }

    #[tokio::test]
    async fn one_that_is_too_long_or_does_not_say_how_long_is_refused_unread() {
        let reader = Reader::default();
        assert!(matches!(read(&reader, announced(MOST + 1, 0)).await, Err(Unread::Long)));
        let endless = futures::stream::pending::<Result<Bytes, Infallible>>();
        let endless = read(&reader, Body::from_stream(endless)).await;
        assert!(matches!(endless, Err(Unread::Unmeasured)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_is_let_go() {
        let reader = Reader::default();
        assert!(matches!(read(&reader, announced(MOST, MOST - 1)).await, Err(Unread::Slow)));
        assert_eq!(reader.room.available_permits(), ROOM);
    }

    #[tokio::test]
    async fn what_is_announced_takes_nothing_and_what_came_only_of_long_ones() {
        let reader = Reader::default();
        let announce = |comes| {
            let mut reading = Box::pin(read(&reader, announced(MOST, comes)));
            assert!((&mut reading).now_or_never().is_none(), "it has not come whole");
            reading
        };
        let _promise: Vec<_> = (0..100).map(|_| announce(0)).collect();
        let _ordinary: Vec<_> = (0..100).map(|_| announce(ORDINARY / 2)).collect();
        assert_eq!(reader.room.available_permits(), ROOM);
        let long: Vec<_> = (0..ROOM / MOST).map(|_| announce(MOST - 1)).collect();
        assert!(matches!(read(&reader, announced(MOST, MOST)).await, Err(Unread::Crowded)));
        // Whatever long ones do, ordinary ones are read.
        assert_eq!(read(&reader, announced(ORDINARY, ORDINARY)).await.unwrap(), ORDINARY);
        drop(long);
        assert_eq!(read(&reader, announced(MOST, MOST)).await.unwrap(), MOST);
    }
}
