//! The messages of a watch, taken from the wire with as little ado as possible: a fleet's first list has hundreds of
//! megabytes of them.
//!
//! In JSON each is a line; in protobuf, its length goes before it.

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::proto::PROTOBUF;
use super::{ApiError, Cluster};

/// No object is that large: etcd takes a tenth of it.
const LONGEST: usize = 1 << 24;

/// Metadata alone, in protobuf if the server has it.
const PREFERRED: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                         application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// A message in protobuf has its length before it, in so many bytes.
const LENGTH: usize = 4;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// One message, as it came.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A line of JSON.
    Json(Bytes),
    /// In protobuf.
    Protobuf(Bytes),
}

/// The messages of an answer.
pub(super) struct Messages<B = Body> {
    body: B,
    encoding: Encoding,
    /// What has come and was not taken yet. Most of it is a message of its own, and is passed on as it lies there.
    waiting: Bytes,
    /// So much of it has no end of a line.
    looked: usize,
}

impl Messages {
    /// Asks, and returns when the answer begins. `best` is what the request asks for if the server has it: what is asked
    /// for by metadata alone can be had in protobuf.
    pub(super) async fn ask(
        cluster: &Cluster,
        mut request: Request<Vec<u8>>,
        best: Encoding,
    ) -> Result<Self, ApiError> {
        if best == Encoding::Protobuf {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(PREFERRED));
        }
        // A compressed stream would be held back until a block of it is full.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (parts, body) = cluster.send(cluster.streams(), request).await?.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE);
        let protobuf = kind.is_some_and(|kind| kind.as_bytes().starts_with(PROTOBUF.as_bytes()));
        Ok(Self::of(body, if protobuf { Encoding::Protobuf } else { Encoding::Json }))
    }
}

impl<B: hyper::body::Body<Data = Bytes, Error = kube::Error> + Unpin> Messages<B> {
    pub(super) fn of(body: B, encoding: Encoding) -> Self {
        Self { body, encoding, waiting: Bytes::new(), looked: 0 }
    }

    /// The next one, or `None` if there are no more. One that broke off is none.
    ///
    /// Nothing is lost if this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, ApiError> {
        loop {
            let message = match self.encoding {
                Encoding::Json => self.line()?.map(Message::Json),
                Encoding::Protobuf => self.frame()?.map(Message::Protobuf),
            };
            if message.is_some() {
                return Ok(message);
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.came(data);
                    }
                }
                // As servers end a watch that lasted long enough, and as those end that are killed.
                Some(Err(error)) if broke_off(&error) => return Ok(None),
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }
}

impl<B> Messages<B> {
    fn came(&mut self, data: Bytes) {
        if self.waiting.is_empty() {
            self.waiting = data;
            return;
        }
        let begun = std::mem::take(&mut self.waiting);
        let mut waiting = begun.try_into_mut().unwrap_or_else(|begun| BytesMut::from(&*begun));
        waiting.extend_from_slice(&data);
        self.waiting = waiting.freeze();
    }

    /// The first line of what has come, with its end.
    fn line(&mut self) -> Result<Option<Bytes>, ApiError> {
        if let Some(end) = memchr::memchr(b'\n', &self.waiting[self.looked..]) {
            let line = self.waiting.split_to(self.looked + end + 1);
            self.looked = 0;
            return Ok(Some(line));
        }
        self.looked = self.waiting.len();
        bounded(self.looked).map(|_| None)
    }

    /// The first frame of what has come, without its length.
    fn frame(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(length) = self.waiting.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = bounded(u32::from_be_bytes(*length) as usize)?;
        if self.waiting.len() < LENGTH + length {
            return Ok(None);
        }
        self.waiting.advance(LENGTH);
        Ok(Some(self.waiting.split_to(length)))
    }
}

fn bounded(length: usize) -> Result<usize, ApiError> {
    if length > LONGEST {
        return Err(ApiError::Malformed(format!("a message of more than {LONGEST} bytes")));
    }
    Ok(length)
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

    async fn all(encoding: Encoding, pieces: &[&'static [u8]]) -> Result<Vec<Bytes>, ApiError> {
        let frames = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece))));
        let frames: Vec<kube::Result<Frame<Bytes>>> = frames.collect();
        let mut messages = Messages::of(StreamBody::new(stream::iter(frames)), encoding);
        let mut all = Vec::new();
        while let Some(Message::Json(bytes) | Message::Protobuf(bytes)) = messages.next().await? {
            all.push(bytes);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn lines_are_whole_however_they_come() {
        let lines = async |pieces| all(Encoding::Json, pieces).await.unwrap();
        assert_eq!(lines(&[b"a\nb\n"]).await, ["a\n", "b\n"]);
        assert_eq!(lines(&[b"a", b"b", b"c\nd", b"\n"]).await, ["abc\n", "d\n"]);
        assert_eq!(lines(&[b"", b"\n", b""]).await, ["\n"]);
    }

    #[tokio::test]
    async fn frames_are_whole_however_they_come() {
        let frames = async |pieces| all(Encoding::Protobuf, pieces).await.unwrap();
        assert_eq!(frames(&[b"\0\0\0\x01a\0\0\0\x02bc"]).await, ["a", "bc"]);
        assert_eq!(frames(&[b"\0", b"\0\0", b"\x03a", b"b", b"c\0\0\0\0\0"]).await, ["abc", ""]);
    }

    #[tokio::test]
    async fn what_broke_off_is_none() {
        assert_eq!(all(Encoding::Json, &[b"a\n", b"{\"type\":"]).await.unwrap(), ["a\n"]);
        assert!(all(Encoding::Json, &[]).await.unwrap().is_empty());
        assert_eq!(all(Encoding::Protobuf, &[b"\0\0\0\x01a\0\0\0\x02b"]).await.unwrap(), ["a"]);
        assert!(all(Encoding::Protobuf, &[b"\0\0"]).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn nobody_makes_us_wait_for_more_than_an_object_can_be() {
        let error = all(Encoding::Protobuf, &[b"\xff\xff\xff\xff", b"a"]).await.unwrap_err();
        assert_eq!(error.kind(), "malformed");
    }
}
