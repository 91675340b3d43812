#!/bin/sh
# PipeWire and a program that plays, as Debian has them, beside 16 busy processes and a fork storm of another user, one CPU: first
# under a plan with the manager, which answers as RealtimeKit and asks polkit who may, then without. What is written to /out: PipeWire's log, and a line for each
# of its cycles. See crates/tierce-cli/tests/dbus_boots.rs and bench/pipewire/run. SECONDS_EACH is how long each part is measured.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh
seconds=${SECONDS_EACH:-10}

export XDG_RUNTIME_DIR=/run/user/1001

# soon COMMAND...: until it succeeds, within 15 s
soon() {
	tries=60
	until "$@"; do
		sleep 0.25
		tries=$((tries - 1))
		[ $tries -gt 0 ] || exit 1
	done
}
# sound: PipeWire with a null sink, and a player linked to it. What else there is to start is started before it.
sound() {
	su alice -c 'PIPEWIRE_DEBUG=3 exec pipewire -c /guest/pipewire.conf' >"/out/$1.pipewire" 2>&1 &
	pipewire=$!
	soon test -e /run/user/1001/pipewire-0
	sleep 0.5
	su alice -c "exec pw-cat -p --target 0 --latency 480 -P '{ node.name = player adapter.auto-port-config = { mode = dsp } }' /guest/silence.wav" >"/out/$1.player" 2>&1 &
	player=$!
	for side in FL FR; do
		soon su alice -c "pw-link player:output_$side sink:playback_$side" 2>/dev/null
	done
	su alice -c "exec pw-profiler -o /tmp/$1.cycles" >/dev/null 2>&1 &
	profiler=$!
	sleep 1
}
# noise: bob's
noise() {
	su bob -c 'exec meter hogs --count 16 --time 3000s' >/dev/null 2>&1 &
	hogs=$!
	su bob -c 'exec meter forkstorm --name storm --count 10000000 --parallel 16' >/dev/null 2>&1 &
	storm=$!
}
# measured NAME: cycles from here on, and what PipeWire says of those who were late
measured() {
	sleep 1
	from=$(wc -l <"/tmp/$1.cycles") slow=$(grep -ciE 'xrun|too slow' "/out/$1.pipewire")
	sleep "$seconds"
	tail -n +"$((from + 1))" "/tmp/$1.cycles" | cut -f 1-4 >"/out/$1.cycles"
	say "$1" "{\"said_late\":$(($(grep -ciE 'xrun|too slow' "/out/$1.pipewire") - slow))}"
}

printf 'messagebus:x:100:100::/:/bin/false\npolkitd:x:101:101::/:/bin/false\nalice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
mkdir -p /run/dbus /run/user/1001 /var /etc/dbus-1/system.d
chown 1001:1001 /run/user/1001
ln -s /run /var/run
chmod 1777 /tmp
dbus-daemon --system || exit
polkitd --no-debug &
gdbus wait --system --timeout 30 org.freedesktop.PolicyKit1 || exit
tierce-manager --config pipewire-manager.toml --books /out/books.json 2>/out/manager.err &
manager=$!
begin plan pipewire.toml --locks ${TRACE:+--trace /out/with.trace} || exit
soon grep -q 'answers as' /out/manager.err

sound with
say requests "$(tierce request --list --json)"
ls "/proc/$pipewire/task" "/proc/$player/task" >/out/threads
noise
measured with
tierce status --json >/out/status.json 2>/dev/null
say rtkit-test "\"$(su alice -c rtkit-test 2>&1 | tee /out/rtkit-test | grep -c 'Successfully became realtime')\""
su bob -c rtkit-test >/out/bob 2>&1
kill "$hogs" "$storm" "$profiler" "$player" "$pipewire"
sleep 1
say gone "$(tierce request --list --json)"

kill "$manager"
wait "$manager"
finish TERM
sound without
noise
measured without
kill "$hogs" "$storm" "$profiler" "$player" "$pipewire"
