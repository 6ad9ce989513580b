//! Claims about the configuration files of systems.

use std::path::Path;

use lab::{ConfigFile, Endpoint};

use crate::{Folder, changed};

const RUN: &str = "run: serve {{stack}} --listen {{addr}}";

/// The example lab with `files`, next to a template of this content.
fn folder(files: &str, run: &str, template: &str) -> Folder {
    let keys = format!("files: {files}\n    run: {run}");
    Folder::with_lab(changed(&[(RUN, &keys)])).file("labs/server.tmpl", template)
}

fn mistakes(files: &str, run: &str, template: &str) -> String {
    folder(files, run, template).mistakes()
}

/// The files of the second variant.
fn files(folder: &Folder) -> Vec<ConfigFile> {
    let lab = folder
        .parse()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    lab.variants[0].systems()[0].files.clone()
}

#[test]
fn a_template_has_the_names_of_the_command() {
    let template =
        "listen {{addr}};\nstack {{ stack }} of {{name}};\ninclude {{file.conf.d/more.conf}};\n";
    let written = "{server.conf: server.tmpl, conf.d/more.conf: {text: 'in {{files}}'}, as-is: {text: '{{.Go}}', raw: true}}";
    let folder = folder(written, "serve -c {{file.server.conf}}", template);
    let place = |_: &str| {
        Some(Endpoint {
            files: Some("/run/1".into()),
            ..Endpoint::from(std::net::SocketAddr::from(([127, 0, 0, 1], 4000)))
        })
    };
    let shown: Vec<(String, String)> = files(&folder)
        .into_iter()
        .map(|file| (file.name, file.text.render(&place).unwrap()))
        .collect();
    let expected = [
        (
            "server.conf",
            "listen 127.0.0.1:4000;\nstack b of b;\ninclude /run/1/conf.d/more.conf;\n",
        ),
        ("conf.d/more.conf", "in /run/1"),
        ("as-is", "{{.Go}}"),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );
    let lab = folder.parse().unwrap();
    let command = lab.baseline.systems()[0].command();
    let command: Vec<String> = command
        .iter()
        .map(|it| it.render(&place).unwrap())
        .collect();
    assert_eq!(command, ["serve", "-c", "/run/1/server.conf"]);
    // The recording keeps the template.
    let sources: Vec<&Path> = lab.sources.iter().map(|it| it.path.as_path()).collect();
    assert_eq!(
        sources,
        [Path::new("labs/x.yaml"), Path::new("labs/server.tmpl")]
    );
}

#[test]
fn a_mistake_is_reported_at_its_line_of_the_template() {
    let unknown = mistakes(
        "{a: server.tmpl}",
        "serve {{file.a}}",
        "listen {{addr}}\nx {{stak}}\n",
    );
    assert!(unknown.contains("labs/server.tmpl:2:3"), "{unknown}");
    assert!(
        unknown.contains("`{{stak}}` is not defined here"),
        "{unknown}"
    );
    for (template, message) in [
        ("{{addr}}\n\n {{ open\n", "this template is not closed"),
        ("{{addr}}\n\n {{if .X}}\n", "`{{if .X}}` is not a template"),
    ] {
        let wrong = mistakes("{a: server.tmpl}", "serve {{file.a}}", template);
        assert!(wrong.contains("labs/server.tmpl:3:2"), "{wrong}");
        assert!(
            wrong.contains(message) && wrong.contains("raw: true"),
            "{wrong}"
        );
    }
}

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let text = "{{addr}}";
    for (files, run, message) in [
        (
            "{a: none.tmpl}",
            "serve {{file.a}}",
            "cannot read `labs/none.tmpl`",
        ),
        (
            "{a: server.tmpl}",
            "serve {{file.b}}",
            "`server` has no file `b`",
        ),
        ("{}", "serve {{addr}} {{files}}", "`server` has no `files`"),
        (
            "{../a: server.tmpl}",
            "serve {{addr}}",
            "`../a` is not the name of a configuration file",
        ),
        (
            "{/a: server.tmpl}",
            "serve {{addr}}",
            "is not the name of a configuration file",
        ),
        (
            "{a: server.tmpl, a/b: server.tmpl}",
            "serve {{addr}}",
            "`a` is a file and a folder",
        ),
        (
            "{a: {raw: true}}",
            "serve {{addr}}",
            "a file needs either `path` or `text`",
        ),
        (
            "{a: {text: x, path: y}}",
            "serve {{addr}}",
            "a file needs either `path` or `text`",
        ),
        (
            "{a: {text: x}}",
            "serve {{file.a}}",
            "`server` has no listen address",
        ),
        (
            "{a: server.tmpl}",
            "serve {{addr}}\n    version: v {{file.a}}",
            "not written yet",
        ),
    ] {
        let wrong = mistakes(files, run, text);
        assert!(wrong.contains(message), "{files} {run}: {wrong}");
    }
    let with_url = changed(&[(RUN, "url: http://127.0.0.1:1\n    files: {a: server.tmpl}")]);
    let wrong = Folder::with_lab(with_url).mistakes();
    assert!(
        wrong.contains("`files` cannot be used with `url`"),
        "{wrong}"
    );
}

#[test]
fn the_path_of_a_template_can_contain_settings() {
    let keys =
        "files: {server.conf: '{{stack}}/server.tmpl'}\n    run: serve -c {{file.server.conf}}";
    let folder = Folder::with_lab(changed(&[(RUN, keys)]))
        .file("labs/a/server.tmpl", "a {{addr}}")
        .file("labs/b/server.tmpl", "b {{addr}}");
    let lab = folder.parse().unwrap_or_else(|it| panic!("{it}"));
    let shown = |variant: &lab::Variant| variant.systems()[0].files[0].text.to_string();
    assert_eq!(shown(&lab.baseline), "a {{server.addr}}");
    assert_eq!(shown(&lab.variants[0]), "b {{server.addr}}");
    for (path, words) in [
        (
            "'{{addr}}.tmpl'",
            "the path of a file cannot hold an address",
        ),
        ("'{{stak}}.tmpl'", "`{{stak}}` is not defined here"),
        (
            "'{{stack.tmpl'",
            "a template in `{{stack.tmpl` is not closed",
        ),
        ("'{{stack}}.tmpl'", "cannot read `labs/a.tmpl`"),
    ] {
        let wrong = mistakes(&format!("{{a: {path}}}"), "serve {{file.a}}", "{{addr}}");
        assert!(wrong.contains(words), "{path}: {words}\n{wrong}");
    }
}
