//! A ConfigMap in protobuf, as it is written: the kind of write that costs the API server least (`bench writes`).
//!
//! ```text
//! "k8s\0" Object { kind: TypeMeta, raw: ConfigMap { metadata, data } }
//! ```
//! What is read is in [`super::proto`], where the numbers are said to be from.

use bytes::Bytes;
use perennial_core::kept::Pairs;
use perennial_core::record::Version;
use prost::Message;
use uuid::Uuid;

use super::proto::MAGIC;

/// A ConfigMap, to be written.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConfigMap {
    #[prost(message, required, tag = "1")]
    metadata: Metadata,
    #[prost(btree_map = "string, string", tag = "2")]
    data: Pairs,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: Pairs,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: Pairs,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<()>,
}

#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(message, required, tag = "1")]
    kind: TypeMeta,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

impl ConfigMap {
    pub(crate) fn new(namespace: &str, name: &str, labels: Pairs, annotations: Pairs, data: Pairs) -> Self {
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        Self { metadata: Metadata { name, namespace, labels, annotations, ..Metadata::default() }, data }
    }

    /// The same, to be written over this one alone.
    ///
    /// Nobody shares a record with us: that the API server keeps no books of its fields spares it a good part of the write
    /// (`bench writes`), and of what it stores and sends. Where a record is made it keeps them all the same.
    pub(crate) fn over(mut self, uid: Uuid, version: Version) -> Self {
        self.metadata.uid = uid.to_string();
        self.metadata.resource_version = version.to_string();
        self.metadata.managed_fields = vec![()];
        self
    }

    /// The body of a request.
    pub(crate) fn to_body(&self) -> Vec<u8> {
        let kind = TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() };
        let object = Object { kind, raw: self.encode_to_vec().into() };
        [MAGIC, &object.encode_to_vec()].concat()
    }
}
