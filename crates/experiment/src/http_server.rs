//! A small HTTP server on a separate thread, for the pages and counts of a run.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

/// Maximum number of simultaneous connections. More connections wait.
const CONNECTIONS_MAX: usize = 8;

/// Time limit of one connection. A response needs a fraction of it.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// The responses of a server.
pub(crate) type Answer = Arc<dyn Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync>;

/// Serves until it is dropped.
pub(crate) struct HttpServer {
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
    /// The address, with the port that was free.
    pub(crate) address: SocketAddr,
}

impl HttpServer {
    /// Listens on an address. Port 0 takes any free port.
    ///
    /// # Errors
    /// When it cannot listen.
    pub(crate) fn start(
        address: SocketAddr,
        thread_name: &str,
        answer: Answer,
    ) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        let work = move || {
            runtime.block_on(async {
                // This task ends with the runtime, after the notification.
                tokio::spawn(serve(listener, answer));
                ended.notified().await;
            });
        };
        let thread = thread::Builder::new().name(thread_name.to_owned());
        Ok(HttpServer {
            end,
            thread: Some(thread.spawn(work)?),
            address,
        })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // The notification is stored if the thread does not wait for it yet.
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, answer: Answer) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    // No reader needs longer, and the permit must be released.
                    let _ = tokio::time::timeout(CONNECTION_MAX, respond(stream, answer)).await;
                    drop(permit);
                });
            }
            // For example, no file descriptor is left. The next attempt would also fail immediately.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn respond(stream: TcpStream, answer: Answer) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(&request);
        async { Ok::<_, Infallible>(response) }
    });
    // A reader that disconnects is not an error.
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
