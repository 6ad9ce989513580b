//! `weigh init`: a first lab that runs, for a command, a proxy, two URLs or a compose file.

mod artillery;
mod compose;
mod curl;
mod gallery;
mod har;
mod http_file;
mod json_lines;
mod k6;
mod kinds;
mod lab_text;
mod multipart;
mod openapi;
mod origins;
mod placeholders;
mod postman;
mod proto;
mod proxies;
mod requests;
mod scripts;
mod shell_words;
mod tree;
mod values;

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use experiment::address;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::files::Unwritten;
use http::Uri;

use compose::Wanted;
use lab_text::{Draft, Proxy, Server, Setup};
use proto::Calls;
use proxies::KnownProxy;
use requests::Requests;

/// Write a first lab, which you can change and run with `weigh lab`.
///
/// The lab compares one of these: a command with itself, until you add your own variant, or two commands,
/// or a server without and with a proxy, or two URLs, or a compose file without and with one service.
/// `weigh` checks the lab before it writes it. It starts nothing and replaces no file.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    group = clap::ArgGroup::new("server").args(["servers", "commands", "urls", "compose", "from"]).required(true),
    group = clap::ArgGroup::new("described").args(["openapi", "proto"]),
    group = clap::ArgGroup::new("requests").args(["har", "openapi", "artillery", "k6", "postman", "http", "curl"]).multiple(true)
)]
pub(crate) struct Args {
    /// Commands that run a server, or URLs of running servers, as with --command and --url.
    #[arg(value_name = "COMMAND|URL", conflicts_with_all = ["commands", "urls", "compose", "from"])]
    servers: Vec<String>,
    /// A command that runs a server. It receives its address by {{addr}}, {{port}} or {{url}}. If you give
    /// two commands, the first one is the baseline.
    #[arg(long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// The URL of a running server: http://HOST:PORT/PATH, or https. If you give two URLs, the first one
    /// is the baseline.
    #[arg(long = "url", value_name = "URL", value_parser = address::url)]
    urls: Vec<Uri>,
    /// A proxy in front of --command or --url: nginx, haproxy, envoy, caddy, traefik, varnish or httpd, with a
    /// configuration file next to the lab. Or a command that runs a proxy. It receives its address by
    /// {{addr}}, and the address of the server by {{server.addr}} or {{server.url}}.
    #[arg(long, value_name = "NAME|COMMAND")]
    proxy: Option<String>,
    /// A compose file and one of its services. The lab compares the file without and with that service.
    #[arg(long, num_args = 2, value_names = ["FILE", "SERVICE"], conflicts_with_all = ["commands", "urls", "proxy"])]
    compose: Vec<String>,
    /// With --compose: the service that gets the load without that service [default: the service that it
    /// depends on, or a service with a port].
    #[arg(long, value_name = "NAME", requires = "compose")]
    behind: Option<String>,
    /// With --compose: a profile of the file. Its services run as well.
    #[arg(long = "profile", value_name = "NAME", requires = "compose")]
    profiles: Vec<String>,
    /// A lab of the gallery, such as envoy-sidecar: a copy with all its files. `weigh` prints the lines to
    /// change for your own service. A wrong name lists the labs.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["commands", "urls", "compose", "proxy", "path", "har", "openapi", "artillery", "k6", "postman", "http", "curl"])]
    from: Option<String>,
    /// Path and query of the request [default: the path of the URL, otherwise /].
    #[arg(long, value_name = "PATH", conflicts_with = "urls")]
    path: Option<String>,
    /// Requests that a browser recorded (HAR), to the server with the most requests.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        conflicts_with = "path"
    )]
    har: Option<PathBuf>,
    /// Requests with examples in an OpenAPI 3 or Swagger 2.0 description, in JSON or YAML.
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = ["path", "har"])]
    openapi: Option<PathBuf>,
    /// Calls of every method of gRPC in a `.proto` file. It has no values, so give --invent.
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi", "artillery", "k6", "postman", "http", "curl", "from"])]
    proto: Option<PathBuf>,
    /// With --proto: a folder of imported files.
    #[arg(
        long,
        value_name = "FOLDER",
        help_heading = "Requests",
        requires = "proto"
    )]
    import_path: Vec<PathBuf>,
    /// With --openapi and --proto: invent values of the right type if the description requires a value and
    /// does not contain it. The lab names them.
    #[arg(long, help_heading = "Requests", requires = "described")]
    invent: bool,
    /// Requests of an Artillery test, in YAML or JSON. Captured values become a scenario, and payload files data.
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi"])]
    artillery: Option<PathBuf>,
    /// Requests and thresholds of a k6 script in JavaScript or TypeScript. `weigh` runs the script in a sandbox
    /// without network, and records its requests instead of sending them.
    #[arg(long, value_name = "SCRIPT", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi", "artillery"])]
    k6: Option<PathBuf>,
    /// With --k6: a value of `__ENV` for the script. Repeat it for more values.
    #[arg(long, value_name = "NAME=VALUE", requires = "k6", help_heading = "Requests", value_parser = k6::variable)]
    env: Vec<(String, String)>,
    /// The server of the requests in the lab, as HOST, HOST:PORT or a placeholder such as {{base}}. With
    /// --openapi also HOST/PATH. With --artillery, the server is its `target` [default: the server with
    /// the most requests, or the first server with --openapi].
    #[arg(
        long,
        value_name = "HOST",
        requires = "requests",
        conflicts_with = "artillery",
        help_heading = "Requests"
    )]
    host: Option<String>,
    /// With --k6: the folder with all files that the script may read [default: the nearest Git repository or
    /// the current folder around the script, otherwise its folder].
    #[arg(long, value_name = "FOLDER", requires = "k6", help_heading = "Requests", value_parser = k6::folder)]
    root: Option<PathBuf>,
    /// Requests of a Postman collection (v2.0 or v2.1), in the order of its folders.
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi", "artillery", "k6"])]
    postman: Option<PathBuf>,
    /// With --postman: an exported environment. Its values win over the values of the collection.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Requests",
        requires = "postman"
    )]
    postman_env: Option<PathBuf>,
    /// Requests of an `.http` or `.rest` file, as editors send them.
    #[arg(long, value_name = "FILE", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi", "artillery", "k6", "postman"])]
    http: Option<PathBuf>,
    /// With --http: an environment of `http-client.env.json` next to the file.
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Requests",
        requires = "http"
    )]
    http_env: Option<String>,
    /// With --artillery: an environment of `config.environments`.
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Requests",
        requires = "artillery"
    )]
    artillery_env: Option<String>,
    /// A command of curl in the form of bash, as browsers copy it. Can be given several times.
    #[arg(long = "curl", value_name = "COMMAND", help_heading = "Requests", conflicts_with_all = ["path", "har", "openapi", "artillery", "k6", "postman", "http"])]
    curl: Vec<String>,
    /// Write the lab even if fewer than half of the file's requests are in it.
    #[arg(long, help_heading = "Requests")]
    partial: bool,
    /// The folder for the lab [default: labs/first, or labs/NAME with --from]. The file has the name of the
    /// folder, or the name of the lab with --from.
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weigh init 'my-server --listen {{addr}}'
  weigh init 'env PORT={{port}} node old.js' 'env PORT={{port}} node new.js'
  weigh init --command 'my-server --listen {{addr}}' --proxy nginx
  weigh init --command 'my-server --listen {{addr}}' \\
      --proxy 'my-proxy --listen {{addr}} --upstream {{server.url}}' --out labs/proxy
  weigh init --command 'my-server --listen {{addr}}' --openapi openapi.yaml
  weigh init --command 'env PORT={{port}} node server.js' --k6 script.js
  weigh init --command 'my-server --listen {{addr}}' --postman shop.json --postman-env staging.json
  weigh init --url http://127.0.0.1:8080/ --url http://127.0.0.1:8081/
  weigh init --compose compose.yaml nginx
  weigh init --from envoy-sidecar";

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let args = &args.sorted()?;
    if let Some(name) = &args.from {
        return copied(name, args, console);
    }
    let out = args.out();
    let name = out.file_name().unwrap_or(OsStr::new("lab"));
    let file = PathBuf::from(name).with_added_extension("yaml");
    let path = out.join(&file);
    let setup = setup(args)?;
    let requests = requests(args, console)?;
    let calls = args.proto.as_ref().map(|path| {
        let calls = Calls::read(path, &args.import_path, args.invent)?;
        match &setup {
            Setup::Proxy {
                proxy: Proxy::Known(known),
                ..
            } => Err(Failure::bad_input(format!(
                "expected the command of a proxy for gRPC with `--proto`, found `{}`. Its configuration here \
                 is for HTTP/1.1",
                known.name
            ))),
            _ => Ok(calls),
        }
    });
    let calls = calls.transpose()?;
    if (requests.is_some() || calls.is_some()) && setup.has_path() {
        return Err(Failure::bad_input(
            "expected a `--url` without a path, because the requests have their own paths",
        ));
    }
    let draft = Draft {
        lab: &path.display().to_string(),
        folder: &way_back(&out)?,
        path: args.path.as_deref(),
        requests: requests.as_ref(),
        calls: calls.as_ref(),
        setup: &setup,
    };
    let mut files = vec![(file.clone(), draft.text().into_bytes())];
    files.extend(draft.files());
    files.extend(requests.iter().flat_map(Requests::files));
    files.extend(calls.iter().flat_map(Calls::files));
    // Another lab in this folder can share the schema.
    if !out.join(lab_text::SCHEMA).exists() {
        let schema = super::schema::LAB.as_bytes().to_vec();
        files.push((PathBuf::from(lab_text::SCHEMA), schema));
    }
    let files = Unwritten(files);
    lab::parse(&file, &files).map_err(|found| {
        // The text contains values of flags, so its mistakes come from them.
        console.say(found.render(console.color));
        Failure::bad_input("the lab of these flags has mistakes. Nothing was written")
    })?;
    write(&out, &files)?;
    let summary = requests.as_ref().map(Requests::summary);
    let summary = summary.or_else(|| calls.as_ref().map(Calls::summary));
    console.answer(&next(&draft, &summary.unwrap_or_default()));
    Ok(Exit::Done)
}

/// Writes a copy of a lab of the gallery.
fn copied(name: &str, args: &Args, console: Console) -> Result<Exit, Failure> {
    let copy = gallery::copy(name)?;
    let lab = lab::parse(&copy.lab, &copy.files).map_err(|found| {
        console.say(found.render(console.color));
        Failure::bug(format!("the lab `{name}` of the gallery has mistakes"))
    })?;
    let out = args.out();
    write(&out, &copy.files)?;
    console.answer(&copy.next(&lab, &out));
    Ok(Exit::Done)
}

impl Args {
    /// The same flags, with each bare server as a command or as a URL.
    fn sorted(&self) -> Result<Args, Failure> {
        let mut sorted = self.clone();
        for server in std::mem::take(&mut sorted.servers) {
            if server.ends_with(".proto") && !server.contains(' ') {
                return Err(Failure::bad_input(format!(
                    "expected a server, found the file `{server}`. Write `weigh init COMMAND --proto {server} \
                     --invent`"
                )));
            }
            // A program has no colon in its name. So `localhost:9000` is an address.
            match address::url(&server) {
                Ok(url) => sorted.urls.push(url),
                Err(why) if server.contains("://") && !server.contains(' ') => {
                    return Err(Failure::bad_input(format!("`{server}`: {why}")));
                }
                Err(_) => sorted.commands.push(server),
            }
        }
        if let Some(out) = &sorted.out
            && out
                .extension()
                .is_some_and(|it| it == "yaml" || it == "yml")
        {
            return Err(Failure::bad_input(format!(
                "expected a folder with `--out`, found the file `{}`. Write `--out {}`, and the lab gets this name",
                out.display(),
                out.with_extension("").display()
            )));
        }
        match (&sorted.urls[..], &sorted.path) {
            ([url, ..], Some(_)) => Err(Failure::bad_input(format!(
                "expected no `--path` with the URL `{url}`, whose own path is the path of the request"
            ))),
            _ => Ok(sorted),
        }
    }

    /// The folder for the lab.
    fn out(&self) -> PathBuf {
        let usual = || Path::new("labs").join(self.from.as_deref().unwrap_or("first"));
        self.out.clone().unwrap_or_else(usual)
    }
}

/// The servers or services that the flags compare.
fn setup(args: &Args) -> Result<Setup, Failure> {
    if let [file, service] = args.compose.as_slice() {
        let way_back = way_back(&args.out())?;
        let wanted = Wanted {
            file: Path::new(file),
            service,
            behind: args.behind.as_deref(),
            profiles: &args.profiles,
            way_back: Path::new(&way_back),
        };
        return compose::draft(wanted).map(Setup::Compose);
    }
    if let Some(proxy) = &args.proxy {
        let known = KnownProxy::named(proxy);
        let is_told = known.is_some() || proxy.replace(' ', "").contains("{{server.");
        let server = match (args.commands.as_slice(), args.urls.as_slice()) {
            ([command], []) if !is_told => {
                return Err(Failure::bad_input(format!(
                    "expected the address of `{command}` in `--proxy`, as {{{{server.addr}}}}, \
                     {{{{server.port}}}} or {{{{server.url}}}}, found none in `{proxy}`. The \
                     names without a command are {}",
                    KnownProxy::names()
                )));
            }
            ([], [url]) if known.is_some() && url.scheme_str() == Some("https") => {
                return Err(Failure::bad_input(format!(
                    "expected a server without TLS behind `--proxy {proxy}`, found `{url}`. Use \
                     its `http` address, or write the command of a proxy that connects with TLS"
                )));
            }
            ([command], []) => Server::Command(command.clone()),
            ([], [url]) => Server::Url(url.clone()),
            (commands, urls) => {
                return Err(Failure::bad_input(format!(
                    "expected one `--command` or one `--url` with `--proxy`, found {}. The lab \
                     compares that server without and with the proxy",
                    commands.len() + urls.len()
                )));
            }
        };
        let proxy = known.map_or_else(|| Proxy::Command(proxy.clone()), Proxy::Known);
        return Ok(Setup::Proxy { server, proxy });
    }
    match (args.commands.as_slice(), args.urls.as_slice()) {
        ([command], []) => Ok(Setup::Alone(command.clone())),
        ([first, second], []) => Ok(Setup::Commands([first.clone(), second.clone()])),
        ([], [first, second]) => Ok(Setup::Urls([first.clone(), second.clone()])),
        ([], [url]) => Err(Failure::bad_input(format!(
            "expected a second `--url` to compare with `{url}`, or a `--proxy` before it, found neither"
        ))),
        ([command, ..], [url, ..]) => Err(Failure::bad_input(format!(
            "expected two commands or two URLs, found the command `{command}` and the URL `{url}`. \
             Start that server yourself and give its URL, or give two commands"
        ))),
        (commands, urls) => Err(Failure::bad_input(format!(
            "expected at most two servers to compare, found {}. Write two, and add the other \
             servers to the lab as variants",
            commands.len() + urls.len()
        ))),
    }
}

/// The requests from the file that a flag names, or from commands.
fn requests(args: &Args, console: Console) -> Result<Option<Requests>, Failure> {
    if !args.curl.is_empty() {
        let found = curl::read(&args.curl, Path::new(""), args.host.as_deref())
            .map_err(|why| Failure::bad_input(format!("`--curl`: {why}")))?;
        return enough(found, "--curl", args.partial, console).map(Some);
    }
    let files = [
        &args.har,
        &args.openapi,
        &args.artillery,
        &args.k6,
        &args.postman,
        &args.http,
    ];
    let Some(path) = files.into_iter().find_map(Option::as_ref) else {
        return Ok(None);
    };
    let shown = path.display().to_string();
    let source = file_name(path);
    if args.k6.is_some() {
        let found = k6_requests(path, &source, args);
        let found = found.map_err(|why| Failure::bad_input(format!("`{shown}`: {why}")))?;
        return enough(found, &shown, args.partial, console).map(Some);
    }
    let text = fs::read(path)
        .map_err(|error| error.to_string())
        .and_then(readable)
        .map_err(|why| Failure::bad_input(format!("`{shown}` cannot be read: {why}")))?;
    if let Some(advice) = kinds::unsupported(&text) {
        return Err(Failure::bad_input(format!("`{shown}`: {advice}")));
    }
    let host = args.host.as_deref();
    let (flag, found) = if args.har.is_some() {
        ("--har", har::read(&source, &text, host))
    } else if args.openapi.is_some() {
        let found = openapi::read(&source, &text, args.invent, host, console.color);
        ("--openapi", found)
    } else if args.postman.is_some() {
        let found = postman::read(path, &text, args.postman_env.as_deref(), host);
        ("--postman", found)
    } else if args.http.is_some() {
        (
            "--http",
            http_file::read(path, &text, args.http_env.as_deref(), host),
        )
    } else {
        let environment = args.artillery_env.as_deref();
        let found = artillery::read(path, &text, environment, console.color);
        ("--artillery", found)
    };
    let found = found.map_err(|why| {
        let advice = kinds::other_flag(&text, flag).map(|it| format!(". {it}"));
        Failure::bad_input(format!("`{shown}`: {why}{}", advice.unwrap_or_default()))
    })?;
    enough(found, &shown, args.partial, console).map(Some)
}

/// The requests of a k6 script, which can read more files than itself.
fn k6_requests(path: &Path, source: &str, args: &Args) -> Result<Requests, String> {
    let choices = k6::Choices {
        environment: &args.env,
        host: args.host.as_deref(),
        root: args.root.as_deref(),
    };
    let found = k6::read(path, source, choices);
    found.map_err(|why| {
        let text = fs::read(path).ok().and_then(|bytes| readable(bytes).ok());
        let advice = text.and_then(|text| {
            kinds::unsupported(&text).or_else(|| kinds::other_flag(&text, "--k6"))
        });
        let advice = advice.map(|it| format!(". {it}"));
        format!("{why}{}", advice.unwrap_or_default())
    })
}

/// The name of a file without its folder.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The text of a file in UTF-8, or in UTF-16 with a byte order mark.
fn readable(bytes: Vec<u8>) -> Result<String, String> {
    let units = |of_two: fn([u8; 2]) -> u16| {
        let pairs = bytes[2..].chunks_exact(2);
        let units: Vec<u16> = pairs.map(|pair| of_two([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map_err(|error| error.to_string())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|error| error.to_string()),
    }
}

/// The requests of a file, if the lab has at least half of them or the user accepts fewer.
fn enough(
    found: Requests,
    shown: &str,
    is_partial: bool,
    console: Console,
) -> Result<Requests, Failure> {
    let (taken, all) = found.counts();
    if !found.is_empty() && (is_partial || taken >= all - taken) {
        return Ok(found);
    }
    console.say(found.summary().trim_end());
    Err(Failure::bad_input(match taken {
        0 if all == 0 => {
            format!("expected a request in `{shown}`, found none. Nothing was written")
        }
        0 => format!(
            "expected a request in `{shown}` that a lab can send, found none. The reasons are above. \
             Nothing was written"
        ),
        _ => format!(
            "expected at least half of the requests of `{shown}`, took {taken} of {all}. Nothing \
             was written. Add `--partial` to write a lab with fewer"
        ),
    }))
}

/// The current folder relative to `folder`, because commands run in the folder of the user's call.
fn way_back(folder: &Path) -> Result<String, Failure> {
    let mut way = PathBuf::new();
    for component in folder.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => way.push(".."),
            // For an absolute path, a relative path back would break after a move.
            _ => {
                let here = std::env::current_dir().map_err(|error| {
                    Failure::bad_input(format!(
                        "the current folder does not exist any more: {error}"
                    ))
                })?;
                return Ok(here.display().to_string());
            }
        }
    }
    match way.as_os_str().is_empty() {
        true => Ok(".".to_owned()),
        false => Ok(way.display().to_string()),
    }
}

/// Writes the files into a folder. Writes no file if one of them exists.
fn write(folder: &Path, files: &Unwritten) -> Result<(), Failure> {
    let paths = || files.0.iter().map(|(path, _)| folder.join(path));
    if let Some(taken) = paths().find(|path| path.exists()) {
        return Err(Failure::bad_input(format!(
            "expected a new file, found that `{}` exists. Choose another folder with --out",
            taken.display()
        )));
    }
    for (path, (_, content)) in paths().zip(&files.0) {
        write_new(&path, content).map_err(|error| {
            Failure::not_ready(format!(
                "`{}` cannot be written: {error}. Choose another folder with --out",
                path.display()
            ))
        })?;
    }
    Ok(())
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A script that the lab runs.
    let mode = if content.starts_with(b"#!") {
        0o777
    } else {
        0o666
    };
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)
}

/// The printed text: the path of the lab, the summary of a file, and the next commands.
fn next(draft: &Draft<'_>, summary: &str) -> String {
    let (lab, consent) = (draft.lab, draft.consent());
    format!(
        "Wrote {lab}
{summary}
Next commands
  weigh check {lab}{consent}
      proves that every variant answers correctly
  weigh lab {lab}{consent}
      measures the difference
"
    )
}
