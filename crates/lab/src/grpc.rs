//! The descriptors of gRPC calls, from `.proto` files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

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

    /// Compiles the files with these names to a set of descriptors.
    ///
    /// # Errors
    /// The first mistake of a file, with its line.
    fn compile(self, names: &[String]) -> Result<Vec<u8>, String> {
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
        Ok(compiler.encode_file_descriptor_set())
    }
}

/// Reads files and compiles them to a set of descriptors. Imported files are found in `import_paths` and in the folders of `roots`.
///
/// # Errors
/// If a file cannot be read, and the first mistake of a file, with its line.
pub(crate) fn compiled(
    roots: &[PathBuf],
    import_paths: &[PathBuf],
    read: impl Fn(&Path) -> Result<String, String>,
) -> Result<Vec<u8>, String> {
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

/// Returns the set of descriptors of files. `read` returns the bytes of a file.
///
/// # Errors
/// If a file cannot be read, and the first mistake of a file, with its line.
pub fn grpc_descriptors(
    schema: &GrpcSchema<'_>,
    read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let text = |path: &Path| {
        String::from_utf8(read(path)?)
            .map_err(|_| format!("`{}` is not UTF-8 text", path.display()))
    };
    match schema.descriptors {
        Some(path) => read(path),
        None => compiled(schema.protos, schema.import_paths, text),
    }
}

#[cfg(test)]
mod tests {
    use grpc_schema::CallSchema;

    use super::*;

    const GREETER: &str = "syntax = \"proto3\";\npackage helloworld;\nimport \"common/name.proto\";\n\
        import 'google/protobuf/empty.proto';\n\
        service Greeter {\n  rpc SayHello (HelloRequest) returns (HelloReply);\n  \
        rpc Watch (google.protobuf.Empty) returns (stream HelloReply);\n}\n\
        message HelloRequest { common.Name name = 1; int32 times = 2; }\n\
        message HelloReply { string text = 1; }\n";
    const NAME: &str =
        "syntax = \"proto3\";\npackage common;\nmessage Name { string first = 1; }\n";

    #[test]
    fn imported_files_are_found_and_compiled() {
        let read = |path: &Path| match path.to_str() {
            Some("api/greeter.proto") => Ok(GREETER.to_owned()),
            Some("shared/common/name.proto") => Ok(NAME.to_owned()),
            _ => Err(format!("no `{}`", path.display())),
        };
        let folders = [PathBuf::from("api"), PathBuf::from("shared")];
        let (sources, names) =
            Sources::read(&["api/greeter.proto".into()], &folders, read).unwrap();
        assert_eq!(names, ["greeter.proto"]);
        let schema = CallSchema::read(&sources.compile(&names).unwrap()).unwrap();
        let hello = schema.method("helloworld.Greeter/SayHello").unwrap();
        let bytes = hello.encode(r#"{"name": {"first": "Ada"}, "times": 2}"#);
        assert_eq!(bytes, Ok(b"\x0a\x05\x0a\x03Ada\x10\x02".to_vec()));
        let watch = schema.method("/helloworld.Greeter/Watch").unwrap();
        assert!(watch.answers_several() && !watch.takes_several());
    }

    #[test]
    fn a_file_with_a_mistake_is_named() {
        let read = |_: &Path| Ok("syntax = \"proto3\";\nmessage {".to_owned());
        let (sources, names) = Sources::read(&["a.proto".into()], &[], read).unwrap();
        assert!(sources.compile(&names).unwrap_err().contains("a.proto"));
    }
}
