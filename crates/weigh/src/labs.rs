//! Reads and checks labs by their names on the command line.

use std::path::{Path, PathBuf};

use experiment::console::Console;
use experiment::exit::Failure;
use experiment::files::Disk;
use lab::{Files, Lab, Mistakes, Variant};
use yaml_with_places::did_you_mean;

/// Settings that a person wants otherwise than a lab has them.
#[derive(Debug, clap::Args)]
pub(crate) struct SettingArgs {
    /// Another value of a setting, or the name of one of its choices. Repeat the flag for several settings.
    ///
    /// `NAME=VALUE` changes a setting of the lab, `SYSTEM.NAME=VALUE` a setting of a system. A variant with
    /// its own value keeps that value.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) with: Vec<(String, String)>,
}

/// The options of a command for reading labs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes<'a> {
    /// Values of settings, by `NAME` or `SYSTEM.NAME`.
    pub(crate) settings: &'a [(String, String)],
    /// True if the settings of a quick run apply.
    pub(crate) is_quick: bool,
}

impl Wishes<'_> {
    /// Reads and checks one lab.
    ///
    /// # Errors
    ///
    /// Every mistake found.
    pub(crate) fn parse(self, path: &Path, files: &dyn Files) -> Result<Lab, Mistakes> {
        if self.is_quick {
            lab::parse_quick(path, files, self.settings)
        } else {
            lab::parse_with(path, files, self.settings)
        }
    }

    /// The changed settings of a quick run, in one line. `None` if there are no changes.
    fn quick_settings(self, lab: &Lab) -> Option<String> {
        let is_given = |name: &str| self.settings.iter().any(|(other, _)| other == name);
        let own = lab.quick.iter().filter(|(name, _)| !is_given(name));
        let own: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        (self.is_quick && !own.is_empty()).then(|| {
            format!(
                "weigh: `{}` with `--quick` sets {}, as defined in the lab. `--with` sets another value",
                lab.name,
                own.join(", ")
            )
        })
    }
}

impl SettingArgs {
    /// The options of a command that has no quick run.
    pub(crate) fn wishes(&self) -> Wishes<'_> {
        Wishes {
            settings: &self.with,
            is_quick: false,
        }
    }
}

/// Reads and checks every named lab, and reports the mistakes of all labs at once.
///
/// # Errors
///
/// When a name matches no lab or a lab has mistakes.
pub(crate) fn read(
    names: &[String],
    wishes: Wishes<'_>,
    console: Console,
) -> Result<Vec<Lab>, Failure> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in names {
        for path in paths_of(name)? {
            // A lab that is named twice, or once by its folder, is measured once.
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let mut labs = Vec::new();
    let mut mistakes = 0;
    for path in &paths {
        match wishes.parse(path, &Disk) {
            Ok(lab) => {
                if let Some(line) = wishes.quick_settings(&lab) {
                    console.say(line);
                }
                labs.push(lab);
            }
            Err(found) => {
                mistakes += found.len();
                // All labs are checked before the first is measured. A run of hours must not end with a
                // mistake in the last file.
                console.say(found.render(console.color));
            }
        }
    }
    match mistakes {
        0 => Ok(labs),
        1 => Err(Failure::bad_input("1 mistake. Nothing was started")),
        many => Err(Failure::bad_input(format!(
            "{many} mistakes. Nothing was started"
        ))),
    }
}

/// The lab files of a path or a name. A folder means every lab in it. A name is searched in `labs/` of the
/// current folder and of the folders above. `graphql-server` means `labs/graphql-server/graphql-server.yaml`,
/// and `graphql-server/fixed-rate` means the file next to it.
///
/// A name wins over a file or folder of this name that is no lab, such as the program `api` or its sources. A lab
/// `NAME.yaml` wins over a folder `NAME` without labs, such as the files that the lab uses.
fn paths_of(name: &str) -> Result<Vec<PathBuf>, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::bad_input(format!(
            "the current folder does not exist any more: {error}"
        ))
    })?;
    paths_from(name, &here)
}

fn paths_from(name: &str, here: &Path) -> Result<Vec<PathBuf>, Failure> {
    let given = Path::new(name);
    let path = here.join(given);
    let is_yaml = given
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if path.is_file() && is_yaml {
        return Ok(vec![given.to_path_buf()]);
    }
    let in_folder = path.is_dir().then(|| labs_in(&path, here));
    // A slash at the end means the folder.
    let beside = lab_beside(&path).filter(|_| !name.ends_with('/'));
    if let Some(Ok(labs)) = in_folder {
        return match beside {
            Some(lab) => Err(both_meant(name, &lab, &path, here)),
            None => Ok(labs),
        };
    }
    if let Some(labs) = named(given, here) {
        return labs;
    }
    if let Some(lab) = beside {
        return Ok(vec![shortened(&lab, here)]);
    }
    // No lab has this name, so the name is a mistake about the path.
    match in_folder {
        Some(labs) => labs,
        None if path.is_file() => Ok(vec![given.to_path_buf()]),
        None => Err(Failure::bad_input(format!(
            "expected the name of a lab or the path of a lab file, found `{name}`. There is no such \
             path, and no such name in `labs/` here or above"
        ))),
    }
}

/// The labs with this name in `labs/` of a folder or of the folders above. `None` if there are none.
fn named(given: &Path, here: &Path) -> Option<Result<Vec<PathBuf>, Failure>> {
    for above in here.ancestors() {
        let folder = above.join("labs").join(given);
        let stem = given.file_name().unwrap_or(given.as_os_str());
        let main = folder.join(stem).with_extension("yaml");
        let direct = folder.with_extension("yaml");
        let in_folder = folder.is_dir().then(|| labs_in(&folder, here));
        if let (Some(Ok(_)), Some(lab)) = (&in_folder, lab_beside(&folder)) {
            let name = given.display().to_string();
            return Some(Err(both_meant(&name, &lab, &folder, here)));
        }
        if let Some(found) = [main, direct].into_iter().find(|path| path.is_file()) {
            return Some(Ok(vec![shortened(&found, here)]));
        }
        if in_folder.is_some() {
            return in_folder;
        }
    }
    None
}

/// The lab `NAME.yaml` in the folder of a folder or program `NAME`.
fn lab_beside(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(".yaml");
    let lab = path.with_file_name(name);
    let is_lab = |folder: &Path| lab::find(folder, &Disk).is_ok_and(|labs| labs.contains(&lab));
    path.parent().is_some_and(is_lab).then_some(lab)
}

/// The failure for a name that means a lab and a folder of labs.
fn both_meant(name: &str, lab: &Path, folder: &Path, here: &Path) -> Failure {
    let (lab, folder) = (shortened(lab, here), shortened(folder, here));
    Failure::bad_input(format!(
        "expected one lab or folder, found `{name}`, which means the lab `{}` and the labs in the folder `{}/`. Write one of the two",
        lab.display(),
        folder.display()
    ))
}

/// The labs of a folder. A folder without labs of its own means the labs in its folders, such as `labs`.
fn labs_in(folder: &Path, here: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = shortened(folder, here);
    let refuse = |reason: String| {
        Failure::bad_input(format!("`{}` cannot be read: {reason}", shown.display()))
    };
    let mut found = lab::find(folder, &Disk).map_err(refuse)?;
    if found.is_empty() {
        let inside = Disk.list(folder).map_err(refuse)?;
        for folder in inside.into_iter().filter(|path| path.is_dir()) {
            found.extend(lab::find(&folder, &Disk).map_err(refuse)?);
        }
    }
    if found.is_empty() {
        return Err(Failure::bad_input(format!(
            "expected lab files in `{}`, found no `*.yaml` with a `question:`",
            shown.display()
        )));
    }
    Ok(found.iter().map(|path| shortened(path, here)).collect())
}

/// The path relative to `here`.
fn shortened(path: &Path, here: &Path) -> PathBuf {
    path.strip_prefix(here).unwrap_or(path).to_path_buf()
}

/// Reads `NAME=VALUE` of `--with`.
fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE or SYSTEM.NAME=VALUE, such as database=postgres".to_owned()),
    }
}

/// Keeps only the named variants and their baselines.
///
/// # Errors
///
/// When the lab has no variant with one of these names.
pub(crate) fn only(lab: &mut Lab, names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    let is_known = |name: &String| lab.all().any(|variant| variant.name == *name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(stranger(lab, name));
    }
    let is_named = |variant: &Variant| names.contains(&variant.name);
    let needed: Vec<String> = lab
        .variants
        .iter()
        .filter(|variant| is_named(variant))
        .filter_map(|variant| variant.against.clone())
        .collect();
    lab.variants
        .retain(|variant| is_named(variant) || needed.contains(&variant.name));
    // A variant that is only needed for comparisons is a baseline of this run.
    let is_left = |name: &String| names.contains(name) || needed.contains(name);
    for variant in &mut lab.variants {
        if !names.contains(&variant.name) && !variant.against.as_ref().is_some_and(is_left) {
            variant.against = None;
        }
    }
    // The first baseline may have lost all its variants, while another baseline still has some.
    let is_needed = is_named(&lab.baseline) || needed.contains(&lab.baseline.name);
    let other = lab.variants.iter().position(|it| it.against.is_none());
    if let Some(index) = other.filter(|_| !is_needed) {
        let baseline = lab.variants.remove(index);
        lab.set_baseline(baseline);
    }
    Ok(())
}

/// Compares each variant with this one. Variants with another baseline stay as they are.
///
/// # Errors
///
/// When the lab has no variant with this name.
pub(crate) fn compare_with(lab: &mut Lab, name: &str) -> Result<(), Failure> {
    if !lab.all().any(|variant| variant.name == name) {
        return Err(stranger(lab, name));
    }
    let baseline = std::iter::once(lab.baseline.clone());
    let mut all: Vec<Variant> = baseline.chain(std::mem::take(&mut lab.variants)).collect();
    let root = root_among(&all, name);
    let roots: Vec<String> = all.iter().map(|it| root_among(&all, &it.name)).collect();
    for (variant, own) in all.iter_mut().zip(roots) {
        if own == root {
            variant.against = (variant.name != name).then(|| name.to_owned());
        }
    }
    // Proofs and rounds take the baseline of a group before its variants.
    let place = |wanted: &str, all: &[Variant]| all.iter().position(|it| it.name == wanted);
    if let (Some(first), Some(own)) = (place(&root, &all), place(name, &all)) {
        let variant = all.remove(own);
        all.insert(first, variant);
    }
    // A group names variants without the baseline, so the two change places.
    for member in lab.groups.iter_mut().flatten().flatten() {
        if member == name {
            member.clone_from(&root);
        }
    }
    lab.set_baseline(all.remove(0));
    lab.variants = all;
    Ok(())
}

/// Name of the baseline at the end of the chain of comparisons.
fn root_among(all: &[Variant], name: &str) -> String {
    let by_name = |name: &str| all.iter().find(|it| it.name == name);
    let mut root = name;
    while let Some(next) = by_name(root).and_then(|it| it.against.as_deref()) {
        root = next;
    }
    root.to_owned()
}

/// The error for a name that no variant of the lab has.
pub(crate) fn stranger(lab: &Lab, name: &str) -> Failure {
    let names = lab.names();
    let hint = did_you_mean(name, names.iter().copied()).map(|hint| format!(" {hint}"));
    Failure::bad_input(format!(
        "expected a variant of `{}`, found `{name}`.{} The variants are {}",
        lab.name,
        hint.as_deref().unwrap_or_default().replace(" did", " Did"),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use experiment::files::Unwritten;

    use super::*;

    fn write_in(home: &Path, path: &str, text: &str) {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The paths of the labs that a name means, or the message of the refusal.
    fn found_in(home: &Path, name: &str) -> Result<Vec<String>, String> {
        let labs = paths_from(name, home).map_err(|failure| failure.message)?;
        let shown = labs.iter().map(|path| path.display().to_string());
        Ok(shown.collect())
    }

    #[test]
    fn a_name_wins_over_a_file_that_is_no_lab() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write_in(home.path(), path, text);
        let found = |name: &str| found_in(home.path(), name);
        write("labs/api/api.yaml", "question: a");
        write("labs/api/second.yaml", "question: b");
        write("labs/db/db.yaml", "question: c");
        write("labs/db/included.yaml", "systems: {}");
        write("api", "a program");
        write("db/main.go", "its sources");
        write("mine/mine.yaml", "question: d");
        write("text", "question: e");
        assert_eq!(found("api").unwrap(), ["labs/api/api.yaml"]);
        assert_eq!(found("db").unwrap(), ["labs/db/db.yaml"]);
        assert_eq!(found("api/second").unwrap(), ["labs/api/second.yaml"]);
        assert_eq!(found("mine").unwrap(), ["mine/mine.yaml"]);
        assert_eq!(found("text").unwrap(), ["text"]);
        let all = found("labs").unwrap();
        assert_eq!(
            all,
            [
                "labs/api/api.yaml",
                "labs/api/second.yaml",
                "labs/db/db.yaml"
            ]
        );
        fs::create_dir(home.path().join("empty")).unwrap();
        let error = found("empty").unwrap_err();
        assert!(error.contains("expected lab files in `empty`"), "{error}");
        let error = found("nothing").unwrap_err();
        assert!(error.contains("found `nothing`"), "{error}");
    }

    #[test]
    fn a_lab_wins_over_a_folder_beside_it_and_a_folder_of_labs_does_not() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write_in(home.path(), path, text);
        let found = |name: &str| found_in(home.path(), name);
        write("labs/pods/mesh.yaml", "question: a");
        write("labs/pods/mesh/envoy.yaml", "listeners: []");
        write("labs/pods/part.yaml", "systems: {}");
        write("labs/pods/part/file.yaml", "a: 1");
        for name in ["labs/pods/mesh", "pods/mesh", "./labs/pods/mesh"] {
            let lab = found(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(lab[0].ends_with("labs/pods/mesh.yaml"), "{lab:?}");
            assert_eq!(lab.len(), 1);
        }
        // The slash means the folder, and a file without a question is no lab.
        for name in ["labs/pods/mesh/", "labs/pods/part"] {
            let error = found(name).unwrap_err();
            assert!(error.contains("expected lab files in"), "{error}");
        }
        write("labs/pods/mesh/inner.yaml", "question: b");
        for name in ["labs/pods/mesh", "pods/mesh"] {
            let error = found(name).unwrap_err();
            assert!(
                error.contains(
                    "the lab `labs/pods/mesh.yaml` and the labs in the folder `labs/pods/mesh/`"
                ),
                "{error}"
            );
        }
        assert_eq!(
            found("labs/pods/mesh.yaml").unwrap(),
            ["labs/pods/mesh.yaml"]
        );
        let folder = found("labs/pods/mesh/").unwrap();
        assert_eq!(folder, ["labs/pods/mesh/inner.yaml"]);
    }

    const CHAIN: &str = "question: q\nload: {rate: 100/s, duration: 1s}\nrounds: 6\n\
        systems: {api: {run: 'x {{addr}}'}}\ntarget: api\nbaseline: {name: direct}\n\
        variants:\n  - {name: proxy}\n  - {name: log, against: proxy}\n  - {name: tls, against: log}\n\
        expect: {status: 200}\n";

    fn chain() -> Lab {
        let path = Path::new("chain.yaml");
        let files = Unwritten(vec![(path.to_path_buf(), CHAIN.as_bytes().to_vec())]);
        lab::parse(path, &files).unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)))
    }

    fn pairs(lab: &Lab) -> Vec<String> {
        let pair =
            |it: &Variant| format!("{}-{}", it.name, it.against.as_deref().unwrap_or_default());
        lab.all().map(pair).collect()
    }

    #[test]
    fn a_variant_is_kept_with_the_variant_that_it_is_compared_with() {
        let kept = |names: &[&str]| {
            let mut lab = chain();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            only(&mut lab, &names).unwrap();
            pairs(&lab)
        };
        assert_eq!(kept(&["log"]), ["proxy-", "log-proxy"]);
        assert_eq!(
            kept(&["proxy", "log"]),
            ["direct-", "proxy-direct", "log-proxy"]
        );
        assert_eq!(kept(&["tls"]), ["log-", "tls-log"]);
    }

    #[test]
    fn any_variant_can_be_the_baseline() {
        let mut lab = chain();
        lab.groups = Some(vec![vec![
            "proxy".to_owned(),
            "log".to_owned(),
            "tls".to_owned(),
        ]]);
        compare_with(&mut lab, "log").unwrap();
        assert_eq!(pairs(&lab), ["log-", "direct-log", "proxy-log", "tls-log"]);
        assert_eq!(lab.groups.as_ref().unwrap()[0], ["proxy", "direct", "tls"]);
        let error = compare_with(&mut lab, "lgo").unwrap_err().message;
        assert_eq!(
            error,
            "expected a variant of `chain`, found `lgo`. Did you mean `log`? \
             The variants are log, direct, proxy, tls"
        );
    }
}
