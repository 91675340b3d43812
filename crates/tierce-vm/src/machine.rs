//! Starting QEMU, listening to the guest, and what came of it.

use crate::contents::{find_program, Contents, Copy};
use crate::kernel::{self, Kernel, KernelSpec};
use crate::outcome::{memory_file, text_of, Counted, End, Outcome};
use crate::profile::PLUGIN;
use anyhow::{ensure, Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How the virtual CPUs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// KVM where this machine lets us, else [`Mode::Multi`].
    #[default]
    Auto,
    /// Hardware virtualisation.
    Kvm,
    /// Emulated, a host thread per virtual CPU; one for all of them, if they are many. Timing in the guest means nothing.
    Multi,
    /// Emulated, time counted in instructions: one takes 2^`shift` ns of virtual time. Two runs of the same command are
    /// the same run. Idle time is skipped.
    Deterministic {
        /// 1 makes a machine of 500 million instructions per second.
        shift: u8,
    },
}

/// Most CPUs that a QEMU gives to a guest. Older ones refuse fewer, with a message of their own.
pub const CPUS_MAX: u32 = 4096;

/// Emulated CPUs, at most, that the kernel may measure one by one when it boots.
const CPUS_MEASURED: u32 = 16;

/// With more CPUs their numbers no longer fit the interrupt controller of old: a guest needs an IOMMU that remaps interrupts.
const CPUS_OF_XAPIC: u32 = 255;

/// Emulated CPUs for each of the host's, at most, that have a thread each. More of them make each other wait: 64 CPUs on two boot
/// in half the time, if they take turns.
const THREADS_PER_CPU: u32 = 8;

/// A virtual machine to be.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Its kernel.
    pub kernel: KernelSpec,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory, which also holds every file of the guest.
    pub memory_mib: u32,
    /// An IDE disk of that size (0: none) that is full of zeros and forgets what is written.
    pub disk_mib: u32,
    /// How its CPUs run.
    pub mode: Mode,
    /// Deterministic with several CPUs: no virtual CPU stands still for longer than about this, in ns (see
    /// guest/init.c, `fine_turns`). `None` leaves it to the guest's tick.
    pub turns_ns: Option<u64>,
    /// Files and folders of the host inside.
    pub copies: Vec<Copy>,
    /// Programs of the host in `/bin`, with their libraries; names are looked up in PATH.
    pub programs: Vec<String>,
    /// Environment of the command, besides PATH, HOME, LANG.
    pub environment: Vec<(String, String)>,
    /// Most it may take, in time of the host, boot included.
    pub limit: Duration,
    /// More words for the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// Once this is set, the guest is ended.
    pub stop: Option<&'static AtomicBool>,
    /// Deterministic with one CPU only: count every instruction that the guest executes between its marks (see guest/profile.h).
    pub profile: bool,
}

impl Default for Vm {
    fn default() -> Self {
        Vm {
            kernel: KernelSpec::default(),
            cpus: 1,
            memory_mib: 512,
            disk_mib: 0,
            mode: Mode::Auto,
            turns_ns: Some(50_000),
            copies: Vec::new(),
            programs: Vec::new(),
            environment: Vec::new(),
            limit: Duration::from_secs(300),
            stop: None,
            kernel_arguments: Vec::new(),
            profile: false,
        }
    }
}

/// News while a machine runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something is being prepared; a line about it.
    Preparing(&'a str),
    /// The guest boots, this long already. Told ten times a second.
    Booting(Duration),
    /// The command starts, this long after QEMU.
    Started(Duration),
    /// It runs, this long after QEMU. Told ten times a second while it says nothing.
    Running(Duration),
    /// The command wrote to its standard output.
    Stdout(&'a [u8]),
    /// The command wrote to its standard error.
    Stderr(&'a [u8]),
}

impl Vm {
    /// [`Vm::run`], keeping what the command writes.
    pub fn run_captured(&self, command: &[impl AsRef<str>]) -> Result<Outcome> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut outcome = self.run(command, &mut |event| match event {
            Event::Stdout(bytes) => stdout.extend_from_slice(bytes),
            Event::Stderr(bytes) => stderr.extend_from_slice(bytes),
            _ => {}
        })?;
        (outcome.stdout, outcome.stderr) = (stdout, stderr);
        Ok(outcome)
    }

    /// Boot, run one command as root in `/guest`, end. A command of one word is a line for the shell. `tell` hears of
    /// everything as it happens. The thread that calls this must live as long as the call: QEMU dies with it.
    pub fn run(&self, command: &[impl AsRef<str>], tell: &mut dyn FnMut(Event)) -> Result<Outcome> {
        self.check()?;
        let qemu = find_program("qemu-system-x86_64")
            .context("a virtual machine needs QEMU (Debian package qemu-system-x86)")?;
        let mode = self.settle_mode(&qemu)?;
        if self.profile {
            ensure_plugins(&qemu, mode)?;
        }
        let initramfs = memory_file("initramfs", &self.contents(command, mode)?)?;
        let kernel = kernel::obtain(&self.kernel, &mut |line| tell(Event::Preparing(line)))?;
        Running::start(&qemu, self, mode, &kernel, initramfs)?.listen(self, kernel, tell)
    }

    fn check(&self) -> Result<()> {
        ensure!(
            cfg!(target_arch = "x86_64"),
            "guests are amd64 machines with this machine's programs; this one is not"
        );
        ensure!((1..=CPUS_MAX).contains(&self.cpus), "{} CPUs: a guest has 1 to {CPUS_MAX}", self.cpus);
        ensure!(self.memory_mib >= 128, "{} MiB of memory: a guest needs at least 128", self.memory_mib);
        if let Mode::Deterministic { shift } = self.mode {
            ensure!(shift <= 10, "shift {shift}: an instruction takes 2^0 to 2^10 ns");
        }
        // To begin and to end counting, QEMU stops all CPUs; with several, it then fails to read the time ("Bad icount read").
        ensure!(
            !self.profile || self.cpus == 1,
            "a profile needs a machine of one CPU; this one has {}",
            self.cpus
        );
        if let Some(turns) = self.turns_ns {
            ensure!(
                (1_000..=1_000_000_000).contains(&turns),
                "turns of {turns} ns: possible are 1 us to 1 s"
            );
        }
        Ok(())
    }

    fn settle_mode(&self, qemu: &Path) -> Result<Mode> {
        match self.mode {
            Mode::Auto if kvm_usable().is_ok() => return Ok(Mode::Kvm),
            Mode::Kvm => return kvm_usable().map(|()| Mode::Kvm),
            _ => {}
        }
        if self.cpus > CPUS_OF_XAPIC {
            let version = qemu_version(qemu)?;
            ensure!(
                version >= (9, 0),
                "{} emulated CPUs: QEMU {}.{} emulates at most {CPUS_OF_XAPIC}; 9.0 or later has more",
                self.cpus,
                version.0,
                version.1
            );
        }
        match self.mode {
            Mode::Auto => Ok(Mode::Multi),
            Mode::Deterministic { .. } if self.cpus > 1 => {
                let version = qemu_version(qemu)?;
                ensure!(
                    version >= (8, 1),
                    "deterministic with several CPUs: QEMU {}.{} starves all but one of them; 8.1 or later does not \
                     (Debian 12: from bookworm-backports)",
                    version.0,
                    version.1
                );
                Ok(self.mode)
            }
            other => Ok(other),
        }
    }

    /// Whether its CPUs share one host thread, which counts instructions.
    fn takes_turns(&self, mode: Mode) -> bool {
        matches!(mode, Mode::Deterministic { .. }) && self.cpus > 1
    }

    /// Whether it has more CPUs than the host can give threads to.
    fn is_crowded(&self) -> bool {
        let host = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        self.cpus > THREADS_PER_CPU.saturating_mul(host)
    }

    fn contents(&self, command: &[impl AsRef<str>], mode: Mode) -> Result<Vec<u8>> {
        let mut contents = Contents::new()?;
        for program in &self.programs {
            contents.program(&find_program(program)?)?;
        }
        for copy in &self.copies {
            contents.copy(copy)?;
        }
        let words: Vec<String> = match command {
            [] => anyhow::bail!("no command to run in the guest"),
            [line] => ["sh", "-c", line.as_ref()].map(String::from).into(),
            words => words.iter().map(|word| word.as_ref().into()).collect(),
        };
        let base = [("PATH", "/bin:/sbin:/usr/bin:/usr/sbin"), ("HOME", "/root"), ("LANG", "C.UTF-8")];
        let mut environment: Vec<_> = base.map(|(name, value)| (name.into(), value.into())).into();
        environment.extend_from_slice(&self.environment);
        contents.orders(&words, &environment, self.turns_ns.filter(|_| self.takes_turns(mode)))?;
        let bytes = contents.bytes();
        // The image is in memory twice while the kernel unpacks it.
        let needed = 2 * (bytes.len() >> 20) as u32 + 96;
        ensure!(
            needed <= self.memory_mib,
            "the guest's files ({} MiB) need at least {needed} MiB of memory, it has {}",
            bytes.len() >> 20,
            self.memory_mib
        );
        Ok(bytes)
    }
}

/// Whether QEMU can run an ordinary kernel with KVM. A `/dev/kvm` without vmx or svm takes paravirtual guests only.
fn kvm_usable() -> Result<()> {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .context("/dev/kvm: no KVM here, or not for this user")?;
    let about = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let flags = about.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    let hardware = flags.split_whitespace().any(|flag| matches!(flag, "vmx" | "svm"));
    ensure!(hardware, "/dev/kvm is there, but this CPU has neither vmx nor svm");
    Ok(())
}

/// Whether QEMU can count for a profile.
fn ensure_plugins(qemu: &Path, mode: Mode) -> Result<()> {
    ensure!(
        matches!(mode, Mode::Deterministic { .. }),
        "a profile needs a deterministic machine: elsewhere the next run executes other instructions"
    );
    let version = qemu_version(qemu)?;
    ensure!(version >= (9, 1), "a profile needs QEMU 9.1 or later; this is {}.{}", version.0, version.1);
    let help = Command::new(qemu).args(["-plugin", "help"]).output().context("qemu -plugin help")?;
    ensure!(
        help.status.success(),
        "a profile needs a QEMU that takes plugins (built with --enable-plugins, as Debian's is): {}",
        String::from_utf8_lossy(&help.stderr).trim()
    );
    Ok(())
}

fn qemu_version(qemu: &Path) -> Result<(u32, u32)> {
    let out = Command::new(qemu).arg("--version").output().with_context(|| qemu.display().to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    let numbers = text.split_once("version ").map(|(_, rest)| rest.split(['.', ' ']).map(str::parse));
    match numbers.map(|mut n| (n.next(), n.next())) {
        Some((Some(Ok(major)), Some(Ok(minor)))) => Ok((major, minor)),
        _ => anyhow::bail!("{} does not tell its version: {text}", qemu.display()),
    }
}

/// QEMU's arguments for a machine without ports.
fn hardware(vm: &Vm, mode: Mode) -> Vec<String> {
    let remaps = vm.cpus > CPUS_OF_XAPIC;
    let machine = if remaps && mode == Mode::Kvm { "q35,kernel-irqchip=split" } else { "q35" };
    let fixed = ["-M", machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"];
    let mut words: Vec<String> = fixed.map(String::from).into();
    words.extend(accelerator(mode, vm.is_crowded()));
    if remaps {
        words.extend(["-device", "intel-iommu,intremap=on,eim=on"].map(String::from));
    }
    words.extend(["-smp".into(), vm.cpus.to_string(), "-m".into(), format!("{}M", vm.memory_mib)]);
    words.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"].map(String::from));
    words.extend(["-device", "virtio-serial-pci,ioeventfd=off"].map(String::from));
    if vm.disk_mib > 0 {
        let zeros =
            format!("driver=null-co,node-name=zeros,read-zeroes=on,size={}", u64::from(vm.disk_mib) << 20);
        words.extend(["-blockdev".into(), zeros]);
        words.extend(
            ["-device", "piix3-ide,id=ide", "-device", "ide-hd,bus=ide.0,drive=zeros"].map(String::from),
        );
    }
    words
}

/// Files that QEMU is given open.
struct Passed(Vec<OwnedFd>);

impl Passed {
    /// The path by which QEMU opens it.
    fn add(&mut self, file: OwnedFd) -> String {
        let path = format!("/dev/fd/{}", file.as_raw_fd());
        self.0.push(file);
        path
    }

    /// The command inherits them, and ends with us.
    fn to(&self, command: &mut Command) {
        let inherited: Vec<i32> = self.0.iter().map(AsRawFd::as_raw_fd).collect();
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec only system calls are made, on descriptors that we keep open until then.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                if rustix::process::getppid() != Some(parent) {
                    return Err(std::io::Error::other("our parent is gone"));
                }
                for &fd in &inherited {
                    let fd = rustix::fd::BorrowedFd::borrow_raw(fd);
                    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
                }
                Ok(())
            });
        }
    }
}

/// QEMU at work, and our ends of its ports. It is killed when this is dropped.
struct Running {
    qemu: Child,
    started: Instant,
    out: File,
    err: File,
    status: File,
    files: File,
    console: File,
    complaints: File,
    counted: Option<Counted>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Running {
    fn start(qemu: &Path, vm: &Vm, mode: Mode, kernel: &Kernel, initramfs: File) -> Result<Running> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("pipe");
        let ((out, out_end), (err, err_end), (status, status_end)) = (pipe()?, pipe()?, pipe()?);
        let (files, console) = (memory_file("files", &[])?, memory_file("console", &[])?);
        let complaints = memory_file("complaints", &[])?;
        let counted = vm.profile.then(Counted::new).transpose()?;

        let mut command = Command::new(qemu);
        command.args(hardware(vm, mode));
        let mut passed = Passed(Vec::new());
        let mut ports = vec![
            ("out", out_end),
            ("err", err_end),
            ("status", status_end),
            ("files", files.try_clone()?.into()),
        ];
        if let Some(Counted { instructions, symbols }) = &counted {
            ports.push(("symbols", symbols.try_clone()?.into()));
            let (plugin, counts) = (memory_file("plugin", PLUGIN)?, instructions.try_clone()?);
            let (plugin, counts) = (passed.add(plugin.into()), passed.add(counts.into()));
            command.args(["-plugin", &format!("file={plugin},out={counts}")]);
        }
        for (name, fd) in ports {
            command.args(["-chardev", &format!("file,id={name},path={},append=on", passed.add(fd))]);
            command.args(["-device", &format!("virtserialport,chardev={name},name=tierce.{name}")]);
        }
        let console_path = passed.add(console.try_clone()?.into());
        let console_device = format!("file,id=console,path={console_path},append=on");
        command.args(["-chardev", &console_device, "-serial", "chardev:console"]);
        command.arg("-kernel").arg(&kernel.vmlinux).args(["-initrd", &passed.add(initramfs.into())]);
        command.args(["-append", &kernel_line(vm, mode)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints.try_clone()?);
        passed.to(&mut command);
        let started = Instant::now();
        let qemu = command.spawn().with_context(|| format!("cannot start {}", qemu.display()))?;
        Ok(Running {
            qemu,
            started,
            out: out.into(),
            err: err.into(),
            status: status.into(),
            files,
            console,
            complaints,
            counted,
        })
    }

    /// Pass on what the guest says until it or the time ends.
    fn listen(mut self, vm: &Vm, kernel: Kernel, tell: &mut dyn FnMut(Event)) -> Result<Outcome> {
        let is_stopped = || vm.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let limit = vm.limit;
        let (mut said, mut boot, mut early) = (String::new(), Duration::ZERO, None);
        let mut open = [true; 3];
        let mut block = vec![0; 1 << 16];
        while open.contains(&true) {
            if is_stopped() {
                early = Some(End::Stopped);
            } else if self.started.elapsed() >= limit {
                early = Some(End::Limit);
            }
            if early.is_some() {
                break;
            }
            if boot.is_zero() {
                tell(Event::Booting(self.started.elapsed()));
            }
            let readable = self.wait(&open, limit)?;
            if readable.is_empty() && !boot.is_zero() {
                tell(Event::Running(self.started.elapsed()));
            }
            for ready in readable {
                let port = [&self.out, &self.err, &self.status][ready];
                let mut port: &File = port;
                let n = port.read(&mut block)?;
                open[ready] = n > 0;
                match ready {
                    _ if n == 0 => {}
                    0 => tell(Event::Stdout(&block[..n])),
                    1 => tell(Event::Stderr(&block[..n])),
                    _ => said += &String::from_utf8_lossy(&block[..n]),
                }
                if boot.is_zero() && said.starts_with("start\n") {
                    boot = self.started.elapsed();
                    tell(Event::Started(boot));
                }
            }
        }
        if early.is_none() && is_stopped() {
            early = Some(End::Stopped); // QEMU was told, too, and was faster
        }
        if early.is_some() {
            self.qemu.kill()?;
        }
        self.outcome(&said, boot, early, kernel)
    }

    /// What came of it. `said`: the guest, of its command; `early`: why it was ended.
    fn outcome(mut self, said: &str, boot: Duration, early: Option<End>, kernel: Kernel) -> Result<Outcome> {
        let status = self.qemu.wait()?;
        let total = self.started.elapsed();
        let complaints = text_of(&mut self.complaints)?;
        // Our own end of the machine makes an odd status, the kernel's reset after a panic 0, an error of QEMU 1.
        ensure!(
            early.is_some() || said.starts_with("start\n") || status.code() != Some(1),
            "QEMU could not start the guest: {}",
            complaints.trim()
        );
        let end = match said.lines().find_map(|line| line.strip_prefix("exit ")) {
            Some(code) => End::Exit(code.parse().with_context(|| format!("the guest says \"exit {code}\""))?),
            None => early.unwrap_or(End::Died),
        };
        let mut console = text_of(&mut self.console)?;
        if end == End::Died && !complaints.is_empty() {
            console += &format!("QEMU: {complaints}");
        }
        let (files, counted) = (self.files.try_clone()?, self.counted.take());
        let (stdout, stderr) = (Vec::new(), Vec::new());
        Ok(Outcome { end, console, kernel, boot, total, stdout, stderr, files, counted })
    }

    /// Which of the open ports have something (or ended): waits up to 100 ms, and not past the limit.
    fn wait(&self, open: &[bool; 3], limit: Duration) -> Result<Vec<usize>> {
        let left = limit.saturating_sub(self.started.elapsed()).min(Duration::from_millis(100));
        let ports = [&self.out, &self.err, &self.status];
        let asked: Vec<usize> = (0..3).filter(|&i| open[i]).collect();
        let mut fds: Vec<PollFd> =
            asked.iter().map(|&i| PollFd::from_borrowed_fd(ports[i].as_fd(), PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos() as i64 };
        match poll(&mut fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            other => other.context("poll")?,
        };
        let ready = |fd: &PollFd| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        Ok(asked.iter().zip(&fds).filter(|(_, fd)| ready(fd)).map(|(&i, _)| i).collect())
    }
}

/// An emulated CPU says that it has no fast string instructions: emulated, each byte of a `rep movsb` takes as long as an
/// instruction, and is counted as one. The guest then moves 8 bytes at a time, and a plan loads in a third of the time.
const EMULATED_CPU: &str = "-cpu max,erms=off,fsrm=off,fzrm=off,fsrs=off,fsrc=off";

fn accelerator(mode: Mode, crowded: bool) -> Vec<String> {
    let text = match mode {
        Mode::Kvm => "-accel kvm -cpu host".into(),
        Mode::Auto | Mode::Multi if crowded => format!("-accel tcg,thread=single {EMULATED_CPU}"),
        Mode::Auto | Mode::Multi => format!("-accel tcg,thread=multi {EMULATED_CPU}"),
        Mode::Deterministic { shift } => format!(
            "-accel tcg,thread=single -icount shift={shift},sleep=off {EMULATED_CPU} -seed 1 -rtc base=2026-01-01,clock=vm"
        ),
    };
    text.split(' ').map(str::to_string).collect()
}

/// The kernel's command line. `nokaslr`: the same addresses each time. `cryptomgr.notests`: else self-tests take CPU time
/// for seconds after the boot. `no_timer_check`: else the boot fails on a host too busy for timely ticks. `mitigations=off`:
/// costs of the kernel, not of the host's workarounds. `iomem=relaxed`: init may reach the timer that makes short turns. `lpj`: many
/// CPUs measure how fast they are while the others keep them from it, for minutes; nothing depends on it where the TSC is reliable.
fn kernel_line(vm: &Vm, mode: Mode) -> String {
    let base = "console=ttyS0 quiet panic=-1 nokaslr random.trust_cpu=on tsc=reliable cryptomgr.notests no_timer_check \
                mitigations=off";
    let turns = vm.turns_ns.filter(|_| vm.takes_turns(mode)).map(|_| "iomem=relaxed");
    let many = (mode != Mode::Kvm && vm.cpus > CPUS_MEASURED).then_some("lpj=2000000");
    let more = vm.kernel_arguments.iter().map(String::as_str);
    std::iter::once(base).chain(turns).chain(many).chain(more).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_machines_are_refused() {
        let refused = |vm: Vm| format!("{:#}", vm.run_captured(&["true"]).unwrap_err());
        let (_open, big) = big_file();
        for (vm, expected) in [
            (Vm { cpus: 0, ..Vm::default() }, "0 CPUs: a guest has 1 to 4096"),
            (Vm { cpus: 4097, ..Vm::default() }, "4097 CPUs"),
            (Vm { memory_mib: 64, ..Vm::default() }, "64 MiB of memory: a guest needs at least 128"),
            (Vm { memory_mib: 128, copies: vec![big], ..Vm::default() }, "need at least"),
            (Vm { mode: Mode::Deterministic { shift: 11 }, ..Vm::default() }, "shift 11"),
            (
                Vm { mode: Mode::Deterministic { shift: 1 }, cpus: 2, profile: true, ..Vm::default() },
                "a profile needs a machine of one CPU; this one has 2",
            ),
            (
                Vm { mode: Mode::Multi, profile: true, ..Vm::default() },
                "a profile needs a deterministic machine",
            ),
            (Vm { turns_ns: Some(999), ..Vm::default() }, "turns of 999 ns: possible are 1 us to 1 s"),
            (
                Vm { programs: vec!["no-such-program".into()], ..Vm::default() },
                "no-such-program: no such program",
            ),
            (Vm { kernel: KernelSpec::File("/no/kernel".into()), ..Vm::default() }, "no such file"),
        ] {
            let error = refused(vm);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_disk_is_there_if_wanted() {
        let words = |disk_mib| hardware(&Vm { disk_mib, ..Vm::default() }, Mode::Multi).join(" ");
        assert!(words(64).contains("size=67108864 -device piix3-ide"), "{}", words(64));
        assert!(!words(0).contains("ide"), "{}", words(0));
    }

    /// 32 MiB, without a name: it is gone with the last descriptor.
    fn big_file() -> (File, Copy) {
        let file = memory_file("big", &[]).unwrap();
        file.set_len(32 << 20).unwrap();
        let from = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        (file, Copy { from, to: "big".into() })
    }
}
