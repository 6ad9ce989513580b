//! A connection to the API server. It survives short outages of the API server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request, header};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::call::{Asked, Resource, Verb};
use crate::error::ClusterError;
use crate::event::Event;
use crate::followed_log::FollowedLog;
use crate::node;
use crate::proxy::{ProxyVariables, proxy_url_of};
use crate::rule::Rule;

/// Time limit for the API server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit for a response of the API server.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// Time to wait for an API server that is away.
const AWAY_MOST: Duration = Duration::from_secs(90);
/// Time to wait for a response that only explains another failure.
const AWAY_BRIEFLY: Duration = Duration::from_secs(3);
/// Time limit for one response that a kubelet gives. The API server waits for a lost node for half a minute.
const KUBELET_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// The cluster and namespace to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterContext {
    /// The context of the kubeconfig. `None` for the current context.
    pub context: Option<String>,
    /// The namespace. `None` for the namespace of the context.
    pub namespace: Option<String>,
}

/// A connection to a cluster. All calls block.
pub struct ApiConnection {
    runtime: Runtime,
    client: Client,
    namespace: String,
    is_stopped: Box<dyn Fn() -> bool>,
    /// Wakes a pause when a followed log is whole.
    arrived: Arc<Notify>,
}

/// The effect of a stop request on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heed {
    /// A stop request ends the call between two tries.
    Stop,
    /// The call continues: created objects must be removed in any case.
    Nothing,
    /// A stop request ends the call, and so does a short outage: the response only explains another failure, or
    /// comes from a kubelet.
    StopAndOutage,
}

/// Reads the monotonic clock. No other code of this crate reads it.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock is read in this one place"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl ApiConnection {
    /// Connects like `kubectl`: with `KUBECONFIG`, `~/.kube/config`, or the service account of the pod it
    /// runs in. `is_stopped` returns true if the user wants to stop.
    ///
    /// # Errors
    /// If there is no such cluster or context. The call does not check that the cluster responds.
    pub fn open(
        place: &ClusterContext,
        is_stopped: impl Fn() -> bool + 'static,
    ) -> Result<ApiConnection, ClusterError> {
        ApiConnection::of(Kubeconfig::read(), place, Box::new(is_stopped))
    }

    /// Connects with this kubeconfig and ignores the environment.
    ///
    /// # Errors
    /// See [`ApiConnection::open`].
    pub fn of_file(
        file: &Path,
        place: &ClusterContext,
        is_stopped: impl Fn() -> bool + 'static,
    ) -> Result<ApiConnection, ClusterError> {
        let read = Kubeconfig::read_from(file);
        read.as_ref()
            .map_err(|error| ClusterError::Nowhere(error.to_string()))?;
        ApiConnection::of(read, place, Box::new(is_stopped))
    }

    fn of(
        read: Result<Kubeconfig, KubeconfigError>,
        place: &ClusterContext,
        is_stopped: Box<dyn Fn() -> bool>,
    ) -> Result<ApiConnection, ClusterError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ClusterError::Nowhere(error.to_string()))?;
        let nowhere = |error: &dyn std::fmt::Display| ClusterError::Nowhere(error.to_string());
        let options = KubeConfigOptions {
            context: place.context.clone(),
            ..KubeConfigOptions::default()
        };
        let read = read.map(|file| (proxy_url_of(&file, place.context.as_deref()), file));
        let given = read.as_ref().ok().and_then(|(given, _)| given.clone());
        let mut config = runtime.block_on(async {
            match read {
                Ok((_, file)) => Config::from_custom_kubeconfig(file, &options)
                    .await
                    .map_err(|error| nowhere(&error)),
                // Within a pod there is no file. A given context requires a file.
                Err(error) if place.context.is_some() => Err(nowhere(&error)),
                Err(_) => Config::infer().await.map_err(|error| nowhere(&error)),
            }
        })?;
        config.proxy_url = ProxyVariables::read()
            .proxy_for(given.as_deref(), &config.cluster_url)
            .map_err(ClusterError::Nowhere)?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        // The loop in this file counts tries, because it checks between them if the user wants to stop.
        config.default_retry = false;
        let client = runtime
            .block_on(async { Client::try_from(config) })
            .map_err(|error| nowhere(&error))?;
        let namespace = place.namespace.clone();
        Ok(ApiConnection {
            namespace: namespace.unwrap_or_else(|| client.default_namespace().to_owned()),
            runtime,
            client,
            is_stopped,
            arrived: Arc::default(),
        })
    }

    /// The namespace of all objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the version of the API server, such as `v1.34.4`.
    ///
    /// # Errors
    /// If the API server is away for too long.
    pub fn version(&self) -> Result<String, ClusterError> {
        let version = self.json(
            "report its version",
            || Request::get("/version").body(Vec::new()),
            Heed::Stop,
        )?;
        Ok(version["gitVersion"].as_str().unwrap_or("?").to_owned())
    }

    /// Returns one object.
    ///
    /// # Errors
    /// If the object does not exist, or the cluster is away or refuses.
    pub fn get(&self, resource: Resource, name: &str) -> Result<Value, ClusterError> {
        let what = Asked(Verb::Get, resource, name).to_string();
        let path = resource.path(&self.namespace, Some(name));
        self.json(&what, || Request::get(&path).body(Vec::new()), Heed::Stop)
    }

    /// Returns the counters of a kubelet. A silent kubelet does not hold a run up. The next reading may reach it.
    ///
    /// # Errors
    /// If the cluster or the kubelet is away or refuses.
    pub fn kubelet_summary(&self, node: &str) -> Result<Value, ClusterError> {
        let what = Asked(Verb::Get, Resource::NodeProxy, node).to_string();
        let path = Resource::NodeProxy.path(&self.namespace, Some(node));
        self.patiently(&what, Heed::StopAndOutage, || {
            let request = Request::get(&path).body(Vec::new());
            let request = request.map_err(kube::Error::HttpError)?;
            self.runtime.block_on(async {
                let answer = self.client.request::<Value>(request);
                match tokio::time::timeout(KUBELET_TIMEOUT, answer).await {
                    Ok(answer) => answer,
                    Err(late) => Err(kube::Error::Service(late.into())),
                }
            })
        })
    }

    /// Returns the reason why a node counts as lost. `None` while the cluster hears from it.
    ///
    /// # Errors
    /// If the cluster is away, or does not allow to read nodes.
    pub fn why_lost(&self, node: &str) -> Result<Option<String>, ClusterError> {
        match self.get(Resource::Nodes, node) {
            Ok(found) => Ok(node::why_lost(&found)),
            Err(error) if error.is_not_found() => {
                Ok(Some("it was removed from the cluster".into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the log of a container of a pod. `None` for the only container. The kubelet of the pod gives the
    /// response, so the call does not wait for long.
    ///
    /// # Errors
    /// If the object does not exist, or the cluster or the kubelet is away or refuses.
    pub fn log(&self, pod: &str, container: Option<&str>) -> Result<String, ClusterError> {
        let what = Asked(Verb::Get, Resource::PodLogs, pod).to_string();
        let path = self.log_path(pod);
        let query = container.map_or_else(String::new, |name| format!("?container={name}"));
        self.text_at(&what, &format!("{path}{query}"))
    }

    /// Follows the log of a container of a pod until a line equals `last_line`. `None` for the only container.
    #[must_use]
    pub fn follow_log(
        &self,
        pod: &str,
        container: Option<&str>,
        last_line: &'static str,
    ) -> FollowedLog {
        let of = container.map_or_else(String::new, |name| format!("&container={name}"));
        let path = format!("{}?follow=true{of}", self.log_path(pod));
        let arrived = Arc::clone(&self.arrived);
        FollowedLog::start(&self.runtime, self.client.clone(), path, last_line, arrived)
    }

    /// Returns a followed log. `None` if its connection has ended before its last line.
    #[must_use]
    pub fn followed(&self, log: FollowedLog) -> Option<String> {
        log.wait(&self.runtime)
    }

    fn log_path(&self, pod: &str) -> String {
        Resource::PodLogs.path(&self.namespace, Some(pod))
    }

    fn text_at(&self, what: &str, path: &str) -> Result<String, ClusterError> {
        self.patiently(what, Heed::StopAndOutage, || {
            let request = Request::get(path).body(Vec::new());
            let request = request.map_err(kube::Error::HttpError)?;
            self.runtime.block_on(self.client.request_text(request))
        })
    }

    /// Returns the last lines of the log of a container: at most `lines`. Long lines are cut.
    ///
    /// # Errors
    /// If the cluster is away or refuses, such as for a pod without a started container.
    pub fn last_log_lines(
        &self,
        pod: &str,
        container: Option<&str>,
        lines: usize,
    ) -> Result<Vec<String>, ClusterError> {
        let what = Asked(Verb::Get, Resource::PodLogs, pod).to_string();
        let path = self.log_path(pod);
        let of = container.map_or_else(String::new, |name| format!("&container={name}"));
        let path = format!("{path}?tailLines={lines}{of}");
        let text = self.text_at(&what, &path)?;
        Ok(shortened(&text))
    }

    /// Returns all objects with these labels (`app=x,round=1`).
    ///
    /// # Errors
    /// If the cluster is away or refuses.
    pub fn list(
        &self,
        resource: Resource,
        selector: &str,
        heed: Heed,
    ) -> Result<Vec<Value>, ClusterError> {
        let what = Asked(Verb::List, resource, "").to_string();
        let path = resource.path(&self.namespace, None);
        // Labels are letters, digits, `-`, `_`, `.`, `/` and `=`. Only `=` and `/` have a meaning in a query.
        let selector = selector.replace('/', "%2F").replace('=', "%3D");
        let path = format!("{path}?labelSelector={selector}");
        let found = self.json(&what, || Request::get(&path).body(Vec::new()), heed)?;
        match found {
            Value::Object(mut list) => match list.remove("items") {
                Some(Value::Array(items)) => Ok(items),
                _ => Ok(Vec::new()),
            },
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an object. If a try created it and the response was lost, the next try finds it. Names belong
    /// to one run, so an existing object is the requested object.
    ///
    /// # Errors
    /// If the cluster is away or refuses.
    pub fn create(&self, resource: Resource, object: &Value) -> Result<Value, ClusterError> {
        let name = name_of(object);
        let what = Asked(Verb::Create, resource, name).to_string();
        // Without `Strict`, the cluster would drop a member that it does not know.
        let path = resource.path_of_new(&self.namespace, object);
        let path = format!("{path}?fieldValidation=Strict");
        let body = object.to_string().into_bytes();
        let mut tries = 0;
        let made = self.patiently(&what, Heed::Stop, || {
            tries += 1;
            let request = Request::post(&path)
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
            let request = request.map_err(kube::Error::HttpError)?;
            self.runtime.block_on(self.client.request::<Value>(request))
        });
        match made {
            Err(ClusterError::Refused { status: 409, .. }) if tries > 1 => {
                tracing::debug!(name, "an earlier attempt created it and lost the answer");
                Ok(object.clone())
            }
            made => made,
        }
    }

    /// Asks the cluster if it would create this object. The cluster runs all its checks and stores nothing.
    ///
    /// # Errors
    /// If the cluster is away or would refuse.
    pub fn try_create(&self, resource: Resource, object: &Value) -> Result<(), ClusterError> {
        let what = Asked(Verb::Create, resource, name_of(object)).to_string();
        let path = format!("{}?dryRun=All", resource.path(&self.namespace, None));
        let body = object.to_string().into_bytes();
        let request = || {
            Request::post(&path)
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone())
        };
        self.json(&what, request, Heed::Stop).map(|_| ())
    }

    /// Returns the events of an object, as the cluster lists them.
    ///
    /// # Errors
    /// If the cluster is away or refuses.
    pub fn events_of(&self, kind: &str, name: &str) -> Result<Vec<Event>, ClusterError> {
        let what = Asked(Verb::List, Resource::Events, "").to_string();
        let path = resource_events(&self.namespace, kind, name);
        let get = || Request::get(&path).body(Vec::new());
        let found = self.json(&what, get, Heed::StopAndOutage)?;
        let items = found["items"].as_array().into_iter().flatten();
        Ok(items.map(Event::of).collect())
    }

    /// Changes members of an object.
    ///
    /// # Errors
    /// If the object does not exist, or the cluster is away or refuses.
    pub fn merge(
        &self,
        resource: Resource,
        name: &str,
        change: &Value,
    ) -> Result<Value, ClusterError> {
        let what = Asked(Verb::Patch, resource, name).to_string();
        let path = resource.path(&self.namespace, Some(name));
        let body = change.to_string().into_bytes();
        let request = || {
            Request::builder()
                .method(Method::PATCH)
                .uri(&path)
                .header(header::CONTENT_TYPE, "application/merge-patch+json")
                .body(body.clone())
        };
        self.json(&what, request, Heed::Stop)
    }

    /// Removes an object, and in the background all objects that it owns. A missing object is no error. The
    /// call runs even if the user wants to stop.
    ///
    /// # Errors
    /// If the cluster is away or refuses.
    pub fn delete(&self, resource: Resource, name: &str) -> Result<(), ClusterError> {
        self.delete_with(resource, name, "propagationPolicy=Background")
    }

    /// Removes a pod of a lost node, which cannot report its end. A missing pod is no error. The call runs even if
    /// the user wants to stop.
    ///
    /// # Errors
    /// If the cluster is away or refuses.
    pub fn delete_lost_pod(&self, name: &str) -> Result<(), ClusterError> {
        self.delete_with(Resource::Pods, name, "gracePeriodSeconds=0")
    }

    fn delete_with(&self, resource: Resource, name: &str, query: &str) -> Result<(), ClusterError> {
        let what = Asked(Verb::Delete, resource, name).to_string();
        let path = resource.path(&self.namespace, Some(name));
        let path = format!("{path}?{query}");
        match self.json(
            &what,
            || Request::delete(&path).body(Vec::new()),
            Heed::Nothing,
        ) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed.map(|_| ()),
        }
    }

    fn json(
        &self,
        what: &str,
        request: impl Fn() -> http::Result<Request<Vec<u8>>>,
        heed: Heed,
    ) -> Result<Value, ClusterError> {
        self.patiently(what, heed, || {
            let request = request().map_err(kube::Error::HttpError)?;
            self.runtime.block_on(self.client.request::<Value>(request))
        })
    }

    /// Repeats a call for a while, until there is a response.
    fn patiently<T>(
        &self,
        what: &str,
        heed: Heed,
        mut attempt: impl FnMut() -> Result<T, kube::Error>,
    ) -> Result<T, ClusterError> {
        let began = now();
        loop {
            let error = match attempt() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let what = what.to_owned();
            let last = match judged(&error, &what) {
                Judged::Final(error) => return Err(error),
                Judged::Away(last) => last,
            };
            tracing::debug!(what, last, "the API server does not answer");
            if heed != Heed::Nothing && (self.is_stopped)() {
                return Err(ClusterError::Stopped { what });
            }
            let most = match heed {
                Heed::StopAndOutage => AWAY_BRIEFLY,
                Heed::Stop | Heed::Nothing => AWAY_MOST,
            };
            if began.elapsed() >= most {
                let seconds = began.elapsed().as_secs();
                return Err(ClusterError::Away {
                    what,
                    seconds,
                    last,
                });
            }
            self.pause(TRY_AGAIN);
        }
    }

    /// Waits. The connection stays active.
    pub fn pause(&self, long: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(long).await });
    }

    /// Waits, at most until a followed log is whole.
    pub fn pause_for_log(&self, most: Duration) {
        self.runtime.block_on(async {
            // The caller looks again in both cases.
            let _woken = tokio::time::timeout(most, self.arrived.notified()).await;
        });
    }

    /// True if the user wants to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        (self.is_stopped)()
    }
}

/// The consequence of a failure for the next try.
enum Judged {
    /// Another try would have the same result.
    Final(ClusterError),
    /// Another try may succeed.
    Away(String),
}

fn judged(error: &kube::Error, what: &str) -> Judged {
    let what = what.to_owned();
    match error {
        kube::Error::Api(status) => {
            let message = match status.message.is_empty() {
                true => status.reason.clone(),
                false => status.message.clone(),
            };
            match status.code {
                401 => Judged::Final(ClusterError::Unknown { what, message }),
                403 => Judged::Final(match Rule::of(&message) {
                    None => ClusterError::Forbidden { what, message },
                    Some(rule) => ClusterError::Ruled {
                        what,
                        rule,
                        message,
                    },
                }),
                // A policy or a webhook chooses its own status.
                400 | 422 if Rule::of(&message) == Some(Rule::Policy) => {
                    Judged::Final(ClusterError::Ruled {
                        what,
                        rule: Rule::Policy,
                        message,
                    })
                }
                // Too many requests, and unavailable servers behind the API server.
                429 | 500 | 502 | 503 | 504 => Judged::Away(message),
                status => Judged::Final(ClusterError::Refused {
                    what,
                    status,
                    message,
                }),
            }
        }
        kube::Error::SerdeError(error) => Judged::Final(ClusterError::Unreadable {
            what,
            reason: error.to_string(),
        }),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
            Judged::Away(with_causes(error))
        }
        other => Judged::Final(ClusterError::Refused {
            what,
            status: 0,
            message: with_causes(other),
        }),
    }
}

/// Returns an error with its causes. The first sentence of a failed connection names no cause.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = next.source();
    }
    said
}

/// The path of the events of an object.
fn resource_events(namespace: &str, kind: &str, name: &str) -> String {
    let path = Resource::Events.path(namespace, None);
    // Names are letters, digits, `-` and `.`.
    format!("{path}?fieldSelector=involvedObject.kind%3D{kind}%2CinvolvedObject.name%3D{name}")
}

/// The name of an object, or empty without a name.
#[must_use]
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Maximum length in characters of a line of a log in a message.
const LINE_MAX: usize = 400;

/// The lines of a log. Long lines are cut, and end with `…`.
fn shortened(text: &str) -> Vec<String> {
    let cut = |line: &str| match line.char_indices().nth(LINE_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    };
    text.lines().map(str::trim_end).map(cut).collect()
}
