//! Flags for calls of gRPC.

use std::fs;
use std::path::{Path, PathBuf};

use load::Request;
use model::Expectation;

/// Flags for calls of gRPC.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrpcArgs {
    /// Call this method of gRPC, `package.Service/Method`, over HTTP/2.
    ///
    /// The status in the trailers decides whether a call passed. A method with a stream of answers has events,
    /// as with --stream.
    #[arg(long, value_name = "METHOD", requires = "schema", conflicts_with_all = ["targets", "scenario", "method", "data", "data_file", "stream"])]
    grpc: Option<String>,
    /// The .proto file of the method. Imports are found next to it and below --import-path.
    #[arg(
        long,
        value_name = "FILE",
        requires = "grpc",
        group = "schema",
        hide_short_help = true
    )]
    proto: Vec<PathBuf>,
    /// A file with a set of descriptors instead of --proto.
    #[arg(
        long,
        value_name = "FILE",
        requires = "grpc",
        group = "schema",
        conflicts_with = "proto",
        hide_short_help = true
    )]
    descriptors: Option<PathBuf>,
    /// A folder of imported .proto files.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "proto",
        hide_short_help = true
    )]
    import_path: Vec<PathBuf>,
    /// The message of the call in JSON [default: an empty message].
    #[arg(long, value_name = "JSON", requires = "grpc", hide_short_help = true)]
    grpc_message: Option<String>,
    /// The expected status of the call, 0 to 16.
    #[arg(long, value_name = "STATUS", requires = "grpc", hide_short_help = true, value_parser = clap::value_parser!(u32).range(0..=16))]
    grpc_status: Option<u32>,
}

impl GrpcArgs {
    /// True if the request is a call.
    pub(crate) fn is_given(&self) -> bool {
        self.grpc.is_some()
    }

    /// Returns the call of the flags. `None` if the request is no call.
    ///
    /// # Errors
    /// If a file cannot be read, or the method or the message does not fit the files.
    pub(crate) fn request(&self) -> Result<Option<Request>, String> {
        let Some(method) = &self.grpc else {
            return Ok(None);
        };
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
        };
        let schema = lab::GrpcSchema {
            protos: &self.proto,
            import_paths: &self.import_path,
            descriptors: self.descriptors.as_deref(),
        };
        let message = self.grpc_message.as_deref().unwrap_or("{}");
        let call = lab::grpc_call(method, &schema, message, &read)?;
        Ok(Some(Request {
            method: "POST".to_owned(),
            path: call.path,
            headers: call.headers,
            body: call.body,
            expect: Expectation {
                grpc_status: Some(self.grpc_status.unwrap_or(0)),
                stream: call.stream,
                ..Expectation::default()
            },
            weight: 1,
            websocket: None,
        }))
    }
}
