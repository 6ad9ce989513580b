//! `PUT /route`: routes that are put into a cluster through the webhook.
//!
//! Each becomes a ConfigMap with its XML and an IntegrationRoute that names it. Routes are put in
//! parallel and independently: a failure of one does not undo another.

mod order;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::json;

use crate::json::Writer;
use crate::key;

pub(crate) use order::{Order, RouteOrder};

/// Time that the cluster may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that the cluster may take for an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The entry of a ConfigMap that holds a route.
const XML: &str = "integrationRoute.xml";

/// What the cluster answers to an object that exists already.
const CONFLICT: u16 = 409;

/// Why routes are not in the cluster, or not all of them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeployError {
    #[error("`{}` is not a kubeconfig: {source}; choose another with --kubeconfig", path.display())]
    Kubeconfig {
        path: PathBuf,
        source: KubeconfigError,
    },
    #[error("there is no cluster to speak to: {0}; name one with --kubeconfig")]
    NoCluster(#[from] InferConfigError),
    #[error("the cluster refused: {0}")]
    Cluster(#[from] kube::Error),
}

/// The cluster that routes are put into.
pub(crate) struct Cluster {
    kubeconfig: Option<PathBuf>,
    /// Made when it is needed first. A failure is not remembered.
    client: RefCell<Option<Client>>,
}

/// What happened to an object.
#[derive(Clone, Copy)]
enum Effect {
    Created,
    Updated,
}

impl Cluster {
    pub(crate) fn new(kubeconfig: Option<PathBuf>) -> Self {
        Self {
            kubeconfig,
            client: RefCell::new(None),
        }
    }

    /// Puts routes into the cluster; the report says what became of each object.
    pub(crate) async fn deploy(&self, routes: &[RouteOrder]) -> Result<String, DeployError> {
        let client = self.client().await?;
        let effects = routes.iter().map(|route| put(client.clone(), route));
        // Together: a list of routes takes about as long as its slowest one.
        let effects = try_join_all(effects).await?;
        let mut report = Writer::new(256);
        report.list(|report| {
            for (route, (map, own)) in routes.iter().zip(effects) {
                for (name, effect) in [(&route.config_map(), map), (&route.name, own)] {
                    report.object(|report| {
                        report.member(key!("name"), name);
                        let status = match effect {
                            Effect::Created => "created",
                            Effect::Updated => "updated",
                        };
                        report.member(key!("status"), status);
                    });
                }
            }
        });
        Ok(report.finish())
    }

    async fn client(&self) -> Result<Client, DeployError> {
        // The borrow must end before the `await` below.
        if let Some(client) = &*self.client.borrow() {
            return Ok(client.clone());
        }
        let mut config = match &self.kubeconfig {
            None => Config::infer().await?,
            Some(path) => {
                let wrong = |source| DeployError::Kubeconfig {
                    path: path.clone(),
                    source,
                };
                let options = KubeConfigOptions::default();
                let file = Kubeconfig::read_from(path).map_err(wrong)?;
                let config = Config::from_custom_kubeconfig(file, &options).await;
                config.map_err(wrong)?
            }
        };
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        let client = Client::try_from(config)?;
        self.client.replace(Some(client.clone()));
        Ok(client)
    }
}

/// Puts a ConfigMap, then the route that names it.
async fn put(client: Client, route: &RouteOrder) -> Result<(Effect, Effect), kube::Error> {
    // The map first: a route that names a missing ConfigMap would start pods that fail.
    let map = put_config_map(client.clone(), route).await?;
    let own = put_route(client, route).await?;
    Ok((map, own))
}

async fn put_config_map(client: Client, route: &RouteOrder) -> Result<Effect, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client, &route.namespace);
    let name = route.config_map();
    let label = ("app.kubernetes.io/created-by", "keip");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(BTreeMap::from([label].map(owned))),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([owned((XML, &route.xml))])),
        ..ConfigMap::default()
    };
    // Create, then replace: one request for a new object, and no reading in between that could be
    // out of date.
    let how = PostParams::default();
    if is_created(maps.create(&how, &map).await)? {
        return Ok(Effect::Created);
    }
    maps.replace(&name, &how, &map).await?;
    Ok(Effect::Updated)
}

async fn put_route(client: Client, route: &RouteOrder) -> Result<Effect, kube::Error> {
    let kind = GroupVersionKind::gvk("keip.codice.org", "v1alpha2", "IntegrationRoute");
    let kind = ApiResource::from_gvk_with_plural(&kind, "integrationroutes");
    let routes: Api<DynamicObject> = Api::namespaced_with(client, &route.namespace, &kind);
    let spec = json!({ "spec": { "routeConfigMap": route.config_map() } });
    let object = DynamicObject::new(&route.name, &kind).data(spec.clone());
    if is_created(routes.create(&PostParams::default(), &object).await)? {
        return Ok(Effect::Created);
    }
    // A merge leaves the members alone that users have set on the route.
    let how = PatchParams::default();
    routes.patch(&route.name, &how, &Patch::Merge(spec)).await?;
    Ok(Effect::Updated)
}

/// Whether an object was created; `false` when there is one of this name.
fn is_created<T>(answer: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == CONFLICT => Ok(false),
        Err(error) => Err(error),
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
