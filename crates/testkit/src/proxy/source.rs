//! The lines of a stream.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http_body_util::{BodyDataStream, BodyExt};

use super::answer::Broken;

/// A stream from the API server, line by line.
pub(super) struct Source {
    ahead: VecDeque<Bytes>,
    body: BodyDataStream<kube::client::Body>,
    rest: BytesMut,
    /// So many bytes of the rest hold no newline.
    searched: usize,
}

impl Source {
    pub(super) fn new(body: kube::client::Body) -> Self {
        Self { ahead: VecDeque::new(), body: body.into_data_stream(), rest: BytesMut::new(), searched: 0 }
    }

    /// The same after some other lines.
    pub(super) fn after(mut self, lines: Vec<Bytes>) -> Self {
        self.ahead.extend(lines);
        self
    }

    /// The next line, with its newline. Nothing is lost if this is given up halfway.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        if let Some(line) = self.ahead.pop_front() {
            return Some(Ok(line));
        }
        loop {
            if let Some(end) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                return Some(Ok(line));
            }
            self.searched = self.rest.len();
            match self.body.next().await? {
                Ok(bytes) => self.rest.extend_from_slice(&bytes),
                Err(_) => return Some(Err(Broken)),
            }
        }
    }
}
