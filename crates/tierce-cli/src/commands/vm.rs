//! `tierce vm`: try anything on a throw-away machine with a sched_ext kernel.

use super::time;
use anyhow::{bail, ensure, Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tierce_plan::show_time;
use tierce_terminal::Stop;
use tierce_vm::{Copy, End, Event, KernelSpec, Mode, Outcome, Profile, Vm};

/// Run a command in a temporary virtual machine with a sched_ext kernel
///
/// Boots a Debian kernel in QEMU (without root and disk image; the kernel is fetched once and kept), runs COMMAND there as
/// root, passes on its output, and ends with its exit code. The guest has this same `tierce`, `tierce-manager` and `tierce-top`. A COMMAND of one word is a line for
/// the shell. Words that are relative paths of files are copied into the guest under the same path. The command starts in /guest;
/// files that it leaves in /out are copied back with --out.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_help_heading = "Instead", after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Virtual CPUs, 1 to 4096; emulated, more than 255 need QEMU 9.0.
    #[arg(long, default_value_t = 1, value_name = "N")]
    cpus: u32,
    /// Memory, which also holds the guest's files: 512M, 2G.
    #[arg(long, default_value = "512M", value_parser = parse_memory, value_name = "SIZE")]
    memory: u32,
    /// Give the guest an IDE disk of that size: it is full of zeros, and forgets what is written. Debian's kernels have its driver as
    /// modules (libata, ata_piix, sd_mod), which the guest has to load.
    #[arg(long, value_parser = parse_memory, value_name = "SIZE")]
    disk: Option<u32>,
    /// Count time in instructions: slower, but exact, and the same in every run.
    #[arg(long)]
    deterministic: bool,
    /// With --deterministic: one instruction takes 2^SHIFT ns.
    #[arg(long, default_value_t = 1, value_name = "SHIFT", requires = "deterministic")]
    shift: u8,
    /// With --deterministic and several CPUs: longest time for which a virtual CPU stands still while others run; "off": until the
    /// guest's tick (milliseconds). Shorter times are slower on the host.
    #[arg(long, default_value = "50us", value_parser = parse_turns, value_name = "TIME")]
    fine_turns: Turns,
    /// Emulate even where KVM could be used.
    #[arg(long, conflicts_with = "deterministic")]
    no_kvm: bool,
    /// Copy a file into the guest, to /guest or TARGET. Repeatable.
    #[arg(long, value_name = "FILE[:TARGET]")]
    file: Vec<String>,
    /// Copy a folder into the guest, to /guest or TARGET ("." copies its content into /guest). Repeatable.
    #[arg(long, value_name = "DIR[:TARGET]")]
    dir: Vec<String>,
    /// Copy a program of this machine into the guest, to /bin, with its libraries. Repeatable.
    #[arg(long, value_name = "PROGRAM")]
    program: Vec<String>,
    /// Environment variable of the command. Repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Folder for the files that the command leaves in /out, and the kernel's console.log.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Time limit, boot included: 90s, 10min. After it the exit code is 124.
    #[arg(long, default_value = "5min", value_parser = time::duration, value_name = "TIME")]
    limit: u64,
    /// Add a word to the kernel's command line. Repeatable.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    kernel_argument: Vec<String>,
    /// With --deterministic, on one CPU: count every instruction that is executed between the marks that the guest sets, and show the
    /// functions with most of them, those of BPF programs included. `meter MODE --profile` marks what it measures; around
    /// anything else, call `meter profile --role begin` and `meter profile --role end`. FILE gets all functions, and each
    /// one instruction by instruction with its source lines.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, requires = "deterministic")]
    profile: Option<Option<PathBuf>>,
    /// With --profile: also show this function, instruction by instruction. Repeatable.
    #[arg(long, value_name = "FUNCTION", requires = "profile")]
    annotate: Vec<String>,
    /// At the end, print a line of JSON on standard error: how it ended, which kernel, seconds.
    #[arg(long)]
    json: bool,
    /// The command to run in the guest.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  tierce vm -- tierce run examples/desktop.toml --for 5s
  tierce vm --deterministic -- meter service --policy deadline:2ms:10ms --hogs 4
  tierce vm --cpus 2 --program stress-ng --out results -- 'stress-ng -c 2 -t 5 >/out/log'
  tierce vm --deterministic --profile -- 'meter pingpong --profile'
  tierce vm fetch --kernel 7.0 --print vmlinux

Ctrl-C ends the guest; --out has its console then.

Exit codes: the command's; 124 the time limit; 125 the guest died (its console is shown); 130 Ctrl-C; 2 bad input or environment.";

#[derive(clap::Subcommand)]
enum Action {
    /// Fetch a kernel into the cache, or find it there.
    Fetch(FetchArgs),
}

#[derive(clap::Args)]
struct FetchArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What to print.
    #[arg(long, value_enum, default_value = "version")]
    print: Print,
}

#[derive(clap::Args)]
struct KernelArgs {
    /// Which kernel: a version (else the newest of its series), a series (6.18), "newest", or the path of one.
    #[arg(long, default_value_t = KernelSpec::default(), value_name = "KERNEL")]
    kernel: KernelSpec,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Print {
    Version,
    /// Path of the ELF kernel, with its BTF.
    Vmlinux,
    /// Path of the boot image.
    Vmlinuz,
    /// Path of its build configuration.
    Config,
}

/// Where the user's policies are in the guest.
const GUEST_POLICIES: &str = "/etc/tierce/policies";

#[derive(Clone, Copy)]
struct Turns(Option<u64>);

/// `tierce vm`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        Some(Action::Fetch(fetch)) => self::fetch(&fetch),
        None => boot(&args),
    }
}

fn fetch(args: &FetchArgs) -> Result<ExitCode> {
    let progress = Progress::new();
    let kernel = tierce_vm::obtain(&args.kernel.kernel, &mut |line| progress.say(line))?;
    progress.clear();
    match args.print {
        Print::Version => println!("{}", kernel.name),
        Print::Vmlinux => println!("{}", kernel.vmlinux.display()),
        Print::Vmlinuz => println!("{}", kernel.vmlinuz.display()),
        Print::Config => match kernel.config {
            Some(path) => println!("{}", path.display()),
            None => bail!(
                "kernel {}: its configuration is not known; name a packaged kernel with --kernel",
                kernel.name
            ),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn boot(args: &Args) -> Result<ExitCode> {
    ensure!(
        !args.command.is_empty(),
        "the command to run in the guest is missing, for example: tierce vm -- uname -r"
    );
    let vm = Vm { stop: Some(tierce_terminal::asked()), ..machine(args)? };
    let progress = Progress::new();
    let (mut failed, mut stop) = (None, None);
    let mut outcome = vm.run(&args.command, &mut |event| {
        let written = match event {
            Event::Stdout(bytes) => progress.beside(|| pass_on(std::io::stdout(), bytes)),
            Event::Stderr(bytes) => progress.beside(|| pass_on(std::io::stderr(), bytes)),
            news => {
                if let Event::Booting(_) = news {
                    stop.get_or_insert_with(Stop::watch); // before that, Ctrl-C ends this program
                }
                progress.tell(&news);
                Ok(())
            }
        };
        failed = failed.take().or(written.err());
    })?;
    progress.clear();
    if let Some(error) = failed {
        return Err(error).context("passing on the output of the guest");
    }
    if let Some(folder) = &args.out {
        if let End::Exit(_) = outcome.end {
            outcome.unpack(folder)?;
        }
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join("console.log"), &outcome.console))
            .with_context(|| folder.display().to_string())?;
    }
    match outcome.end {
        End::Exit(_) => {}
        End::Stopped => eprintln!("tierce vm: ended early; what the command left in /out is lost"),
        End::Limit => eprintln!("tierce vm: the time limit of {} is over (--limit)", show_time(args.limit)),
        End::Died => {
            eprintln!("tierce vm: the guest died; the end of its console:\n{}", outcome.last_words(30))
        }
    }
    if let (Some(file), End::Exit(_)) = (&args.profile, outcome.end) {
        show_profile(&outcome.profile()?, file.as_deref(), &args.annotate)?;
    }
    if args.json {
        eprintln!("{}", summary(&outcome));
    }
    Ok(ExitCode::from(outcome.code()))
}

/// How many functions of a profile are shown; its file has all.
const FUNCTIONS_SHOWN: usize = 40;
/// How many source lines its file lists together.
const LINES_SHOWN: usize = 200;

/// On standard error: standard output is the command's.
fn show_profile(profile: &Profile, file: Option<&Path>, annotate: &[String]) -> Result<()> {
    eprint!("{}", profile.table(FUNCTIONS_SHOWN));
    for name in annotate {
        ensure!(profile.named(name).next().is_some(), "--annotate {name}: no such function was executed");
        for function in profile.named(name) {
            eprint!("\n{}", profile.listing(function));
        }
    }
    if let Some(path) = file {
        let mut text = profile.table(usize::MAX) + "\n" + profile.lines(LINES_SHOWN).as_str();
        for function in &profile.functions {
            text += "\n";
            text += &profile.listing(function);
        }
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn pass_on(mut to: impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

fn summary(outcome: &Outcome) -> serde_json::Value {
    let end = match outcome.end {
        End::Exit(_) => "exit",
        End::Limit => "limit",
        End::Died => "died",
        End::Stopped => "stopped",
    };
    json!({
        "end": end,
        "code": outcome.code(),
        "kernel": outcome.kernel.name,
        "boot_s": outcome.boot.as_secs_f64(),
        "total_s": outcome.total.as_secs_f64(),
    })
}

fn machine(args: &Args) -> Result<Vm> {
    let myself = std::env::current_exe().context("where is this program")?;
    let beside = [super::manager::PROGRAM, super::top::PROGRAM].map(|name| myself.with_file_name(name));
    let beside = beside.into_iter().filter(|file| file.is_file());
    let own = std::iter::once(myself.clone()).chain(beside).map(|file| file.display().to_string());
    let mut vm = Vm {
        kernel: args.kernel.kernel.clone(),
        cpus: args.cpus,
        memory_mib: args.memory,
        disk_mib: args.disk.unwrap_or(0),
        mode: match (args.deterministic, args.no_kvm) {
            (true, _) => Mode::Deterministic { shift: args.shift },
            (_, true) => Mode::Multi,
            _ => Mode::Auto,
        },
        turns_ns: args.fine_turns.0,
        programs: args.program.iter().cloned().chain(own).collect(),
        limit: Duration::from_nanos(args.limit),
        kernel_arguments: args.kernel_argument.clone(),
        profile: args.profile.is_some(),
        ..Vm::default()
    };
    let ends_a_word = |c: char| c.is_whitespace() || ";|&<>()'\"".contains(c);
    for word in args.command.iter().flat_map(|word| word.split(ends_a_word)) {
        if names_a_file(word) {
            vm.copies.push(Copy { from: word.into(), to: word.into() });
        }
    }
    for text in args.dir.iter().chain(&args.file) {
        vm.copies.push(Copy::parse(text)?);
    }
    policies(&mut vm)?;
    for text in &args.env {
        let (name, value) =
            text.split_once('=').with_context(|| format!("--env {text}: expected NAME=VALUE"))?;
        vm.environment.push((name.into(), value.into()));
    }
    Ok(vm)
}

/// The user's policies go along as they are built here, for the kernel, too: the guest has no compiler.
fn policies(vm: &mut Vm) -> Result<()> {
    let Some(added) = tierce_policy::added::added() else { return Ok(()) };
    tierce_scx::object::image()?;
    for name in tierce_policy::added::FILES {
        let to = Path::new(GUEST_POLICIES).join(name);
        vm.copies.push(Copy { from: added.folder().join(name), to });
    }
    vm.environment.push((tierce_policy::added::VARIABLE.into(), GUEST_POLICIES.into()));
    Ok(())
}

/// Whether a word of the command is the relative path of a file below this folder: such files go along.
fn names_a_file(word: &str) -> bool {
    let path = Path::new(word);
    path.is_file() && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn parse_memory(text: &str) -> Result<u32> {
    let (number, factor) = match text.strip_suffix('G') {
        Some(number) => (number, 1024),
        None => (text.strip_suffix('M').unwrap_or(""), 1),
    };
    let parsed = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    parsed.with_context(|| format!("memory \"{text}\": expected a number with M or G"))
}

fn parse_turns(text: &str) -> Result<Turns, String> {
    match text {
        "off" => Ok(Turns(None)),
        _ => time::duration(text).map(|ns| Turns(Some(ns))),
    }
}

/// One line that changes in place on a terminal; elsewhere a line for each news but the passing of time.
struct Progress(ProgressBar);

impl Progress {
    fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a fixed template"));
        Progress(bar)
    }

    fn tell(&self, news: &Event) {
        match news {
            Event::Preparing(line) => self.say(line),
            Event::Booting(since) => self.show(format!("booting, {:.0} s", since.as_secs_f32())),
            // On a terminal, what the command says is all that is shown.
            _ if std::io::stdout().is_terminal() => self.clear(),
            Event::Running(since) => self.show(format!("running, {:.0} s", since.as_secs_f32())),
            _ => {}
        }
    }

    fn say(&self, line: &str) {
        match self.0.is_hidden() {
            true => eprintln!("tierce vm: {line}"),
            false => self.show(line.to_string()),
        }
    }

    fn show(&self, line: String) {
        self.0.set_message(line);
        self.0.tick();
    }

    /// Write what does not disturb the line, nor is disturbed by it.
    fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_memory("512M").unwrap(), 512);
        assert_eq!(parse_memory("2G").unwrap(), 2048);
        assert_eq!(parse_turns("50us").unwrap().0, Some(50_000));
        assert_eq!(parse_turns("off").unwrap().0, None);
        for text in ["", "M", "512", "-1M", "9999999G", "1.5G"] {
            assert!(
                parse_memory(text).unwrap_err().to_string().contains("expected a number with M or G"),
                "{text}"
            );
        }
    }

    #[test]
    fn only_files_below_go_along() {
        assert!(names_a_file("Cargo.toml") && names_a_file("./src/lib.rs"));
        for word in ["src", "/etc/passwd", "../tierce-vm/Cargo.toml", "no-such-file", "run"] {
            assert!(!names_a_file(word), "{word}");
        }
    }
}
