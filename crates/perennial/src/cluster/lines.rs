//! A stream of lines, taken from the wire with as little ado as possible: a fleet's first list has hundreds of megabytes
//! of them.

use bytes::{Bytes, BytesMut};
use http::header::ACCEPT_ENCODING;
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::ApiError;

/// No object is that large: etcd takes a tenth of it.
const LONGEST: usize = 1 << 24;

/// The lines of an answer.
pub(super) struct Lines<B = Body> {
    body: B,
    /// What has come and was not taken yet.
    waiting: BytesMut,
    /// So much of it has no end of a line.
    looked: usize,
}

impl Lines {
    /// Asks, and returns when the answer begins.
    pub(super) async fn ask(client: &kube::Client, mut request: Request<Vec<u8>>) -> Result<Self, ApiError> {
        // A compressed stream would be held back until a block of it is full.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let response = client.send(request.map(Body::from)).await?;
        let (parts, body) = response.into_parts();
        if parts.status.is_success() {
            return Ok(Self::of(body));
        }
        Err(ApiError::of_answer(&parts, &body.collect_bytes().await?))
    }
}

impl<B: hyper::body::Body<Data = Bytes, Error = kube::Error> + Unpin> Lines<B> {
    fn of(body: B) -> Self {
        Self { body, waiting: BytesMut::new(), looked: 0 }
    }

    /// The next line, with its end, or `None` if there are no more. One that broke off is none.
    ///
    /// Nothing is lost if this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.waiting[self.looked..]) {
                let line = self.waiting.split_to(self.looked + end + 1).freeze();
                self.looked = 0;
                return Ok(Some(line));
            }
            self.looked = self.waiting.len();
            if self.looked > LONGEST {
                return Err(ApiError::Malformed(format!("a line of more than {LONGEST} bytes")));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.waiting.extend_from_slice(&data);
                    }
                }
                // As servers end a watch that lasted long enough, and as those end that are killed.
                Some(Err(error)) if broke_off(&error) => return Ok(None),
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }
}

fn broke_off(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let ended = error.downcast_ref::<std::io::Error>();
        if ended.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
            || error.to_string().contains("unexpected EOF during chunk")
        {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    async fn all(pieces: &[&'static str]) -> Vec<String> {
        let frames = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        let frames: Vec<kube::Result<Frame<Bytes>>> = frames.collect();
        let mut lines = Lines::of(StreamBody::new(stream::iter(frames)));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        all
    }

    #[tokio::test]
    async fn lines_are_whole_however_they_come() {
        assert_eq!(all(&["a\nb\n"]).await, ["a\n", "b\n"]);
        assert_eq!(all(&["a", "b", "c\nd", "\n"]).await, ["abc\n", "d\n"]);
        assert_eq!(all(&["", "\n", ""]).await, ["\n"]);
    }

    #[tokio::test]
    async fn a_line_that_broke_off_is_none() {
        assert_eq!(all(&["a\n", "{\"type\":"]).await, ["a\n"]);
        assert!(all(&[]).await.is_empty());
    }
}
