//! `tierce policy`: policies of the user's, and the folder that they come from.

use anyhow::{bail, ensure, Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};
use tierce_policy::added::{self, added, Added};

/// Begin, test and build scheduling policies of your own
///
/// A policy is a C file in a folder, which --policy-dir names for each command of tierce. docs/own-policy.md says what the file has
/// to have.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  tierce policy new mine/lucky.c
  tierce sim --policy-dir mine mine/lucky.toml --check
  tierce policy test --policy-dir mine
  tierce vm --policy-dir mine -- tierce run mine/lucky.toml --for 1s
  tierce policy build --policy-dir mine built      for machines without a compiler: tierce run --policy-dir built ...";

#[derive(clap::Subcommand)]
enum Action {
    /// Write a policy to begin with, and a plan that uses it: turns as in round-robin
    New {
        /// The C file, named like the policy: mine/lucky.c
        file: PathBuf,
    },
    /// Test the policies of --policy-dir: random operations, the folder's plans, the kernel's verifier
    Test {
        /// Random operations.
        #[arg(long, default_value_t = 300_000, value_name = "NUMBER")]
        operations: u64,
        /// Seed of the random operations.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Leave out what needs a virtual machine.
        #[arg(long)]
        no_vm: bool,
    },
    /// Write what was built of the policies of --policy-dir, which --policy-dir takes in their place
    Build {
        /// A folder.
        out: PathBuf,
    },
}

/// The option that names the folder, known before arguments are parsed.
const OPTION: &str = "--policy-dir";

pub fn folder() -> Option<PathBuf> {
    let mut words = env::args_os().skip(1).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        if word == OPTION {
            return words.next().map(PathBuf::from);
        }
        let given = word.to_str().and_then(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
        if let Some(given) = given {
            return Some(given.into());
        }
    }
    env::var_os(added::VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Use the policies of the folder that the arguments or the environment name.
pub fn load() -> Result<()> {
    folder().map_or(Ok(()), |folder| added::load(&folder).map(|_| ()))
}

/// `tierce policy`.
pub fn run(args: Args) -> Result<ExitCode> {
    let given = || added().context("policy_folder_not_given: --policy-dir DIR says whose policies");
    match args.action {
        Action::New { file } => new(&file)?,
        Action::Test { operations, seed, no_vm } => {
            let added = given()?;
            random_operations(added, operations, seed)?;
            plans(added, no_vm)?;
        }
        Action::Build { out } => build(given()?, &out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn new(file: &Path) -> Result<()> {
    let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".c")).unwrap_or_default();
    let is_lower = |byte: u8| byte.is_ascii_lowercase();
    let fits = name.bytes().all(|byte| is_lower(byte) || byte.is_ascii_digit() || byte == b'_');
    ensure!(
        fits && name.bytes().next().is_some_and(is_lower),
        "policy_file_name: {}: expected NAME.c with lower-case letters, digits and _ in NAME",
        file.display()
    );
    let plan = file.with_extension("toml");
    for path in [file, &plan] {
        ensure!(!path.exists(), "file_exists: {}", path.display());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(file, added::skeleton(name)?).with_context(|| file.display().to_string())?;
    fs::write(&plan, PLAN.replace("POLICY", &name.replace('_', "-")))
        .with_context(|| plan.display().to_string())?;
    println!("{}\n{}", file.display(), plan.display());
    Ok(())
}

const PLAN: &str = r#"# Two tasks below a node of the policy, on one CPU.

[machine]
cpus = 1

[node.top]
policy = "POLICY"
default = true
cpu = 0

[task.a]
under.top = {}
load = "busy"

[task.b]
under.top = {}
load = { period = "10ms", work = "2ms" }
"#;

/// The engine's random test with these policies: half of its nodes have one of them.
fn random_operations(added: &Added, operations: u64, seed: u64) -> Result<()> {
    let program = added.file("random", |program| {
        eprintln!("tierce: compiling the test of random operations");
        let mut compiler = added::compiler();
        compiler.args(["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        added.include(&mut compiler);
        added::succeed(compiler.arg(added.source("tests/random.c")).arg("-o").arg(program))
    })?;
    // As plans are; times of any size; whole milliseconds, so that much happens at one time.
    for (draws, part) in [(&[][..], 1), (&["-w"], 3), (&["-c"], 3)] {
        let (operations, seed) = ((operations / part).to_string(), seed.to_string());
        let status = Command::new(&program).args(["-n", &operations, "-s", &seed]).args(draws).status()?;
        ensure!(status.success(), "policy_breaks_an_invariant: random operations, see above");
    }
    Ok(())
}

/// Each plan of the folder is simulated with the checker, and enforced in a virtual machine, where the verifier looks at it. Of a
/// scenario the two are compared.
fn plans(added: &Added, no_vm: bool) -> Result<()> {
    let folder = added.from();
    let mut plans: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    plans.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    plans.sort();
    let files = format!("{}:.", folder.display());
    for plan in plans {
        let name = plan.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let text = fs::read_to_string(&plan).with_context(|| plan.display().to_string())?;
        if !text.lines().any(|line| line.trim() == "[scenario]") {
            quietly(&format!("{name}: simulated"), |tierce| {
                tierce.arg("sim").arg(&plan).args(["--check", "--for", "2s"]);
            })?;
            if !no_vm {
                quietly(&format!("{name}: enforced in a virtual machine"), |tierce| {
                    tierce.args(["vm", "--dir", &files, "--", "tierce", "run", "--for", "1s", &name]);
                })?;
            }
        } else if !no_vm {
            let out = added.folder().join("played");
            quietly(&format!("{name}: played in a virtual machine"), |tierce| {
                tierce.args(["vm", "--deterministic", "--dir", &files, "--out"]).arg(&out);
                tierce.args(["--", "tierce", "scenario", "play", "--out", "/out", &name]);
            })?;
            quietly(&format!("{name}: the kernel decided as simulated"), |tierce| {
                tierce.args(["scenario", "judge", "--out"]).arg(&out).arg(&plan);
            })?;
        }
    }
    Ok(())
}

/// Run this program with the same policies; what it says is shown if it fails.
fn quietly(what: &str, with: impl FnOnce(&mut Command)) -> Result<()> {
    let mut tierce = Command::new(env::current_exe().context("where is this program")?);
    with(&mut tierce);
    let folder = added().context("policies are loaded")?.from();
    let output = tierce.env(added::VARIABLE, folder).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("policy_test_failed: {what}: {}\n{}", output.status, String::from_utf8_lossy(&said));
    }
    println!("{what}: ok");
    Ok(())
}

fn build(added: &Added, out: &Path) -> Result<()> {
    tierce_scx::object::image()?;
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    for name in added::FILES {
        fs::copy(added.folder().join(name), out.join(name)).with_context(|| out.display().to_string())?;
    }
    println!("{}", out.display());
    Ok(())
}
