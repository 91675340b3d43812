//! `tierce vm` as a user calls it: one boot, and what is refused before one.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tierce-cli-vm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("plans")).unwrap();
        Folder(path)
    }

    fn tierce_vm(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tierce"))
            .arg("vm")
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_command_with_its_files() {
    let folder = Folder::new("run");
    std::fs::write(folder.0.join("plans/a.txt"), "from outside\n").unwrap();
    let line = "tierce --version; cat plans/a.txt; echo $A; echo to the host >/out/back; echo oh >&2; exit 7";
    let out = folder.tierce_vm(&["--no-kvm", "--json", "--env", "A=a=b", "--out", "results", "--", line]);
    let said = String::from_utf8_lossy(&out.stderr);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        String::from_utf8_lossy(&out.stdout),
        format!("tierce {version}\nfrom outside\na=b\n"),
        "{said}"
    );
    assert_eq!(out.status.code(), Some(7), "{said}");
    let summary: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["end"], &summary["code"]), (&"exit".into(), &7.into()));
    assert!(said.contains("oh\n"));
    assert_eq!(std::fs::read_to_string(folder.0.join("results/back")).unwrap(), "to the host\n");
    assert!(folder.0.join("results/console.log").exists());
}

#[test]
fn ctrl_c_ends_the_guest_and_leaves_its_console() {
    let folder = Folder::new("stopped");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["vm", "--json", "--out", "results", "--", "echo here; sleep 1000"])
        .current_dir(&folder.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    // SAFETY: the process is ours, and has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("tierce vm: ended early; what the command left in /out is lost\n"), "{said}");
    let summary: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["end"], &summary["code"]), (&"stopped".into(), &130.into()));
    assert!(folder.0.join("results/console.log").exists());
}

/// They are compiled here, and the guest, which has no compiler, loads them into its kernel.
#[test]
fn the_users_policies_go_along() {
    let folder = Folder::new("policies");
    let own = format!("{}/../../examples/policies/shortest-first", env!("CARGO_MANIFEST_DIR"));
    let plan = format!("{own}/jobs.toml:jobs.toml");
    let line = "tierce run --for 200ms jobs.toml";
    let out = folder.tierce_vm(&["--policy-dir", &own, "--file", &plan, "--", line]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("shortest-first"), "{said}");
}

#[test]
fn what_is_refused_before_a_boot() {
    let folder = Folder::new("refused");
    for (arguments, expected) in [
        (vec![], "the command to run in the guest is missing"),
        (vec!["--kernel", "latest", "true"], "kernel \"latest\": expected a version"),
        (vec!["--kernel", "./none", "true"], "kernel ./none: no such file"),
        (vec!["--cpus", "0", "true"], "0 CPUs: a guest has 1 to 4096"),
        (vec!["--memory", "12", "true"], "memory \"12\": expected a number with M or G"),
        (vec!["--memory", "12M", "true"], "12 MiB of memory"),
        (vec!["--limit", "5", "true"], "a time needs a unit: ns, us, ms, s or min"),
        (vec!["--fine-turns", "1", "true"], "a time needs a unit"),
        (vec!["--deterministic", "--shift", "11", "true"], "shift 11"),
        (vec!["--shift", "2", "true"], "--deterministic"),
        (vec!["--program", "no-such-program", "true"], "no-such-program: no such program on this machine"),
        (vec!["--file", "none", "true"], "none: cannot be put into the guest"),
        (vec!["--dir", "plans:../x", "true"], "plans:../x: the target leaves"),
        (vec!["--env", "A", "true"], "--env A: expected NAME=VALUE"),
        (vec!["--profile", "true"], "--deterministic"),
        (vec!["--deterministic", "--annotate", "schedule", "true"], "--profile"),
        (
            vec!["--deterministic", "--cpus", "2", "--profile", "true"],
            "a profile needs a machine of one CPU; this one has 2",
        ),
        (vec!["fetch", "--print", "everything"], "invalid value 'everything'"),
    ] {
        let out = folder.tierce_vm(&arguments);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected), "tierce vm {arguments:?}: {said}");
        assert_eq!(out.status.code(), Some(2), "tierce vm {arguments:?}");
    }
}

#[test]
fn what_keeps_a_kernel_from_being_fetched() {
    let folder = Folder::new("fetch");
    let cache = folder.0.join("cache").display().to_string();
    let programs = folder.0.join("plans").display().to_string(); // none
    for (environment, expected) in [
        (
            vec![("PATH", programs.as_str())],
            "apt-get not found: kernels are fetched with Debian's package tools",
        ),
        (
            vec![("TIERCE_DEBIAN_MIRROR", "nonsense")],
            "cannot get a kernel from Debian's archive; without a network",
        ),
        (vec![("TIERCE_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")], "apt-get failed: E: Failed to fetch"),
        (vec![("XDG_CACHE_HOME", ""), ("HOME", "")], "neither XDG_CACHE_HOME nor HOME names a folder"),
        (vec![("XDG_CACHE_HOME", "/proc/none")], "cannot create /proc/none/tierce/kernels"),
    ] {
        let mut fetch = Command::new(env!("CARGO_BIN_EXE_tierce"));
        fetch.args(["vm", "fetch"]).env("XDG_CACHE_HOME", &cache).envs(environment.clone());
        let out = fetch.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected), "{environment:?}: {said}");
        assert_eq!(out.status.code(), Some(2), "{environment:?}");
    }
}

/// A QEMU that says it is of this version, and answers `-plugin help` with this exit code.
fn qemu(folder: &Folder, version: &str, plugins: u32) -> PathBuf {
    let programs = folder.0.join("bin");
    std::fs::create_dir_all(&programs).unwrap();
    let path = programs.join("qemu-system-x86_64");
    let script = format!(
        "#!/bin/sh\ncase $1 in\n--version) echo QEMU emulator version {version} ;;\n\
         -plugin) echo not built in >&2; exit {plugins} ;;\nesac\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    programs
}

#[test]
fn a_qemu_that_cannot_profile_is_refused() {
    let folder = Folder::new("plugins");
    for (version, plugins, expected) in [
        ("8.2.1", 0, "a profile needs QEMU 9.1 or later; this is 8.2"),
        ("10.0.2", 1, "a profile needs a QEMU that takes plugins (built with --enable-plugins, as Debian's is): not built in"),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_tierce"))
            .args(["vm", "--deterministic", "--profile", "true"])
            .env("PATH", qemu(&folder, version, plugins))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected), "{version}: {said}");
        assert_eq!(out.status.code(), Some(2), "{version}");
    }
}

const PLAN: &str = r#"
[machine]
cpus = 1

[node.root]
policy = "fair"
cpu = 0
default = true
each = { weight = "nice" }
"#;

/// The instructions that a profile counts are those in which the machine counts its time, and a switch is in it as often as
/// there were switches: in the kernel, and in the scheduler that was loaded.
#[test]
fn a_profile_counts_every_instruction() {
    let folder = Folder::new("profile");
    std::fs::write(folder.0.join("plan.toml"), PLAN).unwrap();
    let line = "tierce run plan.toml --stats counts >/out/run 2>&1 &
        until grep -q 'is in force' /out/run; do sleep 0.1; done
        meter pingpong --count 1000 --profile";
    let arguments = [
        "--deterministic",
        "--memory",
        "1G",
        "--profile=profile.txt",
        "--annotate",
        "graph_decide",
        "--",
        line,
    ];
    let out = folder.tierce_vm(&arguments);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    let measured: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let instructions = measured["wall_ns"].as_u64().unwrap() / 2;

    let file = std::fs::read_to_string(folder.0.join("profile.txt")).unwrap();
    let rows: Vec<Vec<&str>> = file.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let counted: u64 = rows[0][0].parse().unwrap();
    assert!(counted.abs_diff(instructions) < instructions / 100, "{counted} of {instructions}");
    let calls = |name: &str| -> u64 {
        let row = rows.iter().find(|row| row.len() > 4 && row[4] == name);
        row.unwrap_or_else(|| panic!("{name} is not in {file}"))[3].parse().unwrap()
    };
    let switches = measured["voluntary"].as_u64().unwrap();
    for name in ["__schedule", "graph_decide", "graph_request", "tierce_dispatch"] {
        assert!(calls(name).abs_diff(switches) < switches / 20, "{name}: {} of {switches}", calls(name));
    }
    // Shown and in the file alike: instruction by instruction, below the source lines.
    for text in [&*said, file.as_str()] {
        let listing = text.split_once("\ngraph_decide [bpf]: ").expect("it is annotated").1;
        let listing = listing.split("\n\n").next().unwrap();
        assert!(listing.contains("\n; engine/cpu_entries.c:") && listing.contains("  retq"), "{listing}");
    }
    assert!(said.contains(" more functions"), "{said}");
}
