//! Requests that are gRPC calls.

use std::path::PathBuf;

use prost_reflect::{DescriptorPool, MethodDescriptor};
use yaml_with_places::{At, Finding, Json, Place};

use super::files::bytes;
use crate::grpc::{self, GrpcCall};
use crate::places::{Places, Within};
use crate::reading::Reading;
use crate::wire::{GrpcFile, RequestFile};

/// A call and the status that it expects.
pub(super) struct Call {
    pub(super) call: GrpcCall,
    pub(super) status: u32,
}

/// Returns the call of a request. `None` if it has a mistake, which is reported.
pub(super) fn call(
    file: &At<GrpcFile>,
    places: Places<'_>,
    reading: &mut Reading<'_>,
) -> Option<Call> {
    let At { value: file, place } = file;
    let pool = pool(file, *place, reading)?;
    let method = match grpc::method(&pool, &file.method.value) {
        Ok(method) => method,
        Err(wrong) => {
            reading.findings.add(Finding::new(file.method.place, wrong));
            return None;
        }
    };
    let body = body(file, &method, *place, places, reading)?;
    let mut call = GrpcCall::of(&method, body);
    if let Some(limit) = &file.deadline {
        let value = grpc::deadline(limit.0.0);
        call.headers.push(("grpc-timeout".to_owned(), value));
    }
    super::add_headers(&file.metadata, places, &mut call.headers, reading);
    Some(Call {
        call,
        status: file.status.unwrap_or(0),
    })
}

/// Refuses keys that a call sets itself. Returns false with such a key.
pub(super) fn check_keys(request: &RequestFile, reading: &mut Reading<'_>) -> bool {
    let Some(grpc) = &request.grpc else {
        return true;
    };
    let path = request.path.as_ref().map(|it| ("path", it.place));
    let method = request.method.as_ref().map(|_| ("method", grpc.place));
    let mut is_right = true;
    for (key, place) in path.into_iter().chain(request.bodies()).chain(method) {
        is_right = false;
        reading.findings.add(
            Finding::new(place, format!("`grpc` and `{key}` exclude each other"))
                .related(grpc.place, "`grpc` is given here")
                .help("a call has its method, path and body from `grpc`. Remove the other key"),
        );
    }
    is_right
}

fn pool(file: &GrpcFile, place: Place, reading: &mut Reading<'_>) -> Option<DescriptorPool> {
    let found = match (&file.descriptors, file.proto.0.as_slice()) {
        (Some(set), []) => {
            let path = reading.resolve(&set.value, set.place);
            grpc::pool_of_set(&bytes(&path, set.place, reading)?)
        }
        (None, [first, ..]) => {
            let resolve = |it: &At<String>| reading.resolve(&it.value, it.place);
            let roots: Vec<PathBuf> = file.proto.0.iter().map(resolve).collect();
            let import_paths: Vec<PathBuf> = file.import_paths.0.iter().map(resolve).collect();
            let place = first.place;
            return grpc::compiled(&roots, &import_paths, |path| reading.text(path))
                .map_err(|wrong| {
                    let help = "imports are found next to the file and below `import-paths`";
                    reading.findings.add(Finding::new(place, wrong).help(help));
                })
                .ok();
        }
        (Some(_), [_, ..]) => Err("expected `proto` or `descriptors`, found both".to_owned()),
        (None, []) => Err("expected `proto` or `descriptors`, found neither".to_owned()),
    };
    found
        .map_err(|wrong| {
            let help = "for example: `grpc: {method: helloworld.Greeter/SayHello, proto: helloworld.proto}`";
            reading.findings.add(Finding::new(place, wrong).help(help));
        })
        .ok()
}

/// Returns the messages with their prefixes.
fn body(
    file: &GrpcFile,
    method: &MethodDescriptor,
    place: Place,
    places: Places<'_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<u8>> {
    let messages: Vec<&At<Json>> = match (&file.message, &file.messages) {
        (Some(_), Some(several)) => {
            reading.findings.add(
                Finding::new(several.place, "`message` and `messages` exclude each other")
                    .help("remove one of the two"),
            );
            return None;
        }
        (Some(one), None) => vec![one],
        (None, Some(several)) => several.value.iter().collect(),
        (None, None) => Vec::new(),
    };
    if messages.len() != 1 && file.messages.is_some() && !method.is_client_streaming() {
        let finding = Finding::new(
            place,
            format!(
                "`{}` takes one message, found {}",
                file.method.value,
                messages.len()
            ),
        );
        reading.findings.add(
            finding.help("write `message`, or choose a method that takes a stream of messages"),
        );
        return None;
    }
    let mut body = Vec::new();
    if messages.is_empty() && file.messages.is_none() {
        grpc::framed(&[], &mut body);
    }
    for message in messages {
        let json = places.fill(&message.value.0, Within::Json, message.place, reading);
        let encoded = match json.contains("{{") {
            true => Err(
                "a message of gRPC is binary, so it cannot contain a value that differs from request to request"
                    .to_owned(),
            ),
            false => grpc::encoded(&method.input(), &json),
        };
        match encoded {
            Ok(encoded) => grpc::framed(&encoded, &mut body),
            Err(wrong) => {
                reading.findings.add(Finding::new(message.place, wrong));
                return None;
            }
        }
    }
    Some(body)
}
