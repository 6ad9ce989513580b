//! `PUT /route`: writes routes into a cluster through the webhook.
//!
//! Each route becomes a ConfigMap with its XML and an IntegrationRoute that names it. Before the first write,
//! the webhook reads all objects with these names. It never replaces objects of another creator. Routes are
//! then written in parallel and independently: the failure of one does not undo another.

mod access;
mod order;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::json::Writer;
use crate::key;

pub(crate) use access::{Access, Denied};
pub(crate) use order::{Order, RouteOrder};

/// Time limit for connecting to the cluster.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a response of the cluster.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The entry with the route's XML in a ConfigMap.
const XML: &str = "integrationRoute.xml";

/// The label of objects that this service creates. Other objects do not have it.
const LABEL: (&str, &str) = ("app.kubernetes.io/created-by", "keip");

/// The cluster's status if an object already exists, or has changed meanwhile.
const CONFLICT: u16 = 409;

/// Number of routes that are written concurrently: an order of thousands must not flood the cluster.
const ROUTES_AT_ONCE: usize = 16;

/// The reason why some or all routes are not in the cluster.
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
    #[error(
        "not replaced, because this service did not create it: {}; nothing was changed. Choose \
         another name, or give the object the label {}={}",
        .0.join(", "), LABEL.0, LABEL.1
    )]
    Foreign(Vec<String>),
    #[error(
        "not written, because it is being deleted: {}; nothing was changed. Send the request again \
         once it is gone",
        .0.join(", ")
    )]
    Leaving(Vec<String>),
    #[error("{0} was changed by another in the meantime; send the request again")]
    Changed(String),
}

/// The cluster for the routes.
pub(crate) struct Cluster {
    kubeconfig: Option<PathBuf>,
    /// Created at the first use. A failed attempt is repeated at the next use.
    client: RefCell<Option<Client>>,
}

/// The effect of a write on an object.
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

    /// Writes routes into the cluster. The report contains the effect on each object.
    pub(crate) async fn deploy(&self, routes: &[RouteOrder]) -> Result<String, DeployError> {
        let client = self.client().await?;
        let sites: Vec<_> = routes
            .iter()
            .map(|route| Site::new(&client, route))
            .collect();
        // All objects are read before the first write: an order that conflicts with a foreign object has no
        // effect.
        let found = together(sites.iter().map(Site::look)).await?;
        let named = |is: fn(&Found) -> bool| -> Vec<String> {
            let sites = sites.iter().zip(&found);
            sites
                .flat_map(|(site, found)| site.named(found, is))
                .collect()
        };
        let foreign = named(|found| matches!(found, Found::Foreign));
        if !foreign.is_empty() {
            return Err(DeployError::Foreign(foreign));
        }
        // A write to such an object is lost when it is deleted, and a report of it would be wrong.
        let leaving = named(|found| matches!(found, Found::Leaving));
        if !leaving.is_empty() {
            return Err(DeployError::Leaving(leaving));
        }
        let work = sites.iter().zip(&found);
        let effects = together(work.map(|(site, found)| site.put(found))).await?;
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

/// Runs a few futures at a time. Returns all results in order.
async fn together<T>(
    work: impl Iterator<Item = impl Future<Output = Result<T, DeployError>>>,
) -> Result<Vec<T>, DeployError> {
    // An order takes about as long as its slowest routes.
    stream::iter(work)
        .buffered(ROUTES_AT_ONCE)
        .try_collect()
        .await
}

/// The state of an object in the cluster.
enum Found {
    Absent,
    /// Created by this service, with its version.
    Own(Option<String>),
    /// Ours, but its deletion has begun.
    Leaving,
    Foreign,
}

/// The objects of one route in the cluster.
struct Site<'a> {
    route: &'a RouteOrder,
    map_name: String,
    maps: Api<ConfigMap>,
    kind: ApiResource,
    routes: Api<DynamicObject>,
}

impl<'a> Site<'a> {
    fn new(client: &Client, route: &'a RouteOrder) -> Self {
        let kind = GroupVersionKind::gvk("keip.codice.org", "v1alpha2", "IntegrationRoute");
        let kind = ApiResource::from_gvk_with_plural(&kind, "integrationroutes");
        Self {
            map_name: route.config_map(),
            maps: Api::namespaced(client.clone(), &route.namespace),
            routes: Api::namespaced_with(client.clone(), &route.namespace, &kind),
            kind,
            route,
        }
    }

    /// Reads the state of the ConfigMap and the route.
    async fn look(&self) -> Result<[Found; 2], DeployError> {
        let map = look(&self.maps, &self.map_name).await?;
        let own = look(&self.routes, &self.route.name).await?;
        Ok([map, own])
    }

    /// The names, for people, of the objects that satisfy `is`.
    fn named(&self, found: &[Found; 2], is: fn(&Found) -> bool) -> impl Iterator<Item = String> {
        let names = [self.map_named(), self.route_named()];
        let named = names.into_iter().zip(found.each_ref().map(is));
        named.filter_map(|(name, holds)| holds.then_some(name))
    }

    fn map_named(&self) -> String {
        format!("ConfigMap `{}/{}`", self.route.namespace, self.map_name)
    }

    fn route_named(&self) -> String {
        let RouteOrder {
            namespace, name, ..
        } = self.route;
        format!("IntegrationRoute `{namespace}/{name}`")
    }

    /// Writes a ConfigMap, then the route that refers to it.
    async fn put(&self, [map, own]: &[Found; 2]) -> Result<(Effect, Effect), DeployError> {
        // The map first: a route that refers to a missing ConfigMap would start pods that fail.
        let map = self.put_map(map).await;
        let map = map.map_err(|error| changed(error, || self.map_named()))?;
        let own = self.put_route(own).await;
        let own = own.map_err(|error| changed(error, || self.route_named()))?;
        Ok((map, own))
    }

    async fn put_map(&self, found: &Found) -> Result<Effect, kube::Error> {
        let data = BTreeMap::from([owned(XML, &self.route.xml)]);
        if let Found::Own(version) = found {
            // A merge keeps entries that other programs have added to the ConfigMap.
            let patch = json!({ "data": data });
            let patch = of_version(patch, version.as_deref());
            let how = PatchParams::default();
            self.maps
                .patch(&self.map_name, &how, &Patch::Merge(patch))
                .await?;
            return Ok(Effect::Updated);
        }
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.map_name.clone()),
                labels: Some(BTreeMap::from(
                    [LABEL].map(|(name, value)| owned(name, value)),
                )),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        self.maps.create(&PostParams::default(), &map).await?;
        Ok(Effect::Created)
    }

    async fn put_route(&self, found: &Found) -> Result<Effect, kube::Error> {
        let name = &self.route.name;
        let spec = json!({ "routeConfigMap": self.map_name });
        if let Found::Own(version) = found {
            // A merge keeps members that users have set on the route.
            let patch = of_version(json!({ "spec": spec }), version.as_deref());
            let how = PatchParams::default();
            self.routes.patch(name, &how, &Patch::Merge(patch)).await?;
            return Ok(Effect::Updated);
        }
        let mut object = DynamicObject::new(name, &self.kind).data(json!({ "spec": spec }));
        object.metadata.labels = Some(BTreeMap::from(
            [LABEL].map(|(name, value)| owned(name, value)),
        ));
        let how = PostParams::default();
        self.routes.create(&how, &object).await?;
        Ok(Effect::Created)
    }
}

/// A patch that the cluster refuses if the object has changed since it was read.
fn of_version(mut patch: Value, version: Option<&str>) -> Value {
    if let Some(version) = version {
        patch["metadata"] = json!({ "resourceVersion": version });
    }
    patch
}

/// Reads if the object exists, and if this service created it. Its content is not requested.
async fn look<K>(objects: &Api<K>, name: &str) -> Result<Found, kube::Error>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let Some(object) = objects.get_metadata_opt(name).await? else {
        return Ok(Found::Absent);
    };
    let metadata = object.metadata;
    let owner = metadata.labels.as_ref().and_then(|it| it.get(LABEL.0));
    Ok(match owner {
        Some(owner) if owner == LABEL.1 && metadata.deletion_timestamp.is_some() => Found::Leaving,
        Some(owner) if owner == LABEL.1 => Found::Own(metadata.resource_version),
        _ => Found::Foreign,
    })
}

/// Converts the cluster's conflict error for a changed object to our error.
fn changed(error: kube::Error, object: impl FnOnce() -> String) -> DeployError {
    match error {
        kube::Error::Api(status) if status.code == CONFLICT => DeployError::Changed(object()),
        error => error.into(),
    }
}

fn owned(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
