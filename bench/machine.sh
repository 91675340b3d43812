# shellcheck shell=bash
# The machine that a bench measures: a virtual one, or with the word --here the one it is started on. To be sourced, in its own folder,
# by each `run` that measures Linux. The word is then taken out of its arguments; `here` is "yes", or empty; `target` is cargo's folder,
# `tierce` the program, `pictures` where pictures go if nothing is said.
#
#   usage                                the comment at its beginning, and the exit code 2
#   needs PROGRAM...                     with --here: is the machine fit, and has it these? If not: all that is missing, exit code 2
#   build PROGRAM...                     tierce, examples of tierce-scx
#   draw NAME ARGUMENT...                the example bench-NAME of tierce-figure: figures.rs of a bench's folder
#   machine CPUS [OPTION...] -- COMMAND...  in the current folder. What the command says is in said.json, what it leaves in /out is in out/
#
# With --here the machine has only its first CPUS CPUs for so long, the others are offline. The command sees the current folder as
# /guest and a folder /out, as in a virtual machine, and nobody else does. Afterwards all is as before, also after Ctrl-C. Where there is
# no cargo, what is built already is used. TIERCE=PROGRAM in the environment: that one, and nothing is built.
here='' words=()
for word; do
	if [ "$word" = --here ]; then here=yes; else words+=("$word"); fi
done
set -- "${words[@]}"
bench=bench/$(basename "$PWD")/$(basename "$0")
project=$(realpath ../..)
target=$(realpath -m "${CARGO_TARGET_DIR:-$project/target}")
tierce=$(realpath -m "${TIERCE-$target/release/tierce}")
here_programs=$target/bench/programs
# shellcheck disable=SC2034 # for who sources this
pictures=$([ -n "$here" ] && echo "$target/bench/$(basename "$PWD")/pictures" || echo "$project/docs/experiments")
SCHED_EXT=/sys/kernel/sched_ext
FEATURES=/sys/kernel/debug/sched/features
PACKETS=/sys/class/net/lo/queues/rx-0/rps_cpus

usage() {
	sed -n '2,/^set/s/^# \{0,1\}//p' "$(basename "$0")" >&2
	exit 2
}

refuse() { # REASON...
	echo "$bench --here: this machine cannot be measured:" >&2
	printf '  %s\n' "$@" >&2
	exit 2
}

needs() {
	[ -n "$here" ] || return 0
	local missing=() program asleep
	[ "$(id -u)" = 0 ] || missing+=("not root: sudo -E env \"PATH=\$PATH\" $bench --here")
	if [ ! -e $SCHED_EXT ]; then
		missing+=("no sched_ext: $SCHED_EXT is not there (CONFIG_SCHED_CLASS_EXT=y; Debian's 6.18 and 7.0 have it)")
	elif [ "$(cat $SCHED_EXT/state)" != disabled ]; then
		missing+=("a scheduler of sched_ext is in force: $(cat $SCHED_EXT/*/ops 2>/dev/null || cat $SCHED_EXT/state); end it first")
	fi
	for program in python3 awk unshare mount chroot "$@"; do
		command -v "$program" >/dev/null || missing+=("no program $program")
	done
	for program in meter tbench tbench_srv hackbench; do # what guests end by name
		! pidof "$program" >/dev/null || missing+=("$program runs already: the measurement would end it")
	done
	# meter's clock stands still while the machine sleeps, that of /proc/uptime does not.
	asleep=$(python3 -c 'from time import *; print(round(clock_gettime(CLOCK_BOOTTIME) - clock_gettime(CLOCK_MONOTONIC)))' 2>/dev/null || true)
	[ "${asleep:-0}" = 0 ] || missing+=("it has slept since it was booted, ${asleep} s: boot it again")
	[ ${#missing[@]} = 0 ] || refuse "${missing[@]}"
}

build() {
	local program
	if [ -z "${TIERCE-}" ] && command -v cargo >/dev/null; then
		for program; do
			case $program in
			tierce) set -- -p tierce-cli ;;
			*) set -- -p tierce-scx --example "$program" ;;
			esac
			(cd "$project" && cargo build --release --quiet "$@")
		done
	fi
	[ -n "$here" ] || return 0
	[ -x "$tierce" ] || refuse "$tierce is not built, and there is no cargo"
	mkdir -p "$here_programs"
	cp "$tierce" "$here_programs"
	if command -v gcc >/dev/null; then
		gcc -std=gnu11 -O2 -s -o "$here_programs/meter" "$project/guest/meter.c" -lpthread
	elif ! command -v "$here_programs/meter" meter >/dev/null; then
		refuse "no meter, and no gcc to make it"
	fi
	local found
	found=$("$tierce" doctor) || refuse "$found"
}

draw() {
	if command -v cargo >/dev/null; then
		(cd "$project" && cargo build --release --quiet --locked -p tierce-figure --example "bench-$1")
	fi
	"$target/release/examples/bench-$1" "${@:2}"
}

machine() {
	local cpus=$1 options=() environment=()
	shift
	while [ "$1" != -- ]; do
		[ "$1" != --env ] || environment+=("$2")
		options+=("$1")
		shift
	done
	shift
	if [ -n "$here" ]; then
		machine_here "$cpus" env "${environment[@]}" "$@"
	else
		"$tierce" vm --cpus "$cpus" "${options[@]}" --out out -- "$@" >said.json
	fi
}

cpus_there() {
	find /sys/devices/system/cpu -maxdepth 1 -name 'cpu[0-9]*' | wc -l
}

# described CPUS: what is measured, in a line
described() {
	local model governor=/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor virtual=''
	model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	! grep -qw '^flags.*hypervisor' /proc/cpuinfo || virtual=', a virtual machine: nothing that follows is of hardware'
	printf '\n%s on %s, %d of %d CPUs, Linux %s, governor %s, %s%s\n' "$bench" "${model:-$(uname -m)}" "$1" "$(cpus_there)" \
		"$(uname -r)" "$(cat "$governor" 2>/dev/null || echo unknown)" "$("$tierce" --version)" "$virtual"
}

# What a measurement may change of the machine, and what it was; folders that it makes
kept_files=() kept_values=() made=()
keep() { # FILE VALUE
	kept_files+=("$1") kept_values+=("$2")
}
group=''
as_before() { # and nothing of the measurement still runs
	local at
	if [ -n "$group" ] && kill -TERM -- "-$group" 2>/dev/null; then
		kill -CONT -- "-$group" || true
		sleep 1
		kill -KILL -- "-$group" || true
	fi 2>/dev/null
	group=''
	for at in "${!kept_files[@]}"; do
		echo "${kept_values[at]}" >"${kept_files[at]}"
	done
	kept_files=() kept_values=()
	rmdir "${made[@]}" 2>/dev/null || true
}

# as_guest FOLDER PROGRAMS COMMAND...: below a root like this machine's, with /guest, /out, /programs and a /tmp of its own
as_guest() {
	set -e
	local view=$1 programs=$2 each
	shift 2
	mount -t tmpfs tmpfs "$view"
	for each in /*; do
		case $each in /guest | /out | /programs | /tmp) continue ;; esac
		if [ -L "$each" ]; then
			cp -P "$each" "$view$each"
		elif [ -d "$each" ]; then
			mkdir "$view$each"
			mount --rbind "$each" "$view$each"
		fi
	done
	mkdir "$view/guest" "$view/out" "$view/programs" "$view/tmp"
	mount --bind . "$view/guest"
	mount --bind out "$view/out"
	mount --bind "$programs" "$view/programs"
	# shellcheck disable=SC2016 # the inner shell's
	exec chroot "$view" sh -c 'cd /guest && exec "$@"' sh "$@"
}

machine_here() { # CPUS COMMAND...
	local cpus=$1 cpu view status=0
	shift
	((cpus <= $(cpus_there))) || refuse "$cpus CPUs are wanted, it has $(cpus_there)"
	trap as_before EXIT
	trap 'exit 130' INT TERM HUP
	described "$cpus"
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		if ((${cpu##*/cpu} >= cpus)) && [ "$(cat "$cpu/online" 2>/dev/null || echo 1)" = 1 ]; then
			[ -e "$cpu/online" ] || refuse "$(basename "$cpu") cannot be taken offline"
			keep "$cpu/online" 1
			echo 0 >"$cpu/online"
		fi
	done
	[ ! -e $FEATURES ] || keep $FEATURES "$(grep -ow '\(NO_\)\?HRTICK_DL' $FEATURES)"
	[ ! -e $PACKETS ] || keep $PACKETS "$(cat $PACKETS)"
	mkdir -p out
	view=$(mktemp -d)
	made+=("$view")
	set -m # a process group of its own, to end all of it
	PATH=/programs:$PATH:/usr/sbin:/sbin unshare --mount bash -c "$(declare -f as_guest)"'; as_guest "$@"' \
		bash "$view" "$here_programs" "$@" >said.json </dev/null &
	group=$!
	set +m
	wait "$group" || status=$?
	as_before
	return "$status"
}
