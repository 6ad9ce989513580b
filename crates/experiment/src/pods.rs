//! Labs with systems and generators in pods of a cluster.
//!
//! | topic | module |
//! |---|---|
//! | labs that a cluster cannot measure | [`refusal`] |
//! | pods of the systems | [`systems`] |
//! | manifests of the user | [`manifests`] |
//! | the cluster's part of a run and of its rounds | [`stage`] |
//! | the generator that ended a round, if one was lost | [`loss`] |
//! | systems that a round needs | [`wanted`] |
//! | the start of these systems | [`start_progress`] |
//! | the domain in the names of their Services | [`cluster_domain`] |
//! | the time limits of pods | [`waits`] |
//! | the input of a generator | [`generator_job`], [`round_spec`], [`load_spec`], [`meeting`], [`packed_files`] |
//! | a single load without systems | [`single_load`] |
//! | the connections between generators | [`barrier`] |
//! | the result of a generator | [`result`] |
//! | the task of the keeper after the end of `weigh` | [`cleanup_task`] |

#[cfg(test)]
#[path = "../../cluster/tests/fake_api/server.rs"]
mod fake_api;

pub mod barrier;
pub mod cleanup_task;
pub mod cluster_domain;
pub mod generator_job;
pub mod load_spec;
mod loss;
pub mod manifests;
pub mod meeting;
pub mod packed_files;
#[cfg(test)]
mod played_cluster;
pub mod refusal;
pub mod result;
pub mod round_spec;
pub mod single_load;
pub mod stage;
pub(crate) mod start_progress;
pub(crate) mod systems;
pub mod waits;
pub mod wanted;
