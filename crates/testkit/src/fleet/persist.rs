//! One request, made until it is answered: a fleet goes on while its control plane is being restarted.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow};

use crate::eventually::eventually;

const PATIENCE: Duration = Duration::from_mins(2);

/// How a request ended.
pub(super) enum Outcome<T> {
    /// It was done.
    Done(T),
    /// The answer was one of those that the caller accepts.
    Accepted {
        /// An earlier try had failed without an answer, and may be what the answer is about.
        after_doubt: bool,
    },
}

/// Asks again where nobody answered, or the server was not able to; any other refusal is an error at once.
pub(super) async fn persist<T, F, Fut>(name: &str, mut ask: F, accept: &[u16]) -> anyhow::Result<Outcome<T>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = kube::Result<T>>,
{
    let doubt = AtomicBool::new(false);
    let what = format!("the API server answers about {name}");
    let answer = eventually(PATIENCE, &what, || {
        let asking = ask();
        let doubt = &doubt;
        async move {
            match asking.await {
                Ok(value) => Ok(Some(Ok(Outcome::Done(value)))),
                Err(kube::Error::Api(status)) if accept.contains(&status.code) => {
                    Ok(Some(Ok(Outcome::Accepted { after_doubt: doubt.load(Ordering::Relaxed) })))
                }
                Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                    Ok(Some(Err(anyhow!("{status}"))))
                }
                Err(error) => {
                    doubt.store(true, Ordering::Relaxed);
                    Err(error.into())
                }
            }
        }
    });
    answer.await?.with_context(|| name.to_owned())
}
