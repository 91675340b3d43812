#!/bin/sh
# What one user can take from another under a plan: names, programs, cgroups, leaves, two CPUs, one boot. See `security` in
# crates/tierce-cli/tests/kernel.rs and docs/security.md.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

status() {
	sleep 0.5
	say "$1" "$(tierce status --json | tr -d '\n')"
}
# ended TID: kills that thread, and waits until the plan has noticed
ended() {
	kill "$1"
	for _ in $(seq 100); do
		tierce status --json | tr -d ' \n' | grep -q "\"tid\":$1[,}]" || break
		sleep 0.1
	done
}
# spin USER NAME [PROGRAM]: a thread of that user that never stops; its number is $!
spin() {
	su "$1" -c "exec ${3:-meter} spin --name $2 --time 300s" >/dev/null 2>&1 &
}
# refused SCENARIO COMMAND: what bob gets for it
refused() {
	su bob -c "$2" >/out/"$1".said 2>&1
	say "$1" $?
}

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\ncarol:x:1003:1003::/:/bin/sh\n' >>/etc/passwd
mkdir -p /opt /tmp && chmod 1777 /tmp
cp "$(command -v meter)" /opt/program
cp "$(command -v meter)" /opt/sure-program
chown 1001:1001 /opt/sure-program
chmod 4755 /opt/sure-program
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
mkdir -p /sys/fs/cgroup/system.slice/service
users=/sys/fs/cgroup/user.slice/user-1002.slice/user@1002.service
mkdir -p /sys/fs/cgroup/system.slice/audio.service "$users/app.slice/audio.service"
cp "$(command -v meter)" /opt/checked
# As another program's: one byte more.
cp /opt/checked /opt/unchecked && echo >>/opt/unchecked
sed -i "s/sha256:0*/sha256:$(sha256sum /opt/checked | cut -d' ' -f1)/" security.toml
begin security security.toml || exit

# A forged name, until somebody fits better; then again.
spin bob audio-evil
evil=$!
status forged
spin alice audio-1
audio=$!
status preferred
ended $audio
status again
kill $evil
say names "{\"evil\":$evil,\"audio\":$audio}"

# A name beside a user: bob's own thread, and a program that runs with alice's rights for bob.
spin bob sure-evil
evil=$!
spin bob sure-x /opt/sure-program
borrowed=$!
status sure-forged
spin alice sure-1
sure=$!
status sure
kill $evil $borrowed
say users "{\"sure\":$sure,\"euid\":$(awk '/^Uid:/ { print $3 }' /proc/$borrowed/status 2>/dev/null || echo 0)}"

# A path is not a program: in a mount namespace of his own bob has his program at any path.
su bob -c 'cp /opt/sure-program /tmp/own; exec unshare -U -r -m sh -c "mount --bind /tmp/own /opt/program && exec /opt/program spin --name own --time 300s"' \
	>/out/own 2>&1 &
own=$!
sleep 1
say path "\"$(readlink /proc/$own/exe)\""
status mounted
kill $own
spin bob rightly /opt/program
rightly=$!
status program
kill $rightly
say programs "{\"own\":$own,\"rightly\":$rightly}"

# What the kernel refuses bob.
spin alice service
service=$!
echo $service >/sys/fs/cgroup/system.slice/service/cgroup.procs
status service
say services $service
# The file that root has checked, and another at its path.
spin alice checked /opt/checked
checked=$!
status checked
ended $checked
mv /opt/unchecked /opt/checked
spin bob checked /opt/checked
unchecked=$!
status unchecked
kill $unchecked
say checks "{\"checked\":$checked,\"unchecked\":$unchecked}"

# A unit of bob's, of the name of one of the system's.
spin bob unit
unit=$!
echo $unit >"$users/app.slice/audio.service/cgroup.procs"
status unit-forged
echo $unit >/sys/fs/cgroup/system.slice/audio.service/cgroup.procs
status unit
kill $unit
say units $unit
refused others "trouble others $sure"
refused cgroup 'echo $$ >/sys/fs/cgroup/system.slice/service/cgroup.procs'
refused socket 'tierce ctl reserve $$ --under rt --budget 1ms --period 10ms'
refused fifo 'chrt -f 1 true'
refused nice 'nice -n -5 true'

# threads_of PID: how many it has
threads_of() {
	awk '/^Threads:/ { print $2 }' "/proc/$1/status"
}

# had PID: CPU time of a thread, in ms
had() {
	awk '{ printf "%d", $1 / 1000000 }' "/proc/$1/schedstat"
}

# has_copy UID: waits until that user has one
has_copy() {
	tries=0
	until tierce status --json | tr -d ' \n' | grep -q "\"uid\":\"$1\"" || [ $tries -ge 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# A copy of a node for each user, in the order in which they come: alice's two threads beside four of bob's, and none for carol until
# alice has gone.
each=
for user in alice alice bob bob bob bob; do
	[ "$user" = alice ] || has_copy 1001
	spin $user each-$user
	each="$each $!"
done
has_copy 1002
spin carol each-carol
carol=$!
status each
at=0
for tid in $each; do
	at=$((at + 1))
	[ $at -gt 2 ] || kill "$tid"
done
status each-again
# shellcheck disable=SC2086 # several numbers
kill $carol $each 2>/dev/null
say carol $carol

# report FILE: what the loader says; among thousands of threads a client may be too late to read it, and asks again
report() {
	tries=0
	until tierce status --report --json >"/out/$1.json" || [ $tries -ge 5 ]; do
		tries=$((tries + 1))
		sleep 1
	done
}

# More threads than one user may have leaves.
echo 60000 >/proc/sys/kernel/threads-max
(
	# shellcheck disable=SC3045 # busybox has it
	ulimit -u 30000
	exec su bob -c 'exec trouble crowd 10000'
) &
crowd=$!
tries=0
while [ "$(threads_of $crowd)" -lt 10001 ] && [ $tries -lt 600 ]; do
	tries=$((tries + 1))
	sleep 0.5
done
sleep 2
report crowd
spin alice late
late=$!
sleep 1
report late
say crowd "{\"threads\":$(threads_of $crowd),\"late_ms\":$(had $late)}"
kill $crowd
wait $crowd
sleep 1
report after
kill $late $sure $service
finish TERM
