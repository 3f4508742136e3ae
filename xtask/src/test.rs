//! Everything that is checked without knowing the machine: what CI runs, and a newcomer.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use warpfold_ptx_builder::ptxas;

use crate::driver::{self, Driver};
use crate::steps::Steps;
use crate::totals::Totals;
use crate::workspace::Workspace;
use crate::{setup, stub};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Options {
    /// Leave out what needs the device toolchain: building kernels, the feature `cuda`
    #[arg(long)]
    no_gpu_build: bool,
    /// Only tests whose name contains one of these; format, lints and documentation are left out then
    filters: Vec<String>,
}

/// Integration tests that build kernels, and so need the device toolchain whatever the features.
const BUILD_KERNELS: [&str; 2] = ["build", "golden"];

/// The feature with which the facade's tests go through every operator.
const EVERY_OPERATOR: &str = "every-operator";

/// Runs `cargo xtask test`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let lints = options.filters.is_empty();
    let kernels = !options.no_gpu_build;
    let projects = if lints { workspace.examples()? } else { Vec::new() };
    let both = kernels && lints;
    let planned = 1 + 3 * usize::from(lints) + 2 * usize::from(kernels) + usize::from(both) + projects.len();
    let mut steps = Steps::new(&workspace.target.join("xtask-logs"), planned)?;
    let result = all(workspace, options, &mut steps, lints, &projects);
    println!("\n{}\n", steps.table());
    let totals = steps.totals();
    if result.is_ok() {
        // The form in which test runners close, for those who read only the end of this output.
        println!(
            "test result: ok. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out",
            totals.passed, totals.failed, totals.skipped
        );
    }
    if totals != Totals::default() {
        println!("{totals}");
    }
    result
}

fn all(
    workspace: &Workspace,
    options: &Options,
    steps: &mut Steps,
    lints: bool,
    projects: &[PathBuf],
) -> Result<()> {
    let cuda = match options.no_gpu_build {
        true => None,
        false => {
            let ptxas =
                steps.step("device toolchain", |log| setup::run(workspace, &mut |line| log.note(line)))?;
            Some(steps.step("driver", |log| {
                let cuda = Cuda::prepare(workspace, ptxas)?;
                log.note(cuda.words());
                Ok(cuda)
            })?)
        }
    };
    if lints {
        steps.step("rustfmt", |log| {
            log.run(&mut workspace.cargo(&["fmt", "--all", "--check", "--", "--color", "never"]))?;
            for folder in projects {
                log.run(
                    workspace
                        .cargo(&["fmt", "--all", "--check", "--", "--color", "never"])
                        .current_dir(folder),
                )?;
            }
            Ok(())
        })?;
        let clippy = ["clippy", "--workspace"];
        // The feature adds code and takes next to none away: with it all targets are looked at, without it what is left of
        // the library and the command.
        let targets: &[&str] = if cuda.is_some() { &["--lib", "--bins"] } else { &["--all-targets"] };
        steps.step("clippy", |log| {
            log.run(workspace.cargo(&clippy).args(targets).args(["--", "-Dwarnings"]))
        })?;
        if let Some(cuda) = &cuda {
            let arguments =
                [&clippy[..], &["--all-targets", "--features", "cuda", "--", "-Dwarnings"]].concat();
            steps.step("clippy, cuda", |log| log.run(cuda.lint(&mut workspace.cargo(&arguments))))?;
        }
        steps.step("rustdoc", |log| {
            let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
            if let Some(cuda) = &cuda {
                cuda.lint(command.args(["--features", "cuda"]));
            }
            log.run(command.env("RUSTDOCFLAGS", "-Dwarnings"))
        })?;
    }
    let filters = [&["--".to_owned()], &options.filters[..]].concat();
    let Some(cuda) = cuda else {
        return steps
            .step("tests", |log| {
                // All targets but those that build kernels; cargo does not take --doc together with others.
                let mut command =
                    workspace.cargo(&["test", "--no-fail-fast", "--workspace", "--lib", "--bins"]);
                for test in workspace.tests().iter().filter(|test| !BUILD_KERNELS.contains(&test.as_str())) {
                    command.args(["--test", test]);
                }
                log.run_tests(command.args(&filters))?;
                log.run_tests(
                    workspace.cargo(&["test", "--no-fail-fast", "--workspace", "--doc"]).args(&filters),
                )?;
                log.note(format!("left out: the feature cuda, the tests {}", BUILD_KERNELS.join(", ")));
                Ok(())
            })
            .and_then(|()| examples(workspace, steps, projects, None));
    };
    // With the feature, once: it takes no test away but those of what is said without it, and all is compiled once.
    steps.step("tests", |log| {
        let mut command = workspace.cargo(&["test", "--no-fail-fast", "--workspace", "--features", "cuda"]);
        if cuda.has_gpu() {
            // Every operator on every type takes minutes to compile.
            command.args(["--features", EVERY_OPERATOR]);
        }
        log.run_tests(cuda.set(command.args(&filters)))?;
        log.note(cuda.verdict());
        Ok(())
    })?;
    if lints && cuda.has_gpu() {
        steps.step("warpfold info, cuda", |log| {
            // What the step before built, rather than the same in another profile.
            let command = || Command::new(workspace.target.join("debug/warpfold"));
            log.run(cuda.set(command().arg("info")))?;
            let text = log.run(cuda.set(command().args(["info", "--json"])))?;
            let cuda_line = judge_info(&text, cuda.has_gpu())?;
            log.note(cuda_line);
            Ok(())
        })?;
    }
    examples(workspace, steps, projects, Some(&cuda))
}

/// Checks the projects in examples/, as someone does who has only the published crates: with a device toolchain where there is one.
fn examples(
    workspace: &Workspace,
    steps: &mut Steps,
    projects: &[PathBuf],
    cuda: Option<&Cuda>,
) -> Result<()> {
    for folder in projects {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        steps.step(&format!("examples/{name}"), |log| {
            // In this workspace's target folder: a fresh clone stays clean, and what was built for it is there.
            let cargo = |arguments: &[&str]| {
                let mut command = workspace.cargo(arguments);
                command.current_dir(folder).env("CARGO_TARGET_DIR", &workspace.target);
                command
            };
            let clippy = ["clippy", "--workspace", "--all-targets"];
            let test = ["test", "--no-fail-fast", "--workspace"];
            let Some(cuda) = cuda else {
                log.run(cargo(&clippy).args(["--", "-Dwarnings"]))?;
                log.run_tests(&mut cargo(&test))?;
                return Ok(());
            };
            // Without the feature it has to compile. Tests and lints are those with it, which adds code and takes none away.
            log.run(cargo(&["clippy", "--workspace"]).args(["--", "-Dwarnings"]))?;
            // Their build scripts look for ptxas where any outside project does; the built-in operators are tested
            // elsewhere.
            let with_cuda = |command: &mut Command| {
                cuda.lint(command.args(["--features", "cuda"])).env(ptxas::VARIABLE, &cuda.ptxas);
            };
            let mut lints = cargo(&clippy);
            with_cuda(&mut lints);
            log.run(lints.args(["--", "-Dwarnings"]))?;
            let mut tests = cargo(&test);
            with_cuda(&mut tests);
            log.run_tests(&mut tests)?;
            log.note(cuda.verdict());
            Ok(())
        })?;
    }
    Ok(())
}

/// How programs with the feature `cuda` are linked and run on this machine.
struct Cuda<'a> {
    workspace: &'a Workspace,
    driver: Driver,
    ptxas: PathBuf,
    stub: stub::Stub,
}

impl Cuda<'_> {
    /// Looks for a driver before the stub could be taken for one.
    fn prepare(workspace: &Workspace, ptxas: PathBuf) -> Result<Cuda<'_>> {
        Ok(Cuda { workspace, driver: driver::probe(), ptxas, stub: stub::build(workspace, None)? })
    }

    fn has_gpu(&self) -> bool {
        matches!(self.driver, Driver::Devices(_))
    }

    fn words(&self) -> String {
        match self.driver {
            Driver::Absent => format!(
                "no CUDA driver here: the stub stands in ({} functions in {})",
                self.stub.functions,
                self.stub.root.display()
            ),
            Driver::NoDevice(code) => {
                format!("a CUDA driver without a GPU that it would use, or the stub (cuInit: {code})")
            }
            Driver::Devices(count) => {
                format!("a CUDA driver with {count} GPU(s): tests of the feature cuda use it")
            }
        }
    }

    fn verdict(&self) -> &'static str {
        match self.driver {
            Driver::Devices(_) => "the GPU was used",
            _ => "no GPU was used: tests that need one were skipped",
        }
    }

    /// [`Cuda::set`] for what does not run the built-in kernels: warpfold's build script then leaves them out.
    fn lint<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        self.set(command).env("WARPFOLD_WITHOUT_KERNELS", "1")
    }

    /// Gives a command what it needs to link, and to start where there is no driver.
    fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        // The linker may always use the stub: its soname is the driver's.
        command.env("CUDA_LIBRARY_PATH", &self.stub.root);
        setup::name_ptxas(self.workspace, &self.ptxas, command);
        if !self.has_gpu() {
            // Nothing runs the kernels: a sample of the operators will do.
            command.env("WARPFOLD_KERNELS_SAMPLED", "1");
        }
        if self.driver == Driver::Absent {
            let old = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let all = [self.stub.libraries()]
                .into_iter()
                .chain(env::split_paths(&old).filter(|p| fs::exists(p).unwrap_or(false)));
            command.env("LD_LIBRARY_PATH", env::join_paths(all).unwrap_or_default());
        }
        command
    }
}

/// Checks what `warpfold info --json` printed against what the driver said; returns what it says of cuda.
fn judge_info(output: &str, has_gpu: bool) -> Result<String> {
    let object = output
        .lines()
        .find(|line| line.starts_with('{'))
        .context("`warpfold info --json` printed no object")?;
    let info: Value = serde_json::from_str(object).context("`warpfold info --json` is not JSON")?;
    let backends = info["backends"].as_array().into_iter().flatten();
    let cuda =
        backends.into_iter().find(|backend| backend["name"] == "cuda").context("it names no backend cuda")?;
    ensure!(cuda["built"] == true, "it says that cuda is not built in: {cuda}");
    ensure!(cuda["available"] == has_gpu, "it misjudges this machine: {cuda}");
    let devices = info["devices"].as_array().map_or(0, Vec::len);
    ensure!((devices > 0) == has_gpu, "it lists {devices} devices: {cuda}");
    Ok(format!("cuda: {}", cuda["note"].as_str().unwrap_or("no word")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_must_see_the_machine_as_it_is() {
        let line = |built: bool, available: bool, devices: &str| {
            format!(
                "$ cargo run\n{{\"backends\":[{{\"name\":\"cpu\"}},{{\"name\":\"cuda\",\"built\":{built},\
                 \"available\":{available},\"note\":\"why\"}}],\"devices\":{devices}}}\n"
            )
        };
        assert_eq!(judge_info(&line(true, false, "[]"), false).unwrap(), "cuda: why");
        assert!(judge_info(&line(true, true, "[{}]"), true).is_ok());
        assert!(judge_info(&line(true, true, "[{}]"), false).is_err());
        assert!(judge_info(&line(true, false, "[]"), true).is_err());
        assert!(judge_info(&line(false, false, "[]"), false).is_err());
        assert!(judge_info("backend cuda: not available", false).is_err());
    }
}
