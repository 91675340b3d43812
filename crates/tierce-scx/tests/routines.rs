//! Start routines of the threads of real programs, compiled here.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tierce_scx::routines::{Routine, Routines};

const TWINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vm/twins.c");

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tierce-routines-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder.canonicalize().unwrap())
    }

    fn compile(&self, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
        let program = self.0.join(name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-Wall", "-pthread"]).args(flags).arg("-o").arg(&program).arg(source);
        assert!(gcc.status().unwrap().success());
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its test.
struct Running(Child);

impl Running {
    fn of(program: &Path) -> Running {
        Running(Command::new(program).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Its threads, except the first, when there are so many and each has its name.
    fn threads(&self, count: usize, name: &str) -> Vec<u32> {
        let (pid, begun) = (self.0.id(), Instant::now());
        loop {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let numbers = tasks.map(|task| task.file_name().to_str().unwrap().parse::<u32>().unwrap());
            let named = |tid: &u32| {
                let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                *tid != pid && comm.trim() == name
            };
            let mut threads: Vec<u32> = numbers.filter(named).collect();
            threads.sort_unstable();
            if threads.len() == count {
                return threads;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{threads:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn any(_: &Path) -> bool {
    true
}

/// When all are known: a thread has a name before it runs for the first time, and on a busy machine reading is slow.
fn known(routines: &mut Routines, pid: u32, tids: &[u32]) -> Vec<Option<Routine>> {
    let begun = Instant::now();
    loop {
        let found = routines.of(0, pid, tids, any);
        if !found.contains(&None) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn function(routine: &Option<Routine>) -> Option<String> {
    routine.as_ref().and_then(Routine::function)
}

/// In two runs, and after a strip, a routine is at the same place of the file, whatever the addresses are.
#[test]
fn threads_of_one_name_have_their_own_routine() {
    let folder = Folder::new("twins");
    for (flags, is_fixed) in [(&["-pie", "-fPIE"][..], false), (&["-no-pie"], true)] {
        let program = folder.compile(Path::new(TWINS), "twins", flags);
        let look = || {
            let running = Running::of(&program);
            let (pid, threads) = (running.0.id(), running.threads(2, "worker"));
            let (mut routines, all) = (Routines::default(), [&[pid], &threads[..]].concat());
            let (found, again) = (known(&mut routines, pid, &all), known(&mut routines, pid, &all));
            assert_eq!(found, again, "what is remembered of the C library");
            assert_eq!(routines.of(0, pid, &all, |_| false), [Some(Routine::Main), None, None]);
            found
        };
        let found = look();
        assert_eq!(found[0], Some(Routine::Main));
        assert_eq!([1, 2].map(|at| function(&found[at])), [Some("light".into()), Some("heavy".into())]);
        let said = found[1].as_ref().unwrap().to_string();
        assert!(said.starts_with("twins+0x"), "{said}");
        if is_fixed {
            let nm = Command::new("nm").arg(&program).output().unwrap().stdout;
            let nm = String::from_utf8(nm).unwrap();
            let line = nm.lines().find(|line| line.ends_with(" t light")).unwrap();
            let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
            assert_eq!(said, format!("twins+{:#x}", address - 0x40_0000));
        }
        assert!(Command::new("strip").arg(&program).status().unwrap().success());
        let stripped = look();
        assert_eq!(stripped, found);
        assert_eq!([1, 2].map(|at| function(&stripped[at])), [None, None]);
    }
}

#[test]
fn without_the_c_library_a_routine_is_not_known() {
    let folder = Folder::new("static");
    let running = Running::of(&folder.compile(Path::new(TWINS), "twins", &["-static"]));
    let threads = running.threads(2, "worker");
    assert_eq!(Routines::default().of(0, running.0.id(), &threads, any), [None, None]);
    assert_eq!(Routines::default().of(0, u32::MAX, &[1], any), [None], "no such process");
    assert_eq!(Routines::default().of(0, running.0.id(), &[u32::MAX], any), [None], "no such thread");
}

/// Each thread makes up a descriptor, whose list of robust mutexes it tells the kernel of; then it says what it is.
const HOSTILE: &str = r#"
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 65536
#define LIST 32768 /* in the middle of a made-up descriptor */

static int words[SIZE];
static void *other(void *nothing) { return nothing; }

static void tell(const char *what, char *list)
{
	syscall(SYS_set_robust_list, list, 24);
	printf("%s %ld\n", what, (long)syscall(SYS_gettid));
	fflush(stdout);
	for (;;)
		pause();
}
/* A descriptor with these words everywhere, and its own number where it belongs. */
static char *made_up(char *memory, uintptr_t word, int tid)
{
	int i;

	for (i = 0; i < SIZE / 8; i++)
		((uintptr_t *)memory)[i] = word;
	memcpy(memory + LIST - 16, &tid, sizeof(tid));
	return memory + LIST;
}
static char *anonymous(void)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void *hostile(void *arg)
{
	int own = (int)syscall(SYS_gettid), fd = memfd_create("shared", 0);

	switch ((int)(uintptr_t)arg) {
	case 0: tell("chosen", made_up(anonymous(), (uintptr_t)other, own));
	case 1: tell("number", made_up(anonymous(), (uintptr_t)other, own + 1));
	case 2: tell("data", made_up(anonymous(), (uintptr_t)words, own));
	case 3: tell("highest", made_up(anonymous(), UINTPTR_MAX, own));
	case 4: tell("kernel", (char *)UINTPTR_MAX - 4095);
	case 5: tell("low", (char *)8);
	case 6: tell("unmapped", (char *)0x10000000);
	case 7: tell("code", (char *)other);
	case 8: {
		char *pages = anonymous();

		memcpy(pages, &own, sizeof(own)); /* the routine's place is beyond the end */
		munmap(pages + 4096 - 4096 % 4096, SIZE - 4096);
		memcpy(pages + 4096 - 16, &own, sizeof(own));
		tell("end", pages + 4096);
	}
	case 9: {
		char *pages;

		if (ftruncate(fd, SIZE))
			exit(1);
		pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		tell("file", made_up(pages, (uintptr_t)other, own));
	}
	case 10: {
		char *code = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		tell("no-file", made_up(anonymous(), (uintptr_t)code, own));
	}
	case 11: {
		char *memory = anonymous();

		made_up(memory, (uintptr_t)other, own);
		mprotect(memory, SIZE, PROT_NONE);
		tell("unreadable", memory + LIST);
	}
	case 12: { /* who reads the memory waits until the program ends */
		char *memory = anonymous();
		struct uffdio_api api = {.api = UFFD_API};
		struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
		int faults = (int)syscall(SYS_userfaultfd, 0);

		area.range.start = (uintptr_t)memory;
		area.range.len = SIZE;
		if (ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &area))
			tell("cannot-wait", memory + LIST);
		tell("waits", memory + LIST);
	}
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	uintptr_t i;

	(void)argv;

	for (i = argc > 1 ? 12 : 0; i < (argc > 1 ? 13 : 12); i++)
		pthread_create(&thread, NULL, hostile, (void *)i);
	for (;;)
		pause();
}
"#;

/// A program can choose what its own threads are taken for, and nothing else.
#[test]
fn hostile_memory_is_a_routine_of_its_own_or_none() {
    let folder = Folder::new("hostile");
    let source = folder.0.join("hostile.c");
    fs::write(&source, HOSTILE).unwrap();
    let mut running = Running::of(&folder.compile(&source, "hostile", &["-Wno-implicit-fallthrough"]));
    let pid = running.0.id();
    let mut told = BufReader::new(running.0.stdout.take().unwrap()).lines();
    for _ in 0..12 {
        let line = told.next().unwrap().unwrap();
        let (what, tid) = line.split_once(' ').unwrap();
        let tid = [tid.parse().unwrap()];
        match what {
            "chosen" => {
                let found = known(&mut Routines::default(), pid, &tid).remove(0);
                assert_eq!(function(&found), Some("other".into()));
            }
            _ => assert_eq!(Routines::default().of(0, pid, &tid, any), [None], "{what}"),
        }
    }
}

/// Nobody waits for a program that lets its readers wait, and its user has no more of them.
#[test]
fn memory_that_lets_wait_is_not_waited_for() {
    let folder = Folder::new("waits");
    let source = folder.0.join("hostile.c");
    fs::write(&source, HOSTILE).unwrap();
    let program = folder.compile(&source, "hostile", &["-Wno-implicit-fallthrough"]);
    let mut hostile = Running(Command::new(&program).arg("waits").stdout(Stdio::piped()).spawn().unwrap());
    let line = BufReader::new(hostile.0.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let (what, tid) = line.split_once(' ').unwrap();
    let twins = Running::of(&folder.compile(Path::new(TWINS), "twins", &[]));
    let workers = twins.threads(2, "worker");
    known(&mut Routines::default(), twins.0.id(), &workers);
    let (mut routines, person, other) = (Routines::default(), 1001, 1002);
    let light =
        |routines: &mut Routines, person| routines.of(person, twins.0.id(), &workers[..1], any).remove(0);
    let begun = Instant::now();
    assert_eq!(routines.of(person, hostile.0.id(), &[tid.parse().unwrap()], any), [None]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    if what != "waits" {
        return; // without the right to let the kernel wait there is nothing to wait for
    }
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_eq!(light(&mut routines, person), None);
    // This machine may be slower than the reader's patience is long, but not for ten persons.
    assert!((other..other + 10).any(|other| light(&mut routines, other).is_some()), "others do not wait");
    drop(hostile);
    let found = light(&mut routines, person);
    let late = begun.elapsed() >= Duration::from_secs(10);
    assert!(found.is_none() || late, "it has ended, and he waits all the same");
    while light(&mut routines, person).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60) + 20 * took);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(begun.elapsed() >= Duration::from_secs(10));
}

#[test]
fn files_that_are_none_have_no_functions() {
    let folder = Folder::new("files");
    let at = |file: &Path, offset: u64| Routine::At { file: file.into(), offset }.function();
    let file = folder.0.join("file");
    for text in [&b""[..], b"\x7fELF", &[0x7f; 4096]] {
        fs::write(&file, text).unwrap();
        assert_eq!(at(&file, 64), None);
    }
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    for path in [&*file, Path::new("/dev/zero"), Path::new("/nowhere"), &folder.0] {
        assert_eq!(at(path, 0), None);
    }
    // A program with one byte changed after another: names or none.
    let program = folder.compile(Path::new(TWINS), "twins", &[]);
    let whole = fs::read(&program).unwrap();
    for at_byte in (0..1024).chain(whole.len() - 2048..whole.len()).step_by(3) {
        let mut text = whole.clone();
        text[at_byte] ^= 0xff;
        fs::write(&file, text).unwrap();
        let _ = at(&file, 0x1200);
    }
    let odd = Routine::At { file: "/x/a\n\u{1b}[31m".into(), offset: 16 };
    assert_eq!(odd.to_string(), "a??[31m+0x10");
    assert_eq!(Routine::Main.to_string(), "main");
}
