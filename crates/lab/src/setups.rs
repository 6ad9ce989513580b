//! Builds the setup of each system of a variant, and their start order.
//!
//! The systems of every variant are built while the lab is checked. The result contains no open places except
//! addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Resumption, Version};
use yaml_with_places::{At, Finding, Place};

use crate::command_line_hints;
use crate::compose;
use crate::config_files;
use crate::container;
use crate::elsewhere;
use crate::experiment::{ConfigFile, Container, Limits, Network, Origin, Probe, Ready, Setup};
use crate::fields::TextOr;
use crate::formats::{Name, Title, UrlPath, VariableName, Verbatim, Written};
use crate::limits::limits;
use crate::load::time_span;
use crate::manifests;
use crate::quantities::LongerThanZero;
use crate::reading::Reading;
use crate::replicas;
use crate::scope::Scope;
use crate::systems::Systems;
use crate::template::{Command, Template};
use crate::text::Text;
use crate::wire::{ComposeFile, ManifestsFile, ReadyFile, ReadyState, SystemFile, default};

/// Returns the systems that a variant needs, each after its dependencies. The target is last.
pub(crate) fn stack(
    scope: &Scope<'_>,
    target: Option<&str>,
    reading: &mut Reading<'_>,
) -> Vec<Setup> {
    let systems = scope.systems;
    let mut setups = Vec::new();
    let mut balancers = BTreeMap::new();
    for (name, file) in systems.declared {
        let system = System { name, file, scope };
        // A system without `run` and `url` has been reported. Other systems may still have mistakes.
        let Some(mut setup) = system.setup(reading) else {
            continue;
        };
        if let Some(replicas) = replicas::of(scope, name, file, reading) {
            setup.replicas = Some(replicas.count);
            let balancer = replicas::balancer(&setup, replicas.balance);
            balancers.insert(setup.system.clone(), balancer);
        }
        setups.push(setup);
    }
    let mut order = Order {
        setups: &setups,
        systems,
        done: Vec::new(),
        open: Vec::new(),
    };
    // Systems that the target does not need are checked, but left out.
    let mut stack = 0;
    if let Some(target) = target {
        order.visit(target, reading);
        stack = order.done.len();
    }
    // Other systems are visited, too, because a cycle among them is also a mistake.
    for setup in &setups {
        order.visit(&setup.system, reading);
    }
    let done: Vec<usize> = order.done[..stack].to_vec();
    done.into_iter()
        .flat_map(|index| {
            let balancer = balancers.get(&setups[index].system).cloned();
            // The balancer directly follows its instances. If they are the target, the balancer is last.
            std::iter::once(setups[index].clone()).chain(balancer)
        })
        .collect()
}

/// The inputs of a start besides the command.
struct Given {
    /// Variables of the environment.
    env: Vec<(String, Text)>,
    /// Configuration files.
    files: Vec<ConfigFile>,
}

impl Given {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        let variables = self.env.iter().map(|(_, text)| text);
        variables.chain(self.files.iter().map(|file| &file.text))
    }
}

/// One declared system within a variant.
struct System<'a> {
    name: &'a At<Name>,
    file: &'a SystemFile,
    scope: &'a Scope<'a>,
}

impl System<'_> {
    fn setup(&self, reading: &mut Reading<'_>) -> Option<Setup> {
        let file = self.file;
        if let Some(manifests_at) = &file.manifests {
            // A second origin is reported.
            return self.of_manifests(manifests_at, reading);
        }
        match (&file.run, &file.url, &file.image, &file.compose) {
            (Some(run_at), None, None, None) => Some(self.process(run_at, reading)),
            (None, Some(url_at), None, None) => self.elsewhere(url_at, reading),
            (None, None, Some(image_at), None) => self.container(image_at, reading),
            (None, None, None, Some(compose_at)) => self.composed(compose_at, reading),
            // No origin or several origins, which is reported.
            _ => None,
        }
    }

    /// Returns a project of a compose file.
    fn composed(&self, at: &At<ComposeFile>, reading: &mut Reading<'_>) -> Option<Setup> {
        let Name(system) = &self.name.value;
        let compose = compose::of(system, &at.value, self.scope, reading)?;
        let folder = compose.file.parent();
        let folder = folder.map_or_else(PathBuf::new, Path::to_owned);
        Some(self.as_described(folder, Origin::Compose(compose), reading))
    }

    /// Returns the objects of a cluster.
    fn of_manifests(&self, at: &At<ManifestsFile>, reading: &mut Reading<'_>) -> Option<Setup> {
        let Name(system) = &self.name.value;
        let manifests = manifests::of(system, at, self.scope, reading)?;
        let folder = reading.resolve("", at.place);
        Some(self.as_described(folder, Origin::Manifests(manifests), reading))
    }

    /// Returns a system that a separate file describes, with its processes and limits.
    fn as_described(&self, folder: PathBuf, origin: Origin, reading: &mut Reading<'_>) -> Setup {
        let Name(system) = &self.name.value;
        let mut setup = Setup {
            system: system.clone(),
            folder,
            build: Vec::new(),
            origin,
            version: None,
            env: Vec::new(),
            env_of_run: Vec::new(),
            files: Vec::new(),
            ready: self.ready(),
            is_encrypted: self.scope.is_encrypted(system),
            http: Version::Http1,
            resumption: Resumption::Off,
            limits: Limits::default(),
            pin: None,
            needs: self.needs(),
            after: Vec::new(),
            settings: self.scope.settings(system, reading),
            replicas: None,
            balances: None,
            is_shared: self.file.shared.as_ref().is_some_and(|shared| shared.value),
        };
        setup.after = self.after(&setup);
        setup
    }

    /// Returns a system that already runs.
    fn elsewhere(
        &self,
        url_at: &At<Verbatim<Template>>,
        reading: &mut Reading<'_>,
    ) -> Option<Setup> {
        let Name(system) = &self.name.value;
        let elsewhere = elsewhere::of(system, self.file, url_at, self.scope, reading)?;
        Some(Setup {
            system: system.clone(),
            folder: reading.resolve("", url_at.place),
            build: Vec::new(),
            origin: Origin::Elsewhere(elsewhere),
            version: None,
            env: Vec::new(),
            env_of_run: Vec::new(),
            files: Vec::new(),
            ready: self.ready(),
            is_encrypted: self.scope.is_encrypted(system),
            http: Version::Http1,
            resumption: Resumption::Off,
            limits: Limits::default(),
            pin: None,
            needs: Vec::new(),
            after: Vec::new(),
            settings: self.scope.settings(system, reading),
            replicas: None,
            balances: None,
            is_shared: false,
        })
    }

    /// Returns a process of this machine.
    fn process(&self, run_at: &At<Written<Command>>, reading: &mut Reading<'_>) -> Setup {
        let run = self.command(run_at, reading);
        let given = self.given(reading);
        self.check_listens(run_at.place, &run, &given, reading);
        self.started(Origin::Run(run), run_at.place, given, reading)
    }

    /// Returns a container. `None` if its keys are wrong, which is reported.
    fn container(
        &self,
        image_at: &At<Verbatim<Template>>,
        reading: &mut Reading<'_>,
    ) -> Option<Setup> {
        let Name(system) = &self.name.value;
        let command = self.file.command.as_ref();
        let command = command.map_or_else(Vec::new, |it| self.command(it, reading));
        let given = self.given(reading);
        let container = container::of(system, self.file, image_at, self.scope, reading)?;
        if container.network == Network::Host {
            self.check_listens(image_at.place, &command, &given, reading);
        }
        let told = command.iter().chain(given.texts());
        container::check_told(self.name, self.file, told, self.scope.systems, reading);
        let origin = Origin::Container(Container {
            command,
            ..container
        });
        Some(self.started(origin, image_at.place, given, reading))
    }

    /// Returns the common parts of all systems that are started on this machine.
    fn started(
        &self,
        origin: Origin,
        origin_at: Place,
        given: Given,
        reading: &mut Reading<'_>,
    ) -> Setup {
        let Name(system) = &self.name.value;
        let build = self.file.build.0.iter().filter_map(|step| {
            let TextOr::Text(command) = &step.value else {
                return None;
            };
            Some(self.offline(
                &At {
                    place: step.place,
                    value: command.clone(),
                },
                reading,
            ))
        });
        let build: Vec<Vec<Text>> = build.collect();
        let version = self.file.version.as_ref();
        let version = version.map(|it| self.offline(it, reading));
        let mut setup = Setup {
            system: system.clone(),
            folder: match &self.file.folder {
                Some(folder) => reading.resolve(&folder.value, folder.place),
                // The folder of the file with `run`, which may be an included file. The command was written
                // for that folder.
                None => reading.resolve("", origin_at),
            },
            build,
            origin,
            version,
            env: given.env,
            env_of_run: self.env_of_run(),
            files: given.files,
            ready: self.ready(),
            is_encrypted: self.scope.is_encrypted(system),
            http: Version::Http1,
            resumption: Resumption::Off,
            limits: limits(system, &self.file.limits, self.scope, reading),
            pin: self.pin(),
            needs: self.needs(),
            after: Vec::new(),
            settings: self.scope.settings(system, reading),
            replicas: None,
            balances: None,
            is_shared: self.file.shared.as_ref().is_some_and(|shared| shared.value),
        };
        setup.after = self.after(&setup);
        setup
    }

    fn command(&self, command: &At<Written<Command>>, reading: &mut Reading<'_>) -> Vec<Text> {
        let Written(Command(words)) = &command.value;
        words
            .iter()
            .map(|word| {
                self.scope
                    .text(&self.name.value.0, word, command.place, reading)
            })
            .collect()
    }

    /// Returns a command that runs while the system does not run.
    fn offline(&self, command: &At<Written<Command>>, reading: &mut Reading<'_>) -> Vec<Text> {
        let words = self.command(command, reading);
        if words.iter().any(|word| word.systems().next().is_some()) {
            reading.findings.add(
                Finding::new(
                    command.place,
                    "this command needs an address that is not known yet",
                )
                .help("addresses are known only while systems run. Use them in `run` or `env`"),
            );
        }
        if words.iter().any(Text::has_file) {
            reading.findings.add(
                Finding::new(
                    command.place,
                    "this command needs the path of a configuration file, which is not written yet",
                )
                .help("each start writes the files. Use `{{file.NAME}}` in `run`, `env` or another file"),
            );
        }
        if words.iter().any(Text::has_instance) {
            reading.findings.add(
                Finding::new(
                    command.place,
                    "this command runs once for all instances, so it cannot use `{{instance}}`",
                )
                .help("`{{instance}}` is known only while systems run. Use it in `run` or `env`"),
            );
        }
        words
    }

    fn given(&self, reading: &mut Reading<'_>) -> Given {
        let system = &self.name.value.0;
        Given {
            env: self.env(reading),
            files: config_files::of(system, self.file, self.scope, reading),
        }
    }

    fn env(&self, reading: &mut Reading<'_>) -> Vec<(String, Text)> {
        let mut variables = Vec::new();
        for (variable, value) in &self.file.env.0 {
            let VariableName(variable) = &variable.value;
            let system = &self.name.value.0;
            let (Verbatim(template), place) = match &value.value {
                TextOr::Text(template) => (template, value.place),
                // A missing `run` is reported.
                TextOr::Mapping(file) => match &file.run {
                    Some(run) => (&run.value, run.place),
                    None => continue,
                },
            };
            let text = self.scope.text(system, template, place, reading);
            variables.push((variable.clone(), text));
        }
        variables
    }

    /// Returns the names of the variables that only the running system receives.
    fn env_of_run(&self) -> Vec<String> {
        let variables = self.file.env.0.iter();
        variables
            .filter(|(_, value)| matches!(value.value, TextOr::Mapping(_)))
            .map(|(name, _)| name.value.0.clone())
            .collect()
    }

    /// Reports a system without a listen address, because it could never become ready.
    fn check_listens(&self, run_at: Place, run: &[Text], given: &Given, reading: &mut Reading<'_>) {
        let system = &self.name.value.0;
        let mut heard = run.iter().chain(given.texts());
        // A wrong variable may contain the address.
        let is_told = heard.any(|text| text.systems().any(|heard| heard == system));
        if !is_told && !reading.has_gaps && !self.scope.systems.has_wrong_env(system) {
            // As written, with the settings still open.
            let written = self.file.run.as_ref().and_then(|run| {
                let Written(Command(words)) = &run.value;
                let words: Vec<String> = words.iter().map(Template::to_string).collect();
                command_line_hints::with_template(&words)
            });
            let help = match (written, &self.file.image) {
                (Some(command), None) => format!(
                    "`weigh` assigns the port, so that all variants can run at once. Write `{command}`"
                ),
                (None, None) => "add `{{addr}}`, `{{port}}`, `{{url}}` or `{{socket}}` to `run`, `env` or one of its `files`".to_owned(),
                (_, Some(_)) => "write the `port` on which it listens in the container. Or add `{{addr}}`, `{{port}}` or `{{url}}` to `command` or `env`".to_owned(),
            };
            reading
                .findings
                .add(Finding::new(run_at, format!("`{system}` has no listen address")).help(help));
        }
    }

    fn ready(&self) -> Ready {
        let (probe, state) = match self.file.ready.as_ref().map(|ready| &ready.value) {
            Some(ReadyFile::Mapping(probe)) => {
                (Some(probe), probe.state.as_ref().map(|state| state.value))
            }
            Some(ReadyFile::Text(state)) => (None, Some(*state)),
            None => (None, None),
        };
        let within = probe.and_then(|probe| probe.within.as_ref());
        let LongerThanZero(within) = time_span(within, default::READY_WITHIN);
        let path = probe.and_then(|probe| probe.path.as_ref());
        let status = probe.and_then(|probe| probe.status.as_ref());
        Ready {
            probe: match path {
                Some(Written(UrlPath(path))) => Probe::Answers {
                    path: path.clone(),
                    status: status.map_or(default::READY_STATUS, |status| status.value),
                },
                None if state == Some(ReadyState::Healthy) => Probe::Healthy,
                None => Probe::Listening,
            },
            within,
        }
    }

    fn pin(&self) -> Option<Vec<usize>> {
        let pin = self.file.pin.as_ref()?;
        let cores = pin.value.0.iter().map(|core| core.value as usize);
        Some(cores.collect())
    }

    fn needs(&self) -> Vec<String> {
        let programs = self.file.needs.0.iter();
        programs
            .map(|Written(Title(program))| program.clone())
            .collect()
    }

    /// Returns the systems it waits for: the systems that it names, then the systems with addresses that it
    /// uses.
    fn after(&self, setup: &Setup) -> Vec<String> {
        let named = self
            .file
            .after
            .0
            .iter()
            .map(|other| other.value.0.0.as_str());
        let used = setup
            .told()
            .flat_map(Text::systems)
            // A system receives its own address, but does not wait for it.
            .filter(|used| *used != setup.system);
        let mut after: Vec<String> = Vec::new();
        // A system may be both named and used. It is listed once.
        for other in named.chain(used) {
            if !after.iter().any(|known| known == other) {
                after.push(other.to_owned());
            }
        }
        after
    }
}

/// A walk along dependencies, depth first.
struct Order<'a> {
    setups: &'a [Setup],
    systems: &'a Systems<'a>,
    /// Systems in their start order, as indices of `setups`.
    done: Vec<usize>,
    /// The systems being visited, each needed by the previous system.
    open: Vec<usize>,
}

impl Order<'_> {
    fn visit(&mut self, system: &str, reading: &mut Reading<'_>) {
        // An undeclared system is reported at the place of its name.
        let Some(index) = self.setups.iter().position(|setup| setup.system == system) else {
            return;
        };
        // Several systems may need it, but it starts once.
        if self.done.contains(&index) {
            return;
        }
        if let Some(start) = self.open.iter().position(|open| *open == index) {
            return self.circle(start, reading);
        }
        self.open.push(index);
        let setups = self.setups;
        for other in &setups[index].after {
            self.visit(other, reading);
        }
        self.open.pop();
        self.done.push(index);
    }

    fn circle(&self, start: usize, reading: &mut Reading<'_>) {
        let name = |index: &usize| self.setups[*index].system.as_str();
        let circle = &self.open[start..];
        // The first name appears again at the end, so that the sentence closes the cycle.
        let mut names: Vec<&str> = circle.iter().map(name).collect();
        names.extend(circle.first().map(name));
        let mut places = circle.iter().filter_map(|index| {
            let system = name(index);
            let (declared, _) = self
                .systems
                .declared
                .iter()
                .find(|(it, _)| it.value.0 == system)?;
            Some((declared.place, system))
        });
        // Each member of a cycle is declared, so this cannot happen with a tree that was read completely.
        let Some((first, _)) = places.next() else {
            return;
        };
        let mut finding = Finding::new(first, "these systems wait for each other")
            .help(names.join(" waits for "));
        for (place, _) in places {
            finding = finding.related(place, "");
        }
        reading.findings.add(finding);
    }
}
