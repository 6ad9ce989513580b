//! The report of a run as a page that a browser shows while the run lasts: `--serve`.
//!
//! The page contains commands and files of the lab, so only loopback can reach it. A page of another site cannot
//! read it either, because the name in the request must be one of loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use analysis::Summary;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use recording::Recording;
use report::SoFar;

use crate::console::Console;
use crate::environment::instant;
use crate::exit::Failure;
use crate::http_server::HttpServer;
use crate::stop::StopSignal;

/// Time in seconds after which a browser loads the page again. Loading takes processor time, and the page
/// changes only after a round.
const REFRESH_S: u32 = 10;
/// The time for a run with short rounds.
const REFRESH_SHORT_S: u32 = 3;

/// An address of loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback(SocketAddr);

/// Reads a port, or an address of loopback with a port.
///
/// # Errors
/// When the text is no address, or an address that other machines reach.
pub fn loopback(text: &str) -> Result<Loopback, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(Loopback(SocketAddr::new(
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            port,
        )));
    }
    let named = text.strip_prefix("localhost:");
    let numbered = named.map(|port| format!("127.0.0.1:{port}"));
    let address = numbered.as_deref().unwrap_or(text).parse::<SocketAddr>();
    match address {
        Ok(address) if address.ip().is_loopback() => Ok(Loopback(address)),
        Ok(address) => Err(format!(
            "expected an address of loopback, such as 127.0.0.1:8090, found {address}. The page shows commands \
             and files of the lab, and other machines would reach it. `ssh -L` forwards a port of loopback"
        )),
        Err(_) => Err(
            "expected a port, such as 8090, or an address of loopback with a port, such as 127.0.0.1:8090 or \
             [::1]:8090"
                .to_owned(),
        ),
    }
}

/// The server of the page. It serves until it is dropped.
pub struct Served {
    board: Board,
    _server: HttpServer,
}

/// The page, shared with the run that changes it.
#[derive(Clone)]
pub struct Board(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when somebody has loaded the page.
    loaded: Condvar,
}

struct State {
    page: Bytes,
    /// Number of the page, from 0.
    version: u64,
    /// The page after the end of the run. `None` before the first recording.
    ended: Option<Bytes>,
    /// True if `page` is the page after the end.
    is_last: bool,
    /// Time of the last load of the page.
    looked: Option<Instant>,
}

impl Served {
    /// Listens, and prints the address.
    ///
    /// # Errors
    /// When it cannot listen on the address.
    pub fn start(Loopback(address): Loopback, console: Console) -> Result<Served, Failure> {
        let board = Board::new();
        let read = board.clone();
        let answer = move |request: &http::Request<_>| {
            read.respond(request.method(), request.uri().path(), request.headers())
        };
        let server = HttpServer::start(address, "weigh-page", Arc::new(answer)).map_err(|error| {
            Failure::not_ready(format!(
                "--serve: cannot listen on {address}: {error}. Choose another port, or 0 for any free port"
            ))
        })?;
        console.say(format_args!(
            "weigh: the page of this run is at http://{}/",
            server.address
        ));
        Ok(Served {
            board,
            _server: server,
        })
    }

    /// The page that the run changes.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Shows the page after the end, and waits until a browser that shows the page has loaded it. It waits for
    /// one interval between two loads at most, and not after Ctrl-C.
    pub fn end(self, stop: &StopSignal) {
        let mut state = self.board.state();
        let Some(page) = state.ended.take() else {
            return;
        };
        state.page = page;
        state.version += 1;
        state.is_last = true;
        let refresh = Duration::from_secs(REFRESH_S.into());
        let is_watched = state.looked.is_some_and(|at| at.elapsed() < refresh * 2);
        // Ctrl-C is noticed after one step.
        let steps = if is_watched { REFRESH_S + 1 } else { 0 };
        state.looked = None;
        for _ in 0..steps {
            if state.looked.is_some() || stop.is_asked() {
                break;
            }
            let waited = self
                .board
                .0
                .loaded
                .wait_timeout(state, Duration::from_secs(1));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Board {
    fn new() -> Board {
        Board(Arc::new(Shared {
            state: Mutex::new(State {
                page: report::html_waiting("weigh", REFRESH_SHORT_S).into(),
                version: 0,
                ended: None,
                is_last: false,
                looked: None,
            }),
            loaded: Condvar::new(),
        }))
    }

    /// Shows the rounds until now.
    pub fn show(&self, recording: &Recording, summary: &Summary) {
        let is_short = summary.round_s.is_some_and(|length| length < 5.0);
        let refresh_s = if is_short { REFRESH_SHORT_S } else { REFRESH_S };
        let measuring = SoFar::Measuring { refresh_s };
        // Rendered outside of the lock, so that no reader waits.
        let page = report::html_so_far(recording, summary, measuring);
        self.replace(page, None);
    }

    /// Shows the finished recording of a lab. Other labs may follow.
    pub fn finish(&self, recording: &Recording, summary: &Summary) {
        let measuring = SoFar::Measuring {
            refresh_s: REFRESH_S,
        };
        let page = report::html_so_far(recording, summary, measuring);
        let ended = report::html_so_far(recording, summary, SoFar::Ended);
        self.replace(page, Some(ended));
    }

    fn replace(&self, page: String, ended: Option<String>) {
        let mut state = self.state();
        state.page = page.into();
        state.version += 1;
        if let Some(ended) = ended {
            state.ended = Some(ended.into());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The page of a thread that panicked is still valid.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn respond(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response<Full<Bytes>> {
        if !is_named_loopback(headers.get(HOST)) {
            let text = "this page is for http://127.0.0.1 and http://localhost only\n";
            return response(StatusCode::MISDIRECTED_REQUEST, text);
        }
        if path != "/" {
            return response(StatusCode::NOT_FOUND, "the page is at /\n");
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, "");
            let methods = HeaderValue::from_static("GET, HEAD");
            refused.headers_mut().insert(ALLOW, methods);
            return refused;
        }
        let mut state = self.state();
        state.looked = Some(instant());
        self.0.loaded.notify_all();
        let tag = format!("\"{}\"", state.version);
        let is_known = headers
            .get(IF_NONE_MATCH)
            .is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let mut found = match is_known {
            true => response(StatusCode::NOT_MODIFIED, ""),
            false => response(StatusCode::OK, state.page.clone()),
        };
        let headers = found.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        found
    }
}

/// True if the name of the request is one of loopback. Other sites may resolve to loopback, but they have another name.
fn is_named_loopback(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host.and_then(|host| host.to_str().ok()) else {
        return false;
    };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, "80"),
    };
    let ip = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    port.parse::<u16>().is_ok() && (is_loopback || name.eq_ignore_ascii_case("localhost"))
}

fn response(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    fn get(board: &Board, host: &str, path: &str, known: Option<&str>) -> Response<Full<Bytes>> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(known) = known {
            headers.insert(IF_NONE_MATCH, HeaderValue::from_str(known).unwrap());
        }
        board.respond(&Method::GET, path, &headers)
    }

    fn page(board: &Board) -> String {
        String::from_utf8(board.state().page.to_vec()).unwrap()
    }

    #[test]
    fn only_addresses_of_loopback_are_read() {
        for (text, address) in [
            ("8090", "127.0.0.1:8090"),
            (":8090", "127.0.0.1:8090"),
            ("localhost:0", "127.0.0.1:0"),
            ("127.0.0.2:81", "127.0.0.2:81"),
            ("[::1]:8090", "[::1]:8090"),
        ] {
            assert_eq!(
                loopback(text),
                Ok(Loopback(address.parse().unwrap())),
                "{text}"
            );
        }
        let open = loopback("0.0.0.0:8090").unwrap_err();
        assert!(
            open.contains("found 0.0.0.0:8090") && open.contains("ssh -L"),
            "{open}"
        );
        assert!(loopback("[::]:8090").unwrap_err().contains("loopback"));
        for wrong in ["", "example.com:80", "127.0.0.1", "70000"] {
            let error = loopback(wrong).unwrap_err();
            assert!(
                error.starts_with("expected a port, such as 8090"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn a_name_of_another_site_gets_no_page() {
        let board = Board::new();
        for host in [
            "127.0.0.1:8090",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8090",
            "127.0.0.1",
        ] {
            assert_eq!(
                get(&board, host, "/", None).status(),
                StatusCode::OK,
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "evil.example:8090",
            "127.0.0.1.evil.example",
            "localhost:x",
        ] {
            let status = get(&board, host, "/", None).status();
            assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        let missing = get(&board, "localhost", "/etc/passwd", None);
        assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn the_page_changes_with_the_rounds_and_is_sent_once() {
        let board = Board::new();
        assert!(page(&board).contains("No round has been measured yet"));
        let first = get(&board, "localhost", "/", None);
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        let again = |board: &Board| get(board, "localhost", "/", Some(&tag)).status();
        assert_eq!(again(&board), StatusCode::NOT_MODIFIED);
        let recording = SampleRun::side_by_side()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        board.show(&recording, &Summary::of(&recording));
        assert_eq!(again(&board), StatusCode::OK);
        assert!(page(&board).contains("This run is still measuring"));
    }

    #[test]
    fn a_browser_gets_the_last_page_before_the_address_ends() {
        let recording = SampleRun::side_by_side()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let console = Console::new(true, true);
        let served = Served::start(loopback("0").unwrap(), console).unwrap();
        let board = served.board();
        board.finish(&recording, &Summary::of(&recording));
        assert!(page(&board).contains("This run is still measuring"));
        get(&board, "localhost", "/", None);
        let reader = board.clone();
        let reading = std::thread::spawn(move || {
            while !reader.state().is_last {
                std::thread::yield_now();
            }
            get(&reader, "localhost", "/", None);
        });
        let began = instant();
        served.end(&StopSignal::unasked());
        reading.join().unwrap();
        assert!(page(&board).contains("This run has ended"));
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn without_a_reader_and_after_ctrl_c_nothing_waits() {
        let console = Console::new(true, true);
        let recording = SampleRun::side_by_side().variant("a", 700.0).build();
        for (is_read, stop) in [(false, StopSignal::unasked()), (true, StopSignal::asked())] {
            let served = Served::start(loopback("0").unwrap(), console).unwrap();
            let board = served.board();
            board.finish(&recording, &Summary::of(&recording));
            if is_read {
                get(&board, "localhost", "/", None);
            }
            let began = instant();
            served.end(&stop);
            assert!(
                began.elapsed() < Duration::from_secs(1),
                "{:?}",
                began.elapsed()
            );
        }
    }
}
