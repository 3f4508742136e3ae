//! A list of steps that stops at the first that fails.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::totals::{SKIP, Totals, is_closing};

/// The steps so far.
pub struct Steps {
    logs: PathBuf,
    done: Vec<(String, Duration)>,
    totals: Totals,
    planned: usize,
}

/// One step's log; commands run through it.
pub struct Log {
    path: PathBuf,
    notes: Vec<String>,
    tests: Option<Totals>,
}

impl Log {
    /// Runs a command with its output in the log. A warning in that output is a failure too.
    pub fn run(&mut self, command: &mut Command) -> Result<String> {
        self.run_and(command, None)
    }

    /// [`Log::run`] with something to do with the output, also when the command fails.
    fn run_and(&mut self, command: &mut Command, read: Option<fn(&mut Log, &str)>) -> Result<String> {
        let before = fs::metadata(&self.path).map_or(0, |data| data.len()) as usize;
        let mut file =
            File::options().create(true).append(true).open(&self.path).context("cannot open the log")?;
        writeln!(file, "$ {command:?}").context("cannot write the log")?;
        let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
        let status =
            status.with_context(|| format!("{} could not be started", command.get_program().display()))?;
        let text = String::from_utf8_lossy(&fs::read(&self.path)?[before..]).into_owned();
        if let Some(read) = read {
            read(&mut *self, &text);
        }
        if !status.success() {
            bail!("the command ended with {status}");
        }
        if let Some(warning) = first_warning(&text) {
            bail!("a warning counts as a failure here: {warning}");
        }
        Ok(text)
    }

    /// Runs tests: [`Log::run`], and their totals are read, closing lines and skips become notes.
    pub fn run_tests(&mut self, command: &mut Command) -> Result<String> {
        self.run_and(command, Some(Log::count))
    }

    fn count(&mut self, output: &str) {
        self.tests = Some(self.tests.unwrap_or_default() + Totals::read(output));
        let empty = " 0 passed; 0 failed; 0 ignored";
        let worth = |line: &&str| (is_closing(line) && !line.contains(empty)) || line.starts_with(SKIP);
        self.notes.extend(output.lines().filter(worth).map(str::to_owned));
    }

    /// A line to print under the step.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

/// The first line by which cargo, rustc or a build script warns.
fn first_warning(output: &str) -> Option<&str> {
    output.lines().find(|line| line.starts_with("warning:") || line.starts_with("warning["))
}

impl Steps {
    /// Steps whose logs lie in `logs`, which is emptied.
    pub fn new(logs: &Path, planned: usize) -> Result<Steps> {
        if logs.exists() {
            fs::remove_dir_all(logs).with_context(|| format!("cannot empty {}", logs.display()))?;
        }
        fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(Steps { logs: logs.to_path_buf(), done: Vec::new(), totals: Totals::default(), planned })
    }

    /// Runs one step: its name, its notes and its time are printed; if it fails, its whole log is.
    pub fn step<T>(&mut self, name: &str, body: impl FnOnce(&mut Log) -> Result<T>) -> Result<T> {
        let number = self.done.len() + 1;
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = self.logs.join(format!("{number:02}-{file}.log"));
        // With a GPU there is one more than planned.
        print!("[{number:2}/{}] {name} ... ", self.planned.max(number));
        io::stdout().flush().ok();
        let mut log = Log { path, notes: Vec::new(), tests: None };
        let start = Instant::now();
        let result = body(&mut log);
        let time = start.elapsed();
        match &result {
            Ok(_) => println!("{}", seconds(time)),
            Err(_) => println!("FAILED after {}", seconds(time)),
        }
        for note in &log.notes {
            println!("        {}", note.replace('\n', "\n        "));
        }
        if result.is_err()
            && let Ok(bytes) = fs::read(&log.path)
        {
            println!("---- output of this step ({}) ----", log.path.display());
            println!("{}", String::from_utf8_lossy(&bytes));
        }
        self.totals = self.totals + log.tests.unwrap_or_default();
        self.done.push((name.to_owned(), time));
        result.with_context(|| format!("step {number}, {name}, failed"))
    }

    /// What the tests of all steps came to.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The table of steps and times.
    pub fn table(&self) -> String {
        let width = self.done.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, time) in &self.done {
            writeln!(text, "  {name:width$}  {:>9}", seconds(*time)).unwrap();
        }
        let total: Duration = self.done.iter().map(|(_, time)| *time).sum();
        write!(text, "  {:width$}  {:>9}", "in all", seconds(total)).unwrap();
        text
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failing_command_stops_its_step() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = Steps::new(&folder.path().join("logs"), 2).unwrap();
        steps.step("good", |log| log.run(&mut shell("echo fine"))).unwrap();
        let error = steps.step("bad", |log| log.run(&mut shell("echo seen; exit 3"))).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("step 2, bad, failed") && text.contains("exit status: 3"), "{text}");
        let log = fs::read_to_string(folder.path().join("logs/02-bad.log")).unwrap();
        assert!(log.contains("\nseen\n"), "{log}");
        assert!(steps.table().contains("good") && steps.table().contains("bad"));
    }

    #[test]
    fn warnings_fail_and_words_within_a_line_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = Steps::new(&folder.path().join("logs"), 2).unwrap();
        steps.step("talk", |log| log.run(&mut shell("echo 'no warning: here'"))).unwrap();
        let error = steps.step("warn", |log| log.run(&mut shell("echo 'warning: spills' >&2"))).unwrap_err();
        assert!(format!("{error:#}").contains("warning: spills"));
    }

    #[test]
    fn totals_come_from_test_commands_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = Steps::new(&folder.path().join("logs"), 2).unwrap();
        let closing = "echo 'test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0s'";
        steps.step("other", |log| log.run(&mut shell(closing))).unwrap();
        steps
            .step("tests", |log| log.run_tests(&mut shell(&format!("{closing}; echo 'skipped: x: no GPU'"))))
            .unwrap();
        assert_eq!(steps.totals(), Totals { passed: 3, failed: 0, skipped: 2 });
        let failing = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured'; exit 101";
        assert!(steps.step("failing", |log| log.run_tests(&mut shell(failing))).is_err());
        assert_eq!(steps.totals(), Totals { passed: 4, failed: 2, skipped: 2 });
    }
}
