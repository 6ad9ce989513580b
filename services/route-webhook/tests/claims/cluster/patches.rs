//! Tests that only a route's own members of existing objects are changed.

use super::*;

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const ROUTES: &str = "/apis/keip.codice.org/v1alpha2/namespaces/shop/integrationroutes";

/// An API with both objects of the route `orders`, modified by `change`.
fn api_with(change: impl Fn(&mut Value)) -> Api {
    let api = Api::start();
    api.write_kubeconfig();
    for path in [format!("{MAPS}/orders-cm"), format!("{ROUTES}/orders")] {
        let labels = json!({"app.kubernetes.io/created-by": "keip", "team": "shop"});
        let mut object = json!({
            "metadata": {"name": "x", "labels": labels, "resourceVersion": "7",
                         "annotations": {"owner": "anna"}},
            "data": {"integrationRoute.xml": "<x/>", "log.xml": "<log/>"},
        });
        change(&mut object);
        api.state.lock().unwrap().objects.insert(path, object);
    }
    api
}

#[test]
fn entries_and_labels_of_others_stay() {
    let api = api_with(|_| {});
    let server = api.webhook();
    let response = put(&server, &order("orders", "shop", "<y/>"));
    assert_eq!(response.status, 201, "{response:?}");
    let state = api.state.lock().unwrap();
    let map = &state.objects[&format!("{MAPS}/orders-cm")];
    let data = json!({"integrationRoute.xml": "<y/>", "log.xml": "<log/>"});
    assert_eq!(map["data"], data);
    assert_eq!(map["metadata"]["labels"]["team"], "shop");
    assert_eq!(map["metadata"]["annotations"]["owner"], "anna");
    let route = &state.objects[&format!("{ROUTES}/orders")];
    assert_eq!(route["spec"]["routeConfigMap"], "orders-cm");
    assert_eq!(route["metadata"]["labels"]["team"], "shop");
}

#[test]
fn what_is_being_deleted_is_left_alone() {
    let deleted = "2026-01-01T00:00:00Z";
    let api = api_with(|object| object["metadata"]["deletionTimestamp"] = deleted.into());
    let server = api.webhook();
    let both = json!({"routes": [
        {"name": "orders", "namespace": "shop", "xml": "<y/>"},
        {"name": "free", "namespace": "shop", "xml": "x"},
    ]});
    let response = put(&server, &both);
    assert_eq!(response.status, 409, "{response:?}");
    let expected = "not written, because it is being deleted: ConfigMap `shop/orders-cm`, \
        IntegrationRoute `shop/orders`; nothing was changed";
    assert!(response.body.starts_with(expected), "{}", response.body);
    assert!(api.written().is_empty(), "the free one neither");
    api.state.lock().unwrap().objects.clear();
    assert_eq!(put(&server, &both).status, 201);
}
