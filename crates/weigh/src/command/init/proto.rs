//! `--proto`: calls of every method of a `.proto` file, with invented values.

use std::fs;
use std::path::{Path, PathBuf};

use experiment::exit::Failure;
use grpc_schema::{CallSchema, Method};

use crate::yaml_text::quoted;

/// The calls of a file.
#[derive(Debug)]
pub(super) struct Calls {
    /// The file without its folder.
    source: String,
    /// The file with the descriptors, next to the lab.
    set: (PathBuf, Vec<u8>),
    methods: Vec<Method>,
}

impl Calls {
    /// Compiles a file. `is_inventing` permits invented values.
    ///
    /// # Errors
    /// If the file cannot be read or has a mistake, if it has no method, or if values may not be invented.
    pub(super) fn read(
        path: &Path,
        import_paths: &[PathBuf],
        is_inventing: bool,
    ) -> Result<Calls, Failure> {
        let shown = path.display();
        let refuse = |why: String| Failure::bad_input(format!("`{shown}`: {why}"));
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
        };
        let schema = lab::GrpcSchema {
            protos: &[path.to_owned()],
            import_paths,
            descriptors: None,
        };
        let set = lab::grpc_descriptors(&schema, &read).map_err(refuse)?;
        let methods: Vec<Method> = CallSchema::read(&set).map_err(refuse)?.methods().collect();
        if methods.is_empty() {
            return Err(refuse(
                "expected a service with methods, found none".to_owned(),
            ));
        }
        if !is_inventing {
            return Err(refuse(format!(
                "expected `--invent`, because the file has {} and no values for their messages. The lab marks \
                 invented values",
                match methods.len() {
                    1 => "1 method".to_owned(),
                    count => format!("{count} methods"),
                }
            )));
        }
        let name = path.file_stem().unwrap_or_default();
        Ok(Calls {
            source: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            set: (PathBuf::from(name).with_added_extension("descriptors"), set),
            methods,
        })
    }

    /// The keys of the load.
    pub(super) fn load(&self) -> String {
        let mut text = format!(
            "  http2: on\n  \
             # Every method of {}. The values of the messages are invented: replace them by values that the\n  \
             # server knows, and remove methods that change something.\n  requests:\n",
            self.source
        );
        for method in &self.methods {
            let message = method.invented();
            let (key, value) = match method.takes_several() {
                true => ("messages", format!("[{message}]")),
                false => ("message", message.to_string()),
            };
            text += &format!(
                "    - grpc:\n        method: {}\n        descriptors: {}\n        {key}: {value} # invented\n",
                quoted(&method.name()),
                quoted(&self.set.0.to_string_lossy()),
            );
            if method.answers_several() {
                text += "      expect: {} # a stream is not compared with the baseline's stream\n";
            }
        }
        text
    }

    /// The files next to the lab: their names and contents.
    pub(super) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        vec![self.set.clone()]
    }

    /// The words about the calls after the lab is written.
    pub(super) fn summary(&self) -> String {
        let names: Vec<String> = self.methods.iter().map(Method::name).collect();
        format!(
            "  with invented values: {}\n  Replace them before you measure.\n",
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "syntax = \"proto3\";\npackage shop;\n\
        service Orders {\n  rpc Place (Order) returns (Order);\n  rpc Watch (stream Order) returns (stream Order);\n}\n\
        message Order { string note = 1; int32 count = 2; repeated Order parts = 3; }\n";

    fn read(text: &str, is_inventing: bool) -> Result<Calls, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.proto");
        fs::write(&path, text).unwrap();
        Calls::read(&path, &[], is_inventing)
    }

    #[test]
    fn every_method_has_a_call_with_marked_values() {
        let calls = read(FILE, true).expect("calls");
        let text = calls.load();
        assert!(text.contains("method: \"shop.Orders/Place\""), "{text}");
        assert!(
            text.contains("message: {\"count\":1,\"note\":\"example note\"} # invented"),
            "{text}"
        );
        assert!(text.contains("messages: [{\"count\""), "{text}");
        assert_eq!(text.matches("# invented").count(), 2, "{text}");
        let lab = format!(
            "question: a?\nload:\n  rate: 10/s\n  duration: 1s\n{text}target: a\nsystems: {{a: {{run: 'a {{{{addr}}}}'}}}}\n\
             expect: {{same-as: baseline}}\nbaseline: {{name: a}}\nvariants: [{{name: b}}]\n"
        );
        let mut files = calls.files();
        files.push((PathBuf::from("a.yaml"), lab.into_bytes()));
        let files = experiment::files::Unwritten(files);
        let lab = lab::parse(Path::new("a.yaml"), &files);
        let lab = lab.map_err(|found| found.render(false)).unwrap();
        assert_eq!(lab.requests.len(), 2);
    }

    #[test]
    fn values_are_not_invented_without_permission() {
        for (text, is_inventing, words) in [
            (FILE, false, "`--invent`"),
            (
                "syntax = \"proto3\";\nmessage A {}\n",
                true,
                "expected a service",
            ),
            ("syntax = \"proto3\";\nmessage {\n", true, "shop.proto"),
        ] {
            let error = read(text, is_inventing).expect_err(words);
            assert!(error.message.contains(words), "{}", error.message);
        }
    }
}
