//! The log of a running container, read while it is written. A kubelet reports the end of a container up to a
//! second after it.

use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A log up to a last line. It arrives while its connection makes other calls, or pauses.
pub struct FollowedLog {
    task: JoinHandle<Option<String>>,
}

impl FollowedLog {
    /// Follows the log at a path of the API until a line equals `last_line`. Wakes `arrived` when it is whole.
    pub(crate) fn start(
        runtime: &Runtime,
        client: Client,
        path: String,
        last_line: &'static str,
        arrived: Arc<Notify>,
    ) -> FollowedLog {
        let task = runtime.spawn(async move {
            let log = up_to(&client, path, last_line).await;
            if log.is_some() {
                arrived.notify_one();
            }
            log
        });
        FollowedLog { task }
    }

    /// True if the log is whole, or its connection has ended before.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// The log. `None` if its connection has ended before the last line.
    pub(crate) fn wait(mut self, runtime: &Runtime) -> Option<String> {
        runtime.block_on(&mut self.task).ok().flatten()
    }
}

impl Drop for FollowedLog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn up_to(client: &Client, path: String, last_line: &str) -> Option<String> {
    let request = Request::get(path).body(Body::empty()).ok()?;
    let response = client.send(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = response.into_body();
    let mut log: Vec<u8> = Vec::new();
    // The beginning of the last line that has arrived.
    let mut line_at = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        log.extend_from_slice(&data);
        while let Some(length) = log[line_at..].iter().position(|byte| *byte == b'\n') {
            if &log[line_at..line_at + length] == last_line.as_bytes() {
                return Some(String::from_utf8_lossy(&log).into_owned());
            }
            line_at += length + 1;
        }
    }
    let is_whole = &log[line_at..] == last_line.as_bytes();
    is_whole.then(|| String::from_utf8_lossy(&log).into_owned())
}
