/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First process of the guest: prepare the machine, run one command, hand back what it left, end the machine.
 *
 * Host and guest talk over virtio-serial ports, found by name:
 *   tierce.out, tierce.err   stdout and stderr of the command, as they come
 *   tierce.files             at the end, a tar of /out
 *   tierce.status            "start\n" before the command, "exit N\n" after its files are across
 * Then a write to port 0xf4 (isa-debug-exit) ends QEMU. A guest that dies on the way never says "exit", and that is
 * how the host tells a dead guest from a failed command. Anything that fails here goes to the console and ends init,
 * which makes the kernel panic: the host shows the console.
 *
 * What to do is in two files of NUL-terminated strings: /etc/tierce/command (the argument vector) and
 * /etc/tierce/environment (NAME=value). /etc/tierce/turns, if there, holds the length in ns of the turns
 * that virtual CPUs shall take (see fine_turns). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

enum { EXIT_PORT = 0xf4, WORDS_MAX = 4096, PORT_WAIT_MS = 10000 };

static void die(const char *what)
{
	fprintf(stderr, "tierce init: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- file systems ---------------------------------------------------------------------------------------------- */

static const struct {
	const char *type, *where, *options;
	int required;
} mounts[] = {
    {"proc", "/proc", NULL, 1},
    {"sysfs", "/sys", NULL, 1},
    {"devtmpfs", "/dev", NULL, 1},
    {"devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666", 1},
    {"tmpfs", "/dev/shm", NULL, 1},
    {"tmpfs", "/tmp", NULL, 1},
    {"tmpfs", "/run", NULL, 1},
    {"tmpfs", "/out", NULL, 1},
    {"cgroup2", "/sys/fs/cgroup", NULL, 1},
    {"bpf", "/sys/fs/bpf", NULL, 1},
    {"debugfs", "/sys/kernel/debug", NULL, 0},
    {"tracefs", "/sys/kernel/tracing", NULL, 0},
};

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options) && mounts[i].required)
			die(mounts[i].where);
	}
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fprintf(stderr, "tierce init: lo stays down: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* --- what the host wrote ----------------------------------------------------------------------------------------- */

static char *words[WORDS_MAX + 1];

/* The NUL-terminated strings of a file, as an argument vector; NULL when there is no such file. */
static char **read_words(const char *path, char **into, size_t room)
{
	struct stat status;
	size_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &status))
		die(path);
	char *text = calloc(1, (size_t)status.st_size + 1);
	if (!text || read(fd, text, (size_t)status.st_size) != status.st_size)
		die(path);
	for (char *at = text, *end = text + status.st_size; at < end; at += strlen(at) + 1) {
		if (n == room) {
			errno = E2BIG;
			die(path);
		}
		into[n++] = at;
	}
	into[n] = NULL;
	close(fd);
	return into;
}

/* --- ports to the host ------------------------------------------------------------------------------------------- */

/* Ports appear a little after their device: wait for them. */
static int port_open(const char *name)
{
	for (int waited_ms = 0; waited_ms < PORT_WAIT_MS; waited_ms++) {
		int fd = port_find(name);
		if (fd >= 0)
			return fd;
		usleep(1000);
	}
	errno = ENODEV;
	die(name);
	return -1;
}

static void say(int port, const char *text)
{
	if (write(port, text, strlen(text)) != (ssize_t)strlen(text))
		die("tierce.status");
}

/* --- turns of virtual CPUs ---------------------------------------------------------------------------------------- */

/* Under instruction counting, QEMU runs the virtual CPUs in turn on one thread, each for its part of the time to the
 * next timer of the machine, and virtual time runs for all. With the kernel's tick alone (4 ms) a CPU stands still for
 * milliseconds at a time, which no scheduler can mend. So let a timer of the machine that is of no other use go off
 * every turns_ns: comparator 2 of the HPET, periodic, its interrupt left off. The guest never notices, it costs no CPU
 * time, and favours no CPU. (Timers that interrupt the guest do: with one on one of two CPUs, the other got 94 % of the
 * time, because a CPU that sets a timer loses the rest of its turn.) The kernel must run with iomem=relaxed.
 *
 * Each turn takes the host some time, above all when the guest is idle. Who does something in which turns mean nothing, such
 * as loading a plan, may tell init: SIGUSR1, turns are as long as the tick; SIGUSR2, they are fine again. */
static volatile uint32_t *hpet;
static uint64_t fine_ns;

static void take_turns(uint64_t ns)
{
	enum { PERIOD_FS = 0x004 / 4, COUNTER = 0x0f0 / 4, CONFIG = 0x140 / 4, COMPARATOR = 0x148 / 4 };
	enum { PERIODIC = 1 << 3, SET_BOTH = 1 << 6, ONLY_32_BITS = 1 << 8 };
	uint32_t ticks = (uint32_t)(ns * 1000000 / hpet[PERIOD_FS]);
	hpet[CONFIG] = PERIODIC | SET_BOTH | ONLY_32_BITS;
	hpet[COMPARATOR] = hpet[COUNTER] + ticks; /* the first time, and with SET_BOTH the next write is the period */
	hpet[COMPARATOR] = ticks;
}

static void turns_told(int signal)
{
	take_turns(signal == SIGUSR1 ? 1000000000 : fine_ns);
}

static void fine_turns(void)
{
	enum { HPET = 0xfed00000, PAGE = 4096 };
	char *text[2];
	if (!read_words("/etc/tierce/turns", text, 1))
		return;
	int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	if (fd < 0)
		die("fine turns: /dev/mem");
	hpet = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, HPET);
	if (hpet == MAP_FAILED)
		die("fine turns: mapping the HPET");
	fine_ns = strtoull(text[0], NULL, 10);
	take_turns(fine_ns);
	signal(SIGUSR1, turns_told);
	signal(SIGUSR2, turns_told);
}

/* --- the command ---------------------------------------------------------------------------------------------------
 */

/* Start a program with these three descriptors; its process id. */
static pid_t start(char **argv, int in, int out, int err)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	setsid();
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	execvp(argv[0], argv);
	fprintf(stderr, "tierce vm: cannot run %s in the guest: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Reap whoever ends until `pid` has; its exit code as a shell counts it. */
static int wait_for(pid_t pid)
{
	int status;
	for (;;) {
		pid_t ended = wait(&status);
		if (ended < 0 && errno != EINTR)
			die("wait");
		if (ended == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

static void end_machine(int code)
{
	if (!ioperm(EXIT_PORT, 4, 1))
		outl((unsigned)code & 0x7f, EXIT_PORT);
	reboot(RB_POWER_OFF);
}

/* Pages stay where they are: whoever touches a page that kcompactd moves sleeps until that thread, which has no budget, is done. */
static void no_compaction(void)
{
	FILE *knob = fopen("/proc/sys/vm/compaction_proactiveness", "w");
	if (knob) {
		fputs("0\n", knob);
		fclose(knob);
	}
}

int main(void)
{
	char line[32];
	mount_all();
	no_compaction();
	loopback_up();
	sethostname("tierce", 6);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){65536, 65536});

	clearenv();
	if (!read_words("/etc/tierce/environment", words, WORDS_MAX))
		die("/etc/tierce/environment");
	for (char **word = words; *word; word++)
		putenv(*word);

	int out = port_open("tierce.out"), err = port_open("tierce.err");
	int files = port_open("tierce.files"), status = port_open("tierce.status");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		die("/dev/null");
	fine_turns();
	if (!read_words("/etc/tierce/command", words, WORDS_MAX) || !words[0])
		die("/etc/tierce/command");
	if (chdir("/guest"))
		die("/guest");

	say(status, "start\n");
	int code = wait_for(start(words, null, out, err));

	kill(-1, SIGKILL); /* whatever it left running must not write while we pack */
	char *pack[] = {"tar", "-c", "-C", "/out", ".", NULL};
	if (wait_for(start(pack, null, files, 2)))
		die("packing /out");
	snprintf(line, sizeof line, "exit %d\n", code);
	say(status, line);
	end_machine(code);
	die("cannot end the machine");
}
