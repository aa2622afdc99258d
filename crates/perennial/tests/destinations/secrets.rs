//! Credentials are nowhere but on the wire.

use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex};

use perennial::lister::destination::{Destination, S3Settings, Secret};
use perennial_testkit::Port;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{bucket, page, publish, server};

/// All that is logged, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn nothing_of_them_is_shown_or_logged_whatever_goes_wrong() {
    let good = bucket(server().await).await;
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(EnvFilter::new("trace")).with_writer(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let port = Port::claim().unwrap();
    let mut wrong = good.clone();
    wrong.credentials.access_key = Secret::new("wrong-access-key");
    wrong.credentials.secret_key = Secret::new("wrong-secret-key");
    wrong.credentials.session_token = Some(Secret::new("wrong-session-token"));
    let nowhere = S3Settings { endpoint: Some(format!("https://{}", port.address())), ..wrong.clone() };
    let no_tls =
        S3Settings { endpoint: Some(server().await.url().replace("http:", "https:")), ..wrong.clone() };
    let broken = S3Settings {
        endpoint: Some("http://wrong-access-key:wrong-secret-key@s3".to_owned()),
        ..wrong.clone()
    };

    let mut shown = String::new();
    for settings in [good, wrong, nowhere, no_tls] {
        write!(shown, "{settings:?}").unwrap();
        let destination = Destination::s3(settings, None).unwrap();
        write!(shown, "{destination} {destination:?}").unwrap();
        for outcome in
            [publish(&destination, &page("page", 1)).await, destination.put(&page("page", 2), None).await]
        {
            write!(shown, "{outcome:?}").unwrap();
            if let Err(error) = outcome {
                write!(shown, "{error} {:?}", std::error::Error::source(&error)).unwrap();
            }
        }
    }
    let error = Destination::s3(broken, None).err().unwrap();
    write!(shown, "{error} {error:?}").unwrap();

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("hyper"), "even the wire is logged: {logged}");
    let ours = server().await.credentials();
    let secrets = [
        ours.secret_key.as_str(),
        &ours.access_key,
        "wrong-access-key",
        "wrong-secret-key",
        "wrong-session-token",
    ];
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        for line in logged.lines() {
            assert!(!line.contains(secret), "{secret}: {line}");
        }
    }
}
