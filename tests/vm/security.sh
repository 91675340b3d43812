#!/bin/sh
# What one user can take from another under a plan: names, programs, cgroups, leaves, two CPUs, one boot. See `security` in
# crates/tierce-cli/tests/kernel.rs and docs/security.md.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# shows TEXT: the plan's state has it
shows() {
	tierce status --json | tr -d ' \n' | grep -q "$1"
}
# has_place TID, is_left_out TID, lacks_thread TID: so is the plan's state
has_place() {
	list_of threads | grep -qE "\"tid\": $1(,|\$)"
}
is_left_out() {
	list_of left_out | grep -qE "\"tid\": $1(,|\$)"
}
lacks_thread() {
	! shows "\"tid\":$1[,}]"
}
# is_called TID NAME: the thread runs its program
is_called() {
	[ "$(cat "/proc/$1/comm")" = "$2" ]
}
status() {
	sleep 0.5
	say "$1" "$(tierce status --json | tr -d '\n')"
}
# ended TID: kills that thread, and waits until the plan has noticed
ended() {
	kill "$1"
	awaits lacks_thread "$1"
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

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\ncarol:x:1003:1003::/:/bin/sh\ndora:x:5098:5098::/:/bin/sh\n' >>/etc/passwd
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
awaits has_place $evil
status forged
spin alice audio-1
audio=$!
awaits has_place $audio
awaits is_left_out $evil
status preferred
ended $audio
awaits shows '"left_out":\[\]'
awaits has_place $evil
status again
kill $evil
say names "{\"evil\":$evil,\"audio\":$audio}"

# A name beside a user: bob's own thread, and a program that runs with alice's rights for bob.
spin bob sure-evil
evil=$!
spin bob sure-x /opt/sure-program
borrowed=$!
awaits is_called $evil sure-evil
awaits is_called $borrowed sure-x
status sure-forged
spin alice sure-1
sure=$!
awaits has_place $sure
status sure
say users "{\"sure\":$sure,\"euid\":$(awk '/^Uid:/ { print $3 }' /proc/$borrowed/status)}"
kill $evil $borrowed

# A path is not a program: in a mount namespace of his own bob has his program at any path.
su bob -c 'cp /opt/sure-program /tmp/own; exec unshare -U -r -m sh -c "mount --bind /tmp/own /opt/program && exec /opt/program spin --name own --time 300s"' \
	>/out/own 2>&1 &
own=$!
awaits is_called $own own
say path "\"$(readlink /proc/$own/exe)\""
status mounted
kill $own
spin bob rightly /opt/program
rightly=$!
awaits has_place $rightly
status program
kill $rightly
say programs "{\"own\":$own,\"rightly\":$rightly}"

# What the kernel refuses bob.
spin alice service
service=$!
echo $service >/sys/fs/cgroup/system.slice/service/cgroup.procs
awaits has_place $service
status service
say services $service
# The file that root has checked, and another at its path.
spin alice checked /opt/checked
checked=$!
awaits has_place $checked
status checked
ended $checked
mv /opt/unchecked /opt/checked
spin bob checked /opt/checked
unchecked=$!
awaits is_called $unchecked checked
status unchecked
kill $unchecked
say checks "{\"checked\":$checked,\"unchecked\":$unchecked}"

# A unit of bob's, of the name of one of the system's.
spin bob unit
unit=$!
echo $unit >"$users/app.slice/audio.service/cgroup.procs"
awaits is_called $unit unit
status unit-forged
echo $unit >/sys/fs/cgroup/system.slice/audio.service/cgroup.procs
awaits has_place $unit
status unit
kill $unit
say units $unit
refused others "trouble others $sure"
refused cgroup 'echo $$ >/sys/fs/cgroup/system.slice/service/cgroup.procs'
refused socket 'tierce ctl reserve $$ --under rt --budget 1ms --period 10ms'
refused socket-apply 'tierce apply security.toml'
refused socket-status 'tierce status'
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

# has_had PID MS
has_had() {
	[ "$(had "$1")" -gt "$2" ]
}

# A copy of a node for each user, in the order in which they come: alice's two threads beside four of bob's, and none for carol until
# alice has gone.
each=
for user in alice alice bob bob bob bob; do
	[ "$user" = alice ] || awaits shows '"uid":"1001"'
	spin $user each-$user
	each="$each $!"
done
awaits shows '"uid":"1002"'
spin carol each-carol
carol=$!
awaits is_left_out $carol
status each
at=0
for tid in $each; do
	at=$((at + 1))
	[ $at -gt 2 ] || kill "$tid"
done
awaits shows '"uid":"1003"'
awaits shows '"left_out":\[\]'
awaits has_place $carol
status each-again
# shellcheck disable=SC2086 # several numbers
kill $carol $each 2>/dev/null
say carol $carol

# report FILE: what the loader says; among thousands of threads a client may be too late to read it, and asks again
report() {
	asked=0
	until tierce status --report --json >"/out/$1.json" || [ $asked -ge 5 ]; do
		asked=$((asked + 1))
		sleep 1
	done
}

# all_have_come: each of the crowd's threads has a leaf, or was refused one
all_have_come() {
	report crowd
	kernel=$(kernel_of crowd)
	[ -n "$kernel" ] && [ $(($(number threads) + $(number crowded))) -gt 10000 ]
}

# few_are_left: of the crowd's threads nearly all have given their leaves back
few_are_left() {
	report after
	kernel=$(kernel_of after)
	[ "$(number threads)" -lt 200 ]
}

# More threads than one user may have leaves. Dora's number is bob's and 4,096.
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
awaits all_have_come
spin dora late
late=$!
awaits is_called $late late
awaits has_had $late 200
report late
say crowd "{\"threads\":$(threads_of $crowd),\"late_ms\":$(had $late)}"
kill $crowd
wait $crowd
awaits few_are_left
kill $late $sure $service
finish TERM
