//! Tests of the systems of this repository in the labs that are shipped with it.

mod attack;
mod charts;
mod graphiql_page;
mod kubernetes;
mod kubernetes_access;
mod kubernetes_families;
mod kubernetes_injection;
mod kubernetes_istio;
mod kubernetes_large;
mod kubernetes_nodes;
mod kubernetes_pods;
mod kubernetes_reasons;
mod kubernetes_reports;
mod layers;
mod node;
mod outside;
mod remote_schema;
mod rolling_restart;
mod router;
mod webhook;
