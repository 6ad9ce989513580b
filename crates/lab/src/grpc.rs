//! gRPC calls: methods from their descriptors, and messages from JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Framing, StreamRule};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

/// The largest number of digits of a deadline (gRPC over HTTP/2, "Timeout").
const DEADLINE_MAX: u128 = 99_999_999;

/// The `.proto` files of a call by the names under which they are imported.
#[derive(Clone, Debug, Default)]
struct Sources(BTreeMap<String, String>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(text) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

impl Sources {
    /// Reads files and everything that they import. `roots` are paths, and `folders` contain imported files.
    ///
    /// # Errors
    /// If a file cannot be read. Missing imports are found when the files are compiled.
    fn read(
        roots: &[PathBuf],
        folders: &[PathBuf],
        read: impl Fn(&Path) -> Result<String, String>,
    ) -> Result<(Sources, Vec<String>), String> {
        let mut sources = Sources::default();
        let mut names = Vec::new();
        let mut wanted = Vec::new();
        for root in roots {
            let text = read(root)?;
            // A file has the name under which another file imports it.
            let name = folders
                .iter()
                .find_map(|folder| root.strip_prefix(folder).ok())
                .unwrap_or(root.file_name().map_or(root, Path::new));
            let name = name.to_string_lossy().into_owned();
            wanted.extend(imports(&text));
            sources.0.insert(name.clone(), text);
            names.push(name);
        }
        while let Some(name) = wanted.pop() {
            if sources.0.contains_key(&name) {
                continue;
            }
            let found = folders
                .iter()
                .find_map(|folder| read(&folder.join(&name)).ok());
            // Files of Google are part of the compiler.
            if let Some(text) = found {
                wanted.extend(imports(&text));
                sources.0.insert(name, text);
            }
        }
        Ok((sources, names))
    }

    /// Compiles the files with these names.
    ///
    /// # Errors
    /// The first mistake of a file, with its line.
    fn compile(self, names: &[String]) -> Result<DescriptorPool, String> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(self);
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        for name in names {
            compiler
                .open_file(name)
                .map_err(|error| format!("cannot compile `{name}`: {error}"))?;
        }
        Ok(compiler.descriptor_pool())
    }
}

/// Reads and compiles files. Imported files are found in `import_paths` and in the folders of `roots`.
///
/// # Errors
/// If a file cannot be read, and the first mistake of a file, with its line.
pub(crate) fn compiled(
    roots: &[PathBuf],
    import_paths: &[PathBuf],
    read: impl Fn(&Path) -> Result<String, String>,
) -> Result<DescriptorPool, String> {
    let mut folders = import_paths.to_vec();
    let parents = roots.iter().filter_map(|root| root.parent());
    folders.extend(parents.map(Path::to_owned));
    let (sources, names) = Sources::read(roots, &folders, read)?;
    sources.compile(&names)
}

/// Returns the names in the import statements of a file.
fn imports(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let statements = lines.filter_map(|line| line.strip_prefix("import"));
    statements
        .filter_map(|rest| {
            let (_, quoted) = rest.split_once(['"', '\''])?;
            let (name, _) = quoted.split_once(['"', '\''])?;
            Some(name.to_owned())
        })
        .collect()
}

/// Reads a set of descriptors.
///
/// # Errors
/// If the bytes are no such set.
pub(crate) fn pool_of_set(bytes: &[u8]) -> Result<DescriptorPool, String> {
    DescriptorPool::decode(bytes).map_err(|error| {
        format!("expected a set of descriptors (`protoc --include_imports --descriptor_set_out`): {error}")
    })
}

/// Returns the method with this name: `package.Service/Method`.
///
/// # Errors
/// If there is no such method. The message lists the methods that exist.
pub(crate) fn method(pool: &DescriptorPool, name: &str) -> Result<MethodDescriptor, String> {
    let wanted = name.trim_start_matches('/');
    let all = || {
        pool.services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
    };
    all()
        .find(|method| path(method).trim_start_matches('/') == wanted)
        .ok_or_else(|| {
            let known: Vec<String> = all()
                .map(|method| format!("`{}`", path(&method).trim_start_matches('/')))
                .collect();
            let known = match known.is_empty() {
                true => "the files have no service".to_owned(),
                false => format!("the methods are {}", known.join(", ")),
            };
            format!(
                "expected a method as `package.Service/Method`, found `{name}`. In fact {known}"
            )
        })
}

/// Returns the path of a method.
fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Encodes a message that is written as JSON.
///
/// # Errors
/// If the JSON does not fit the message: an unknown field, or a value of another type.
pub(crate) fn encoded(message: &MessageDescriptor, json: &str) -> Result<Vec<u8>, String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let wrong =
        |error: serde_json::Error| format!("expected a message `{}`: {error}", message.full_name());
    let found = DynamicMessage::deserialize(message.clone(), &mut deserializer).map_err(wrong)?;
    deserializer.end().map_err(wrong)?;
    Ok(found.encode_to_vec())
}

/// Adds the prefix of gRPC to a message: no compression, and the length.
pub(crate) fn framed(message: &[u8], body: &mut Vec<u8>) {
    let length = u32::try_from(message.len()).expect("a message of a lab is shorter than 4 GiB");
    body.push(0);
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(message);
}

/// The files that describe the methods of a server.
#[derive(Clone, Copy, Debug)]
pub struct GrpcSchema<'a> {
    /// The `.proto` files. Empty if there is a set of descriptors.
    pub protos: &'a [PathBuf],
    /// Folders of imported files. The folders of `protos` are searched as well.
    pub import_paths: &'a [PathBuf],
    /// A file with a set of descriptors, instead of `protos`.
    pub descriptors: Option<&'a Path>,
}

/// A call, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    /// The path of its request.
    pub path: String,
    /// The headers of its request.
    pub headers: Vec<(String, String)>,
    /// The messages with their prefixes.
    pub body: Vec<u8>,
    /// The rule of the answers, if the method has a stream of them.
    pub stream: Option<StreamRule>,
}

impl GrpcCall {
    /// Returns the call of a method. `body` contains the messages with their prefixes.
    pub(crate) fn of(method: &MethodDescriptor, body: Vec<u8>) -> GrpcCall {
        GrpcCall {
            path: path(method),
            headers: vec![
                ("Content-Type".to_owned(), "application/grpc".to_owned()),
                ("TE".to_owned(), "trailers".to_owned()),
            ],
            body,
            stream: method
                .is_server_streaming()
                .then(|| StreamRule::of(Framing::Grpc)),
        }
    }
}

/// Returns the call of a method with a message in JSON. `read` returns the bytes of a file.
///
/// # Errors
/// If a file cannot be read, or the method or the message does not fit the files.
pub fn grpc_call(
    name: &str,
    schema: &GrpcSchema<'_>,
    message: &str,
    read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
) -> Result<GrpcCall, String> {
    let text = |path: &Path| {
        String::from_utf8(read(path)?)
            .map_err(|_| format!("`{}` is not UTF-8 text", path.display()))
    };
    let pool = match schema.descriptors {
        Some(path) => pool_of_set(&read(path)?)?,
        None => compiled(schema.protos, schema.import_paths, text)?,
    };
    let method = method(&pool, name)?;
    let mut body = Vec::new();
    framed(&encoded(&method.input(), message)?, &mut body);
    Ok(GrpcCall::of(&method, body))
}

/// Returns a time limit as the value of `grpc-timeout`.
pub(crate) fn deadline(limit: Duration) -> String {
    match limit.as_micros() {
        us if us <= DEADLINE_MAX => format!("{us}u"),
        us => format!("{}m", (us / 1000).min(DEADLINE_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETER: &str = "syntax = \"proto3\";\npackage helloworld;\nimport \"common/name.proto\";\n\
        import 'google/protobuf/empty.proto';\n\
        service Greeter {\n  rpc SayHello (HelloRequest) returns (HelloReply);\n  \
        rpc Watch (google.protobuf.Empty) returns (stream HelloReply);\n}\n\
        message HelloRequest { common.Name name = 1; int32 times = 2; }\n\
        message HelloReply { string text = 1; }\n";
    const NAME: &str =
        "syntax = \"proto3\";\npackage common;\nmessage Name { string first = 1; }\n";

    fn pool() -> DescriptorPool {
        let read = |path: &Path| match path.to_str() {
            Some("api/greeter.proto") => Ok(GREETER.to_owned()),
            Some("shared/common/name.proto") => Ok(NAME.to_owned()),
            _ => Err(format!("no `{}`", path.display())),
        };
        let folders = [PathBuf::from("api"), PathBuf::from("shared")];
        let (sources, names) =
            Sources::read(&["api/greeter.proto".into()], &folders, read).unwrap();
        assert_eq!(names, ["greeter.proto"]);
        sources.compile(&names).unwrap()
    }

    #[test]
    fn messages_are_written_as_json() {
        let pool = pool();
        let hello = method(&pool, "helloworld.Greeter/SayHello").unwrap();
        assert_eq!(path(&hello), "/helloworld.Greeter/SayHello");
        let bytes = encoded(&hello.input(), r#"{"name": {"first": "Ada"}, "times": 2}"#).unwrap();
        assert_eq!(bytes, b"\x0a\x05\x0a\x03Ada\x10\x02");
        let mut body = Vec::new();
        framed(&bytes, &mut body);
        assert_eq!(&body[..5], b"\0\0\0\0\x09");
        let watch = method(&pool, "/helloworld.Greeter/Watch").unwrap();
        assert!(watch.is_server_streaming() && !watch.is_client_streaming());
        // A set of descriptors has the same methods.
        let again = pool_of_set(&pool.encode_to_vec()).unwrap();
        assert!(method(&again, "helloworld.Greeter/Watch").is_ok());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let pool = pool();
        let error = method(&pool, "Greeter/SayHello").unwrap_err();
        assert!(error.contains("`helloworld.Greeter/SayHello`"), "{error}");
        let hello = method(&pool, "helloworld.Greeter/SayHello").unwrap();
        let error = encoded(&hello.input(), r#"{"nam": 1}"#).unwrap_err();
        assert!(error.contains("nam"), "{error}");
        let error = encoded(&hello.input(), r#"{"times": "x"}"#).unwrap_err();
        assert!(error.contains("helloworld.HelloRequest"), "{error}");
        assert!(pool_of_set(b"syntax = 3").is_err());
        let read = |_: &Path| Ok("syntax = \"proto3\";\nmessage {".to_owned());
        let (sources, names) = Sources::read(&["a.proto".into()], &[], read).unwrap();
        assert!(sources.compile(&names).unwrap_err().contains("a.proto"));
    }

    #[test]
    fn a_deadline_has_at_most_eight_digits() {
        assert_eq!(deadline(Duration::from_secs(2)), "2000000u");
        assert_eq!(deadline(Duration::from_secs(3600)), "3600000m");
    }
}
