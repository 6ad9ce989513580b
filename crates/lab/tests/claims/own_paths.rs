//! Claims about the templates for the running program and for the folder of the lab.

use std::path::{Path, PathBuf};

use crate::{Folder, changed, check};

#[test]
fn a_lab_can_name_the_program_and_its_own_folder() {
    struct Here(Folder);
    impl lab::Files for Here {
        fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
            self.0.read(path)
        }
        fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
            self.0.list(folder)
        }
        fn absolute(&self, path: &Path) -> PathBuf {
            Path::new("/home/me").join(path)
        }
        fn program(&self) -> PathBuf {
            "/usr/bin/weigh".into()
        }
    }
    let run = "serve {{stack}} --listen {{addr}}";
    let parse = |command: &str, more: &str| {
        let text = changed(&[
            (run, command),
            ("target: server\n", &format!("target: server\n{more}")),
        ]);
        let here = Here(Folder::with_lab(text));
        lab::parse(Path::new("labs/x.yaml"), &here).unwrap_or_else(|it| panic!("{it}"))
    };
    let lab = parse("'{{weigh}} -f {{lab.folder}}/a.{{addr}}'", "");
    let command = lab.baseline.systems()[0].command();
    let place = |_: &str| Some(std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into());
    let words: Vec<String> = command
        .iter()
        .map(|it| it.render(&place).unwrap())
        .collect();
    assert_eq!(
        words,
        ["/usr/bin/weigh", "-f", "/home/me/labs/a.127.0.0.1:1"]
    );
    // A recording has no path of the machine.
    let shown: Vec<String> = command
        .iter()
        .map(|it| it.without_paths().render(&place).unwrap())
        .collect();
    assert_eq!(shown, ["{{weigh}}", "-f", "{{lab.folder}}/a.127.0.0.1:1"]);
    assert_eq!(command[2].to_string(), "{{lab.folder}}/a.{{server.addr}}");
    // A setting of the lab takes precedence.
    let lab = parse("'{{weigh}} {{addr}}'", "settings: {weigh: other}\n");
    assert_eq!(lab.baseline.systems()[0].command()[0].to_string(), "other");
    let shown = check(&[(run, "serve {{lab.path}} {{addr}}")]);
    assert!(shown.contains("write `{{lab.folder}}`"), "{shown}");
}
