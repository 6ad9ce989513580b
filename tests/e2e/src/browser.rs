//! A headless Chromium that is controlled over a pipe, without a port, display or network.
//!
//! The DevTools protocol is JSON, and each message ends with a zero byte. Chromium reads it from file
//! descriptor 3 and responds on 4.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Timeout of one response. A busy machine starts Chromium in some ten seconds.
const PATIENCE: Duration = Duration::from_secs(300);
/// Names of the Chromium program on different systems.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A page of a headless Chromium.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    events: VecDeque<Value>,
    calls: u64,
    session: Option<String>,
    /// Contains the profile and the pipes. Removed with the browser.
    _folder: TempDir,
}

/// Window and preferences of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// True if the reader prefers the dark color scheme.
    pub is_dark: bool,
}

impl Browser {
    /// Starts Chromium with an empty page.
    ///
    /// # Panics
    ///
    /// If it is not installed, or does not respond.
    #[must_use]
    pub fn start() -> Browser {
        let name = NAMES.iter().find(|name| is_installed(name));
        let name = name.expect("Chromium is installed; `./setup test` installs it");
        let folder = TempDir::with_prefix("weighbridge-chromium-").expect("a temporary folder");
        let pipe = |end: &str| {
            let path = folder.path().join(end);
            rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .expect("a named pipe can be made");
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""])
            .arg(name)
            .args(flags(folder.path()))
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        // Each open waits for the other side, in the order of the shell's redirections.
        let to = File::options().write(true).open(to).expect("a named pipe");
        let from = File::open(from).expect("a named pipe");
        let mut browser = Browser {
            child,
            to,
            from: listen(from),
            events: VecDeque::new(),
            calls: 0,
            session: None,
            _folder: folder,
        };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}));
        let target = &target["targetId"];
        let attached = self.call(
            "Target.attachToTarget",
            &json!({"targetId": target, "flatten": true}),
        );
        let session = attached["sessionId"].as_str().expect("a session has an id");
        self.session = Some(session.to_owned());
        for domain in ["Page", "Network", "Log", "Runtime"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Opens an address, and returns all events until it was loaded.
    ///
    /// # Panics
    ///
    /// If it cannot be opened.
    pub fn open(&mut self, url: &str, view: View) -> Vec<Value> {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
        );
        let scheme = if view.is_dark { "dark" } else { "light" };
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"media": "", "features": [feature]}),
        );
        self.events.clear();
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let event = self.next();
            self.events.push_back(event);
        }
        // One frame later, the page has sent all requests that it sends by itself.
        self.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))");
        self.events.drain(..).collect()
    }

    /// Shows the open page as on paper, until the next page is opened.
    ///
    /// # Panics
    ///
    /// If Chromium refuses.
    pub fn on_paper(&mut self) {
        self.call("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    }

    /// Returns the value of a JavaScript expression. A promise is awaited.
    ///
    /// # Panics
    ///
    /// If the expression throws.
    pub fn ask(&mut self, expression: &str) -> Value {
        let mut answer = self.call(
            "Runtime.evaluate",
            &json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].take()
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let sent = self.to.write_all(format!("{message}\0").as_bytes());
        sent.expect("Chromium listens");
        loop {
            let mut message = self.next();
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push_back(message);
        }
    }

    fn next(&mut self) -> Value {
        self.from
            .recv_timeout(PATIENCE)
            .expect("Chromium answers within five minutes and does not end")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The URL of a file.
///
/// # Panics
///
/// If there is no such file.
#[must_use]
pub fn url_of(page: &Path) -> String {
    let page = page.canonicalize().expect("the page exists");
    format!("file://{}", page.display())
}

fn is_installed(name: &str) -> bool {
    let version = Command::new(name).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn flags(profile: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "--headless",
        // Chromium as root may not use a sandbox. The page is our own.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        "--disable-breakpad",
        "--no-first-run",
        "--remote-debugging-pipe",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("--user-data-dir={}", profile.display()));
    flags.push("about:blank".to_owned());
    flags
}

/// Reads messages on a thread of its own, so that waiting for a message can time out.
fn listen(from: File) -> Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for message in BufReader::new(from).split(0) {
            let Ok(message) = message else { break };
            let message = serde_json::from_slice(&message).unwrap_or_default();
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}
